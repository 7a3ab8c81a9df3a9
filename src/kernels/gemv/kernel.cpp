// src/kernels/gemv/kernel.cpp - the kernel of a GEMV plan
#include "ptxgen/kernels/gemv/kernel.hpp"

#include <utility>

#include "kernels/gemv/emit.hpp"
#include "kernels/gemv/ring_bulk.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace gemv {

Load Kit::weight_load() const {
  const std::uint16_t sm = k.target().sm;
  return {.read_only = true,
          .l1 = plan.streaming ? L1::no_allocate : L1::none,
          .prefetch = sm >= 80 ? Prefetch::L2_256B : Prefetch::L2_128B};
}

// Not through the read-only path if a kernel that still runs may write it.
Load Kit::factor_load() const { return {.read_only = !plan.programmatic}; }

namespace {

// Declares all parameters and reads those that the problem has.
void read_parameters(Kit& kit) {
  KernelBuilder& k = kit.k;
  const GemvProblem& problem = kit.problem();
  for (const char* name : {"y", "a", "x", "bias", "residual", "workspace"}) {
    k.declare_param<Ptr<b8>>(name);
  }
  for (const char* name : {"alpha", "beta"}) k.declare_param<f32>(name);
  kit.y.emplace(k.load_param<Ptr<b8>>("y"));
  kit.a.emplace(k.load_param<Ptr<b8>>("a"));
  kit.x.emplace(k.load_param<Ptr<b8>>("x"));
  if (problem.bias) kit.bias.emplace(k.load_param<Ptr<b8>>("bias"));
  if (problem.residual) kit.residual.emplace(k.load_param<Ptr<b8>>("residual"));
  if (uses_workspace(kit.plan)) kit.workspace.emplace(k.load_param<Ptr<b8>>("workspace"));
  if (problem.scaled) {
    kit.alpha.emplace(k.load_param<f32>("alpha"));
    kit.beta.emplace(k.load_param<f32>("beta"));
  }
}

void prepare(Kit& kit, const std::function<void()>& parameters) {
  begin_kernel(kit.k, kit.plan);
  parameters();
  place(kit);
}

// The sums of one segment, from the loads to the outputs.
void emit_segment(Kit& kit, const Segment& segment) {
  Sums sums = sums_of(kit, segment, kit.rows_of_k() ? kit.plan.rows : kit.v);
  Outputs outputs = finish_warp(kit, std::move(sums));
  add_stack(kit, outputs);
  const auto hand_in = [&] {
    add_parts(kit, segment, outputs, [&] { store_outputs(kit, segment, outputs); });
  };
  if (kit.plan.cluster == 1) {
    hand_in();
  } else {
    const Pred first = add_cluster(kit, outputs);
    kit.k.if_(first, hand_in);
  }
}

void request(Kit& kit) {
  const Segment segment = first_segment(kit);
  if (kit.blocks != nullptr) {
    request_blocks(kit, segment);
  } else if (kit.rows_of_k()) {
    request_r(kit, segment);
  } else {
    request_t(kit, segment);
  }
}

void emit(Kit& kit) {
  KernelBuilder& k = kit.k;
  prepare(kit, [&] { read_parameters(kit); });
  std::optional<BulkRing> bulk;
  if (kit.plan.path == GemvPath::Bulk && kit.problem().k >= kit.plan.step_elements()) {
    kit.bulk = &bulk.emplace(kit);
  }
  // Blocks beyond the plan's have no units.
  const Pred planned = k.ctaid_x() < kit.plan.blocks;
  // Weights do not depend on the kernel before this one.
  if (bulk) k.if_(planned, [&] { bulk->fill(); });
  if (kit.plan.programmatic) {
    if (!bulk) k.if_(planned, [&] { request(kit); });
    k.emit(ptx::Op::griddepcontrol, {ptx::Modifier::wait}, {});
  }
  k.if_(planned, [&] {
    if (kit.plan.cluster > 1) begin_cluster(kit);
    if (keeps_x(kit.plan)) keep_x(kit);
    for_each_segment(kit, [&](const Segment& segment) { emit_segment(kit, segment); });
  });
  if (kit.plan.programmatic) {
    k.emit(ptx::Op::griddepcontrol, {ptx::Modifier::launch_dependents}, {});
  }
}

}  // namespace

void begin_kernel(KernelBuilder& k, const GemvPlan& plan) {
  k.required_threads(plan.threads());
  k.min_blocks_per_sm(resident_blocks(plan));
  // The plan determines the loads in flight.
  k.pragma("nounroll");
  // Sums round as planned, whatever the passes allow.
  k.contract(Contract::Forbid);
}

