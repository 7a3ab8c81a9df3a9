// ptxgen/kernels/gemv/coalesced.hpp - GEMV with one thread per output column
#pragma once

#include <cstdint>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/check/tile.hpp"
#include "ptxgen/kernels/gemv/gemv.hpp"
#include "ptxgen/kernels/gemv/operands.hpp"

namespace ptxgen::inline v0 {

/// `y[j] = sum over i in [0, k) of A[i*n + j] * x[i]` for j in [0, n): A is `[k x n]` row-major
/// f32, x holds k elements, y n. Any k and n; k = 0 gives y = 0.
///
/// Access: one thread per column, 256 columns per block. Consecutive lanes read consecutive
/// elements of one row of A: a warp's load is 128 bytes in 4 sectors where A and n * 4 are 128-byte
/// aligned, 5 sectors at most otherwise. x is staged through a shared tile of 256 elements (1024
/// bytes, whatever k is) and read back as a broadcast, without bank conflicts. Every thread of the
/// block reaches both barriers of each tile; columns beyond n skip only the sums and the store.
///
/// The sum of a column is one chain of k fused multiply-adds in the order of i, so results are the
/// same bits in every run. Entry `gemv_coalesced(y, a, x, k_dim, n_dim)`; buffers 4-byte aligned, y
/// does not overlap a or x. It is the semantic baseline; its few blocks keep it far from the memory
/// roofline for small n.
struct GemvCoalesced {
  std::uint32_t k = 4096;  ///< rows of A; for the cost, the kernel takes any
  std::uint32_t n = 4096;  ///< columns of A; for geometry and cost

  static constexpr std::string_view kName = "gemv_coalesced";
  using KernelType = Kernel<Ptr<f32>, Ptr<f32>, Ptr<f32>, u32, u32>;
  using Operands = GemvVectors;

  static constexpr std::uint32_t kThreads = 256;
  static constexpr std::uint32_t kTile = 256;  ///< elements of x per tile, one for each thread
  static constexpr std::uint32_t kUnroll = 4;

  /// Throws `Error` (Stage::Build, "tile-limits") if the target cannot hold the tiles.
  [[nodiscard]] KernelType build(const ptx::Target& target) const;
  /// The shared tile of x and the resources of a block.
  [[nodiscard]] static gates::KernelTiles tiles();
  /// Block 256, grid ceil(n / 256), no dynamic shared memory. n = 0 throws `Error` (stage launch,
  /// "empty-grid").
  [[nodiscard]] LaunchGeometry geometry() const;
  /// Reads A and x once, writes y once; 2 k n operations.
  [[nodiscard]] KernelCost cost() const noexcept;
  /// Roundings on the path to one result: k.
  [[nodiscard]] std::uint64_t roundings() const noexcept { return k; }
};

template <>
struct Describe<GemvCoalesced> {
  using K = GemvCoalesced;
  using Row = ArgumentRow<K>;
  using O = GemvVectors;
  static constexpr KernelDoc text{
      K::kName, "y = x^T A, A[k x n] row-major f32, one thread per column",
      "coalesced: consecutive lanes read consecutive columns of a row; x through a shared tile"};
  static constexpr ParameterRow<K> parameters[] = {
      number<&K::k>("k", 0, 0xffffffffu, "rows of A, elements of x"),
      number<&K::n>("n", 1, 0xffffffffu, "columns of A, elements of y")};
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
  static constexpr K cases[] = {{1, 1}, {0, 5}, {257, 1000}, {70000, 3}};
};

}  // namespace ptxgen::inline v0
