// tests/launcher/softmax_test.cpp - rows of -inf, and of large numbers
#include <catch2/catch.hpp>
#include <cmath>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "rig.hpp"

using namespace ptxgen;

namespace {

std::vector<float> softmax(test::Rig& rig, const std::vector<float>& x, bool masked_rows) {
  const Buffer<f32> in(rig.context, x);
  const Buffer<f32> out(rig.context, x.size());
  const Softmax kernel{
      .columns = static_cast<std::uint32_t>(x.size()), .precise = true, .masked_rows = masked_rows};
  rig.launcher.launch(kernel, {.y = out, .x = in}, rig.stream);
  rig.stream.synchronize();
  std::vector<float> y(x.size());
  out.read(y);
  return y;
}

}  // namespace

TEST_CASE("a row of -inf gives NaN, or zeros where rows may be masked") {
  test::Rig rig;
  const std::vector<float> masked(300, -INFINITY);
  for (const float y : softmax(rig, masked, false)) CHECK(std::isnan(y));
  CHECK(softmax(rig, masked, true) == std::vector<float>(300, 0.0f));
  std::vector<float> one = masked;
  one[299] = -1e30f;
  for (const bool masked_rows : {false, true}) {
    const std::vector<float> y = softmax(rig, one, masked_rows);
    CHECK(y[299] == 1);
    CHECK(y[0] == 0);
  }
}

TEST_CASE("a row of large numbers does not overflow, and NaN stays NaN") {
  test::Rig rig;
  std::vector<float> x(257, 1e4f);
  for (const float y : softmax(rig, x, false)) CHECK(y == Approx(1.0 / 257).epsilon(1e-6));
  x[3] = NAN;
  for (const float y : softmax(rig, x, false)) CHECK(std::isnan(y));
}
