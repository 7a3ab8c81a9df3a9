// src/kernels/parts/products.hpp - products of fragments by mma.sync
#pragma once

#include <array>
#include <cstdint>

#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/builder/matrix.hpp"

namespace ptxgen::inline v0 {

/// The first target with cp.async, mma.m16n8k16 and bf16.
inline constexpr std::uint16_t kAsyncSm = 80;

/// Adds the product of fragments in 32-bit registers, as `ldmatrix` loads them: `a` has four, `b`
/// has its own from `first` on. A shape with half as many terms takes two products.
template <class Shape, class E>
void add_product(KernelBuilder& k, Accumulator<Shape, f32>& sum, const std::array<Value<b32>, 4>& a,
                 const std::array<Value<b32>, 4>& b, std::uint32_t first) {
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

}  // namespace ptxgen::inline v0
