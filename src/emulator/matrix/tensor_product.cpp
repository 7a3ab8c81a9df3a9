// src/emulator/matrix/tensor_product.cpp - products of matrices as tensor cores compute them
#include "emulator/matrix/tensor_product.hpp"

#include <algorithm>
#include <vector>

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Type;
using u32 = std::uint32_t;
using s32 = std::int32_t;

constexpr std::size_t kColumnsAtOnce = 64;

// Left shift of products to the fraction bits of terms; negative to the right.
int shift_of(const TensorProduct& product) {
  const TensorRule rule = tensor_rule(product.core, product.a);
  return rule.fraction_bits - rule.product_bits;
}

TensorOperand decoded(Type type, int shift, std::span<const u32> bits, std::span<s32> storage,
                      Isa isa) {
  const bool finite = tensor_lanes(isa).decode(type, shift, bits.data(), bits.size(),
                                               storage.data(), storage.data() + bits.size());
  return {bits, storage, finite};
}

// One column, sum by sum.
void multiply_add_column(const TensorProduct& product, std::span<const u32> a,
                         std::span<const u32> b, u32* d) {
  std::vector<TensorElement> left(product.depth);
  std::vector<TensorElement> right;
  for (const u32 bits : b) right.push_back(TensorElement::of(product.b, bits));
  for (unsigned row = 0; row < kTensorRows; ++row) {
    for (unsigned i = 0; i < product.depth; ++i) {
      left[i] = TensorElement::of(product.a, a[i * kTensorRows + row]);
    }
    d[row] = tensor_sum(product.core, product.a, product.d, left, right, d[row]);
  }
}

}  // namespace

const TensorLanes& tensor_lanes(Isa isa) noexcept {
#if defined(PTXGEN_ISA_X86)
  if (isa == Isa::Avx2) return isa_avx2::kTensorLanes;
  if (isa == Isa::Avx512) return isa_avx512::kTensorLanes;
#endif
  static_cast<void>(isa);
  return isa_baseline::kTensorLanes;
}

TensorOperand decode_a(const TensorProduct& product, std::span<const u32> bits,
                       std::span<s32> storage, Isa isa) {
  return decoded(product.a, 0, bits, storage, isa);
}

TensorOperand decode_b(const TensorProduct& product, std::span<const u32> bits,
                       std::span<s32> storage, Isa isa) {
  return decoded(product.b, std::max(shift_of(product), 0), bits, storage, isa);
}

void multiply_add(const TensorProduct& product, const TensorOperand& a, const TensorOperand& b,
                  std::span<u32> d, Isa isa) {
  const TensorRule rule = tensor_rule(product.core, product.a);
  const TensorLanes& lanes = tensor_lanes(isa);
  TensorSums sums;
  sums.fraction_bits = rule.fraction_bits;
  sums.shift_right = std::max(-shift_of(product), 0);
  sums.kept = rule.result_bits;
  sums.depth = product.depth;
  sums.at_once = rule.products;
  sums.a_significands = a.storage.data();
  sums.a_exponents = a.storage.data() + a.bits.size();
  const std::size_t columns = d.size() / kTensorRows;
  for (std::size_t first = 0; first < columns; first += kColumnsAtOnce) {
    bool not_finite[kColumnsAtOnce];
    sums.columns = std::min(kColumnsAtOnce, columns - first);
    sums.b_significands = b.storage.data() + first * product.depth;
    sums.b_exponents = sums.b_significands + b.bits.size();
    u32* const part = d.data() + first * kTensorRows;
    if (a.finite && b.finite) {
      (product.d == Type::f16 ? lanes.sums_f16 : lanes.sums_f32)(sums, part, not_finite);
    } else {
      std::fill_n(not_finite, sums.columns, true);
    }
    for (std::size_t i = 0; i < sums.columns; ++i) {
      if (!not_finite[i]) continue;
      multiply_add_column(product, a.bits,
                          b.bits.subspan((first + i) * product.depth, product.depth),
                          part + i * kTensorRows);
    }
  }
}

}  // namespace ptxgen::inline v0::emulator
