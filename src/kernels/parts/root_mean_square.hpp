// src/kernels/parts/root_mean_square.hpp - scale a row by its root mean square
#pragma once

#include <cmath>
#include <span>
#include <utility>

#include "kernels/parts/rows.hpp"

namespace ptxgen::inline v0 {

/// The sum of squares of the thread's elements, `element(column, load(column))`; compensated
/// (Kahan) if `precise`, in a kernel without contraction. Loads are ahead as in
/// `RowBlock::for_each_loaded`.
template <class Load, class Element>
[[nodiscard]] Value<f32> sum_of_squares(const RowBlock& b, bool precise, const Load& load,
                                        const Element& element_of) {
  KernelBuilder& k = b.k;
  Var<f32> sum = k.var<f32>(0.0f);
  Var<f32> lost = k.var<f32>(0.0f);
  b.for_each_loaded(load, [&](const Value<u32>& i, const auto& loaded) {
    const Value<f32> element = element_of(i, loaded);
    if (!precise) {
      sum = k.fma(element, element, sum);
      return;
    }
    // Kahan: what the addition lost is taken from the next summand.
    const Value<f32> term = k.fma(element, element, k.neg(lost));
    const Value<f32> next = sum + term;
    const Value<f32> added = next - sum;
    lost = added - term;
    sum = next;
  });
  return sum;
}

/// `1 / sqrt(mean of squares + eps)` of the row's elements; every thread gets it.
template <class Load, class Element>
[[nodiscard]] Value<f32> inverse_rms(const RowBlock& b, bool precise, const Value<f32>& eps,
                                     const Load& load, const Element& element_of) {
  KernelBuilder& k = b.k;
  const Value<f32> squares =
      k.block_reduce(sum_of_squares(b, precise, load, element_of), b.threads);
  const Value<f32> mean = k.div(squares, k.convert<f32>(b.columns)) + eps;
  return precise ? k.rcp(k.sqrt(mean)) : k.rsqrt(mean);
}
/// The same of elements that are as they are loaded.
template <class Load>
[[nodiscard]] Value<f32> inverse_rms(const RowBlock& b, bool precise, const Value<f32>& eps,
                                     const Load& load) {
  return inverse_rms(b, precise, eps, load,
                     [](const Value<u32>&, const Value<f32>& element) { return element; });
}

/// Stores `load(column) * scale * weight[column]` to the row.
template <class Load>
void store_scaled(const RowBlock& b, const Ptr<f32>& weight, const Value<f32>& scale,
                  const Value<u64>& row, const Load& load) {
  const auto load_both = [&](const Value<u32>& i) {
    const Value<f32> element = load(i);
    const Value<f32> factor = weight[i];
    return std::pair(element, factor);
  };
  b.for_each_loaded(load_both, [&](const Value<u32>& i, const auto& loaded) {
    const Value<f32> scaled = loaded.first * scale;
    b.store(row, i, scaled * loaded.second);
  });
}

/// fp64: `y[i] = x[i] / sqrt(mean of squares + eps) * weight[i]` for a row.
inline void rms_reference(std::span<const double> x, std::span<const double> weight, double eps,
                          std::span<double> y) {
  double squares = 0;
  for (const double element : x) squares += element * element;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
}

/// The relative error of a result. All summands have one sign, so the sum's relative error is that
/// of its longest path: the thread's chain (two roundings in all if it is compensated), the steps
/// of the butterflies. Halved by the root; then mean, eps, root and division, and two products.
[[nodiscard]] inline double rms_error(std::uint32_t columns, std::uint32_t threads, bool precise) {
  const double chain = precise ? 2 : (columns + threads - 1) / threads;
  const double steps = threads == 32 ? 5 : 10;
  const double root = precise ? 2 : 3;  // rsqrt.approx: 2^-22.9 in the PTX ISA
  return ((chain + steps + 2) / 2 + root + 2) * 0x1p-24 * 1.01;
}

}  // namespace ptxgen::inline v0
