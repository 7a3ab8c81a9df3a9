// src/kernels/parts/map.cpp - one output for each element of the inputs
#include "kernels/parts/map.hpp"

#include "kernels/parts/element.hpp"
#include "kernels/parts/geometry.hpp"
#include "kernels/parts/words.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kThreads = 256;

std::uint32_t group_elements(ElementType type) { return kVectorBytes / bytes(type); }

// `count` elements of every array from element `first` on.
void map_group(KernelBuilder& k, ElementType type, std::span<const Ptr<b8>> inputs,
               const Ptr<b8>& out, const Value<u64>& offset, std::uint32_t count,
               const MapElement& compute) {
  std::vector<std::vector<Value<f32>>> columns;
  for (const Ptr<b8>& input : inputs) {
    columns.push_back(expand(k, load_floats(k, input + offset, type, count), count));
  }
  std::vector<Value<f32>> results;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::vector<Value<f32>> row;
    for (const std::vector<Value<f32>>& column : columns) row.push_back(column[i]);
    results.push_back(compute(row));
  }
  store_floats(k, out + offset, type, results);
}

void map_body(KernelBuilder& k, ElementType type, std::span<const Ptr<b8>> inputs,
              const Ptr<b8>& out, const Value<u32>& n, const MapElement& compute) {
  Value<u64> addresses = k.address_of(out);
  for (const Ptr<b8>& input : inputs) addresses.rebind(addresses | k.address_of(input));
  const std::uint32_t group = group_elements(type);
  const auto some = [&](const Value<u32>& index, std::uint32_t unit, std::uint32_t count) {
    const Value<u64> offset = k.mul_wide(index, unit);
    map_group(k, type, inputs, out, offset, count, compute);
  };
  k.max_threads(kMaxBlockThreads);
  for_each_group(
      k, n, addresses, group == 4 ? 2 : 3, [&](Value<u32> v) { some(v, kVectorBytes, group); },
      [&](Value<u32> i) { some(i, bytes(type), 1); });
}

BuiltKernel build_map(std::string_view name, const ptx::Target& target, ElementType type,
                      std::span<const std::string_view> inputs, const MapElement& compute,
                      bool batched) {
  with_float_type(name, type, [](auto) {});
  KernelBuilder k(name, target.name);
  for (const std::string_view input : inputs) k.declare_param<Ptr<b8>>(input);
  k.declare_param<Ptr<b8>>("out");
  k.declare_param<u32>("n");
  std::vector<Ptr<b8>> from;
  for (const std::string_view input : inputs) {
    from.push_back(k.load_param<Ptr<b8>>(input));
  }
  Ptr<b8> out = k.load_param<Ptr<b8>>("out");
  const Value<u32> n = k.load_param<u32>("n");
  if (batched) {
    const Value<u64> row = k.mul_wide(k.ctaid_y(), n) * std::uint64_t{bytes(type)};
    for (Ptr<b8>& input : from) input.rebind(input + row);
    out.rebind(out + row);
  }
  map_body(k, type, from, out, n, compute);
  return k.build();
}

}  // namespace

BuiltKernel map_kernel(std::string_view name, const ptx::Target& target, ElementType type,
                       std::span<const std::string_view> inputs, const MapElement& compute) {
  return build_map(name, target, type, inputs, compute, false);
}

BuiltKernel batched_map_kernel(std::string_view name, const ptx::Target& target, ElementType type,
                               std::span<const std::string_view> inputs,
                               const MapElement& compute) {
  return build_map(name, target, type, inputs, compute, true);
}

LaunchGeometry batched_map_geometry(std::string_view name, std::uint32_t n, std::uint32_t rows) {
  LaunchGeometry geometry = one_dimensional(name, rows == 0 ? 0 : n, kThreads, kThreads);
  geometry.grid.y = rows;
  return geometry;
}

LaunchGeometry map_geometry(std::string_view name, std::uint32_t n, ElementType type) {
  return one_dimensional(name, n, group_elements(type) * kThreads, kThreads);
}

KernelCost map_cost(std::uint64_t n, ElementType type, unsigned inputs, unsigned flops) noexcept {
  const std::uint64_t array = bytes(type) * n;
  return {.bytes_read = inputs * array, .bytes_written = array, .flops = flops * n};
}

}  // namespace ptxgen::inline v0
