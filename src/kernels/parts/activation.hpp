// src/kernels/parts/activation.hpp - gates of gelu: the activation is x times its gate
#pragma once

#include <cmath>

#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

inline constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
inline constexpr double kSqrtHalf = 0.70710678118654752440;

/// (1 + erf(x / sqrt(2))) / 2
inline Value<f32> erf_gate(const Value<f32>& x, Accuracy accuracy) {
  const Value<f32> e = erf(x * static_cast<float>(kSqrtHalf), accuracy);
  return e * 0.5f + 0.5f;
}
inline double exact_erf_gate(double x) { return 0.5 * std::erfc(-x * kSqrtHalf); }

/// (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
inline Value<f32> tanh_gate(const Value<f32>& x, Accuracy accuracy) {
  const Value<f32> cubic = x * x * 0.044715f + 1.0f;
  const Value<f32> t = tanh(x * cubic * static_cast<float>(kSqrtTwoOverPi), accuracy);
  return t * 0.5f + 0.5f;
}
/// Without cancellation.
inline double exact_tanh_gate(double x) {
  return 1 / (1 + std::exp(-2 * kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
}

}  // namespace ptxgen::inline v0
