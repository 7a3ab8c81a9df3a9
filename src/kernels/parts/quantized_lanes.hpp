// src/kernels/parts/quantized_lanes.hpp - eight lanes quantise a block of 32 values
#pragma once

#include <optional>
#include <vector>

#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::inline v0 {

/// To a block.
inline constexpr std::uint32_t kBlockLanes = 8;
/// Consecutive values of a lane.
inline constexpr std::uint32_t kLaneValues = 4;

/// What a lane has of its block.
struct QuantizedLanes {
  ElementType type = ElementType::q8_0;
  Value<f32> d;                   ///< of the block
  Value<u32> word;                ///< four bytes of integers
  std::optional<Value<f32>> sum;  ///< of the block: q8_1
};

/// Quantises four values a lane, bit for bit as the function `quantize`, in a kernel without
/// contraction. `lane` is the index in the block, 0 to 7. q4_0, q8_0 or q8_1. All lanes of the warp
/// execute it, since the eight exchange values by `shfl.sync`.
[[nodiscard]] QuantizedLanes quantize_lanes(KernelBuilder& k, ElementType type,
                                            const std::vector<Value<f32>>& values,
                                            const Value<u32>& lane);
/// Stores the lane's part of the block, which is aligned to 2 bytes.
void store_lanes(KernelBuilder& k, const QuantizedLanes& quants, const Value<u32>& lane,
                 const Ptr<b8>& block);

}  // namespace ptxgen::inline v0
