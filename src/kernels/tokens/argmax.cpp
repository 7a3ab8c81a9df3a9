// src/kernels/tokens/argmax.cpp - the index of the largest element of rows
#include "ptxgen/kernels/tokens/argmax.hpp"

#include <cmath>

#include "kernels/parts/geometry.hpp"
#include "kernels/parts/last_block.hpp"
#include "kernels/parts/order_key.hpp"
#include "kernels/parts/words.hpp"

namespace ptxgen::inline v0 {

namespace {

// The largest key of the block's elements of the row; every thread gets it.
Value<u64> largest_of_block(KernelBuilder& k, ElementType type, const Ptr<b8>& row,
                            const Value<u32>& columns) {
  auto largest = k.var<u64>(0);
  const Value<u32> threads = k.mul_lo(k.nctaid_x(), Argmax::kThreads);
  k.for_(
      k.global_thread_x(), columns, threads,
      [&](Value<u32> i) {
        const Ptr<b8> at = row.offset_bytes(k.mul_wide(i, bytes(type)));
        const Value<f32> element = expand(k, load_floats(k, at, type, 1), 1)[0];
        largest = k.max(largest, order_key(k, element, i));
      },
      Unroll{4});
  return k.block_reduce(largest, Argmax::kThreads, Reduce::Max);
}

// The largest of the blocks' keys.
Value<u64> largest_of_parts(KernelBuilder& k, const Ptr<u64>& parts) {
  auto largest = k.var<u64>(0);
  const Value<u32> thread = k.tid_x();
  k.for_(thread, k.nctaid_x(), Argmax::kThreads, [&](Value<u32> block) {
    largest = k.max(largest, k.ld(parts + block, {.cache = Cache::cg}));
  });
  return k.block_reduce(largest, Argmax::kThreads, Reduce::Max);
}

void store_index(KernelBuilder& k, const Ptr<u32>& index, const Value<u64>& key) {
  k.if_(k.tid_x() == 0u, [&] { k.st(index, index_of_key(k, key)); });
}

}  // namespace

BuiltKernel Argmax::build(const ptx::Target& target) const {
  check_parameters(*this);
  return build_kernel(
      kernel_name<Argmax>, target.name,
      params(param<Ptr<b8>>("x"), param<Ptr<u32>>("index"), param<Ptr<b8>>("workspace"),
             param<u32>("columns")),
      [&](KernelBuilder& k, Ptr<b8> x, Ptr<u32> index, Ptr<b8> memory, Value<u32> width) {
        k.required_threads(kThreads);
        const Value<u32> row = k.ctaid_y();
        const Value<u64> first = k.mul_wide(row, width) * std::uint64_t{bytes(type)};
        const Ptr<u32> result = index + row;
        const Value<u64> key = largest_of_block(k, type, x.offset_bytes(first), width);
        k.if_(
            k.nctaid_x() == 1u, [&] { store_index(k, result, key); },
            [&] {
              const RowWorkspace of_row{k, memory};
              const Ptr<u64> parts = of_row.parts(k.constant<u32>(8u)).cast<u64>();
              k.if_(k.tid_x() == 0u, [&] { k.st(parts + k.ctaid_x(), key); });
              k.if_(of_row.arrive(), [&] { store_index(k, result, largest_of_parts(k, parts)); });
            });
      });
}

LaunchGeometry Argmax::geometry() const {
  LaunchGeometry geometry =
      one_dimensional(kernel_name<Argmax>, rows == 0 ? 0 : blocks(), 1, kThreads);
  geometry.grid.y = rows;
  return geometry;
}

KernelCost Argmax::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * columns;
  return {.bytes_read = elements * bytes(type),
          .bytes_written = std::uint64_t{4} * rows,
          .flops = elements};
}

WorkspaceNeed Describe<Argmax>::workspace(const Argmax& spec) {
  return spec.blocks() > 1 ? row_workspace(spec.rows, spec.blocks(), 8) : WorkspaceNeed{};
}

void Describe<Argmax>::reference(const Argmax& spec, HostOperands& host) {
  const std::vector<double>& x = host.input("x");
  for (std::size_t row = 0; row < spec.rows; ++row) {
    const double* elements = &x[row * spec.columns];
    std::size_t largest = 0;
    for (std::size_t i = 1; i < spec.columns; ++i) {
      const bool first_number = std::isnan(elements[largest]) && !std::isnan(elements[i]);
      if (first_number || elements[i] > elements[largest]) largest = i;
    }
    host["index"].values[row] = static_cast<double>(largest);
  }
}

}  // namespace ptxgen::inline v0
