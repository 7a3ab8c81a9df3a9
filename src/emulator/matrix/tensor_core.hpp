// src/emulator/matrix/tensor_core.hpp - sums of products as tensor cores compute them
#pragma once

#include <cstdint>
#include <span>

#include "ptxgen/ptx/types.hpp"

/// PTX leaves the rounding of mma's sums open. Each GPU rounds in its way: it aligns the products
/// and c to the largest exponent among them, truncates them to so many fractional bits, adds them
/// exactly, and rounds once: toward zero to f32, to nearest even to f16. Source: Microsoft's
/// MMA-Sim at c785138, which was compared there with GPUs on more than a million products.
namespace ptxgen::inline v0::emulator {

/// How the GPUs of an architecture add.
struct TensorCore {
  int fraction_bits = 0;     ///< of the aligned terms
  unsigned products_16 = 0;  ///< products of f16 or bf16 in a sum; more are summed in sequence
  unsigned products_32 = 0;  ///< of tf32
  unsigned products_8 = 0;   ///< of e4m3 or e5m2
  int fraction_bits_8 = 0;   ///< as fraction_bits, of sums of e4m3 or e5m2
  int result_bits_8 = 0;     ///< fractional bits that an f32 result of these keeps
};
/// For sm_75 and newer; sums of e4m3 and e5m2 for sm_89 and newer.
[[nodiscard]] TensorCore tensor_core(std::uint16_t sm) noexcept;
/// wgmma of sm_90.
[[nodiscard]] TensorCore warpgroup_core() noexcept;

/// An element of a matrix, significand * 2^(exponent - fraction bits of its type). Elements of 8
/// bits have the fraction bits of f16, so that e4m3 and e5m2 can be multiplied.
struct TensorElement {
  std::int32_t significand = 0;
  std::int32_t exponent = 0;
  double value = 0;  ///< the same, or an infinity or NaN

  [[nodiscard]] static TensorElement of(ptx::Type type, std::uint32_t bits) noexcept;
};

/// How a core adds products of a type of elements.
struct TensorRule {
  int fraction_bits = 0;  ///< of the aligned terms
  int product_bits = 0;   ///< fraction bits of products
  int result_bits = 0;    ///< fraction bits that an f32 result keeps
  unsigned products = 0;  ///< in a sum
};
[[nodiscard]] TensorRule tensor_rule(const TensorCore& core, ptx::Type element) noexcept;

/// sum of a[i] * b[i] + c, as bits of `d`, which is also the type of c: f16 or f32. `element` is
/// the type of a and b: f16, bf16, tf32, or e4m3 and e5m2 in any combination.
[[nodiscard]] std::uint32_t tensor_sum(const TensorCore& core, ptx::Type element, ptx::Type d,
                                       std::span<const TensorElement> a,
                                       std::span<const TensorElement> b, std::uint32_t c) noexcept;

}  // namespace ptxgen::inline v0::emulator
