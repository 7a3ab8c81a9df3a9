// tests/kernels/gemm_sizes.hpp - what the random grids of GEMM kernels draw from
#pragma once

#include <cstdint>

#include "ptx/dice.hpp"

namespace ptxgen::test {

/// Of m, n and k: around the sizes of tiles and steps.
inline constexpr std::uint32_t kGemmSizes[] = {1,  15, 16, 17,  31,  32,  33,
                                               63, 64, 65, 127, 128, 129, 1000};

/// True once in `n` times.
[[nodiscard]] inline bool one_in(Dice& dice, unsigned n) { return dice.bits() % n == 0; }

}  // namespace ptxgen::test
