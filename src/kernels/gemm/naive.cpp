// src/kernels/gemm/naive.cpp - a matrix product with one thread for each output
#include "ptxgen/kernels/gemm/naive.hpp"

#include "kernels/gemm/block_rows.hpp"

namespace ptxgen::inline v0 {

namespace {

// The sum with a row of B in blocks, eight terms at a time.
void add_runs(gemm::Kit& kit, Var<Ptr<b8>>& a, const Value<u32>& column, Var<f32>& sum) {
  KernelBuilder& k = kit.k;
  const GemmProblem& p = kit.problem;
  const std::uint64_t step = bytes(p.type) * (p.transpose_a ? p.pitch_a() : 1);
  const Ptr<b8> right = gemm::moved(k, kit.b, column, gemm::pitch_bytes_b(p));
  k.for_(0u, p.k / kRunValues, 1u, [&](Value<u32> run) {
    const std::vector<Value<f32>> values = gemm::load_run_of_row(k, p.type_b(), right, run);
    for (const Value<f32>& value : values) {
      const Value<f32> x = expand(k, load_floats(k, a.view(), p.type, 1), 1)[0];
      k.fma_inplace(sum, x, value);
      a += step;
    }
  });
}

// The output of a thread that has one.
void emit_output(gemm::Kit& kit, const Value<u32>& row, const Value<u32>& column) {
  KernelBuilder& k = kit.k;
  const GemmProblem& p = kit.problem;
  const std::uint64_t element = bytes(p.type);
  const std::uint64_t right_element = bytes(p.type_b());
  auto a = k.var(gemm::moved(k, kit.a, row, element * (p.transpose_a ? 1 : p.pitch_a())));
  if (info(p.type_b()).block_values != 1) {
    auto sum = k.var<f32>(0.0f);
    add_runs(kit, a, column, sum);
    return gemm::store_outputs(kit, row, column, {sum.read()});
  }
  auto b = k.var(gemm::moved(k, kit.b, column, right_element * (p.transpose_b ? p.pitch_b() : 1)));
  auto sum = k.var<f32>(0.0f);
  k.for_(0u, p.k, 1u, [&] {
    const Floats left = load_floats(k, a.view(), p.type, 1);
    const Floats right = load_floats(k, b.view(), p.type_b(), 1);
    const Value<f32> x = expand(k, left, 1)[0];
    const Value<f32> y = expand(k, right, 1)[0];
    k.fma_inplace(sum, x, y);
    a += element * (p.transpose_a ? p.pitch_a() : 1);
    b += right_element * (p.transpose_b ? 1 : p.pitch_b());
  });
  gemm::store_outputs(kit, row, column, {sum.read()});
}

}  // namespace

BuiltKernel GemmNaive::build(const ptx::Target& target) const {
  check(problem);
  detail::refuse_eight_bits(problem, kernel_name<GemmNaive>);
  KernelBuilder k(kernel_name<GemmNaive>, target.name);
  k.required_threads(kTile, kTile);
  k.contract(Contract::Forbid);
  gemm::Kit kit = gemm::read_parameters(k, problem);
  const Value<u32> first_column = k.mul_lo(k.ctaid_x(), kTile);
  const Value<u32> column = first_column + k.tid_x();
  const Value<u32> first_row = k.mul_lo(k.ctaid_y(), kTile);
  const Value<u32> step = k.mul_lo(k.nctaid_y(), kTile);
  k.if_(column < problem.n, [&] {
    const Value<u32> top = first_row + k.tid_y();
    k.for_(top, kit.m, step, [&](Value<u32> row) { emit_output(kit, row, column); });
  });
  return k.build();
}

LaunchGeometry GemmNaive::geometry() const { return gemm::square_geometry(problem, kTile); }

KernelKey Describe<GemmNaive>::key(const K& spec) { return gemm::unaligned_key(spec.problem, 0); }

ErrorBound Describe<GemmNaive>::bound(const K& spec) {
  return detail::gemm_bound(spec.problem, gemm::chain_error(spec.problem.k));
}

}  // namespace ptxgen::inline v0
