// src/kernels/gemv/staged_x.cpp - x as integers in shared memory
#include <bit>

#include "kernels/gemv/blocks.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

constexpr std::uint32_t kGroup = 32;  // elements of x with one scale

unsigned log2_of(std::uint32_t power) { return static_cast<unsigned>(std::countr_zero(power)); }

/// 32 elements of x, as integers.
struct XBlock {
  std::vector<std::array<Piece16, 2>> digits;  ///< the lowest first, of both halves
  Value<f32> scale;
  std::vector<Value<f32>> sums;  ///< one, or of both halves
};

Piece16 piece_of(const std::vector<Value<u32>>& words, std::size_t first) {
  return {words[first], words[first + 1], words[first + 2], words[first + 3]};
}

Value<f32> sum_as_float(KernelBuilder& k, const std::vector<Value<s32>>& integers,
                        std::size_t first, std::size_t count) {
  Value<s32> sum(integers[first]);
  for (std::size_t i = 1; i < count; ++i) sum.rebind(sum + integers[first + i]);
  return k.convert<f32>(sum);
}

// Byte 0, 1 and 2 of four integers as a word each.
std::array<Value<u32>, 3> transposed(KernelBuilder& k, const std::vector<Value<s32>>& integers,
                                     std::size_t first) {
  const auto bits = [&](std::size_t i) { return k.bitcast<u32>(integers[first + i]); };
  const Value<u32> a = bits(0), b = bits(1), c = bits(2), d = bits(3);
  const Value<u32> low_ab = k.prmt(a, b, 0x5140u);
  const Value<u32> low_cd = k.prmt(c, d, 0x5140u);
  const Value<u32> high_ab = k.prmt(a, b, 0x0062u);
  const Value<u32> high_cd = k.prmt(c, d, 0x0062u);
  const Value<u32> low = k.prmt(low_ab, low_cd, 0x5410u);
  const Value<u32> middle = k.prmt(low_ab, low_cd, 0x7632u);
  return {low, middle, k.prmt(high_ab, high_cd, 0x5410u)};
}

// Scale and its inverse: powers of two with which the largest of the integers is from 2^21 to
// 2^22. Blocks below 2^-105 have the smallest scale; one with an infinity or NaN has a NaN as
// scale.
struct PowerOfTwo {
  Value<f32> scale, inverse;
};
PowerOfTwo scale_of(KernelBuilder& k, const std::vector<Value<f32>>& values) {
  Value<u32> largest = k.bitcast<u32>(k.abs(values[0]));
  for (std::size_t i = 1; i < values.size(); ++i) {
    largest.rebind(k.max(largest, k.bitcast<u32>(k.abs(values[i]))));
  }
  const Value<u32> exponent = k.max(largest >> 23u, 22u);
  const Value<u32> scale = (exponent - 21u) << 23u;
  const Value<u32> inverse = k.sub(275u, exponent) << 23u;
  const Pred finite = largest < 0x7f800000u;
  const Value<u32> or_nan = k.selp(scale, 0x7fffffffu, finite);
  return {k.bitcast<f32>(or_nan), k.bitcast<f32>(inverse)};
}

XBlock exact_block(Kit& kit, const Ptr<b8>& at, bool by_halves) {
  KernelBuilder& k = kit.k;
  const GemvProblem& problem = kit.problem();
  const Floats loaded = load_run(k, at, problem.x, kGroup, problem.x_alignment, kit.factor_load());
  const std::vector<Value<f32>> values = expand(k, loaded, kGroup);
  const PowerOfTwo power = scale_of(k, values);
  std::vector<Value<s32>> integers;
  for (const Value<f32>& value : values) {
    integers.push_back(k.cvt<s32>(value * power.inverse, Rounding::rni));
  }
  std::array<std::vector<Value<u32>>, 3> words;
  for (std::size_t i = 0; i < kGroup; i += 4) {
    const auto bytes = transposed(k, integers, i);
    for (std::size_t digit = 0; digit < 3; ++digit) words[digit].push_back(bytes[digit]);
  }
  XBlock block{{}, power.scale, {}};
  for (const auto& digit : words) block.digits.push_back({piece_of(digit, 0), piece_of(digit, 4)});
  for (std::size_t half = 0; half < (by_halves ? 2u : 1u); ++half) {
    const std::size_t count = by_halves ? 16 : 32;
    block.sums.push_back(power.scale * sum_as_float(k, integers, half * count, count));
  }
  return block;
}