void place(Kit& kit) {
  KernelBuilder& k = kit.k;
  kit.v = lane_elements(kit.plan);
  kit.pitch = kit.problem().row_bytes();
  if (const std::uint64_t bytes = stack_bytes(kit.plan); bytes != 0) {
    kit.stack.emplace(k.shared<f32>(bytes / 4, "stack"));
  }
  if (const std::uint64_t bytes = rank_bytes(kit.plan); bytes != 0) {
    k.cluster(kit.plan.cluster);
    kit.ranks.emplace(k.shared<f32>(bytes / 4, "ranks"));
  }
  if (uses_workspace(kit.plan)) kit.verdict.emplace(k.shared<u32>(kVerdictBytes / 4, "verdict"));
  kit.thread.emplace(k.tid_x());
  kit.lane.emplace(*kit.thread & 31u);
  if (is_block_format(kit.problem().weights)) {
    place_blocks(kit);
    return;
  }
  if (kit.plan.path == GemvPath::Async) {
    const Value<u32> place = k.mul_lo(*kit.thread, kit.plan.load_bytes);
    kit.ring.emplace(k.dynamic_shared<b8>().base().offset_bytes(place));
  }
  if (kit.rows_of_k()) {
    place_r(kit);
  } else {
    place_t(kit);
  }
}

Sums sums_of(Kit& kit, const Segment& segment, std::uint32_t count) {
  Sums sums;
  for (std::uint32_t i = 0; i < count; ++i) sums.push_back(kit.k.var<f32>(0.0f));
  if (kit.blocks != nullptr) {
    accumulate_blocks(kit, segment, sums);
  } else if (kit.rows_of_k()) {
    accumulate_r(kit, segment, sums);
  } else {
    accumulate_t(kit, segment, sums);
  }
  return sums;
}

namespace {

// Row m of a pass, whose first row of y is at `y`.
void store_row(Kit& kit, const Segment& segment, Sums& sums, std::uint32_t m, const Ptr<b8>& y) {
  Sums row;
  for (std::uint32_t i = 0; i < kit.plan.rows; ++i) {
    row.push_back(std::move(sums[m * kit.plan.rows + i]));
  }
  kit.y->rebind(y + m * bytes(kit.problem().y, kit.problem().n));
  Outputs outputs = finish_warp(kit, std::move(row));
  store_outputs(kit, segment, outputs);
}

}  // namespace

void emit_batched(Kit& kit) {
  KernelBuilder& k = kit.k;
  std::optional<Value<u32>> m_dim;
  prepare(kit, [&] {
    kit.y.emplace(k.param<Ptr<b8>>("y"));
    kit.a.emplace(k.param<Ptr<b8>>("w"));
    kit.x.emplace(k.param<Ptr<b8>>("x"));
    m_dim.emplace(k.param<u32>("m_dim"));
  });
  const Ptr<b8> y = *kit.y;
  const Ptr<b8> x = *kit.x;
  const std::optional<Ptr<b8>> factors = kit.factors;
  const std::uint32_t batch = kit.plan.batch;
  const std::uint64_t y_pitch = bytes(kit.problem().y, kit.problem().n);
  // A pass for every `batch` rows, of which the last may have fewer.
  const auto pass = [&](const Segment& segment, const Value<u32>& first) {
    kit.x->rebind(moved(k, x, first, kit.x_pitch()));
    if (factors) kit.factors->rebind(moved(k, *factors, first, kit.x_pitch()));
    kit.batch_rows.emplace(*m_dim - first);
    Sums sums = sums_of(kit, segment, kit.plan.rows * batch);
    for (std::uint32_t m = 0; m < batch; ++m) {
      kit.for_batch_row(m, [&] { store_row(kit, segment, sums, m, moved(k, y, first, y_pitch)); });
    }
  };
  // Blocks beyond the plan's have no strip.
  k.if_(k.ctaid_x() < kit.plan.blocks, [&] {
    const Segment segment = first_segment(kit);
    k.for_(0u, *m_dim, batch, [&](Value<u32> first) { pass(segment, first); });
  });
}

}  // namespace gemv

Gemv::KernelType Gemv::build(const ptx::Target& target) const {
  check(plan, target);
  if (plan.batch != 1) {
    throw Error(Stage::Build, "bad-plan",
                format_text("batch is {}; only BatchedGemv multiplies several rows", plan.batch));
  }
  KernelBuilder k(kName, target.name);
  gemv::Kit kit(k, plan);
  gemv::emit(kit);
  return KernelType(k.build());
}

LaunchGeometry Gemv::geometry() const {
  return {.grid = {plan.blocks, 1, 1},
          .block = {plan.threads(), 1, 1},
          .dynamic_shared_bytes = static_cast<std::uint32_t>(gemv::dynamic_bytes(plan)),
          .cluster = {plan.cluster, 1, 1},
          .programmatic = plan.programmatic};
}

KernelCost Gemv::cost() const noexcept {
  const GemvProblem& p = plan.problem;
  const std::uint64_t elements = std::uint64_t{p.k} * p.n;
  const std::uint64_t outputs = std::uint64_t{p.n} * bytes(p.y);
  const std::uint64_t operands = (p.scaled ? 1u : 0u) + (p.bias ? 1u : 0u) + (p.residual ? 1u : 0u);
  return {.bytes_read = p.n * bytes(p.weights, p.k) + bytes(p.x, p.k) + operands * outputs,
          .bytes_written = outputs,
          .flops = 2 * elements + (p.scaled ? 3 : 0) * std::uint64_t{p.n} +
                   (p.bias ? 1 : 0) * std::uint64_t{p.n} +
                   (p.residual ? 1 : 0) * std::uint64_t{p.n}};
}

}  // namespace ptxgen::inline v0
