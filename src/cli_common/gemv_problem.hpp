// src/cli_common/gemv_problem.hpp - a GEMV as `-p` describes it
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/gemv/plan.hpp"

namespace ptxgen::cli {

/// For the help of `-p`.
inline constexpr std::string_view kGemvSettingsHelp =
    "NAME=VALUE, repeatable: k, n, layout=T|R, dtype=f32|f16|bf16, lda";
/// The same where weights in blocks are accepted.
inline constexpr std::string_view kAnyGemvSettingsHelp =
    "NAME=VALUE, repeatable: k, n, layout=T|R, dtype=f32|f16|bf16|q4_0..q6_k, repacked=0|1, lda";

/// Weights that `-p dtype=` accepts: floats, or also block formats, which are for layout R.
enum class GemvWeights : std::uint8_t { Floats, All };

/// The problem that `k=4096`, `n=11008`, `layout=T|R`, `dtype=f32|f16|bf16` and `lda=12288`
/// describe: other fields are those of a default `GemvProblem`, x and y are f32, everything is
/// aligned to 16 bytes as far as the rows are. The last of equal names counts. Throws `UsageError`
/// with the valid values: for unknown names, values out of range, an lda below the length of a
/// row, parts of blocks.
[[nodiscard]] GemvProblem gemv_problem(const std::vector<std::string>& settings,
                                       GemvWeights weights = GemvWeights::Floats);

/// The type of that name. Throws `UsageError` that begins with `option` and lists the names.
[[nodiscard]] ElementType gemv_type(std::string_view option, std::string_view name);
/// The same, or a block format of weights.
[[nodiscard]] ElementType gemv_weights(std::string_view option, std::string_view name);

}  // namespace ptxgen::cli
