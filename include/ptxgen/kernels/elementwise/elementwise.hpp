// ptxgen/kernels/elementwise/elementwise.hpp - the benchmark kernels vadd, copy, fma_rpt
#pragma once

#include <cstdint>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/describe.hpp"

namespace ptxgen::inline v0 {

// Memory access of all three: if every buffer is 16-byte aligned, a thread processes 16 bytes at a
// time and consecutive lanes consecutive 16 bytes: a warp's access is 512 bytes in 16 sectors. The
// first threads process at most one remaining element each. Otherwise threads process single
// elements, consecutive lanes consecutive elements. The loop is grid-strided: any grid and any
// block of up to kElementwiseMaxThreads threads computes everything.

/// The largest block that the elementwise kernels may be launched with.
inline constexpr std::uint32_t kElementwiseMaxThreads = 1024;

/// `c[i] = a[i] + b[i]` for i in [0, n), each sum rounded once to nearest even. Entry
/// `vadd(a, b, c, n)`: buffers of n elements, aligned to an element; c may be a or b.
struct Vadd {
  std::uint32_t n = 1u << 20;           ///< elements, for geometry and cost; the code takes any n
  ElementType type = ElementType::f32;  ///< f32, f16 or bf16
  std::uint32_t threads = 256;          ///< of a block, 1 to 1024
  std::uint32_t blocks = 0;             ///< of the grid; 0: as many as have work

  static constexpr std::string_view kName = "vadd";

  struct Operands {
    DeviceRange c{}, a{}, b{};
  };

  [[nodiscard]] BuiltKernel build(const ptx::Target& target) const;
  /// n = 0 throws `Error` (stage launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads two elements and writes one for each i, n operations.
  [[nodiscard]] KernelCost cost() const noexcept;
};

/// `out[i] = in[i]` for i in [0, n), 4-byte elements copied bit for bit (NaN payloads too).
/// Entry `copy(in, out, n)`: buffers of n elements, 4-byte aligned, which do not overlap.
struct Copy {
  std::uint32_t n = 1u << 20;
  std::uint32_t threads = 256;
  std::uint32_t blocks = 0;

  static constexpr std::string_view kName = "copy";
  using KernelType = Kernel<Ptr<b32>, Ptr<b32>, u32>;

  struct Operands {
    DeviceRange out{}, in{};
  };

  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads 4 n bytes, writes 4 n, no operations.
  [[nodiscard]] KernelCost cost() const noexcept;
};

/// `acc = in[i]; k times: acc = fma(acc, a, b); out[i] = acc` for i in [0, n), elements f32. Each
/// element is a serial chain of fused multiply-adds, rounded once to nearest even, no flush to
/// zero; a thread runs four independent chains to hide latency. Entry `fma_rpt(in, out, n, k, a,
/// b)`: n and k are s32; out may be in.
struct FmaRpt {
  std::uint32_t n = 1u << 20;  ///< elements, at most 2^31 - 1
  std::uint32_t k = 128;       ///< repetitions, at most 2^31 - 1
  std::uint32_t threads = 256;
  std::uint32_t blocks = 0;

  static constexpr std::string_view kName = "fma_rpt";
  using KernelType = Kernel<Ptr<f32>, Ptr<f32>, s32, s32, f32, f32>;
  static constexpr std::uint32_t kChains = 4;
  /// Repetitions per loop iteration; loop overhead is then 3 of 67 instructions.
  static constexpr std::uint32_t kUnroll = 16;

  struct Operands {
    DeviceRange out{}, in{};
    float a = 1, b = 0;
  };

  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads 4 n bytes, writes 4 n, 2 k n operations.
  [[nodiscard]] KernelCost cost() const noexcept;
};

inline constexpr std::string_view kWideAccess =
    "coalesced: consecutive lanes on consecutive 16 bytes, or elements where these are misaligned";

template <>
struct Describe<Vadd> {
  using Row = ArgumentRow<Vadd>;
  using O = Vadd::Operands;
  static constexpr KernelDoc text{Vadd::kName, "c[i] = a[i] + b[i]", kWideAccess};
  static constexpr ParameterRow<Vadd> parameters[] = {
      number<&Vadd::n>("n", 1, 0xffffffffu, "elements"),
      choice<&Vadd::type, kFloatTypes>("type", "of the elements").specializes()};
  static constexpr Row arguments[] = {
      Row::input("a", &O::a, &Vadd::type, &Vadd::n, "summand"),
      Row::input("b", &O::b, &Vadd::type, &Vadd::n, "summand"),
      Row::output("c", &O::c, &Vadd::type, &Vadd::n, "sum").may_alias("a").may_alias("b"),
      Row::shape<&Vadd::n>("n")};
  static void reference(const Vadd& spec, HostOperands& host);
  static void host(const Vadd& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const Vadd&) { return {.exact = true}; }
  static constexpr Vadd cases[] = {{1},
                                   {255},
                                   {4097},
                                   {70000},
                                   {1, ElementType::f16},
                                   {4099, ElementType::f16},
                                   {4099, ElementType::bf16}};
};

template <>
struct Describe<Copy> {
  using Row = ArgumentRow<Copy>;
  using O = Copy::Operands;
  static constexpr KernelDoc text{Copy::kName, "out[i] = in[i], 4-byte elements bit for bit",
                                  kWideAccess};
  static constexpr ParameterRow<Copy> parameters[] = {
      number<&Copy::n>("n", 1, 0xffffffffu, "elements")};
  static constexpr Row arguments[] = {
      Row::input("in", &O::in, ElementType::b32, &Copy::n, "elements").values(0, 4294967295.0),
      Row::output("out", &O::out, ElementType::b32, &Copy::n, "the same bits"),
      Row::shape<&Copy::n>("n")};
  static void reference(const Copy& spec, HostOperands& host);
  static ErrorBound bound(const Copy&) { return {.exact = true}; }
  static constexpr Copy cases[] = {{1}, {255}, {4099}, {70000}};
};

template <>
struct Describe<FmaRpt> {
  using Row = ArgumentRow<FmaRpt>;
  using O = FmaRpt::Operands;
  static constexpr KernelDoc text{
      FmaRpt::kName, "out[i] = in[i] after k times x = fma(x, a, b), f32", kWideAccess};
  static constexpr ParameterRow<FmaRpt> parameters[] = {
      number<&FmaRpt::n>("n", 1, 0x7fffffffu, "elements"),
      number<&FmaRpt::k>("k", 0, 0x7fffffffu, "fused multiply-adds per element")};
  static constexpr Row arguments[] = {
      Row::input("in", &O::in, ElementType::f32, &FmaRpt::n, "start of each chain"),
      Row::output("out", &O::out, ElementType::f32, &FmaRpt::n, "end of it").may_alias("in"),
      Row::shape<&FmaRpt::n>("n", ptx::Type::s32),
      Row::shape<&FmaRpt::k>("k", ptx::Type::s32),
      Row::scalar<&O::a>("a", "factor"),
      Row::scalar<&O::b>("b", "summand")};
  static void reference(const FmaRpt& spec, HostOperands& host);
  static ErrorBound bound(const FmaRpt&) { return {.exact = true}; }
  static constexpr FmaRpt cases[] = {{1, 3}, {255, 0}, {4099, 17}, {70000, 2}};
};

}  // namespace ptxgen::inline v0
