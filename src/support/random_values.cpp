// src/support/random_values.cpp - inputs for kernels, the same on every host
#include "support/random_values.hpp"

namespace ptxgen::inline v0 {

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    values[i] = static_cast<float>(static_cast<std::int32_t>(z >> 40) - (1 << 23)) * 0x1p-23f;
  }
  return values;
}

}  // namespace ptxgen::inline v0
