// src/kernels/parts/order_key.hpp - elements of a row as numbers in their order
#pragma once

#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

/// An element and its index as one number, different for every index and never 0: larger for larger
/// elements, of equal ones (-0 and 0 are) for lower indices. A NaN is below every number.
[[nodiscard]] inline Value<u64> order_key(KernelBuilder& k, const Value<f32>& element,
                                          const Value<u32>& index) {
  const Value<f32> one_zero = element + 0.0f;
  const Value<s32> bits = k.bitcast<s32>(one_zero);
  // Negative numbers: all bits inverted; others: the sign.
  const Value<u32> sign = k.bitcast<u32>(bits >> 31u);
  const Value<u32> inverted = sign | 0x80000000u;
  const Value<u32> ordered = k.bitcast<u32>(bits) ^ inverted;
  const Pred number = k.setp(Comparison::num, element, element);
  const Value<u32> high = k.selp(ordered, 1u, number);
  return k.pack<u64>(~index, high);
}

/// The index of a key.
[[nodiscard]] inline Value<u32> index_of_key(KernelBuilder& k, const Value<u64>& key) {
  const auto halves = k.unpack<u32>(key);
  return ~halves[0];
}

}  // namespace ptxgen::inline v0
