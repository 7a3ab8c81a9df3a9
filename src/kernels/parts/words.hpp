// src/kernels/parts/words.hpp - floats of 32 and 16 bits from and to memory
#pragma once

#include <cstdint>
#include <vector>

#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"

namespace ptxgen::inline v0 {

/// An f32 as the bf16 nearest to it (ties to even, NaN 0x7fff), in the upper half of a word whose
/// lower half means nothing: for targets without bf16.
[[nodiscard]] Value<u32> round_to_bf16(KernelBuilder& k, const Value<f32>& value);

/// Neighbouring floats as a load gives them: each in a register, or 16-bit ones in pairs.
struct Floats {
  GemvType type = GemvType::f32;
  std::vector<Value<f32>> whole;
  std::vector<Value<u32>> pairs;  ///< the first in the lower half; a single one alone
};

/// Loads `count` of them, 1, 2, 4 or 8 and at most 16 bytes, with one instruction.
[[nodiscard]] Floats load_floats(KernelBuilder& k, const Ptr<b8>& at, GemvType type,
                                 std::uint32_t count, const Load& how = {});
[[nodiscard]] Floats load_floats(KernelBuilder& k, const Ptr<b8, Shared>& at, GemvType type,
                                 std::uint32_t count);
/// The same from global memory where `p` holds; zeros, and memory not touched, where it does not.
/// Of `how` only `read_only` and `cache` count.
[[nodiscard]] Floats load_floats_if(KernelBuilder& k, const Ptr<b8>& at, GemvType type,
                                    std::uint32_t count, const Pred& p, const Load& how = {});
/// Any number of them with as few loads as `alignment`, the bytes that the address is a multiple
/// of, allows.
[[nodiscard]] Floats load_run(KernelBuilder& k, const Ptr<b8>& at, GemvType type,
                              std::uint32_t count, std::uint32_t alignment, const Load& how = {});
/// The first `count` of them as f32: exact.
[[nodiscard]] std::vector<Value<f32>> expand(KernelBuilder& k, const Floats& floats,
                                             std::uint32_t count);

/// Stores `values`, 1, 2, 4 or 8 and at most 16 bytes as `type`, each rounded once to nearest even,
/// with one instruction.
void store_floats(KernelBuilder& k, const Ptr<b8>& at, GemvType type,
                  const std::vector<Value<f32>>& values);

}  // namespace ptxgen::inline v0
