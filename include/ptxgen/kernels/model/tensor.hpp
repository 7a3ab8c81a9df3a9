// ptxgen/kernels/model/tensor.hpp - the rates of tensor cores that predictions use
#pragma once

#include "ptxgen/kernels/element_type.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// Dense products of one type with sums in f32.
struct TensorRates {
  /// Of the datasheet, 1e12 operations per second; a fused multiply-add counts as two.
  double peak_tflops = 0;
  /// Of it that kernels of mma.sync reach at most.
  double mma_share = 0;
  /// Of it that the best kernel of wgmma reached; 0 where there is no wgmma.
  double wgmma_share = 0;
  /// Whether that share was published for this architecture; otherwise it is that of the nearest.
  bool measured = false;

  [[nodiscard]] double mma_tflops() const noexcept { return peak_tflops * mma_share; }
};

/// Of f16 and bf16 (the same), tf32 for f32, or e4m3. 0 where the tensor cores do not have the
/// type.
[[nodiscard]] TensorRates tensor_rates(const ptx::Gpu& gpu, ElementType type) noexcept;

}  // namespace ptxgen::inline v0
