// tests/emulator/float_reference.hpp - correctly rounded results from a multi-precision library
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptxgen::test {

/// A format by its numbers; nothing here is shared with the emulator.
struct FloatFormat {
  const char* name;
  int exponent_bits;
  int fraction_bits;
  std::uint64_t nan;  ///< what the emulator promises to yield

  [[nodiscard]] constexpr int width() const { return 1 + exponent_bits + fraction_bits; }
  [[nodiscard]] constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  [[nodiscard]] constexpr std::uint64_t sign() const { return std::uint64_t{1} << (width() - 1); }
  [[nodiscard]] constexpr std::uint64_t infinity() const {
    return ((std::uint64_t{1} << exponent_bits) - 1) << fraction_bits;
  }
  [[nodiscard]] constexpr std::uint64_t min_normal() const {
    return std::uint64_t{1} << fraction_bits;
  }
  [[nodiscard]] constexpr std::uint64_t one() const {
    return static_cast<std::uint64_t>(bias()) << fraction_bits;
  }
  [[nodiscard]] constexpr bool is_nan(std::uint64_t bits) const {
    return (bits & (sign() - 1)) > infinity();
  }
};

inline constexpr FloatFormat kHalf{"f16", 5, 10, 0x7fff};
inline constexpr FloatFormat kBrain{"bf16", 8, 7, 0x7fff};
inline constexpr FloatFormat kSingle{"f32", 8, 23, 0x7fffffff};
inline constexpr FloatFormat kDouble{"f64", 11, 52, 0xfff8000000000000};

enum class Towards { Nearest, Zero, Down, Up };
inline constexpr Towards kEveryRounding[] = {Towards::Nearest, Towards::Zero, Towards::Down,
                                             Towards::Up};
[[nodiscard]] const char* suffix(Towards mode);  ///< "rn", ...

enum class Calculation { Add, Multiply, Fma, Divide, SquareRoot };

/// False where the library was not there when the tests were built; then nothing below works.
[[nodiscard]] bool has_reference();
/// Why, for test::skip.
inline constexpr const char* kNoReference =
    "no multi-precision library: install libmpfr-dev and configure again";

/// The correctly rounded result. Unused operands are ignored.
[[nodiscard]] std::uint64_t reference(Calculation what, const FloatFormat& format, Towards mode,
                                      std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0);
/// A value of one format in another.
[[nodiscard]] std::uint64_t reference_conversion(const FloatFormat& to, const FloatFormat& from,
                                                 Towards mode, std::uint64_t bits);
/// (-1)^negative * magnitude.
[[nodiscard]] std::uint64_t reference_from_integer(const FloatFormat& to, Towards mode,
                                                   std::uint64_t magnitude, bool negative);

/// The value as a double; exact for every format here.
[[nodiscard]] double value_of(const FloatFormat& format, std::uint64_t bits);

/// Zeros, ones, largest and least numbers, infinities, NaNs with and without payload, both signs.
[[nodiscard]] std::vector<std::uint64_t> corners(const FloatFormat& format);

/// Draws operands so that cancellation, ties, subnormals and overflow happen often.
class FloatDice {
 public:
  explicit FloatDice(std::uint64_t seed) : state_(seed) {}
  [[nodiscard]] std::uint64_t bits();
  [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return bits() % limit; }
  /// Any value of the format.
  [[nodiscard]] std::uint64_t any(const FloatFormat& format);
  /// A value that is likely to make trouble together with `a` in a sum.
  [[nodiscard]] std::uint64_t partner(const FloatFormat& format, std::uint64_t a);

 private:
  std::uint64_t state_;
};

}  // namespace ptxgen::test
