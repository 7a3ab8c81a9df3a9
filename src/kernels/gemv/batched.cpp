// src/kernels/gemv/batched.cpp - one matrix times several vectors
#include "ptxgen/kernels/gemv/batched.hpp"

#include <algorithm>

#include "kernels/gemv/emit.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/ptx/limits.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kPass = 8;             // rows of x for which a weight is decoded
constexpr std::uint32_t kLoadBytes = 16;       // alignment of both inputs
constexpr std::uint32_t kMinWarps = 2;         // of a block
constexpr std::uint32_t kSystemShared = 1024;  // of a block, for the system

// All rows begin at the largest power of two that their distance allows.
std::uint32_t row_alignment(std::uint64_t row_bytes, std::uint32_t base) {
  std::uint32_t alignment = base;
  while (row_bytes % alignment != 0) alignment /= 2;
  return alignment;
}

bool fits(const GemvPlan& plan, const ptx::Target& target) {
  return plan.shared_bytes() <= target.shared_per_block_opt_in &&
         plan.shared_bytes() + kSystemShared <= ptx::limits(target.name).shared_per_sm;
}

}  // namespace

GemvPlan BatchedGemv::single() const {
  GemvPlan plan;
  GemvProblem& p = plan.problem;
  p.k = k;
  p.n = n;
  p.layout = GemvLayout::R;
  p.weights = weights;
  p.repacked = repacked;
  p.x = x;
  p.y = y;
  p.a_alignment = kLoadBytes;
  p.x_alignment = row_alignment(bytes(x, k), kLoadBytes);
  p.y_alignment = bytes(y);
  plan.load_bytes = widest_load(p);
  // Half as many rows of a warp where the parts of blocks are of 64 weights: the integers of x for
  // them take many registers.
  const bool blocks = is_block_format(weights);
  const bool large = info(weights).block_values == 256;
  plan.warps_out = large ? 16 : blocks ? 8 : 4;
  plan.rows = large ? 1 : 2;
  plan.unroll = blocks ? 1 : 2;
  plan.blocks = static_cast<std::uint32_t>(plan.strips());
  return plan;
}

// With fewer warps in a block, x of more rows fits its shared memory.
GemvPlan BatchedGemv::plan(const ptx::Target& target) const {
  GemvPlan wide = single();
  ptxgen::check(wide.problem);
  // There the assembler spills with two rows of q8_0.
  if (target.sm < 90 && weights == ElementType::q8_0) {
    wide.rows = 1;
    wide.warps_out *= 2;
  }
  const std::uint32_t rows = std::min(m, kPass);
  GemvPlan best = wide;
  best.batch = 0;
  for (std::uint32_t warps = wide.warps_out; warps >= kMinWarps && best.batch < rows; warps /= 2) {
    GemvPlan plan = wide;
    plan.warps_out = warps;
    plan.blocks = static_cast<std::uint32_t>(plan.strips());
    plan.batch = rows;
    while (plan.batch > 1 && !fits(plan, target)) --plan.batch;
    if (plan.batch > best.batch && fits(plan, target)) best = plan;
  }
  best.batch = std::max(1u, best.batch);  // `check` says what is wrong
  return best;
}

BuiltKernel BatchedGemv::build(const ptx::Target& target) const {
  check_parameters(*this);
  const GemvPlan pass = plan(target);
  ptxgen::check(pass, target);
  KernelBuilder builder(kernel_name<BatchedGemv>, target.name);
  gemv::Kit kit(builder, pass);
  gemv::emit_batched(kit);
  return builder.build();
}

LaunchGeometry BatchedGemv::geometry(const ptx::Gpu& gpu) const {
  return Gemv{plan(ptx::target(gpu.target))}.geometry();
}

KernelCost BatchedGemv::cost() const noexcept {
  const std::uint64_t passes = (m + kPass - 1) / kPass;
  return {.bytes_read = passes * n * bytes(weights, k) + m * bytes(x, k),
          .bytes_written = std::uint64_t{m} * n * bytes(y),
          .flops = 2 * std::uint64_t{m} * n * k};
}

void Describe<BatchedGemv>::check(const K& spec, const O& operands) {
  if (operands.m_dim >= 1 && operands.m_dim <= spec.m) return;
  Error error(Stage::Launch, "arguments",
              format_text("m_dim is {}; the kernel was built for 1 to {} rows: build it with a "
                          "larger m, or launch it for fewer rows at a time",
                          operands.m_dim, spec.m));
  error.kernel = kernel_name<BatchedGemv>;
  throw error.refresh();
}

KernelKey Describe<BatchedGemv>::key(const K& spec) {
  const auto type = [](ElementType of, unsigned at) {
    return static_cast<std::uint64_t>(of) << at;
  };
  KernelKey key;
  key.values = {std::uint64_t{spec.k} << 32 | spec.n, spec.m,
                type(spec.weights, 0) | type(spec.x, 8) | type(spec.y, 16) |
                    std::uint64_t{spec.repacked} << 24};
  return key;
}

void Describe<BatchedGemv>::reference(const K& spec, HostOperands& host) {
  const GemvProblem problem = spec.single().problem;
  HostOperands::Operand& y = host["y"];
  y.magnitude.assign(y.values.size(), 0);
  const auto rows = static_cast<std::size_t>(host.number("m_dim"));
  const std::vector<double>& x = host.input("x");
  for (std::size_t row = 0; row < rows; ++row) {
    HostOperands one;
    const auto from = x.begin() + static_cast<std::ptrdiff_t>(row * spec.k);
    one.all = {{"y", std::vector<double>(spec.n), {}},
               {"a", host.input("w"), host["w"].magnitude},
               {"x", {from, from + spec.k}, {}}};
    Describe<GemvProblem>::reference(problem, one);
    const auto to = static_cast<std::ptrdiff_t>(row * spec.n);
    std::copy(one["y"].values.begin(), one["y"].values.end(), y.values.begin() + to);
    std::copy(one["y"].magnitude.begin(), one["y"].magnitude.end(), y.magnitude.begin() + to);
  }
}

ErrorBound Describe<BatchedGemv>::bound(const K& spec) {
  return Describe<Gemv>::bound({spec.single()});
}

}  // namespace ptxgen::inline v0
