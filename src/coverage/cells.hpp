// src/coverage/cells.hpp - accesses to a buffer, counted in cells of elements
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::coverage {

/// Accesses of threads to the elements of one cell, and which threads of which blocks made them.
struct Cell {
  std::uint64_t reads = 0;   ///< elements, summed over threads
  std::uint64_t writes = 0;  ///< atomics are both
  /// Numbers of blocks in the grid and of threads in their block; first > last without accesses.
  std::uint64_t first_block = ~std::uint64_t{0}, last_block = 0;
  std::uint32_t first_thread = ~std::uint32_t{0}, last_thread = 0;

  [[nodiscard]] std::uint64_t accesses() const noexcept { return reads + writes; }
  void add(const Cell& other) noexcept;
  friend bool operator==(const Cell&, const Cell&) = default;
};

/// A buffer of rows x columns elements, row-major, in square cells.
struct CellMap {
  std::string buffer;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint32_t side = 16;  ///< elements of a cell in each direction; fewer at the edges
  std::vector<Cell> cells;  ///< row-major

  [[nodiscard]] std::uint64_t cell_rows() const noexcept { return (rows + side - 1) / side; }
  [[nodiscard]] std::uint64_t cell_columns() const noexcept { return (columns + side - 1) / side; }
  /// Cells with one access or more.
  [[nodiscard]] std::size_t covered() const noexcept;
  friend bool operator==(const CellMap&, const CellMap&) = default;
};

/// A map without accesses. The side is 16, doubled until there are at most 65536 cells.
[[nodiscard]] CellMap make_cells(std::string_view buffer, std::uint64_t rows,
                                 std::uint64_t columns);

/// Adds cells of the same buffer and side, each to the cell at its place; the map grows to hold
/// both.
void add(CellMap& to, const CellMap& from);
/// The same to the map of that buffer and side, if there is one with which it has at most 65536
/// cells; else it becomes a map of its own.
void add(std::vector<CellMap>& to, const CellMap& from);

/// The cells of the first `rows` x `columns` elements. A map that has fewer has cells without
/// accesses there.
[[nodiscard]] CellMap domain(const CellMap& map, std::uint64_t rows, std::uint64_t columns);

/// A map as a picture: fields of one cell or, where that would be too many, of several.
struct Grid {
  std::uint64_t rows = 0;     ///< fields
  std::uint64_t columns = 0;  ///< fields
  std::uint64_t cells = 1;    ///< of a field in each direction
  struct Field {
    std::uint64_t accesses = 0;
    std::uint32_t covered = 0;  ///< cells with accesses
    std::uint32_t all = 0;      ///< cells
    Cell sum;
  };
  std::vector<Field> fields;       ///< row-major
  std::uint64_t max_accesses = 0;  ///< of a field
};
[[nodiscard]] Grid grid_of(const CellMap& map, std::uint64_t max_rows, std::uint64_t max_columns);

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;
  friend bool operator==(const Colour&, const Colour&) = default;
};
/// Red: no access; orange: only a part of the cells; else blue, darker with more accesses
/// (logarithmic).
[[nodiscard]] Colour colour_of(const Grid& grid, const Grid::Field& field) noexcept;

/// At most 64 x 32 characters: '.' no access, '-' only a part of the cells, else 1 to 9, linear up
/// to the field with the most accesses. With a head and the rows' first elements.
[[nodiscard]] std::string heat_map_text(const CellMap& map);
/// At most 128 x 128 fields. Each is a `rect` with `data-accesses`, and a title with the elements
/// and the threads.
[[nodiscard]] std::string heat_map_svg(const CellMap& map, std::string_view title);

/// Whether this build can write and read PNG.
[[nodiscard]] bool has_png() noexcept;
/// At most 512 x 512 fields of 8 x 8 pixels, or 2 x 2 where there are more than 128 in a direction.
/// Throws `Error` (Stage::Io, "no-png") in a build without libpng.
[[nodiscard]] std::string heat_map_png(const CellMap& map);
/// Pixels of a PNG file, for checks.
struct Pixels {
  std::uint32_t width = 0, height = 0;
  std::vector<Colour> colours;  ///< row-major
};
/// Throws `Error` (Stage::Io, "no-png" or "bad-png").
[[nodiscard]] Pixels read_png(std::string_view bytes);

}  // namespace ptxgen::coverage
