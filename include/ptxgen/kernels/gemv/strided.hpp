// ptxgen/kernels/gemv/strided.hpp - GEMV with one warp per output column
#pragma once

#include <cstdint>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/kernels/gemv/gemv.hpp"
#include "ptxgen/kernels/gemv/operands.hpp"

namespace ptxgen::inline v0 {

/// The same product as `GemvCoalesced` with strided accesses: a slow baseline for comparison.
///
/// Access: one warp per column; lane l reads rows l, l + 32, ..., so lanes are n * 4 bytes apart
/// and a warp's load uses 4 bytes of each of 32 sectors. A butterfly of shuffles adds the lanes'
/// sums, lane 0 stores. No shared memory. Entry `gemv_strided(y, a, x, k_dim, n_dim)`.
struct GemvStrided {
  std::uint32_t k = 4096;
  std::uint32_t n = 4096;

  static constexpr std::string_view kName = "gemv_strided";
  using KernelType = Kernel<Ptr<f32>, Ptr<f32>, Ptr<f32>, u32, u32>;
  using Operands = GemvVectors;

  static constexpr std::uint32_t kThreads = 32;

  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  /// Block 32, grid n. n = 0 throws `Error` (stage launch, "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  [[nodiscard]] KernelCost cost() const noexcept;
  /// Roundings on the path to one result: those of a lane, and five of the butterfly.
  [[nodiscard]] std::uint64_t roundings() const noexcept {
    return (std::uint64_t{k} + 31) / 32 + 5;
  }
};

template <>
struct Describe<GemvStrided> {
  using K = GemvStrided;
  using Row = ArgumentRow<K>;
  using O = GemvVectors;
  static constexpr KernelDoc text{
      K::kName, "y = x^T A, A[k x n] row-major f32, one warp per column",
      "strided: consecutive lanes read one column, n * 4 bytes apart; the uncoalesced baseline"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::k>("k", 0, 0xffffffffu, "rows of A, elements of x"),
      number<&K::n>("n", 1, 0x7fffffffu, "columns of A, elements of y")};
  static constexpr Row arguments[] = {
      Row::output("y", &O::y, ElementType::f32, &K::n, "result"),
      Row::input(
          "a", &O::a, ElementType::f32,
          [](const K& spec) { return std::uint64_t{spec.k} * spec.n; }, "matrix"),
      Row::input("x", &O::x, ElementType::f32, &K::k, "vector"), Row::shape<&K::k>("k"),
      Row::shape<&K::n>("n")};
  static void reference(const K& spec, HostOperands& host);
  static void host(const K& spec, const O& operands, const HostRun& run);
  static ErrorBound bound(const K& spec) { return gemv_bound(spec.roundings()); }
  static constexpr K cases[] = {{1, 1}, {0, 5}, {257, 1000}, {100, 100}, {70000, 3}};
};

}  // namespace ptxgen::inline v0
