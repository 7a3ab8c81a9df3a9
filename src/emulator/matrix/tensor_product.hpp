// src/emulator/matrix/tensor_product.hpp - products of matrices as tensor cores compute them
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/lane/isa.hpp"
#include "emulator/matrix/tensor_core.hpp"
#include "emulator/matrix/tensor_lanes.hpp"

namespace ptxgen::inline v0::emulator {

/// d = a * b + d for kTensorRows rows of a, each element as `tensor_sum` computes it.
struct TensorProduct {
  TensorCore core;
  ptx::Type a = ptx::Type::f16;
  ptx::Type b = ptx::Type::f16;
  ptx::Type d = ptx::Type::f32;  ///< f32 or f16
  unsigned depth = 0;            ///< k
};

/// Elements of a or b, decoded once for all sums that they are part of. The arrays are the
/// caller's: `bits`, and storage of twice as many numbers for significands and exponents.
struct TensorOperand {
  std::span<const std::uint32_t> bits;
  std::span<std::int32_t> storage;
  bool finite = false;
};
/// a: element (row, k) is bits[k * kTensorRows + row].
[[nodiscard]] TensorOperand decode_a(const TensorProduct& product,
                                     std::span<const std::uint32_t> bits,
                                     std::span<std::int32_t> storage, Isa isa = best_isa());
/// b: element (k, column) is bits[column * depth + k].
[[nodiscard]] TensorOperand decode_b(const TensorProduct& product,
                                     std::span<const std::uint32_t> bits,
                                     std::span<std::int32_t> storage, Isa isa = best_isa());

/// Bits of c before, of d afterwards: element (row, column) is d[column * kTensorRows + row].
void multiply_add(const TensorProduct& product, const TensorOperand& a, const TensorOperand& b,
                  std::span<std::uint32_t> d, Isa isa = best_isa());

}  // namespace ptxgen::inline v0::emulator
