// src/kernels/parts/products.hpp - products of fragments by mma.sync
#pragma once

#include <array>
#include <cstdint>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/builder/matrix.hpp"
#include "ptxgen/builder/warpgroup.hpp"

namespace ptxgen::inline v0 {

/// The first target with cp.async, mma.m16n8k16 and bf16.
inline constexpr std::uint16_t kAsyncSm = 80;
/// The first target with products of 8-bit floats.
inline constexpr std::uint16_t kEightBitSm = 89;

/// The product of e4m3, 32 terms: two registers of B, from `first` on.
inline void add_eight_bit_product(KernelBuilder& k, Accumulator<m16n8k32, f32>& sum,
                                  const std::array<Value<b32>, 4>& a,
                                  const std::array<Value<b32>, 4>& b, std::uint32_t first) {
  const SourceLocation site = SourceLocation::current();
  const auto d_list = detail::operands_of(sum.variables(), site);
  const auto a_list = detail::operands_of(a, site);
  const std::array<Operand, 2> b_list = {Operand(b[first], site), Operand(b[first + 1], site)};
  const Operand operands[] = {Vec(d_list), Vec(a_list), Vec(b_list), Vec(d_list)};
  constexpr ptx::Modifier kType = detail::kTypeModifier<e4m3>;
  const ptx::Modifier types[] = {kType, kType};
  k.emit(ptx::Op::mma_m16n8k32_fp8_f32, types, operands, site);
}

/// Adds the product of fragments in 32-bit registers, as `ldmatrix` loads them: `a` has four, `b`
/// has its own from `first` on. A shape with half as many terms takes two products.
template <class Shape, class E>
void add_product(KernelBuilder& k, Accumulator<Shape, f32>& sum, const std::array<Value<b32>, 4>& a,
                 const std::array<Value<b32>, 4>& b, std::uint32_t first) {
  if constexpr (detail::kSame<E, e4m3>) {
    add_eight_bit_product(k, sum, a, b, first);
  } else {
    using A = FragmentA<Shape, E>;
    using B = FragmentB<Shape, E>;
    for (std::uint32_t part = 0; part < 4 / A::kRegisters; ++part) {
      const A left = detail::fragment_of<A>(
          [&](unsigned i) { return k.bitcast<typename A::Register>(a[part * A::kRegisters + i]); });
      const B right = detail::fragment_of<B>([&](unsigned i) {
        return k.bitcast<typename B::Register>(b[first + part * B::kRegisters + i]);
      });
      mma_inplace(k, sum, left, right);
    }
  }
}

}  // namespace ptxgen::inline v0
