// ptxgen/kernels/elementwise.hpp - the benchmark kernels vadd, copy, fma_rpt
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/kernel.hpp"

namespace ptxgen::inline v0 {

/// `c[i] = a[i] + b[i]` for i in [0, n), elements f32.
///
/// Access: one thread per element; consecutive lanes read and write consecutive 4-byte elements, so
/// a warp's load is one 128-byte line of 4 sectors where the buffers are 128-byte aligned.
/// Entry `vadd(a, b, c, n)`: buffers of n elements, 4-byte aligned; c may be a or b.
struct Vadd {
  std::uint32_t n = 1u << 20;  ///< elements, for geometry and cost; the kernel takes any n

  static constexpr std::string_view kName = "vadd";
  static constexpr std::uint32_t kThreads = 256;
  using KernelType = Kernel<Ptr<f32>, Ptr<f32>, Ptr<f32>, u32>;

  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  /// Block 256, grid ceil(n / 256). n = 0 throws `Error` (stage launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads 8 n bytes, writes 4 n, n operations.
  [[nodiscard]] KernelCost cost() const noexcept;
  /// What the kernel computes, bit for bit. All spans have the same length.
  static void reference(std::span<const float> a, std::span<const float> b, std::span<float> c);
};

/// `out[i] = in[i]` for i in [0, n), 4-byte elements copied bit for bit (NaN payloads too).
///
/// Access: one thread per element, consecutive lanes on consecutive elements, as `Vadd`.
/// Entry `copy(in, out, n)`: buffers of n elements, 4-byte aligned.
struct Copy {
  std::uint32_t n = 1u << 20;

  static constexpr std::string_view kName = "copy";
  static constexpr std::uint32_t kThreads = 256;
  using KernelType = Kernel<Ptr<b32>, Ptr<b32>, u32>;

  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads 4 n bytes, writes 4 n, no operations.
  [[nodiscard]] KernelCost cost() const noexcept;
  static void reference(std::span<const std::uint32_t> in, std::span<std::uint32_t> out);
};

/// `acc = in[i]; k times: acc = fma(acc, a, b); out[i] = acc` for i in [0, n), elements f32.
/// A serial chain of fused multiply-adds, each rounded once to nearest even, no flush to zero.
///
/// Access: one thread per element, consecutive lanes on consecutive elements, as `Vadd`.
/// Entry `fma_rpt(in, out, n, k, a, b)`: n and k are s32, k <= 0 copies.
struct FmaRpt {
  std::uint32_t n = 1u << 20;  ///< elements, at most 2^31 - 1
  std::uint32_t k = 128;       ///< repetitions, at most 2^31 - 1; for the cost only

  static constexpr std::string_view kName = "fma_rpt";
  static constexpr std::uint32_t kThreads = 256;
  static constexpr std::uint32_t kUnroll = 4;
  using KernelType = Kernel<Ptr<f32>, Ptr<f32>, s32, s32, f32, f32>;

  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads 4 n bytes, writes 4 n, 2 k n operations.
  [[nodiscard]] KernelCost cost() const noexcept;
  /// What the kernel computes, bit for bit.
  static void reference(std::span<const float> in, std::span<float> out, std::int32_t k, float a,
                        float b);
};

}  // namespace ptxgen::inline v0
