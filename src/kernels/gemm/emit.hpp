// src/kernels/gemm/emit.hpp - shared parts of the GEMM kernels
#pragma once

#include <optional>
#include <vector>

#include "kernels/parts/words.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/gemm/problem.hpp"

namespace ptxgen::inline v0::gemm {

/// `p` moved by `n` times `bytes`, exact in 64 bits.
[[nodiscard]] Ptr<b8> moved(KernelBuilder& k, const Ptr<b8>& p, const Value<u32>& n,
                            std::uint64_t bytes);

/// The parameters of a kernel. Pointers are to the block's matrices of the batch, ctaid.z; operands
/// that the problem does not have are empty.
struct Kit {
  KernelBuilder& k;
  const GemmProblem& problem;
  Ptr<b8> c, a, b;
  std::optional<Ptr<b8>> bias, residual, workspace;
  std::optional<Value<f32>> alpha, beta;
  Value<u32> m;
};
enum class WorkspaceUse : std::uint8_t { None, Declared, Used };
/// Declares all parameters and reads those that the problem has.
[[nodiscard]] Kit read_parameters(KernelBuilder& k, const GemmProblem& problem,
                                  WorkspaceUse workspace = WorkspaceUse::None);

/// Adjacent outputs that one store can write wherever a multiple of them begins, 4, 2 or 1: as the
/// alignments of rows, matrices and n allow.
[[nodiscard]] std::uint32_t outputs_together(const GemmProblem& problem) noexcept;
/// From sums to outputs: `sums.size()` adjacent ones of a row, from `column` on, all inside C.
/// Loads first, then the arithmetic, then one store.
void store_outputs(Kit& kit, const Value<u32>& row, const Value<u32>& column,
                   const std::vector<Value<f32>>& sums);
/// The same of 16 rows of `columns` sums that a warp has in shared memory, rows `pitch` apart, from
/// output (row, column) on; what is outside C is left out. By all lanes, which store if `only` is
/// true.
void store_strip(Kit& kit, const Ptr<f32, Shared>& sums, std::uint32_t columns, std::uint32_t pitch,
                 const Value<u32>& row, const Value<u32>& column,
                 const std::optional<Pred>& only = std::nullopt);

/// Blocks of the grid's x and y for outputs in tiles of `tile` x `tile`; y strides over the rest.
[[nodiscard]] LaunchGeometry square_geometry(const GemmProblem& problem, std::uint32_t tile);
/// The key of a kernel whose code does not depend on alignments.
[[nodiscard]] KernelKey unaligned_key(GemmProblem problem, std::uint64_t plan);
/// Bound of a chain of `roundings`, as a share of the terms' magnitudes.
[[nodiscard]] double chain_error(std::uint64_t roundings) noexcept;

}  // namespace ptxgen::inline v0::gemm