// The sums are those of the integers: the f16 of the block is rounded.
XBlock q8_1_block(Kit& kit, const Ptr<b8>& at, bool by_halves) {
  KernelBuilder& k = kit.k;
  std::vector<Value<u32>> words;
  for (int i = 0; i < 9; ++i) words.push_back(k.ld((at + 4 * i).cast<u32>(), kit.factor_load()));
  const Value<f32> scale = k.cvt<f32>(k.bitcast<f16>(k.unpack<u16>(words[0])[0]));
  XBlock block{{{piece_of(words, 1), piece_of(words, 5)}}, scale, {}};
  const Value<s32> ones = k.constant<s32>(0x01010101);
  Value<s32> sum = k.constant<s32>(0);
  for (std::size_t i = 0; i < 8; ++i) {
    sum.rebind(k.dp4a(k.bitcast<s32>(words[i + 1]), ones, sum));
    if (i != 7 && !(by_halves && i == 3)) continue;
    block.sums.push_back(scale * k.convert<f32>(sum));
    sum.rebind(k.constant<s32>(0));
  }
  return block;
}

/// What a thread stages: 32 elements of the step, for a lane, or for a lane and the next.
struct XWork {
  Value<u32> step, group;   ///< the group of the step
  Value<u32> region, lane;  ///< the region of all steps
};

// Threads of a region.
std::uint32_t region_threads(const StagedX& layout) {
  return layout.region_pieces() == 1 ? layout.format.lanes / 2 : layout.format.lanes;
}

// Of the block's threads, which have the regions from `first` on. Consecutive threads have
// consecutive lanes of a region.
XWork work_of(const StagedX& layout, const Value<u32>& first, const Value<u32>& thread) {
  const unsigned regions = log2_of(layout.regions());
  const bool by_halves = layout.region_pieces() == 1;
  const std::uint32_t threads = region_threads(layout);
  const Value<u32> own = thread >> log2_of(threads);
  const Value<u32> region = own + first;
  const Value<u32> t = thread & (threads - 1);
  const Value<u32> step = regions == 0 ? region : region >> regions;
  if (regions == 0) return {step, t, region, t};
  const Value<u32> inside = region & (layout.regions() - 1);
  if (!by_halves) return {step, (t << regions) + inside, region, t};
  // Repacked q8_0: t is a block of the part.
  if (layout.format.groups == 1) {
    return {step, t + (inside << log2_of(threads)), region, t << 1u};
  }
  // q6_k: t is a pair of blocks and a half of them; the region an odd block and a group. Where rows
  // are repacked, a block instead of a pair.
  if (layout.format.parts == 1) {
    const Value<u32> of_block = ((t & 1u) << 2u) + inside;
    return {step, ((t >> 1u) << 3u) + of_block, region, t << 1u};
  }
  const Value<u32> even = (t >> 1u) << 1u;
  const Value<u32> block = even + (inside >> 2u);
  const Value<u32> half = (t & 1u) << 2u;
  const Value<u32> part = inside & 3u;
  const Value<u32> group = (block << 3u) + half + part;
  return {step, group, region, t << 1u};
}

// q6_k: pieces of 16 weights each have a scale; the halves of 32 elements of x belong to two
// lanes. Of every eight threads that store 16 bytes, four begin with the second half, so that their
// banks are different; of the floats, the threads of every other region of the same banks do.
void store_by_halves(Kit& kit, const XBlock& block, const Ptr<b8, Shared>& region,
                     const XWork& work, const StagedX& layout) {
  KernelBuilder& k = kit.k;
  const Pred swaps = (work.lane & 8u) != 0u;
  const Value<u32> first = k.selp(k.constant<u32>(16u), 0u, swaps);
  const Ptr<b8, Shared> at = region.offset_bytes(work.lane << 4u);
  const Ptr<b8, Shared> begin = at.offset_bytes(first);
  const Ptr<b8, Shared> other = at.offset_bytes(first ^ 16u);
  for (std::uint32_t digit = 0; digit < layout.digits; ++digit) {
    const auto& halves = block.digits[digit];
    std::vector<Value<u32>> one, two;
    for (std::size_t i = 0; i < 4; ++i) {
      one.push_back(k.selp(halves[1][i], halves[0][i], swaps));
      two.push_back(k.selp(halves[0][i], halves[1][i], swaps));
    }
    k.st((begin + digit * layout.digit_bytes()).cast<u32>(), piece_of(one, 0));
    k.st((other + digit * layout.digit_bytes()).cast<u32>(), piece_of(two, 0));
  }
  const Pred later = (work.region & (layout.format.lanes == 32 ? 1u : 2u)) != 0u;
  const Ptr<f32, Shared> floats =
      (region + layout.scales_at()).offset_bytes(work.lane << 2u).cast<f32>();
  const Ptr<f32, Shared> one = floats.offset_bytes(k.selp(k.constant<u32>(4u), 0u, later));
  const Ptr<f32, Shared> two = floats.offset_bytes(k.selp(k.constant<u32>(0u), 4u, later));
  const std::uint32_t sums = layout.format.lanes;
  k.st(one, block.scale);
  k.st(two, block.scale);
  k.st(one + sums, k.selp(block.sums[1], block.sums[0], later));
  k.st(two + sums, k.selp(block.sums[0], block.sums[1], later));
}

