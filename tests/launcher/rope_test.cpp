// tests/launcher/rope_test.cpp - rotations at small and large positions against fp64
#include <catch2/catch.hpp>
#include <cmath>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/support/error.hpp"
#include "rig.hpp"

using namespace ptxgen;

namespace {

constexpr std::uint32_t kSize = 64;

std::vector<float> head() {
  std::vector<float> x(kSize);
  for (std::uint32_t i = 0; i < kSize; ++i) x[i] = std::sin(static_cast<float>(3 * i + 1));
  return x;
}

template <class K>
std::vector<float> rotated(test::Rig& rig, K kernel, const std::vector<float>& x,
                           std::uint32_t position) {
  const Buffer<f32> in(rig.context, x);
  const Buffer<f32> out(rig.context, x.size());
  const Buffer<u32> positions(rig.context, std::vector<std::uint32_t>{position});
  kernel.heads = static_cast<std::uint32_t>(x.size()) / kernel.head_size;
  typename K::Operands operands{.y = out, .x = in};
  if (kernel.indirect) {
    operands.positions = positions;
  } else {
    operands.position = position;
  }
  rig.launcher.launch(kernel, operands, rig.stream);
  rig.stream.synchronize();
  std::vector<float> y(x.size());
  out.read(y);
  return y;
}

// Element e of the rotated head, by the formula.
double expected(const std::vector<float>& x, std::uint32_t position, std::uint32_t e,
                bool interleaved) {
  const std::uint32_t half = kSize / 2;
  const std::uint32_t pair = interleaved ? e / 2 : e % half;
  const std::uint32_t first = interleaved ? 2 * pair : pair;
  const std::uint32_t second = interleaved ? first + 1 : first + half;
  const double angle = position * std::pow(10000.0, -2.0 * pair / kSize);
  return e == first ? x[first] * std::cos(angle) - x[second] * std::sin(angle)
                    : x[first] * std::sin(angle) + x[second] * std::cos(angle);
}

}  // namespace

TEST_CASE("the precise rotation is right to the last bits at every position") {
  test::Rig rig;
  const std::vector<float> x = head();
  for (const std::uint32_t position : {0u, 1u, 4095u, 131071u, 4294967295u}) {
    for (const bool indirect : {false, true}) {
      const std::vector<float> rope =
          rotated(rig, RopeInterleaved{.head_size = kSize, .indirect = indirect, .precise = true},
                  x, position);
      const std::vector<float> neox = rotated(
          rig, RopeNeox{.head_size = kSize, .indirect = indirect, .precise = true}, x, position);
      for (std::uint32_t e = 0; e < kSize; ++e) {
        INFO("position " << position << ", element " << e);
        CHECK(std::abs(rope[e] - expected(x, position, e, true)) < 1e-6);
        CHECK(std::abs(neox[e] - expected(x, position, e, false)) < 1e-6);
      }
    }
  }
}

TEST_CASE("position 0 leaves the head as it is, and the inverse rotates back") {
  test::Rig rig;
  const std::vector<float> x = head();
  for (const bool precise : {false, true}) {
    CHECK(rotated(rig, RopeInterleaved{.head_size = kSize, .precise = precise}, x, 0) == x);
    CHECK(rotated(rig, RopeNeox{.head_size = kSize, .precise = precise}, x, 0) == x);
    RopeNeox kernel{.head_size = kSize, .precise = precise};
    const std::vector<float> forward = rotated(rig, kernel, x, 77);
    kernel.inverse = true;
    const std::vector<float> back = rotated(rig, kernel, forward, 77);
    for (std::uint32_t e = 0; e < kSize; ++e) CHECK(back[e] == Approx(x[e]).margin(3e-6));
  }
}

TEST_CASE("an odd head is refused before anything is launched") {
  test::Rig rig;
  const std::vector<float> x(63);
  try {
    rotated(rig, RopeNeox{.head_size = 63}, x, 1);
    FAIL("a head of 63 elements was accepted");
  } catch (const Error& error) {
    CHECK(error.code == "bad-parameter");
    CHECK(error.message == "head_size is 63, not a multiple of 2");
  }
}
