// ptxgen/kernels/gemv/gemv.hpp - reference and error bound of GEMV kernels
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ptxgen/kernels/description.hpp"

namespace ptxgen::inline v0 {

/// The result of a GEMV in fp64, and the magnitudes that error bounds need.
struct GemvReference {
  std::vector<double> y;          ///< y[j] = sum over i of A[i*n + j] * x[i]
  std::vector<double> magnitude;  ///< sum over i of |A[i*n + j] * x[i]|
};

/// `A[k x n]` row-major f32, `x[k]` f32. Throws `Error` (stage launch, "bad-size") if the spans do
/// not hold k * n and k elements.
[[nodiscard]] GemvReference gemv_reference(std::span<const float> a, std::span<const float> x,
                                           std::uint32_t k, std::uint32_t n);

/// Bound of an f32 result's error: gamma * magnitude with gamma = c u / (1 - c u), u = 2^-24, c the
/// number of roundings on the longest path of the summation (Higham, Accuracy and Stability of
/// Numerical Algorithms, section 3.1).
[[nodiscard]] double gemv_error_bound(double magnitude, std::uint64_t roundings) noexcept;
/// The same as an `ErrorBound` of kernels that store f32 sums.
[[nodiscard]] ErrorBound gemv_bound(std::uint64_t roundings) noexcept;

}  // namespace ptxgen::inline v0
