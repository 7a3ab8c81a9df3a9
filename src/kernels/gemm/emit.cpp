// src/kernels/gemm/emit.cpp - parameters and epilogue of the GEMM kernels
#include "kernels/gemm/emit.hpp"

#include <algorithm>

#include "kernels/parts/activation.hpp"

namespace ptxgen::inline v0::gemm {

namespace {

constexpr std::uint32_t kMaxGridY = 65535;

// The steps of `silu`, `gelu` and `gelu_tanh`, precise.
Value<f32> activated(const Value<f32>& x, GemmActivation activation) {
  if (activation == GemmActivation::Silu) return x * sigmoid(x, Accuracy::Precise);
  if (activation == GemmActivation::Gelu) return x * erf_gate(x, Accuracy::Precise);
  return x * tanh_gate(x, Accuracy::Precise);
}

// Moved to the block's matrix, `stride` bytes from one to the next.
Ptr<b8> of_batch(KernelBuilder& k, const Ptr<b8>& p, std::uint64_t stride) {
  return stride == 0 ? p : moved(k, p, k.ctaid_z(), stride);
}

}  // namespace

Ptr<b8> moved(KernelBuilder& k, const Ptr<b8>& p, const Value<u32>& n, std::uint64_t bytes) {
  if (bytes == 0) return p;
  if (bytes >> 32 == 0) return p.offset_bytes(k.mul_wide(n, static_cast<std::uint32_t>(bytes)));
  return p.offset_bytes(k.mul_lo(k.cvt<u64>(n), bytes));
}

Kit read_parameters(KernelBuilder& k, const GemmProblem& problem, WorkspaceUse workspace) {
  for (const char* name : {"c", "a", "b", "bias", "residual"}) k.declare_param<Ptr<b8>>(name);
  if (workspace != WorkspaceUse::None) k.declare_param<Ptr<b8>>("workspace");
  for (const char* name : {"alpha", "beta"}) k.declare_param<f32>(name);
  k.declare_param<u32>("m");
  const Value<u32> m = k.load_param<u32>("m");
  const auto of_c = [&](const char* name) {
    const Ptr<b8> p = k.load_param<Ptr<b8>>(name);
    if (problem.stride_c != 0) return of_batch(k, p, problem.stride_c * bytes(problem.c));
    const Value<u64> matrix = k.mul_wide(k.ctaid_z(), m);
    return p.offset_bytes(k.mul_lo(matrix, problem.pitch_c() * bytes(problem.c)));
  };
  const Ptr<b8> c = of_c("c");
  const Ptr<b8> a = of_batch(k, k.load_param<Ptr<b8>>("a"), bytes(problem.type, problem.stride_a));
  const Ptr<b8> b =
      of_batch(k, k.load_param<Ptr<b8>>("b"), bytes(problem.type_b(), problem.stride_b));
  Kit kit{k, problem, c, a, b, {}, {}, {}, {}, {}, m};
  if (problem.bias) kit.bias.emplace(k.load_param<Ptr<b8>>("bias"));
  if (problem.residual) kit.residual.emplace(of_c("residual"));
  if (workspace == WorkspaceUse::Used) kit.workspace.emplace(k.load_param<Ptr<b8>>("workspace"));
  if (problem.scaled) {
    kit.alpha.emplace(k.load_param<f32>("alpha"));
    kit.beta.emplace(k.load_param<f32>("beta"));
  }
  return kit;
}

std::uint32_t outputs_together(const GemmProblem& p) noexcept {
  std::uint32_t together = std::min(4u, std::max(p.c_alignment / bytes(p.c), 1u));
  const auto divides = [&](std::uint64_t elements) { return elements % together == 0; };
  while (!divides(p.n) || !divides(p.pitch_c()) || !divides(p.stride_c)) together /= 2;
  return together;
}

void store_outputs(Kit& kit, const Value<u32>& row, const Value<u32>& column,
                   const std::vector<Value<f32>>& sums) {
  KernelBuilder& k = kit.k;
  const GemmProblem& problem = kit.problem;
  const auto count = static_cast<std::uint32_t>(sums.size());
  const std::uint32_t element = bytes(problem.c);
  const auto at = [&](const Ptr<b8>& matrix) {
    const Ptr<b8> begin = moved(k, matrix, row, problem.pitch_c() * element);
    return moved(k, begin, column, element);
  };
  const auto read = [&](const Ptr<b8>& from) {
    return expand(k, load_floats(k, from, problem.c, count), count);
  };
  const Ptr<b8> to = at(kit.c);
  std::vector<Value<f32>> old, bias, residual;
  if (problem.scaled) old = read(to);
  if (problem.bias) bias = read(moved(k, *kit.bias, column, element));
  if (problem.residual) residual = read(at(*kit.residual));
  std::vector<Value<f32>> results;
  for (std::uint32_t i = 0; i < count; ++i) {
    Value<f32> t = sums[i];
    if (problem.scaled) {
      t.rebind(*kit.alpha * t);
      t.rebind(k.fma(*kit.beta, old[i], t));
    }
    if (problem.bias) t.rebind(t + bias[i]);
    if (problem.activation != GemmActivation::None) t.rebind(activated(t, problem.activation));
    if (problem.residual) t.rebind(t + residual[i]);
    results.push_back(t);
  }
  store_floats(k, to, problem.c, results);
}

void store_strip(Kit& kit, const Ptr<f32, Shared>& sums, std::uint32_t columns, std::uint32_t pitch,
                 const Value<u32>& row, const Value<u32>& column, const std::optional<Pred>& only) {
  KernelBuilder& k = kit.k;
  const std::uint32_t together = outputs_together(kit.problem);
  const std::uint32_t per_row = columns / together;
  const Value<u32> lane = k.tid_x() & 31u;
  k.for_(lane, 16 * per_row, 32u, [&](Value<u32> place) {
    const Value<u32> down = place / per_row;
    const Value<u32> across = k.mul_lo(place % per_row, together);
    const Value<u32> c_row = row + down;
    const Value<u32> c_column = column + across;
    const Pred in_rows = c_row < kit.m;
    const Pred inside = in_rows & (c_column < kit.problem.n);
    k.if_(only ? inside & *only : inside, [&] {
      const Ptr<f32, Shared> from = sums + k.mad_lo(down, pitch, across);
      const Floats values = load_floats(k, from.cast<b8>(), ElementType::f32, together);
      store_outputs(kit, c_row, c_column, values.full);
    });
  });
}

LaunchGeometry square_geometry(const GemmProblem& problem, std::uint32_t tile) {
  const auto tiles = [&](std::uint32_t outputs) { return (outputs - 1) / tile + 1; };
  return {.grid = {tiles(problem.n), std::min(tiles(problem.m), kMaxGridY), problem.batch},
          .block = {tile, tile, 1}};
}

KernelKey unaligned_key(GemmProblem problem, std::uint64_t plan) {
  problem.alignment = problem.c_alignment = 16;
  return detail::gemm_key(problem, plan);
}

double chain_error(std::uint64_t roundings) noexcept {
  const double share = static_cast<double>(roundings) * 0x1p-24;
  return share / (1 - share);
}

}  // namespace ptxgen::inline v0::gemm