void store_together(Kit& kit, const XBlock& block, const Ptr<b8, Shared>& region, const XWork& work,
                    const StagedX& layout) {
  KernelBuilder& k = kit.k;
  const Ptr<b8, Shared> at = region.offset_bytes(work.lane << 4u);
  for (std::uint32_t digit = 0; digit < layout.digits; ++digit) {
    for (std::uint32_t half = 0; half < 2; ++half) {
      k.st((at + (digit * layout.digit_bytes() + half * layout.piece_bytes())).cast<u32>(),
           block.digits[digit][half]);
    }
  }
  const Ptr<f32, Shared> floats =
      (region + layout.scales_at()).offset_bytes(work.lane << 2u).cast<f32>();
  k.st(floats, block.scale);
  k.st(floats + layout.format.lanes, block.sums[0]);
}

}  // namespace

void stage_x(Kit& kit, const Segment& window, const Ptr<b8>& x, const Ptr<b8, Shared>& to) {
  KernelBuilder& k = kit.k;
  const BlockFormat& format = *kit.blocks;
  const StagedX layout = staged_x(format, kit.problem().x);
  const bool by_halves = format.group_weights() == 16;
  const std::uint32_t step_groups = kit.plan.step_elements() / kGroup;
  const Number first = times(k, window.first, step_groups);
  const auto groups = static_cast<std::uint32_t>(ceil_div(kit.problem().k, kGroup));
  const Number left = subtract(k, groups, first);
  const Value<u32> count = value(k, min_of(k, times(k, window.count, step_groups), left));
  const std::uint64_t group_bytes = bytes(kit.problem().x, kGroup);
  const Ptr<b8> begin = moved(k, x, first, group_bytes);
  const std::uint32_t step = format.step_weights() / kGroup;
  const Value<u32> steps = (count + (step - 1)) >> log2_of(step);
  const std::uint32_t at_once = kit.plan.threads() / region_threads(layout);
  // Threads beyond the last step have groups beyond the count.
  k.for_(0u, steps << log2_of(layout.regions()), at_once, [&](Value<u32> region) {
    const XWork work = work_of(layout, region, *kit.thread);
    const Value<u32> group = (work.step << log2_of(step)) + work.group;
    k.if_(group < count, [&] {
      const Ptr<b8> at = moved(k, begin, group, group_bytes);
      const XBlock block =
          layout.digits == 1 ? q8_1_block(kit, at, by_halves) : exact_block(kit, at, by_halves);
      const Ptr<b8, Shared> place = to.offset_bytes(k.mul_lo(work.region, layout.region_bytes()));
      if (by_halves) {
        store_by_halves(kit, block, place, work, layout);
      } else {
        store_together(kit, block, place, work, layout);
      }
    });
  });
}

void stage_groups(Kit& kit, const Ptr<b8, Shared>& to) {
  KernelBuilder& k = kit.k;
  const std::uint32_t groups = kit.problem().k / kGroup;
  const std::uint64_t group_bytes = bytes(kit.problem().x, kGroup);
  k.for_(*kit.thread, groups, kit.plan.threads(), [&](Value<u32> group) {
    const XBlock block = exact_block(kit, moved(k, *kit.x, group, group_bytes), true);
    const Ptr<b8, Shared> place = to.offset_bytes(k.mul_lo(group, kGroupBytes));
    for (std::uint32_t digit = 0; digit < 3; ++digit) {
      for (std::uint32_t half = 0; half < 2; ++half) {
        k.st((place + (32 * digit + 16 * half)).cast<u32>(), block.digits[digit][half]);
      }
    }
    const Value<f32> sum = block.sums[0] + block.sums[1];
    k.st((place + kGroupFloatsAt).cast<f32>(),
         std::array{block.scale, sum, block.sums[0], block.sums[1]});
  });
}

}  // namespace ptxgen::inline v0::gemv
