// tests/launcher/rope_factors_test.cpp - frequency factors divide the frequencies of pairs
#include <catch2/catch.hpp>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "rig.hpp"
#include "support/random_values.hpp"

using namespace ptxgen;

namespace {

constexpr std::uint32_t kSize = 32;

template <class K>
std::vector<float> rotated(const test::Rig& rig, K kernel, std::uint32_t position,
                           const std::vector<float>& factors) {
  kernel.heads = 2;
  kernel.head_size = kSize;
  kernel.factors = !factors.empty();
  const Buffer<f32> in(rig.context, random_values(2 * kSize, 1));
  const Buffer<f32> out(rig.context, 2 * kSize);
  const Buffer<f32> divisors(rig.context, factors.empty() ? std::vector<float>(1) : factors);
  typename K::Operands operands{.y = out, .x = in, .position = position};
  if (kernel.factors) operands.factors = divisors;
  rig.launcher.launch(kernel, operands, rig.stream);
  rig.stream.synchronize();
  return test::read(out);
}

template <class K>
void check_factors() {
  const test::Rig rig;
  for (const bool precise : {false, true}) {
    const K kernel{.precise = precise};
    const std::vector<float> ones(kSize / 2, 1.0f);
    CHECK(rotated(rig, kernel, 77, ones) == rotated(rig, kernel, 77, {}));
    // Twice the position at half the frequency.
    CHECK(rotated(rig, kernel, 154, std::vector<float>(kSize / 2, 2.0f)) ==
          rotated(rig, kernel, 77, {}));
    // Each pair has its own factor.
    std::vector<float> one_of = ones;
    one_of[5] = 2;
    const std::vector<float> some = rotated(rig, kernel, 154, one_of);
    const std::vector<float> none = rotated(rig, kernel, 154, {});
    const std::vector<float> half = rotated(rig, kernel, 77, {});
    for (std::uint32_t i = 0; i < 2 * kSize; ++i) {
      const std::uint32_t element = i % kSize;
      const bool interleaved = std::is_same_v<K, RopeInterleaved>;
      const std::uint32_t pair = interleaved ? element / 2 : element % (kSize / 2);
      CHECK(some[i] == (pair == 5 ? half[i] : none[i]));
    }
  }
}

}  // namespace

TEST_CASE("rope divides the frequency of each pair by its factor") {
  check_factors<RopeInterleaved>();
}
TEST_CASE("rope_neox divides the frequency of each pair by its factor") {
  check_factors<RopeNeox>();
}
