// src/coverage/cells.cpp - accesses to a buffer, counted in cells of elements
#include "coverage/cells.hpp"

#include <algorithm>
#include <cmath>

#include "support/format.hpp"

namespace ptxgen::coverage {

namespace {

constexpr std::uint64_t kMaxCells = 65536;

}  // namespace

void Cell::add(const Cell& other) noexcept {
  reads += other.reads;
  writes += other.writes;
  first_block = std::min(first_block, other.first_block);
  last_block = std::max(last_block, other.last_block);
  first_thread = std::min(first_thread, other.first_thread);
  last_thread = std::max(last_thread, other.last_thread);
}

std::size_t CellMap::covered() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(cells, [](const Cell& cell) { return cell.accesses() != 0; }));
}

CellMap make_cells(std::string_view buffer, std::uint64_t rows, std::uint64_t columns) {
  CellMap map;
  map.buffer = std::string(buffer);
  map.rows = rows;
  map.columns = columns;
  while (map.cell_rows() * map.cell_columns() > kMaxCells) map.side *= 2;
  map.cells.resize(static_cast<std::size_t>(map.cell_rows() * map.cell_columns()));
  return map;
}

void add(CellMap& to, const CellMap& from) {
  if (from.rows > to.rows || from.columns > to.columns) {
    to = domain(to, std::max(to.rows, from.rows), std::max(to.columns, from.columns));
  }
  for (std::uint64_t row = 0; row < from.cell_rows(); ++row) {
    for (std::uint64_t column = 0; column < from.cell_columns(); ++column) {
      to.cells[static_cast<std::size_t>(row * to.cell_columns() + column)].add(
          from.cells[static_cast<std::size_t>(row * from.cell_columns() + column)]);
    }
  }
}

void add(std::vector<CellMap>& to, const CellMap& from) {
  const auto same = std::ranges::find_if(to, [&](const CellMap& other) {
    if (other.buffer != from.buffer || other.side != from.side) return false;
    CellMap both;
    both.side = from.side;
    both.rows = std::max(other.rows, from.rows);
    both.columns = std::max(other.columns, from.columns);
    return both.cell_rows() * both.cell_columns() <= kMaxCells;
  });
  if (same == to.end()) {
    to.push_back(from);
  } else {
    add(*same, from);
  }
}

CellMap domain(const CellMap& map, std::uint64_t rows, std::uint64_t columns) {
  CellMap result;
  result.buffer = map.buffer;
  result.rows = rows;
  result.columns = columns;
  result.side = map.side;
  result.cells.resize(static_cast<std::size_t>(result.cell_rows() * result.cell_columns()));
  const std::uint64_t last_row = std::min(result.cell_rows(), map.cell_rows());
  const std::uint64_t last_column = std::min(result.cell_columns(), map.cell_columns());
  for (std::uint64_t row = 0; row < last_row; ++row) {
    for (std::uint64_t column = 0; column < last_column; ++column) {
      result.cells[static_cast<std::size_t>(row * result.cell_columns() + column)] =
          map.cells[static_cast<std::size_t>(row * map.cell_columns() + column)];
    }
  }
  return result;
}

Grid grid_of(const CellMap& map, std::uint64_t max_rows, std::uint64_t max_columns) {
  Grid grid;
  const std::uint64_t cell_rows = map.cell_rows();
  const std::uint64_t cell_columns = map.cell_columns();
  const auto fields = [&](std::uint64_t cells) { return (cells + grid.cells - 1) / grid.cells; };
  while (fields(cell_rows) > max_rows || fields(cell_columns) > max_columns) grid.cells *= 2;
  grid.rows = fields(cell_rows);
  grid.columns = fields(cell_columns);
  grid.fields.resize(static_cast<std::size_t>(grid.rows * grid.columns));
  for (std::uint64_t row = 0; row < cell_rows; ++row) {
    for (std::uint64_t column = 0; column < cell_columns; ++column) {
      const Cell& cell = map.cells[static_cast<std::size_t>(row * cell_columns + column)];
      Grid::Field& field = grid.fields[static_cast<std::size_t>(row / grid.cells * grid.columns +
                                                                column / grid.cells)];
      field.accesses += cell.accesses();
      field.covered += cell.accesses() != 0;
      ++field.all;
      field.sum.add(cell);
      grid.max_accesses = std::max(grid.max_accesses, field.accesses);
    }
  }
  return grid;
}

Colour colour_of(const Grid& grid, const Grid::Field& field) noexcept {
  if (field.covered == 0) return {0xc5, 0x30, 0x30};
  if (field.covered < field.all) return {0xd6, 0x9e, 0x2e};
  constexpr Colour kFew{0xbe, 0xdc, 0xf5};
  constexpr Colour kMany{0x10, 0x3a, 0x70};
  const double share = std::log2(1.0 + static_cast<double>(field.accesses)) /
                       std::log2(1.0 + static_cast<double>(grid.max_accesses));
  const auto mixed = [&](std::uint8_t few, std::uint8_t many) {
    return static_cast<std::uint8_t>(std::lround(few + (many - few) * share));
  };
  return {mixed(kFew.red, kMany.red), mixed(kFew.green, kMany.green), mixed(kFew.blue, kMany.blue)};
}

}  // namespace ptxgen::coverage
