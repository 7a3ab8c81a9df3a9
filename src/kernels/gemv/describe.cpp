// src/kernels/gemv/describe.cpp - what the catalog says of the GEMV kernels
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/gemv/choice.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels/gemv/coalesced.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/kernels/gemv/strided.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

namespace {

Gemv planned_for(const GemvProblem& problem, const ptx::Gpu& gpu) {
  return {plan_gemv(problem, gpu)};
}

double element(const std::vector<double>& array, std::uint64_t i) {
  return array[static_cast<std::size_t>(i)];
}

// Adds term to output j.
void add(HostOperands::Operand& y, std::uint64_t j, double term) {
  y.values[j] += term;
  y.magnitude[j] += std::abs(term);
}

}  // namespace

std::uint64_t detail::saturated_matrix_elements(const GemvProblem& problem) noexcept {
  const std::uint64_t lda = problem.leading_dimension();
  const std::uint64_t rows = problem.layout == GemvLayout::T ? problem.k : problem.n;
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  return rows != 0 && lda > kMax / rows ? kMax : problem.matrix_elements();
}

void detail::refuse_unscaled(const GemvOperands&) {
  Error error(Stage::Launch, "arguments",
              "alpha is not 1 or beta not 0, but the problem is not scaled; set "
              "GemvProblem::scaled");
  error.kernel = kernel_name<GemvProblem>;
  throw error.refresh();
}

KernelKey Describe<GemvProblem>::key(const GemvProblem& problem) {
  GemvPlan plan;
  plan.problem = problem;
  return Describe<Gemv>::key({plan});
}

ptx::Module Describe<GemvProblem>::build(const GemvProblem& problem, const ptx::Target& target) {
  return planned_for(problem, emulator::default_gpu(target.name)).build(target).module();
}

LaunchGeometry Describe<GemvProblem>::geometry(const GemvProblem& problem, const ptx::Gpu& gpu) {
  return planned_for(problem, gpu).geometry();
}

KernelCost Describe<GemvProblem>::cost(const GemvProblem& problem) {
  GemvPlan plan;
  plan.problem = problem;
  return Gemv{plan}.cost();
}

// Of each element of x: its own, or with blocks, where 32 elements are rounded together, the
// largest one's.
static std::vector<double> x_magnitudes(const GemvProblem& p, const std::vector<double>& x) {
  std::vector<double> magnitudes(x.size());
  const std::size_t together = is_block_format(p.weights) ? 32 : 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double& largest = magnitudes[i / together * together];
    largest = std::max(largest, std::abs(x[i]));
  }
  for (std::size_t i = 0; i < x.size(); ++i) magnitudes[i] = magnitudes[i / together * together];
  return magnitudes;
}

void Describe<GemvProblem>::reference(const GemvProblem& p, HostOperands& host) {
  HostOperands::Operand& y = host["y"];
  const std::vector<double> old = y.values;
  y.values.assign(p.n, 0);
  y.magnitude.assign(p.n, 0);
  const bool t = p.layout == GemvLayout::T;
  const std::uint64_t pitch = p.leading_dimension();
  const std::uint64_t rows = t ? p.k : p.n;
  const std::uint64_t columns = t ? p.n : p.k;
  const double alpha = p.scaled ? host.number("alpha") : 1;
  const std::vector<double>& a = host.input("a");
  const std::vector<double>& x = host.input("x");
  const std::vector<double>& terms = host["a"].magnitude.empty() ? a : host["a"].magnitude;
  const std::vector<double> x_terms = x_magnitudes(p, x);
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t column = 0; column < columns; ++column) {
      const std::uint64_t at = row * pitch + column;
      const std::uint64_t i = t ? row : column;
      const std::uint64_t j = t ? column : row;
      y.values[j] += alpha * element(a, at) * element(x, i);
      y.magnitude[j] += std::abs(alpha * element(terms, at) * element(x_terms, i));
    }
  }
  for (std::uint64_t j = 0; j < p.n; ++j) {
    if (p.scaled) add(y, j, host.number("beta") * element(old, j));
    if (p.bias) add(y, j, element(host.input("bias"), j));
    if (p.residual) add(y, j, element(host.input("residual"), j));
  }
}

// With blocks: x has 22 binary digits of the largest of 32, which is 4 of the units; scale, sum of
// x, digits and products of a block are 8 more roundings.
// Of any plan: no sum is longer than one serial chain and the steps of the epilogue.
ErrorBound Describe<GemvProblem>::bound(const GemvProblem& problem) {
  return gemv_bound(std::uint64_t{problem.k} + 64);
}

KernelKey Describe<Gemv>::key(const Gemv& kernel) {
  const GemvPlan& plan = kernel.plan;
  const GemvProblem& p = plan.problem;
  const GemvShape shape = shape_of(p, p.a_alignment, p.x_alignment, p.y_alignment);
  const auto pair = [](std::uint64_t high, std::uint32_t low) { return high << 32 | low; };
  const std::uint64_t bits = shape.words[2] | static_cast<std::uint64_t>(plan.path) << 48 |
                             std::uint64_t{plan.programmatic} << 50 |
                             std::uint64_t{plan.streaming} << 51;
  KernelKey key;
  key.values = {shape.words[0],
                shape.words[1],
                bits,
                pair(plan.warps_out, plan.warps_k),
                pair(plan.rows, plan.unroll),
                pair(plan.blocks, plan.chunk_steps)};
  // 21 bits each are enough for the blocks and stages of any target, 5 for the bytes of a load.
  key.plan = std::uint64_t{plan.load_bytes} << 58 ^ std::uint64_t{plan.cluster} << 42 ^
             std::uint64_t{plan.stages} << 21 ^ plan.blocks_per_sm;
  return key;
}

WorkspaceNeed Describe<Gemv>::workspace(const Gemv& kernel) {
  const std::uint64_t tickets = kernel.plan.ticket_bytes();
  return {tickets, kernel.plan.workspace_bytes() - tickets};
}

ErrorBound Describe<Gemv>::bound(const Gemv& kernel) {
  constexpr std::uint64_t kOfBlocks = 12;
  const bool blocks = is_block_format(kernel.plan.problem.weights);
  return gemv_bound(kernel.plan.roundings() + (blocks ? kOfBlocks : 0));
}

void Describe<GemvCoalesced>::reference(const GemvCoalesced& spec, HostOperands& host) {
  Describe<GemvProblem>::reference({.k = spec.k, .n = spec.n}, host);
}
void Describe<GemvStrided>::reference(const GemvStrided& spec, HostOperands& host) {
  Describe<GemvProblem>::reference({.k = spec.k, .n = spec.n}, host);
}

}  // namespace ptxgen::inline v0
