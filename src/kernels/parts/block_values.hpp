// src/kernels/parts/block_values.hpp - values of block formats, decoded by a thread
#pragma once

#include <vector>

#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::inline v0 {

/// Values of a block that a thread decodes at once.
inline constexpr std::uint32_t kRunValues = 8;

/// The values `8 * run` to `8 * run + 7` of the block at `block`, which is aligned to 2 bytes: bit
/// for bit as `dequantize` in a kernel without contraction. `run` is below `block_values / 8`.
[[nodiscard]] std::vector<Value<f32>> load_block_values(KernelBuilder& k, ElementType type,
                                                        const Ptr<b8>& block,
                                                        const Value<u32>& run);

}  // namespace ptxgen::inline v0
