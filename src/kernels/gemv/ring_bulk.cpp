// src/kernels/gemv/ring_bulk.cpp - weights through a bulk-copy ring
#include "kernels/gemv/ring_bulk.hpp"

#include <algorithm>

namespace ptxgen::inline v0::gemv {

namespace {

constexpr std::uint32_t kBarrierBytes = 8;

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
      ring_(kit.k.dynamic_shared<b8>().base()),
      full_(kit.k.shared<b64>(kit.plan.stages, "full").base().cast<b8>()),
      empty_(kit.k.shared<b64>(kit.plan.stages, "empty").base().cast<b8>()),
      producer_(*kit.thread == 0u),
      own_(lane_begin(kit)),
      begin_(full_units(kit, first_item_of(kit, kit.k.ctaid_x(), 0))),
      end_(full_units(kit, first_item_of(kit, kit.k.ctaid_x(), 1))),
      cursor_(kit.k.var(begin_)),
      to_(kit.k.var<u32>(0u)),
      // Nothing was read yet: the phase before the first counts as read.
      free_(kit.k.var<u32>(1u)),
      from_(kit.k.var<u32>(0u)),
      there_(kit.k.var<u32>(0u)) {
  initialise();
}

void BulkRing::initialise() {
  KernelBuilder& k = kit_.k;
  const auto make = [&](const Place& barrier, std::uint32_t arrivals) {
    k.emit(ptx::Op::mbarrier_init, {ptx::Modifier::shared, ptx::Modifier::type_b64},
           {barrier, arrivals});
  };
  k.if_(producer_, [&] {
    for (std::uint32_t i = 0; i < kit_.plan.stages; ++i) {
      make(full_ + i * kBarrierBytes, 1);
      make(empty_ + i * kBarrierBytes, kit_.plan.threads() / 32);
    }
    // Before the copies, which use another proxy, access them.
    k.emit(ptx::Op::fence_mbarrier_init, {ptx::Modifier::release, ptx::Modifier::cluster}, {});
  });
  k.bar_sync();
}

BulkRing::Place BulkRing::at(const Place& first, const Var<u32>& number,
                             std::uint64_t bytes) const {
  return first.offset_bytes(kit_.k.mul_lo(number, narrow(bytes)));
}

void BulkRing::advance(Var<u32>& number, Var<u32>& parity) {
  KernelBuilder& k = kit_.k;
  number += 1u;
  const Pred wraps = number == kit_.plan.stages;
  k.guarded(wraps, [&] {
    number = 0u;
    parity ^= 1u;
  });
}

void BulkRing::wait(const Place& barrier, const Var<u32>& parity) {
  KernelBuilder& k = kit_.k;
  const Pred done = k.undefined<pred>();
  k.do_while(
      [&] {
        k.emit(ptx::Op::mbarrier_try_wait_parity,
               {ptx::Modifier::parity, ptx::Modifier::shared, ptx::Modifier::type_b64},
               {done, barrier, parity});
      },
      [&] { return !done; });
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
  const Place barrier = at(full_, to_, kBarrierBytes);
  const Value<u32> total = k.mul_lo(all, size);
  k.emit(ptx::Op::mbarrier_arrive_expect_tx,
         {ptx::Modifier::expect_tx, ptx::Modifier::shared, ptx::Modifier::type_b64},
         {Operand::sink(), barrier, total});
  auto source = k.var(begin);
  auto target = k.var(at(ring_, to_, step_bytes(plan)));
  repeat(k, count, [&] {
    k.emit(ptx::Op::cp_async_bulk_load,
           {ptx::Modifier::async, ptx::Modifier::bulk, ptx::Modifier::shared_cluster,
            ptx::Modifier::global, ptx::Modifier::mbarrier_complete_tx_bytes},
           {here(target), here(source), size, barrier});
    source += kit_.pitch;
    target += rows.bytes;
  });
}

void BulkRing::request() {
  KernelBuilder& k = kit_.k;
  k.if_(cursor_ < end_, [&] {
    wait(at(empty_, to_, kBarrierBytes), free_);
    copy_step();
    cursor_ += 1u;
    advance(to_, free_);
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
    wait(at(full_, from_, kBarrierBytes), there_);
    now_.emplace(at(ring_, from_, step_bytes(kit_.plan)).offset_bytes(own_));
    body();
    k.bar_warp_sync();
    const Place read = at(empty_, from_, kBarrierBytes);
    k.guarded(*kit_.lane == 0u, [&] {
      k.emit(ptx::Op::mbarrier_arrive, {ptx::Modifier::shared, ptx::Modifier::type_b64},
             {Operand::sink(), read});
    });
    k.if_(producer_, [&] { request(); });
    advance(from_, there_);
  });
}

Floats BulkRing::load(std::uint64_t offset) const {
  return load_floats(kit_.k, *now_ + offset, kit_.problem().weights, kit_.v);
}

}  // namespace ptxgen::inline v0::gemv
