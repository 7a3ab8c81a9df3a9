// tests/kernels/gemv_blocks_run.hpp - GEMVs with weights in blocks on the emulator
#pragma once

#include "gemv_grid_run.hpp"

namespace ptxgen::test {

/// Weights in blocks that a GEMV takes.
inline constexpr ElementType kBlockTypes[] = {
    ElementType::q4_0, ElementType::q4_1, ElementType::q5_0, ElementType::q5_1,
    ElementType::q8_0, ElementType::q4_k, ElementType::q5_k, ElementType::q6_k};

/// How the elements of x are drawn.
enum class XValues : std::uint8_t { Uniform, Normal };

/// Random blocks with finite scales, x as `problem.x` or quantised to q8_1, and the rest.
struct BlocksData {
  GemvData data;
  std::vector<float> original_x;  ///< before it was quantised
};
[[nodiscard]] BlocksData make_blocks_data(const GemvCase& point, XValues values);

/// sum over j of (y - exact)^2 / sum of exact^2, of the result's elements and fp64 sums over the
/// dequantised matrix: with x as it is in memory, or with the original one.
[[nodiscard]] double blocks_nmse(const GemvProblem& problem, const GemvData& data,
                                 std::span<const float> x, std::span<const std::byte> y);
/// x as it is in memory.
[[nodiscard]] std::vector<float> stored_x(const GemvProblem& problem, const GemvData& data);

/// `W[n x k] x` for sm_90a, without a plan.
[[nodiscard]] GemvCase blocks_layer(ElementType weights, ElementType x, std::uint32_t n,
                                    std::uint32_t k);

}  // namespace ptxgen::test
