// src/emulator/state/written_bits.hpp - a written bit for each byte
#pragma once

#include <bit>
#include <cstdint>

namespace ptxgen::inline v0::emulator {

// Two host threads may write neighbouring bytes of global memory concurrently: words of bits are
// changed by an atomic or, and only if a bit is not set, which is rare. `Concurrent`: whether other
// host threads may access the words.
//
// Internal linkage: files compiled for one instruction set include this, and the linker must not
// use their copy in files compiled for another.

/// The low `count` bits, 1 to 64.
static inline std::uint64_t low_mask(std::uint64_t count) noexcept {
  return ~std::uint64_t{0} >> (64 - count);
}

/// Whether the bits `first` .. `first + count` are all set; `count` at least 1.
static inline bool all_written(const std::uint64_t* words, std::uint64_t first,
                               std::uint64_t count) noexcept {
  const std::uint64_t* word = words + first / 64;
  const std::uint64_t shift = first % 64;
  std::uint64_t missing = 0;
  if (shift + count <= 64) {
    const std::uint64_t have = __atomic_load_n(word, __ATOMIC_RELAXED) >> shift;
    return (~have & low_mask(count)) == 0;
  }
  missing |= ~__atomic_load_n(word, __ATOMIC_RELAXED) >> shift;
  count -= 64 - shift;
  for (++word; count > 64; ++word, count -= 64) {
    missing |= ~__atomic_load_n(word, __ATOMIC_RELAXED);
  }
  missing |= ~__atomic_load_n(word, __ATOMIC_RELAXED) & low_mask(count);
  return missing == 0;
}

/// Up to 64 bits from `first` on, in the low `count` bits.
static inline std::uint64_t written_mask(const std::uint64_t* words, std::uint64_t first,
                                         std::uint64_t count) noexcept {
  const std::uint64_t* word = words + first / 64;
  const std::uint64_t shift = first % 64;
  std::uint64_t bits = __atomic_load_n(word, __ATOMIC_RELAXED) >> shift;
  if (shift + count > 64) bits |= __atomic_load_n(word + 1, __ATOMIC_RELAXED) << (64 - shift);
  return bits & low_mask(count);
}

template <bool Concurrent>
static inline void mark_word(std::uint64_t* word, std::uint64_t bits) noexcept {
  const std::uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
  if ((~old & bits) == 0) return;
  if (Concurrent && bits != ~std::uint64_t{0}) {
    __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
  } else {
    __atomic_store_n(word, old | bits, __ATOMIC_RELAXED);
  }
}

/// Sets the bits `first` .. `first + count`; `count` at least 1.
template <bool Concurrent>
static inline void mark_written(std::uint64_t* words, std::uint64_t first,
                                std::uint64_t count) noexcept {
  std::uint64_t* word = words + first / 64;
  const std::uint64_t shift = first % 64;
  if (shift + count <= 64) {
    mark_word<Concurrent>(word, low_mask(count) << shift);
    return;
  }
  mark_word<Concurrent>(word, ~std::uint64_t{0} << shift);
  count -= 64 - shift;
  for (++word; count > 64; ++word, count -= 64) mark_word<Concurrent>(word, ~std::uint64_t{0});
  mark_word<Concurrent>(word, low_mask(count));
}

/// Stores the low `count` (1 to 64) bits of `bits` from bit `first` on.
static inline void put_written(std::uint64_t* words, std::uint64_t first, std::uint64_t bits,
                               std::uint64_t count) noexcept {
  std::uint64_t* word = words + first / 64;
  const std::uint64_t shift = first % 64;
  const std::uint64_t mask = low_mask(count);
  bits &= mask;
  word[0] = (word[0] & ~(mask << shift)) | bits << shift;
  if (shift + count > 64) {
    const std::uint64_t back = 64 - shift;
    word[1] = (word[1] & ~(mask >> back)) | bits >> back;
  }
}

}  // namespace ptxgen::inline v0::emulator
