// src/kernels/gemm/block_rows.hpp - rows of a stored B, dequantised
#pragma once

#include <vector>

#include "kernels/gemm/emit.hpp"
#include "kernels/parts/block_values.hpp"

namespace ptxgen::inline v0::gemm {

/// Values `8 * run` to `8 * run + 7` of a row that begins at `row`, exactly, as f32: of a block
/// format, or floats that are aligned to an element.
[[nodiscard]] std::vector<Value<f32>> load_run_of_row(KernelBuilder& k, ElementType type,
                                                      const Ptr<b8>& row, const Value<u32>& run);

/// Bytes from one row of a stored B to the next.
[[nodiscard]] std::uint64_t pitch_bytes_b(const GemmProblem& problem) noexcept;

}  // namespace ptxgen::inline v0::gemm
