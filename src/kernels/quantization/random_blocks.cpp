// src/kernels/quantization/random_blocks.cpp - blocks for tests and benchmarks
#include "kernels/quantization/random_blocks.hpp"

#include <cstring>
#include <random>

#include "ptxgen/kernels/quantization/blocks.hpp"
#include "support/half.hpp"

namespace ptxgen::inline v0 {

std::vector<std::byte> random_blocks(ElementType type, std::uint64_t values, double low,
                                     double high, std::uint64_t seed) {
  constexpr double kSteps = 256;  // integers times scales of a block
  std::vector<std::byte> blocks(static_cast<std::size_t>(bytes(type, values)));
  std::mt19937_64 random(seed);
  for (std::byte& byte : blocks) byte = static_cast<std::byte>(random());
  for (std::size_t block = 0; block < blocks.size(); block += bytes(type)) {
    for (const std::uint8_t at : half_fields(type)) {
      const double share = static_cast<double>(random() >> 11u) * 0x1p-53;
      const double field = (low + share * (high - low)) / kSteps;
      const std::uint16_t half = float_to_f16(static_cast<float>(field));
      std::memcpy(&blocks[block + at], &half, sizeof half);
    }
  }
  return blocks;
}

}  // namespace ptxgen::inline v0
