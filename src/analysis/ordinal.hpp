// src/analysis/ordinal.hpp - signed, unsigned and descending order as unsigned numbers
#pragma once

#include <cstdint>

namespace ptxgen::inline v0::analysis {

/// Numbers of a type in the order in which a loop runs through them, as unsigned numbers: 0 is the
/// least of the type if the loop runs up, the greatest if it runs down. The map is its own inverse.
struct Ordinal {
  unsigned bits = 32;
  bool is_signed = false, down = false;
  [[nodiscard]] constexpr std::uint64_t mask() const noexcept {
    return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  }
  [[nodiscard]] constexpr std::uint64_t key() const noexcept {
    const std::uint64_t sign = is_signed ? std::uint64_t{1} << (bits - 1) : 0;
    return (sign ^ (down ? mask() : 0)) & mask();
  }
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t value) const noexcept {
    return (value & mask()) ^ key();
  }
};

}  // namespace ptxgen::inline v0::analysis
