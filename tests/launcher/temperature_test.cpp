// tests/launcher/temperature_test.cpp - softmax with a temperature
#include <catch2/catch.hpp>
#include <cmath>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "rig.hpp"
#include "support/random_values.hpp"

using namespace ptxgen;

namespace {

std::vector<float> softmax(const test::Rig& rig, const std::vector<float>& x, Softmax kernel,
                           float temperature) {
  const Buffer<f32> in(rig.context, x);
  const Buffer<f32> out(rig.context, x.size());
  kernel.columns = static_cast<std::uint32_t>(x.size());
  rig.launcher.launch(kernel, {.y = out, .x = in, .temperature = temperature}, rig.stream);
  rig.stream.synchronize();
  return test::read(out);
}

}  // namespace

TEST_CASE("a temperature of 1 changes no bit, a small one leaves the largest element") {
  const test::Rig rig;
  const std::vector<float> x = random_values(300, 1);
  for (const bool precise : {false, true}) {
    const Softmax plain{.precise = precise};
    const Softmax scaled{.precise = precise, .scaled = true};
    CHECK(softmax(rig, x, scaled, 1) == softmax(rig, x, plain, 1));
  }
  const std::vector<float> cold =
      softmax(rig, {1, -INFINITY, 3, 2.9f}, {.precise = true, .scaled = true}, 1e-3f);
  CHECK(std::vector<float>(cold.begin(), cold.begin() + 3) == std::vector<float>{0, 0, 1});
  CHECK(cold[3] < 1e-40f);
  for (const float y : softmax(rig, {5, -5}, {.scaled = true}, 1e30f)) CHECK(y == 0.5f);
}

TEST_CASE("a masked row with a temperature gives zeros") {
  const test::Rig rig;
  const std::vector<float> masked(40, -INFINITY);
  CHECK(softmax(rig, masked, {.masked_rows = true, .scaled = true}, 0.5f) ==
        std::vector<float>(40, 0.0f));
}

TEST_CASE("temperatures that divide nothing are refused") {
  const test::Rig rig;
  const auto message = [&](bool scaled, float t) {
    return test::error_of([&] { (void)softmax(rig, {1, 2}, {.scaled = scaled}, t); }).message;
  };
  CHECK(message(true, 0) ==
        "temperature is 0, not a positive normal number; take the largest element with argmax "
        "instead of a temperature of 0");
  CHECK_THAT(message(true, -1), Catch::StartsWith("temperature is -1,"));
  CHECK_THAT(message(true, NAN), Catch::StartsWith("temperature is nan,"));
  CHECK_THAT(message(true, INFINITY), Catch::StartsWith("temperature is inf,"));
  CHECK_THAT(message(true, 1e-40f), Catch::Contains("not a positive normal number"));
  CHECK(message(false, 0.5f) ==
        "temperature is 0.5, but the kernel is not built for one; set `scaled`");
}
