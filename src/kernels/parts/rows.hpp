// src/kernels/parts/rows.hpp - kernels with a block for each row of a matrix
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "kernels/parts/geometry.hpp"
#include "kernels/parts/words.hpp"
#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

/// A block on rows of `columns` elements, one after the other in memory. Each thread takes every
/// `threads`-th element of a row.
struct RowBlock {
  KernelBuilder& k;
  ElementType type;
  std::uint32_t threads;  ///< of the block
  Ptr<b8> x, y;
  Value<u32> thread, columns;

  /// `body(column)` for each of the thread's elements.
  template <class Body>
  void for_each(const Body& body) const {
    k.for_(thread, columns, threads, body);
  }
  /// The same with the loads of four elements before the first of them is used: `body(column,
  /// load(column))`, in the order of `for_each`. What `load` returns is not stored to by `body` of
  /// another column.
  template <class Load, class Body>
  void for_each_loaded(const Load& load, const Body& body) const {
    constexpr std::uint32_t kTogether = 4;
    const std::uint32_t step = kTogether * threads;
    const std::uint32_t ahead = step - threads;
    // The columns from which all four are inside.
    const Value<u32> end = k.max(columns, ahead) - ahead;
    k.for_(thread, end, step, [&](Value<u32> i) {
      std::vector<Value<u32>> at{i};
      for (std::uint32_t n = 1; n < kTogether; ++n) at.push_back(i + n * threads);
      std::vector<decltype(load(i))> loaded;
      for (const Value<u32>& column : at) loaded.push_back(load(column));
      for (std::uint32_t n = 0; n < kTogether; ++n) body(at[n], loaded[n]);
    });
    const Value<u32> done = (k.max(end, thread) - thread + (step - 1)) & ~(step - 1);
    const Value<u32> rest = thread + done;
    k.for_(rest, columns, threads, [&](Value<u32> i) { body(i, load(i)); });
  }
  [[nodiscard]] Value<f32> load(const Value<u64>& row, const Value<u32>& column) const {
    return expand(k, load_floats(k, x + offset(row, column), type, 1), 1)[0];
  }
  void store(const Value<u64>& row, const Value<u32>& column, const Value<f32>& value) const {
    store_floats(k, y + offset(row, column), type, {value});
  }

 private:
  [[nodiscard]] Value<u64> offset(const Value<u64>& row, const Value<u32>& column) const {
    const Value<u64> element = row + k.convert<u64>(column);
    return element * std::uint64_t{bytes(type)};
  }
};

/// `body(row)` for each row of the block, with the index of its first element.
template <class Body>
void for_each_row(const RowBlock& block, const Value<u32>& rows, const Body& body) {
  KernelBuilder& k = block.k;
  const Value<u32> first = k.ctaid_y();
  k.for_(first, rows, k.nctaid_y(), [&](Value<u32> row) { body(k.mul_wide(row, block.columns)); });
}

/// The geometry: rows in the grid's y, which `for_each_row` strides over. No rows or columns throws
/// `Error` (Stage::Launch, "empty-grid").
[[nodiscard]] inline LaunchGeometry row_geometry(std::string_view kernel, std::uint32_t rows,
                                                 std::uint32_t columns, std::uint32_t threads) {
  LaunchGeometry geometry = one_dimensional(kernel, columns == 0 ? 0 : rows, 1, threads);
  geometry.grid = {1, std::min(rows, 65535u), 1};
  return geometry;
}

}  // namespace ptxgen::inline v0
