// tests/ptx/dice.hpp - random choices that repeat everywhere
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ptxgen::test {

/// Choices from a seed. The standard's distributions differ between libraries; these do not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// From 0 to `end` - 1.
  std::uint32_t below(std::size_t end) { return static_cast<std::uint32_t>(bits() % end); }
  /// From `first` to `last`.
  std::uint32_t between(std::uint32_t first, std::uint32_t last) {
    return first + below(std::size_t{last} - first + 1);
  }
  bool chance(unsigned percent) { return below(100) < percent; }

  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  template <typename T>
  const T& pick(std::span<const T> from) {
    return from[below(from.size())];
  }
  template <typename T, std::size_t N>
  const T& pick(const T (&from)[N]) {
    return from[below(N)];
  }

 private:
  std::uint64_t state_;
};

}  // namespace ptxgen::test
