// tests/launcher/layernorm_test.cpp - rows far from 0, constant rows
#include <catch2/catch.hpp>
#include <cmath>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "rig.hpp"

using namespace ptxgen;

namespace {

std::vector<float> layernorm(test::Rig& rig, const std::vector<float>& x) {
  const Buffer<f32> in(rig.context, x);
  const Buffer<f32> out(rig.context, x.size());
  const LayerNorm kernel{.columns = static_cast<std::uint32_t>(x.size()), .affine = false};
  rig.launcher.launch(kernel, {.y = out, .x = in}, rig.stream);
  rig.stream.synchronize();
  std::vector<float> y(x.size());
  out.read(y);
  return y;
}

}  // namespace

TEST_CASE("a row far from 0 keeps its variance") {
  test::Rig rig;
  // The mean of squares less the square of the mean is 0 or negative here in f32.
  std::vector<float> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? 30000.0f : 30002.0f;
  const std::vector<float> y = layernorm(rig, x);
  for (std::size_t i = 0; i < y.size(); ++i) {
    CHECK(y[i] == Approx(i % 2 == 0 ? -1.0 : 1.0).epsilon(0.01));
  }
}

TEST_CASE("a constant row becomes zeros") {
  test::Rig rig;
  for (const std::size_t columns : {1u, 33u, 700u}) {
    CHECK(layernorm(rig, std::vector<float>(columns, 0.75f)) == std::vector<float>(columns, 0.0f));
  }
}
