// src/kernels/gemv/segments.cpp - steps of strips that a block computes
#include <algorithm>
#include <numeric>

#include "kernels/gemv/emit.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

std::uint32_t narrow(std::uint64_t n) { return static_cast<std::uint32_t>(n); }

// floor((n * factor + offset) / divisor) for n up to `max`; the result fits 32 bits.
Value<u32> scaled(KernelBuilder& k, const Value<u32>& n, std::uint64_t max, std::uint64_t factor,
                  std::uint64_t offset, std::uint64_t divisor) {
  if ((max * factor + offset) >> 32 == 0) {
    Value<u32> product(n);
    if (factor != 1) product.rebind(k.mul_lo(n, narrow(factor)));
    if (offset != 0) product.rebind(product + narrow(offset));
    return quotient(k, product, max * factor + offset, divisor);
  }
  const Value<u64> product = k.mad_wide(n, narrow(factor), offset);
  const Value<u64> result = product / divisor;
  return k.cvt<u32>(result);
}

// The block of an item, or of the item `offset` items later.
Value<u32> block_of(Kit& kit, const Value<u32>& item, std::uint64_t offset) {
  const Items parts = items(kit.plan);
  const std::uint64_t common = std::gcd(parts.all, std::uint64_t{kit.plan.blocks});
  const std::uint64_t blocks = kit.plan.blocks / common;
  return scaled(kit.k, item, parts.all, blocks, blocks * (offset + 1) - 1, parts.all / common);
}

// Each block has a range of items in one strip.
Segment segment_in_strip(Kit& kit) {
  KernelBuilder& k = kit.k;
  const Items parts = items(kit.plan);
  const std::uint32_t split = narrow(kit.plan.blocks / kit.plan.strips());
  const Value<u32> block = k.ctaid_x();
  if (split == 1) return {block, 0u, narrow(kit.plan.steps()), block};
  Value<u32> strip(block);
  Value<u32> part(block);
  const bool one_strip = kit.plan.strips() == 1;
  if (!one_strip) {
    strip.rebind(quotient(k, block, kit.plan.blocks, split));
    part.rebind(remainder(k, block, strip, split));
  }
  const Number number = one_strip ? Number(0u) : Number(strip);
  if (parts.per_strip % split == 0) {
    const std::uint32_t each = narrow(parts.per_strip / split);
    return {number, times(k, part, each), each, block};
  }
  const Value<u32> first = scaled(k, part, split, parts.per_strip, 0, split);
  const Value<u32> end = scaled(k, part, split, parts.per_strip, parts.per_strip, split);
  const Value<u32> count = end - first;
  return {number, first, count, block};
}

// The segment that begins with `item`, of a block whose items end before `end`.
Segment segment_at(Kit& kit, const Value<u32>& item, const Value<u32>& end) {
  KernelBuilder& k = kit.k;
  const Items parts = items(kit.plan);
  const std::uint32_t steps = narrow(kit.plan.steps());
  if (parts.per_strip == 1) return {item, 0u, steps, item};
  const std::uint32_t per_strip = narrow(parts.per_strip);
  const Value<u32> strip = quotient(k, item, parts.all, per_strip);
  const Value<u32> inside = remainder(k, item, strip, per_strip);
  if (kit.plan.chunk_steps == 0) {
    const Value<u32> left = end - item;
    const Value<u32> rest = per_strip - inside;
    return {strip, inside, k.min(left, rest), item};
  }
  const std::uint32_t each = narrow(parts.steps);
  const Number first = times(k, inside, each);
  if (steps % each == 0) return {strip, first, each, item};
  return {strip, first, min_of(k, subtract(k, steps, first), each), item};
}

// A block's items are consecutive in one strip: one segment.
bool is_one_range(const GemvPlan& plan) {
  const Items parts = items(plan);
  return parts.blocks_in_strip && (plan.chunk_steps == 0 || parts.per_strip == 1);
}

