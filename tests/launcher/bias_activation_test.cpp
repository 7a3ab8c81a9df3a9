// tests/launcher/bias_activation_test.cpp - NaN, infinities and bias rows longer than the output
#include <catch2/catch.hpp>
#include <cmath>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "rig.hpp"

using namespace ptxgen;

namespace {

std::vector<float> activated(const test::Rig& rig, const std::vector<float>& x,
                             const std::vector<float>& bias, Activation activation) {
  const Buffer<f32> out(rig.context, x);
  const Buffer<f32> summands(rig.context, bias);
  const BiasActivation kernel{.n = static_cast<std::uint32_t>(x.size()),
                              .bias_size = static_cast<std::uint32_t>(bias.size()),
                              .activation = activation};
  rig.launcher.launch(kernel, {.out = out, .bias = summands}, rig.stream);
  rig.stream.synchronize();
  return test::read(out);
}

}  // namespace

TEST_CASE("relu keeps NaN and infinity, and gives 0 for what is below it") {
  const test::Rig rig;
  const std::vector<float> y =
      activated(rig, {NAN, INFINITY, -INFINITY, 2, -2}, {1, -1}, Activation::Relu);
  CHECK(std::isnan(y[0]));
  CHECK(std::vector<float>(y.begin() + 1, y.end()) == std::vector<float>{INFINITY, 0, 1, 0});
}

TEST_CASE("the sigmoid form of GELU is 0 far below 0, not NaN, and x far above") {
  const test::Rig rig;
  const std::vector<float> y =
      activated(rig, {-1000, 1000, 0, NAN}, {0.5f}, Activation::GeluSigmoid);
  CHECK(y[0] == 0);
  CHECK(y[1] == 1000.5f);
  CHECK(y[2] == Approx(0.5 / (1 + std::exp(-0.851))).epsilon(1e-6));
  CHECK(std::isnan(y[3]));
}

TEST_CASE("the bias repeats over any number of threads") {
  const test::Rig rig;
  std::vector<float> bias(77);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i);
  const std::vector<float> y =
      activated(rig, std::vector<float>(5000, 1000.0f), bias, Activation::None);
  for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(y[i] == 1000.0f + static_cast<float>(i % 77));
  CHECK(activated(rig, {1, 2}, {10, 20, 30}, Activation::None) == std::vector<float>{11, 22});
}
