// src/coverage/heat_map.cpp - cells as text and as SVG
#include <algorithm>

#include "coverage/cells.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/markup.hpp"

namespace ptxgen::coverage {

namespace {

char character_of(const Grid& grid, const Grid::Field& field) {
  if (field.covered == 0) return '.';
  if (field.covered < field.all) return '-';
  return static_cast<char>(
      '0' +
      std::max<std::uint64_t>(1, (9 * field.accesses + grid.max_accesses - 1) / grid.max_accesses));
}

std::string range_text(std::uint64_t first, std::uint64_t last) {
  return first == last ? std::to_string(first) : format_text("{}-{}", first, last);
}

// "rows 0-15, columns 16-31: 256 reads, 0 writes, by threads 16-31 of block 0".
std::string field_text(const CellMap& map, const Grid& grid, std::uint64_t row,
                       std::uint64_t column, const Grid::Field& field) {
  const std::uint64_t side = map.side * grid.cells;
  std::string text = format_text(
      "rows {}, columns {}: ", range_text(row * side, std::min(map.rows, (row + 1) * side) - 1),
      range_text(column * side, std::min(map.columns, (column + 1) * side) - 1));
  if (field.accesses == 0) return text + "no access";
  const Cell& sum = field.sum;
  text += format_text("{}, {}, by {} {} of {} {}", count_text(sum.reads, "read"),
                      count_text(sum.writes, "write"),
                      sum.first_thread == sum.last_thread ? "thread" : "threads",
                      range_text(sum.first_thread, sum.last_thread),
                      sum.first_block == sum.last_block ? "block" : "blocks",
                      range_text(sum.first_block, sum.last_block));
  if (field.covered < field.all) {
    text += format_text("; {} of {} cells", field.covered, field.all);
  }
  return text;
}

}  // namespace

std::string heat_map_text(const CellMap& map) {
  const Grid grid = grid_of(map, 32, 64);
  const std::uint64_t side = map.side * grid.cells;
  std::string text = format_text(
      "{}: {} x {} elements, {} of {} cells of {} x {}; one character is {} x {} elements\n",
      map.buffer, map.rows, map.columns, map.covered(), map.cells.size(), map.side, map.side, side,
      side);
  for (std::uint64_t row = 0; row < grid.rows; ++row) {
    std::string line = std::to_string(row * side);
    line.insert(0, line.size() < 8 ? 8 - line.size() : 0, ' ');
    line += "  ";
    for (std::uint64_t column = 0; column < grid.columns; ++column) {
      line +=
          character_of(grid, grid.fields[static_cast<std::size_t>(row * grid.columns + column)]);
    }
    text += line + "\n";
  }
  return text + format_text(". no access   - only some of the cells   1 to 9: up to {}\n",
                            count_text(grid.max_accesses, "access"));
}

std::string heat_map_svg(const CellMap& map, std::string_view title) {
  const Grid grid = grid_of(map, 128, 128);
  const std::uint64_t size = std::max(grid.rows, grid.columns) > 64 ? 6 : 16;  // pixels of a field
  const std::uint64_t width = std::max<std::uint64_t>(grid.columns * size, 420) + 20;
  const std::uint64_t height = grid.rows * size + 64;
  std::string text = format_text(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" "
      "height=\"{}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text x=\"10\" y=\"18\">{}</text>\n"
      "<text x=\"10\" y=\"34\">{}: {} x {} elements, {} of {} cells accessed</text>\n",
      width, height, width, height, escaped_markup(title), escaped_markup(map.buffer), map.rows,
      map.columns, map.covered(), map.cells.size());
  for (std::uint64_t row = 0; row < grid.rows; ++row) {
    for (std::uint64_t column = 0; column < grid.columns; ++column) {
      const Grid::Field& field = grid.fields[static_cast<std::size_t>(row * grid.columns + column)];
      const Colour colour = colour_of(grid, field);
      text += format_text(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#{:02x}{:02x}{:02x}\" "
          "data-accesses=\"{}\"><title>{}</title></rect>\n",
          10 + column * size, 44 + row * size, size - 1, size - 1, colour.red, colour.green,
          colour.blue, field.accesses, field_text(map, grid, row, column, field));
    }
  }
  return text + format_text(
                    "<text x=\"10\" y=\"{}\">red: no access; orange: only some of the cells; "
                    "blue: up to {}</text>\n</svg>\n",
                    height - 6, count_text(grid.max_accesses, "access"));
}

}  // namespace ptxgen::coverage
