// src/kernels/parts/words.hpp - 32-bit and 16-bit floats in memory
#pragma once

#include <cstdint>
#include <vector>

#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"

namespace ptxgen::inline v0 {

/// Rounds an f32 to bf16 (ties to even, NaN 0x7fff) in the upper half of a word; the lower half is
/// undefined. For targets without bf16.
[[nodiscard]] Value<u32> round_to_bf16(KernelBuilder& k, const Value<f32>& value);

/// Consecutive floats of one load: one per register, or 16-bit floats in pairs.
struct Floats {
  ElementType type = ElementType::f32;
  std::vector<Value<f32>> full;
  std::vector<Value<u32>> pairs;  ///< the first in the lower half; a single one alone
};

/// Loads `count` of them, 1, 2, 4 or 8 and at most 16 bytes, with one instruction.
[[nodiscard]] Floats load_floats(KernelBuilder& k, const Ptr<b8>& at, ElementType type,
                                 std::uint32_t count, const Load& how = {});
[[nodiscard]] Floats load_floats(KernelBuilder& k, const Ptr<b8, Shared>& at, ElementType type,
                                 std::uint32_t count);
/// The same from global memory if `p` is true; otherwise zeros without an access. Only `read_only`
/// and `cache` of `how` are used.
[[nodiscard]] Floats load_floats_if(KernelBuilder& k, const Ptr<b8>& at, ElementType type,
                                    std::uint32_t count, const Pred& p, const Load& how = {});
/// 1, 2 or 4 words in the same way.
[[nodiscard]] std::vector<Value<u32>> load_words_if(KernelBuilder& k, const Ptr<b8>& at,
                                                    std::uint32_t count, const Pred& p,
                                                    const Load& how = {});
/// Any number of them with as few loads as `alignment`, in bytes, allows.
[[nodiscard]] Floats load_run(KernelBuilder& k, const Ptr<b8>& at, ElementType type,
                              std::uint32_t count, std::uint32_t alignment, const Load& how = {});
/// The first `count` of them as f32: exact.
[[nodiscard]] std::vector<Value<f32>> expand(KernelBuilder& k, const Floats& floats,
                                             std::uint32_t count);

/// The value rounded once to nearest even to `type`, as an f32.
[[nodiscard]] Value<f32> rounded_to(KernelBuilder& k, ElementType type, const Value<f32>& value);

/// An even number of values as 16-bit floats, each rounded once to nearest even, in words of two,
/// the first in the lower half.
[[nodiscard]] std::vector<Value<u32>> pack_floats(KernelBuilder& k, ElementType type,
                                                  const std::vector<Value<f32>>& values);

/// Stores `values`, 1, 2, 4 or 8 and at most 16 bytes as `type`, each rounded once to nearest even,
/// with one instruction.
void store_floats(KernelBuilder& k, const Ptr<b8>& at, ElementType type,
                  const std::vector<Value<f32>>& values);
/// Stores any number of values, `count` with an instruction.
void store_run(KernelBuilder& k, const Ptr<b8>& at, ElementType type,
               const std::vector<Value<f32>>& values, std::uint32_t count);

}  // namespace ptxgen::inline v0
