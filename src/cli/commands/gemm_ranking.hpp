// src/cli/commands/gemm_ranking.hpp - plans of matrix products, predicted
#pragma once

#include <string>

#include "cli/commands/library_kernel.hpp"
#include "ptxgen/kernels/gemm/planner.hpp"

namespace ptxgen::cli {

/// Whether the kernel is of the family of matrix products, with a prediction of its own.
[[nodiscard]] bool is_gemm(const KernelDescription& kernel) noexcept;
/// That kernel on the GPU; of the family, the planner's first choice. `spec` is of the kernel's
/// type.
[[nodiscard]] GemmCandidate gemm_candidate(const KernelDescription& kernel, const void* spec,
                                           const ptx::Gpu& gpu);
/// The ranking of the family for the problem, its first `top` plans, as text or JSON.
[[nodiscard]] std::string gemm_ranking(const LibraryKernel& kernel, const ptx::Gpu& gpu,
                                       std::uint64_t top, bool json);

}  // namespace ptxgen::cli
