// src/kernels/attention/rope.cpp - rotary position embedding, interleaved and NeoX
#include "ptxgen/kernels/attention/rope.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "kernels/parts/geometry.hpp"
#include "kernels/parts/rotation.hpp"
#include "kernels/parts/words.hpp"

namespace ptxgen::inline v0 {

namespace {

struct Buffers {
  ElementType type;
  Ptr<b8> x, y;
};

// The pair at `element` and `distance` elements further; one access for both if they are aligned.
void rotate(KernelBuilder& k, const Buffers& buffers, const Value<u64>& element,
            std::uint32_t distance, bool aligned, const SinCos& by) {
  const Value<u64> offset = element * std::uint64_t{bytes(buffers.type)};
  const std::uint32_t step = distance * bytes(buffers.type);
  const auto load = [&](const Ptr<b8>& at, std::uint32_t count) {
    return expand(k, load_floats(k, at, buffers.type, count), count);
  };
  const Ptr<b8> from = buffers.x + offset;
  std::vector<Value<f32>> x = load(from, aligned ? 2 : 1);
  if (!aligned) x.push_back(load(from + step, 1)[0]);
  const auto [y0, y1] = rotated(k, x[0], x[1], by);
  const Ptr<b8> to = buffers.y + offset;
  if (aligned) {
    store_floats(k, to, buffers.type, {y0, y1});
  } else {
    store_floats(k, to, buffers.type, {y0});
    store_floats(k, to + step, buffers.type, {y1});
  }
}

}  // namespace

template <RopePairs kPairs>
BuiltKernel Rope<kPairs>::build(const ptx::Target& target) const {
  constexpr bool kInterleaved = kPairs == RopePairs::Interleaved;
  check_parameters(*this);
  KernelBuilder k(kernel_name<Rope>, target.name);
  const Ptr<b8> x = k.param<Ptr<b8>>("x");
  k.declare_param<Ptr<u32>>("positions");
  std::optional<Ptr<u32>> positions;
  if (indirect) positions.emplace(k.load_param<Ptr<u32>>("positions"));
  const Ptr<b8> y = k.param<Ptr<b8>>("y");
  const Value<u32> row_count = k.param<u32>("rows");
  const Value<u32> head_count = k.param<u32>("heads");
  const Value<u32> first_position = k.param<u32>("position");
  const Value<f32> theta = k.param<f32>("theta");
  k.declare_param<Ptr<f32>>("factors");
  k.required_threads(head_size / 2);
  const Value<u32> pair = k.tid_x();
  std::optional<Value<f32>> factor;
  if (factors) {
    const Ptr<f32> of_pairs = k.load_param<Ptr<f32>>("factors");
    factor.emplace(k.ld(of_pairs + pair));
  }
  const Value<u32> first = kInterleaved ? pair * 2 : pair;
  const Rotation rotation = rotation_of(k, precise, pair, theta, head_size, factor);
  const Value<u32> first_row = k.ctaid_y();
  k.for_(first_row, row_count, k.nctaid_y(), [&](Value<u32> row) {
    SinCos by = rotation(positions ? Value<u32>((*positions)[row]) : first_position + row);
    if (inverse) by.sin.rebind(-by.sin);
    const Value<u64> head = k.mad_wide(row, head_count, k.convert<u64>(k.ctaid_x()));
    const Value<u64> head_start = head * std::uint64_t{head_size};
    const Value<u64> element = head_start + k.convert<u64>(first);
    rotate(k, {type, x, y}, element, kInterleaved ? 1 : head_size / 2, kInterleaved, by);
  });
  return k.build();
}

template <RopePairs kPairs>
LaunchGeometry Rope<kPairs>::geometry() const {
  check_parameters(*this);
  LaunchGeometry geometry =
      one_dimensional(kernel_name<Rope>, rows == 0 ? 0 : heads, 1, head_size / 2);
  geometry.grid.y = std::min(rows, 65535u);
  return geometry;
}

template <RopePairs kPairs>
KernelCost Rope<kPairs>::cost() const noexcept {
  const std::uint64_t elements = std::uint64_t{rows} * heads * head_size;
  const std::uint64_t positions = indirect ? std::uint64_t{4} * rows : 0;
  const std::uint64_t factor_bytes = factors ? std::uint64_t{2} * head_size : 0;
  return {.bytes_read = elements * bytes(type) + positions + factor_bytes,
          .bytes_written = elements * bytes(type),
          .flops = 3 * elements};
}

template <RopePairs kPairs>
void Describe<Rope<kPairs>>::reference(const K& spec, HostOperands& host) {
  HostOperands::Operand& y = host["y"];
  const std::span x(host.input("x"));
  RotationSpec rotation{kInterleaved, spec.precise, host.number("theta")};
  if (spec.factors) rotation.factors = host.input("factors");
  y.magnitude.resize(y.values.size());
  for (std::size_t head = 0; head < std::size_t{spec.rows} * spec.heads; ++head) {
    const std::size_t row = head / spec.heads;
    const double position = spec.indirect ? host.input("positions")[row]
                                          : host.number("position") + static_cast<double>(row);
    const std::size_t at = head * spec.head_size;
    rotation_reference(rotation, position, spec.inverse ? -1 : 1, x.subspan(at, spec.head_size),
                       std::span(y.values).subspan(at, spec.head_size),
                       std::span(y.magnitude).subspan(at, spec.head_size));
  }
}

template <RopePairs kPairs>
ErrorBound Describe<Rope<kPairs>>::bound(const K& spec) {
  return {.relative = rotation_error(spec.precise, spec.factors)};
}

template struct Rope<RopePairs::Interleaved>;
template struct Rope<RopePairs::Halves>;
template struct Describe<RopeInterleaved>;
template struct Describe<RopeNeox>;

}  // namespace ptxgen::inline v0
