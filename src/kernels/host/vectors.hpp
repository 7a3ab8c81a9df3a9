// src/kernels/host/vectors.hpp - loops over arrays, compiled for each instruction set
#pragma once

#include <cstddef>
#include <cstdint>

#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::inline v0 {

/// Partial sums of a dot product: element i is added to lane i mod kDotLanes by a fused
/// multiply-add where the instruction set has one, in the order of i. `sum_of_lanes` adds them.
inline constexpr std::size_t kDotLanes = 32;
/// The same for sums in f64.
inline constexpr std::size_t kSumLanes = 16;

/// Loops of one instruction set. Arrays may be unaligned and of any length, 0 too; nothing beyond
/// their ends is read. An output may be an input. `count`: elements. Except for fused multiply-adds
/// results do not depend on the instruction set.
struct HostVectors {
  /// f32, f16 or bf16 to f32, exact; and back, rounded once to nearest even, NaN to NaN.
  void (*to_f32)(ElementType type, const void* from, std::size_t count, float* to);
  void (*from_f32)(ElementType type, const float* from, std::size_t count, void* to);

  void (*add)(const float* a, const float* b, std::size_t count, float* out);
  void (*multiply)(const float* a, const float* b, std::size_t count, float* out);
  /// x / (1 + exp(-factor * x))
  void (*gate)(float factor, const float* x, std::size_t count, float* out);
  /// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
  void (*gelu_tanh)(const float* x, std::size_t count, float* out);
  /// x where x is not below 0, else 0
  void (*relu)(const float* x, std::size_t count, float* out);
  /// exp((x - shift) * factor); its sum. NaN stays NaN.
  double (*exponentials)(const float* x, float shift, float factor, std::size_t count, float* out);
  /// -inf for none
  float (*largest)(const float* x, std::size_t count);
  double (*sum)(const float* x, std::size_t count);
  /// of (x - centre)^2
  double (*squares)(const float* x, double centre, std::size_t count);
  /// x * scale * weight, in this order; without a weight if it is null
  void (*scale)(const float* x, float scale, const float* weight, std::size_t count, float* out);
  /// (x - centre) * scale * weight + bias in f64, rounded once; weight and bias both or neither
  void (*normalise)(const float* x, double centre, double scale, const float* weight,
                    const float* bias, std::size_t count, float* out);

  /// Adds the products of each row, of f32, f16 or bf16, and x to its lanes, from lane 0 on. Rows
  /// begin `pitch` elements after another, lanes kDotLanes.
  void (*dot)(ElementType type, const void* rows, std::uint64_t pitch, std::size_t row_count,
              const float* x, std::size_t count, float* lanes);
  /// `y[j] = fma(row[r][j], x[r], y[j])` for each row r in order; rows begin `pitch` elements after
  /// another.
  void (*add_rows)(ElementType type, const void* rows, std::uint64_t pitch, std::size_t row_count,
                   const float* x, std::size_t count, float* y);
  /// y = fma(a, x, y)
  void (*add_scaled)(float a, const float* x, std::size_t count, float* y);
  /// The values of whole blocks of a format, those of `dequantize`.
  void (*dequantize)(ElementType type, const void* blocks, std::size_t values, float* to);
};

/// The sum of `kDotLanes` lanes: halves are added to each other until one is left.
[[nodiscard]] inline float sum_of_lanes(const float* lanes) noexcept {
  float half[kDotLanes / 2];
  for (std::size_t i = 0; i < kDotLanes / 2; ++i) half[i] = lanes[i] + lanes[i + kDotLanes / 2];
  for (std::size_t n = kDotLanes / 4; n != 0; n /= 2) {
    for (std::size_t i = 0; i < n; ++i) half[i] += half[i + n];
  }
  return half[0];
}

}  // namespace ptxgen::inline v0
