// src/kernels/parts/rotation.hpp - rotary position embedding of pairs of elements
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

/// Sine and cosine of a pair at a position; the frequency is computed before.
using Rotation = std::function<SinCos(const Value<u32>& position)>;

/// The rotation of a pair by `position * theta^(-2 pair / head_size) / factor`. Precise: angles in
/// f64, precise sine and cosine; in a kernel with or without contraction.
[[nodiscard]] Rotation rotation_of(KernelBuilder& k, bool precise, const Value<u32>& pair,
                                   const Value<f32>& theta, std::uint32_t head_size,
                                   const std::optional<Value<f32>>& factor);

/// `(x0 cos - x1 sin, x0 sin + x1 cos)`
[[nodiscard]] std::pair<Value<f32>, Value<f32>> rotated(KernelBuilder& k, const Value<f32>& x0,
                                                        const Value<f32>& x1, const SinCos& by);

/// Which rotation of a head, for the reference.
struct RotationSpec {
  bool interleaved = true;  ///< pairs (2i, 2i + 1), otherwise (i, i + half a head)
  bool precise = false;
  double theta = 10000;
  std::span<const double> factors = {};  ///< of each pair, or none
};

/// fp64: rotates a head by its position, backwards if `direction` is -1. `magnitude` is what
/// `rotation_error` is relative to.
void rotation_reference(const RotationSpec& spec, double position, double direction,
                        std::span<const double> x, std::span<double> y,
                        std::span<double> magnitude);
/// The relative error of a result.
[[nodiscard]] double rotation_error(bool precise, bool factors);

}  // namespace ptxgen::inline v0