bool is_one_item(const GemvPlan& plan) { return items(plan).all == plan.blocks; }

}  // namespace

Value<u32> first_item_of(Kit& kit, const Value<u32>& block, std::uint32_t next) {
  const Items parts = items(kit.plan);
  const std::uint64_t common = std::gcd(parts.all, std::uint64_t{kit.plan.blocks});
  const std::uint64_t all = parts.all / common;
  return scaled(kit.k, block, kit.plan.blocks, all, all * next, kit.plan.blocks / common);
}

bool may_loop(const GemvPlan& plan) { return !is_one_range(plan) && !is_one_item(plan); }

Segment first_segment(Kit& kit) {
  if (is_one_range(kit.plan)) return segment_in_strip(kit);
  const Value<u32> block = kit.k.ctaid_x();
  if (is_one_item(kit.plan)) return segment_at(kit, block, block + 1u);
  const Value<u32> begin = first_item_of(kit, block, 0);
  const Value<u32> end = first_item_of(kit, block, 1);
  return segment_at(kit, begin, end);
}

void for_each_segment(Kit& kit, const std::function<void(const Segment&)>& body) {
  if (!may_loop(kit.plan)) {
    body(first_segment(kit));
    return;
  }
  KernelBuilder& k = kit.k;
  const Value<u32> block = k.ctaid_x();
  const Value<u32> begin = first_item_of(kit, block, 0);
  const Value<u32> end = first_item_of(kit, block, 1);
  const bool by_steps = kit.plan.chunk_steps == 0 && items(kit.plan).per_strip > 1;
  Var<u32> next = k.var(begin);
  // A block has at least one item: check() ensures it.
  k.do_while(
      [&] {
        const Value<u32> item = next;
        const Segment segment = segment_at(kit, item, end);
        body(segment);
        const Number after = add(k, item, by_steps ? segment.count : Number(1u));
        next = value(k, after);
      },
      [&] { return next < end; });
}

Parts parts_of(Kit& kit, const Segment& segment) {
  KernelBuilder& k = kit.k;
  const Items parts = items(kit.plan);
  const std::uint32_t per_strip = narrow(parts.per_strip);
  if (kit.plan.chunk_steps != 0) {
    return {per_strip, times(k, segment.strip, per_strip), segment.item};
  }
  if (parts.blocks_in_strip) {
    const std::uint32_t split = narrow(kit.plan.blocks / kit.plan.strips()) / kit.plan.cluster;
    const Value<u32> slot = quotient(k, k.ctaid_x(), kit.plan.blocks, kit.plan.cluster);
    return {split, times(k, segment.strip, split), slot};
  }
  const Value<u32> strip = value(k, segment.strip);
  const Value<u32> begin = k.mul_lo(strip, per_strip);
  const Value<u32> first = block_of(kit, begin, 0);
  const Value<u32> last = block_of(kit, begin, parts.per_strip - 1);
  const Value<u32> count = last - first + 1u;
  const Value<u32> first_slot = first + strip;
  const Value<u32> slot = k.ctaid_x() + strip;
  return {count, first_slot, slot};
}

AsyncStages async_stages(Kit& kit, std::uint64_t step_bytes, Var<Ptr<b8>>& weights) {
  const GemvPlan& plan = kit.plan;
  // Blocks: each warp has a ring of its own.
  const std::uint64_t stage_bytes =
      kit.blocks != nullptr ? std::uint64_t{plan.warp_outputs()} * kit.blocks->slot_bytes()
                            : gemv::step_bytes(plan);
  const AsyncStages::Shape shape{.stages = plan.stages,
                                 .load_bytes = plan.load_bytes,
                                 .load_pitch = plan.threads() * plan.load_bytes,
                                 .stage_bytes = stage_bytes,
                                 .step_bytes = step_bytes};
  return {kit.k, shape, *kit.ring, weights};
}

