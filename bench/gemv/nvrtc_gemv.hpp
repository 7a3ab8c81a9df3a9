// bench/gemv/nvrtc_gemv.hpp - a plan as CUDA C++, for comparison
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/gemv/plan.hpp"

namespace ptxgen::gemv_bench {

/// What a good CUDA C++ programmer would write for a GemvPlan of the direct path: the same strips,
/// steps, partition and fixed-order reduction. Entry `gemv_nvrtc(y, a, x, parts, tickets)`: the
/// addresses of y, a and x, of `nvrtc_parts_bytes` and of one u32 for each strip, which are 0
/// before and after each launch. Plain products only; weights, x and y of one type.
[[nodiscard]] std::string_view nvrtc_gemv_source() noexcept;
inline constexpr std::string_view kNvrtcGemvEntry = "gemv_nvrtc";

/// The plan that is compiled in the place of `plan`: the direct path of the same shape, without
/// what CUDA C++ has no plain words for (rings, clusters, programmatic launches, chunks).
[[nodiscard]] GemvPlan nvrtc_plan(const GemvPlan& plan);
/// `-D` options for NVRTC. With `atomic` partial sums are added to y by atomicAdd, in any order: y
/// must be 0 before, and f32.
[[nodiscard]] std::vector<std::string> nvrtc_options(const GemvPlan& plan, bool atomic);
[[nodiscard]] std::uint64_t nvrtc_parts_bytes(const GemvPlan& plan);

}  // namespace ptxgen::gemv_bench
