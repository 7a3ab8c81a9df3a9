// src/cli/commands/gemv_bench.hpp - calls that belong to the program gemv-bench
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ptxgen::cli {

/// The call of gemv-bench that a call of ptxgen stands for, without the program's name, or nothing:
/// `gemv-bench ..` is `run ..`, `tune ..` is `tune ..`, `decode-estimate .. --measure` is
/// `decode ..`. `call`: argv, its first being the program.
[[nodiscard]] std::optional<std::vector<std::string>> gemv_bench_call(
    const std::vector<std::string>& call);

/// Replaces this process by the program gemv-bench in the folder of this program. Returns only if
/// that fails: prints why, and returns `kUsage`.
[[nodiscard]] int run_gemv_bench(const std::vector<std::string>& arguments);

}  // namespace ptxgen::cli