void run_async(Kit& kit, AsyncStages& stages, const Number& steps,
               const std::function<void()>& body) {
  stages.run(value(kit.k, steps), "ring_end" + std::to_string(kit.rings++), body);
}

std::vector<Floats> take_weights(Kit& kit, AsyncStages& stages) {
  std::vector<Floats> loads;
  for (const Ptr<b8, Shared>& at : stages.take()) {
    loads.push_back(load_floats(kit.k, at, kit.problem().weights, kit.v));
  }
  return loads;
}

Number full_steps(Kit& kit, const Segment& segment) {
  KernelBuilder& k = kit.k;
  const std::uint32_t all = kit.problem().k / kit.plan.step_elements();
  const std::uint32_t rest = kit.problem().k % kit.plan.step_elements();
  if (rest == 0 && kit.problem().k != 0) return segment.count;
  const std::uint32_t full_warps = rest / kit.piece();
  Number limit = all;
  if (full_warps != 0) {
    const Pred has_more = *kit.warp_k < full_warps;
    const Value<u32> one_more = k.constant<u32>(all + 1);
    const Value<u32> more = k.selp(one_more, all, has_more);
    limit.emplace<1>(more);
  }
  // At most `count`, which bounds addresses for the race gate.
  return min_of(k, segment.count, subtract(k, limit, segment.first));
}

namespace {

// Emits `body` if the segment has its strip's last step.
void if_last_step(Kit& kit, const Segment& segment, const std::function<void()>& body) {
  KernelBuilder& k = kit.k;
  const std::uint32_t steps = narrow(kit.plan.steps());
  const Number end = add(k, segment.first, segment.count);
  if (known(end) == nullptr) {
    k.if_(value(k, end) == steps, body);
  } else if (*known(end) == steps) {
    body();
  }
}

void if_warp(Kit& kit, std::uint32_t warp, const std::function<void()>& body) {
  if (kit.warp_k) {
    kit.k.if_(*kit.warp_k == warp, body);
  } else {
    body();
  }
}

}  // namespace

void if_tail(Kit& kit, const Segment& segment, const std::function<void(std::uint32_t)>& body) {
  const std::uint32_t rest = kit.problem().k % kit.plan.step_elements();
  const std::uint32_t left = rest % kit.piece();
  if (left == 0) return;
  if_last_step(kit, segment, [&] { if_warp(kit, rest / kit.piece(), [&] { body(left); }); });
}

void if_rest(Kit& kit, const Segment& segment, const std::function<void(std::uint32_t)>& body) {
  const std::uint32_t rest = kit.problem().k % kit.plan.step_elements();
  const std::uint32_t full_warps = rest / kit.piece();
  const std::uint32_t left = rest % kit.piece();
  if (rest == 0) return;
  if_last_step(kit, segment, [&] {
    if (full_warps != 0) kit.k.if_(*kit.warp_k < full_warps, [&] { body(kit.piece()); });
    if (left != 0) if_warp(kit, full_warps, [&] { body(left); });
  });
}

void for_rows(Kit& kit, const Segment& segment, const std::function<void(std::uint32_t)>& body) {
  KernelBuilder& k = kit.k;
  const std::uint32_t n = kit.problem().n;
  const std::uint32_t rows = kit.plan.warp_outputs();
  const std::uint32_t some = n % rows;
  const std::uint32_t full = n - some;
  if (n % kit.plan.strip_outputs() == 0) {
    body(rows);
    return;
  }
  const Number strip = times(k, segment.strip, kit.plan.strip_outputs());
  const Number row = add(k, strip, kit.row ? Number(*kit.row) : Number(0u));
  if (known(row) != nullptr) {  // one warp, one strip
    body(some);
    return;
  }
  const Value<u32> first = value(k, row);
  if (full != 0) k.if_(first < full, [&] { body(rows); });
  if (some != 0) k.if_(first == full, [&] { body(some); });
}

}  // namespace ptxgen::inline v0::gemv
