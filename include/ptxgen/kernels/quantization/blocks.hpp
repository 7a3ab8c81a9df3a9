// ptxgen/kernels/quantization/blocks.hpp - block formats on the host
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::inline v0 {

/// Whether the type packs blocks of values: q4_0 to q6_k.
[[nodiscard]] constexpr bool is_block_format(ElementType type) noexcept {
  return info(type).block_values != 1;
}

/// Where the f16 fields of a block are, in bytes: scales, minima, sums. Empty unless a block
/// format.
[[nodiscard]] std::span<const std::uint8_t> half_fields(ElementType type) noexcept;

/// The values of whole blocks, as GGUF defines them, in f32: products are taken from left to right,
/// each rounded, no fused multiply-add. With d, m, dmin the f16 fields and q the integers:
///
///     q4_0, q5_0, q8_0, q8_1   d * q, q less 8 (q4_0) or 16 (q5_0)
///     q4_1, q5_1               d * q + m
///     q4_k, q5_k               (d * scale) * q - (dmin * min), of each 32 values
///     q6_k                     (d * scale) * q, of each 16 values
///
/// Every NaN is 0x7fffffff. `values` has `block_values` elements for each block. Throws `Error`
/// (Stage::Build, "bad-parameter") for other types, "bad-size" if the sizes do not fit.
void dequantize(ElementType type, std::span<const std::byte> blocks, std::span<float> values);

/// For each value, the sum of the magnitudes of the terms of which sums over a block are computed,
/// or more: what rounding errors are relative to. `|d| * max q + |m|` and the like, with the offset
/// 8, 16 or 32 as a term. Sizes and errors as `dequantize`.
void term_magnitudes(ElementType type, std::span<const std::byte> blocks, std::span<float> values);

/// Blocks of q4_0, q8_0 or q8_1 from finite values, whose number is a multiple of 32, as ggml's
/// reference computes them, but with a fused multiply-add for q4_0: `d = max |x| / 127` and `q =
/// round(x * (1 / d))`, halves away from zero, q = 0 where 1 / d is infinite; for q4_0 d is the
/// first x of largest magnitude / -8 and `q = min(15, floor(x * (1 / d) + 8.5))`. The integers come
/// from the f32 d, which is then stored as f16. The sum of q8_1 is `d * sum of q` of the f32 d.
/// Throws as `dequantize`.
void quantize(ElementType type, std::span<const float> values, std::span<std::byte> blocks);

}  // namespace ptxgen::inline v0
