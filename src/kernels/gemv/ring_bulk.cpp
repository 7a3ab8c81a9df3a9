// src/kernels/gemv/ring_bulk.cpp - weights through a bulk-copy ring
#include "kernels/gemv/ring_bulk.hpp"

#include <algorithm>

namespace ptxgen::inline v0::gemv {

namespace {

std::uint32_t narrow(std::uint64_t n) { return static_cast<std::uint32_t>(n); }

// Layout of a step in the ring: rows of k (layout T) or of outputs (R), each as in the matrix.
struct Rows {
  std::uint32_t count = 0;  ///< at most
  std::uint32_t bytes = 0;  ///< of one, at most
};
Rows rows_of(const GemvPlan& plan) {
  const std::uint32_t element = bytes(plan.problem.weights);
  if (plan.problem.layout == GemvLayout::T) {
    return {plan.step_elements(), plan.strip_outputs() * element};
  }
  return {plan.strip_outputs(), plan.step_elements() * element};
}

std::uint32_t full_steps_of(const GemvPlan& plan) { return plan.problem.k / plan.step_elements(); }

// The full units before an item.
Value<u32> full_units(Kit& kit, const Value<u32>& item) {
  KernelBuilder& k = kit.k;
  const Items parts = items(kit.plan);
  const std::uint32_t full = full_steps_of(kit.plan);
  const Value<u32> strip = quotient(k, item, parts.all, parts.per_strip);
  const Value<u32> inside = remainder(k, item, strip, narrow(parts.per_strip));
  const Value<u32> steps = value(k, times(k, inside, narrow(parts.steps)));
  const Value<u32> some = k.min(steps, full);
  return k.mad_lo(strip, full, some);
}

Value<u32> lane_begin(Kit& kit) {
  KernelBuilder& k = kit.k;
  const Rows rows = rows_of(kit.plan);
  const std::uint32_t load = kit.plan.load_bytes;
  Value<u32> begin = k.mul_lo(kit.rows_of_k() ? *kit.lane : *kit.across, load);
  if (kit.warp_k) {
    const std::uint32_t piece = kit.plan.unroll * (kit.rows_of_k() ? 32 * load : rows.bytes);
    begin.rebind(k.mad_lo(*kit.warp_k, piece, begin));
  }
  if (kit.row) begin.rebind(k.mad_lo(*kit.row, rows.bytes, begin));
  return begin;
}

}  // namespace

BulkRing::BulkRing(Kit& kit)
    : kit_(kit),
      stages_(kit.k, kit.k.dynamic_shared<b8>().base(), kit.plan.stages,
              narrow(step_bytes(kit.plan))),
      producer_(*kit.thread == 0u),
      own_(lane_begin(kit)),
      begin_(full_units(kit, first_item_of(kit, kit.k.ctaid_x(), 0))),
      end_(full_units(kit, first_item_of(kit, kit.k.ctaid_x(), 1))),
      cursor_(kit.k.var(begin_)) {
  stages_.start(producer_, kit.plan.threads() / 32);
}

void BulkRing::copy_step() {
  KernelBuilder& k = kit_.k;
  const GemvPlan& plan = kit_.plan;
  const Rows rows = rows_of(plan);
  const std::uint32_t element = bytes(plan.problem.weights);
  const std::uint32_t full = full_steps_of(plan);
  const std::uint32_t n = plan.problem.n - (kit_.rows_of_k() ? 0 : plan.problem.n % kit_.v);
  const Value<u32> unit = cursor_;
  const Value<u32> strip = quotient(k, unit, plan.strips() * full, full);
  const Value<u32> step = remainder(k, unit, strip, full);
  const std::uint64_t across = kit_.rows_of_k() ? kit_.pitch : element;
  const std::uint64_t along = kit_.rows_of_k() ? element : kit_.pitch;
  const Ptr<b8> strip_begin = moved(k, *kit_.a, strip, plan.strip_outputs() * across);
  const Ptr<b8> begin = moved(k, strip_begin, step, plan.step_elements() * along);

  // The last strip may have fewer outputs.
  Number count = rows.count;
  Number row_bytes = rows.bytes;
  if (plan.problem.n % plan.strip_outputs() != 0) {
    const Value<u32> before = k.mul_lo(strip, plan.strip_outputs());
    const Value<u32> left = k.sub(n, before);
    const Value<u32> outputs = k.min(left, plan.strip_outputs());
    if (kit_.rows_of_k()) {
      count.emplace<1>(outputs);
    } else {
      row_bytes.emplace<1>(k.mul_lo(outputs, element));
      // All columns of the last strip may belong to one lane, which reads them itself.
      if (n % plan.strip_outputs() == 0) {
        const Pred some = outputs != 0u;
        const Value<u32> all_rows = k.constant<u32>(rows.count);
        count.emplace<1>(k.selp(all_rows, 0u, some));
      }
    }
  }
  const Value<u32> size = value(k, row_bytes);
  const Value<u32> all = value(k, count);
  const Mbarrier barrier = stages_.barrier();
  const Value<u32> total = k.mul_lo(all, size);
  mbarrier_arrive_expect_tx(k, barrier, total);
  auto source = k.var(begin);
  auto target = k.var(stages_.destination());
  repeat(k, count, [&] {
    copy_bulk(k, target.view(), source.view(), size, barrier);
    source += kit_.pitch;
    target += rows.bytes;
  });
}

void BulkRing::request() {
  KernelBuilder& k = kit_.k;
  k.if_(cursor_ < end_, [&] {
    stages_.wait_empty();
    copy_step();
    cursor_ += 1u;
    stages_.sent();
  });
}

void BulkRing::fill() {
  KernelBuilder& k = kit_.k;
  k.if_(producer_, [&] { k.for_(1u, kit_.plan.stages, 1u, [&] { request(); }); });
}

Number BulkRing::steps_of(Kit& kit, const Segment& segment) {
  KernelBuilder& k = kit.k;
  if (kit.problem().k % kit.plan.step_elements() == 0) return segment.count;
  const Number end = min_of(k, add(k, segment.first, segment.count), full_steps_of(kit.plan));
  return subtract(k, end, segment.first);
}

void BulkRing::run(const Segment& segment, const std::function<void()>& before,
                   const std::function<void()>& body) {
  KernelBuilder& k = kit_.k;
  repeat(k, steps_of(kit_, segment), [&] {
    before();
    stages_.wait_full();
    now_.emplace(stages_.source().offset_bytes(own_));
    body();
    stages_.release(*kit_.lane);
    k.if_(producer_, [&] { request(); });
    stages_.received();
  });
}

Floats BulkRing::load(std::uint64_t offset) const {
  return load_floats(kit_.k, *now_ + offset, kit_.problem().weights, kit_.v);
}

}  // namespace ptxgen::inline v0::gemv
