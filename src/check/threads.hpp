// src/check/threads.hpp - sets of threads of one block
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ptxgen::inline v0::gates {

inline constexpr std::uint32_t kMaxThreads = 1024;

/// Threads of one block, by x, then y, then z. Unlike std::bitset, a set of few threads is
/// enumerated in the time that those take: loops that one thread runs are common.
class Threads {
 public:
  Threads& set(std::size_t thread) {
    words_[thread / 64] |= bit(thread);
    return *this;
  }
  void reset() { words_ = {}; }

  [[nodiscard]] bool operator[](std::size_t thread) const {
    return (words_[thread / 64] & bit(thread)) != 0;
  }
  [[nodiscard]] bool none() const { return words_ == Words{}; }
  [[nodiscard]] bool any() const { return !none(); }
  [[nodiscard]] std::size_t count() const {
    std::size_t number = 0;
    for (const std::uint64_t word : words_) number += static_cast<std::size_t>(std::popcount(word));
    return number;
  }

  /// Calls `fn` with each thread below `end`, in order.
  template <class Fn>
  void for_each(std::uint32_t end, Fn&& fn) const {
    for (std::uint32_t first = 0; first < end; first += 64) {
      for (std::uint64_t left = words_[first / 64]; left != 0; left &= left - 1) {
        const std::uint32_t thread = first + static_cast<std::uint32_t>(std::countr_zero(left));
        if (thread >= end) return;
        fn(thread);
      }
    }
  }

  /// All lanes of the warps that these threads are in.
  [[nodiscard]] Threads whole_warps() const {
    constexpr std::uint64_t kWarp = 0xffffffff;
    Threads lanes;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      lanes.words_[i] =
          ((words_[i] & kWarp) != 0 ? kWarp : 0) | ((words_[i] & ~kWarp) != 0 ? ~kWarp : 0);
    }
    return lanes;
  }

  Threads& operator|=(const Threads& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  Threads& operator&=(const Threads& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  [[nodiscard]] Threads operator~() const {
    Threads inverse;
    for (std::size_t i = 0; i < words_.size(); ++i) inverse.words_[i] = ~words_[i];
    return inverse;
  }
  [[nodiscard]] friend Threads operator|(Threads a, const Threads& b) { return a |= b; }
  [[nodiscard]] friend Threads operator&(Threads a, const Threads& b) { return a &= b; }
  friend bool operator==(const Threads&, const Threads&) = default;

 private:
  using Words = std::array<std::uint64_t, kMaxThreads / 64>;
  static std::uint64_t bit(std::size_t thread) { return std::uint64_t{1} << (thread % 64); }

  Words words_{};
};

}  // namespace ptxgen::inline v0::gates
