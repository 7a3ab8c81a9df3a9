// src/kernels/gemv/gemv.cpp - the reference of the GEMV kernels
#include "ptxgen/kernels/gemv/gemv.hpp"

#include <cmath>
#include <string>

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

GemvReference gemv_reference(std::span<const float> a, std::span<const float> x, std::uint32_t k,
                             std::uint32_t n) {
  const std::uint64_t elements = std::uint64_t{k} * n;
  if (a.size() != elements || x.size() != k) {
    throw Error(Stage::Launch, "bad-size",
                format_text("a GEMV of k = {}, n = {} needs {} in A and {} in x, not {} and {}", k,
                            n, count_text(elements, "element"), k, a.size(), x.size()));
  }
  GemvReference reference{std::vector<double>(n), std::vector<double>(n)};
  // Row by row: the matrix is read in memory order.
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const double product = double{a[i * n + j]} * double{x[i]};
      reference.y[j] += product;
      reference.magnitude[j] += std::abs(product);
    }
  }
  return reference;
}

double gemv_error_bound(double magnitude, std::uint64_t roundings) noexcept {
  const double cu = static_cast<double>(roundings) * 0x1p-24;
  return cu / (1.0 - cu) * magnitude;
}

ErrorBound gemv_bound(std::uint64_t roundings) noexcept {
  return {.relative = gemv_error_bound(1, roundings)};
}

}  // namespace ptxgen::inline v0
