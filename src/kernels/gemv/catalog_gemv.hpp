// src/kernels/gemv/catalog_gemv.hpp - the planned GEMV in the catalog
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/kernels/kernel.hpp"

namespace ptxgen::inline v0 {

/// Throws `Error` (stage build, "bad-parameter") unless there is one value for each parameter, all
/// in range.
void check_values(std::string_view kernel, std::span<const ParameterInfo> parameters,
                  std::span<const std::uint64_t> values);

/// The problem of the catalog's parameter values: tight rows, x and y f32, addresses aligned to 16
/// bytes. Throws "bad-parameter".
[[nodiscard]] GemvProblem gemv_problem_of(std::span<const std::uint64_t> values);
/// The planner's choice for the target's first GPU of the table.
[[nodiscard]] Gemv gemv_of(std::span<const std::uint64_t> values, const ptx::Target& target);
[[nodiscard]] KernelCost gemv_cost_of(std::span<const std::uint64_t> values);

inline constexpr std::string_view kGemvLayouts[] = {"T", "R"};
inline constexpr std::string_view kGemvTypes[] = {"f32", "f16", "bf16"};
inline constexpr ParameterInfo kGemvParameters[] = {
    {"k", "u32", 4096, 0, 0xffffffffu, "elements of x"},
    {"n", "u32", 4096, 1, 0xffffffffu, "elements of y"},
    {"layout", "word", 0, 0, 1, "T (0): A[k x n] row-major; R (1): W[n x k] row-major",
     kGemvLayouts},
    {"dtype", "word", 0, 0, 2, "f32 (0), f16 (1), bf16 (2): of the weights; x and y are f32",
     kGemvTypes}};

inline constexpr CatalogEntry kGemvEntry = {
    Gemv::kName,
    "y = A^T x or y = W x, f32 sums, as planned for the target's first GPU",
    "wide: consecutive lanes read consecutive 16 bytes of a row, each weight once",
    kGemvParameters,
    [](std::span<const std::uint64_t> values, const ptx::Target& target) {
      return gemv_of(values, target).build(target).module();
    },
    [](std::span<const std::uint64_t> values, const ptx::Target& target) {
      return gemv_of(values, target).geometry();
    },
    [](std::span<const std::uint64_t> values) { return gemv_cost_of(values); }};

}  // namespace ptxgen::inline v0
