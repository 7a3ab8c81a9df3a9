// ptxgen/kernels/elementwise/elementwise.hpp - the benchmark kernels vadd, copy, fma_rpt
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/kernel.hpp"

namespace ptxgen::inline v0 {

// Memory access of all three: if every buffer is 16-byte aligned, a thread processes 16 bytes at a
// time and consecutive lanes consecutive 16 bytes: a warp's access is 512 bytes in 16 sectors. The
// first threads process at most one remaining element each. Otherwise threads process single
// elements, consecutive lanes consecutive elements. The loop is grid-strided: any grid and any
// block of up to kElementwiseMaxThreads threads computes everything.

/// The largest block that the elementwise kernels may be launched with.
inline constexpr std::uint32_t kElementwiseMaxThreads = 1024;

/// `c[i] = a[i] + b[i]` for i in [0, n), elements T: f32, f16 or bf16, each sum rounded once to
/// nearest even. Entry `vadd`, `vadd_f16` or `vadd_bf16` `(a, b, c, n)`: buffers of n elements,
/// aligned to an element; c may be a or b.
template <class T>
struct VaddOf {
  std::uint32_t n = 1u << 20;   ///< elements, for geometry and cost; the kernel takes any n
  std::uint32_t threads = 256;  ///< of a block, 1 to 1024
  std::uint32_t blocks = 0;     ///< of the grid; 0: as many as have work

  static constexpr std::string_view kName = detail::kSame<T, f32>   ? "vadd"
                                            : detail::kSame<T, f16> ? "vadd_f16"
                                                                    : "vadd_bf16";
  using KernelType = Kernel<Ptr<T>, Ptr<T>, Ptr<T>, u32>;
  using Host = detail::Host<T>;

  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  /// n = 0 throws `Error` (stage launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads two elements and writes one for each i, n operations.
  [[nodiscard]] KernelCost cost() const noexcept;
  /// The kernel's result, bit for bit except for NaN payloads. All spans have the same length;
  /// 16-bit elements are given as bits.
  static void reference(std::span<const Host> a, std::span<const Host> b, std::span<Host> c);
};
using Vadd = VaddOf<f32>;
using VaddF16 = VaddOf<f16>;
using VaddBf16 = VaddOf<bf16>;

/// `out[i] = in[i]` for i in [0, n), 4-byte elements copied bit for bit (NaN payloads too).
/// Entry `copy(in, out, n)`: buffers of n elements, 4-byte aligned, which do not overlap.
struct Copy {
  std::uint32_t n = 1u << 20;
  std::uint32_t threads = 256;
  std::uint32_t blocks = 0;

  static constexpr std::string_view kName = "copy";
  using KernelType = Kernel<Ptr<b32>, Ptr<b32>, u32>;

  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads 4 n bytes, writes 4 n, no operations.
  [[nodiscard]] KernelCost cost() const noexcept;
  static void reference(std::span<const std::uint32_t> in, std::span<std::uint32_t> out);
};

/// `acc = in[i]; k times: acc = fma(acc, a, b); out[i] = acc` for i in [0, n), elements f32. Each
/// element is a serial chain of fused multiply-adds, rounded once to nearest even, no flush to
/// zero; a thread runs four independent chains to hide latency. Entry `fma_rpt(in, out, n, k, a,
/// b)`: n and k are s32, k <= 0 copies; out may be in.
struct FmaRpt {
  std::uint32_t n = 1u << 20;  ///< elements, at most 2^31 - 1
  std::uint32_t k = 128;       ///< repetitions, at most 2^31 - 1; for the cost only
  std::uint32_t threads = 256;
  std::uint32_t blocks = 0;

  static constexpr std::string_view kName = "fma_rpt";
  static constexpr std::uint32_t kChains = 4;
  /// Repetitions per loop iteration; loop overhead is then 3 of 67 instructions.
  static constexpr std::uint32_t kUnroll = 16;
  using KernelType = Kernel<Ptr<f32>, Ptr<f32>, s32, s32, f32, f32>;

  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads 4 n bytes, writes 4 n, 2 k n operations.
  [[nodiscard]] KernelCost cost() const noexcept;
  /// The kernel's result, bit for bit.
  static void reference(std::span<const float> in, std::span<float> out, std::int32_t k, float a,
                        float b);
};

}  // namespace ptxgen::inline v0
