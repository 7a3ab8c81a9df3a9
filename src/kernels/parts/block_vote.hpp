// src/kernels/parts/block_vote.hpp - predicates as numbers, and over a block
#pragma once

#include "ptxgen/builder.hpp"

namespace ptxgen::inline v0 {

/// 1 where `p` is true, else 0.
[[nodiscard]] inline Value<u32> one_if(KernelBuilder& k, const Pred& p) {
  const Value<u32> one = k.constant<u32>(1u);
  return k.selp(one, 0u, p);
}

// All threads of the block execute these, and get the same result: code under it may have barriers.

/// Whether `p` is true in a thread of the block. A barrier.
[[nodiscard]] inline Pred block_any(KernelBuilder& k, const Pred& p) {
  const Pred any = k.undefined<pred>();
  k.emit(ptx::Op::bar_red, {ptx::Modifier::or_}, {any, 0, p});
  return any;
}

/// The sum over the block of numbers below 2^bits: the threads that have a bit are counted, one
/// barrier a bit.
[[nodiscard]] inline Value<u32> block_sum(KernelBuilder& k, const Value<u32>& number,
                                          std::uint32_t bits) {
  const auto threads_with = [&](std::uint32_t bit) {
    const Pred has_bit = (number & (1u << bit)) != 0u;
    const Value<u32> threads = k.undefined<u32>();
    k.emit(ptx::Op::bar_red_popc, {ptx::Modifier::popc}, {threads, 0, has_bit});
    return threads;
  };
  Value<u32> sum = threads_with(0);
  for (std::uint32_t bit = 1; bit < bits; ++bit) sum.rebind(sum + (threads_with(bit) << bit));
  return sum;
}

}  // namespace ptxgen::inline v0
