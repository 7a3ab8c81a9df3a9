// tests/optimize/random_program.hpp - random kernels that give passes work
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptxgen::test {

/// What a program has most of.
enum class Flavour : std::uint8_t {
  Mixed,
  Floats,     ///< products and sums in all float types and words
  Integers,   ///< products and sums in all integer types
  Loops,      ///< loops that compare their induction variable
  Constants,  ///< instructions on constants, decided branches
  Copies,     ///< moves, values nothing reads, values written several times
};

/// A kernel `k(in, out, sum, p0, p1, ...)` that ends, has no race and reads nothing undefined. Each
/// thread stores what its registers hold at the end.
struct RandomProgram {
  std::uint64_t number = 0;
  std::string ptx;
  std::string target;
  std::uint32_t threads = 32;  ///< of a block, in x
  std::uint32_t blocks = 1;
  std::uint32_t output_words = 0;         ///< of `out`, for each thread
  std::vector<std::uint32_t> input;       ///< of `in`
  std::vector<std::uint64_t> parameters;  ///< p0, p1, ...: .u64 each
};

inline constexpr std::uint32_t kProgramSumWords = 8;  ///< of `sum`, added to by all threads

/// The same program for the same number and flavour, everywhere.
[[nodiscard]] RandomProgram random_program(std::uint64_t number, Flavour flavour);

}  // namespace ptxgen::test
