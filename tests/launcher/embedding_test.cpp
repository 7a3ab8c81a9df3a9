// tests/launcher/embedding_test.cpp - token ids at the vocabulary's end and beyond it
#include <catch2/catch.hpp>
#include <cmath>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "rig.hpp"

using namespace ptxgen;

TEST_CASE("a token outside the vocabulary gives a row of NaN and reads nothing beyond the table") {
  const test::Rig rig;
  const Buffer<f32> table(rig.context, std::vector<float>{1, 2, 3, 4, 5, 6});
  const std::vector<std::uint32_t> tokens = {2, 0, 3, ~0u, 1};
  const Buffer<u32> ids(rig.context, tokens);
  const Buffer<f32> y(rig.context, std::vector<float>(10, NAN));
  const Embedding kernel{.rows = 5, .columns = 2, .vocabulary = 3, .table = ElementType::f32};
  rig.launcher.launch(kernel, {.y = y, .table = table, .ids = ids, .scale = 2}, rig.stream);
  rig.stream.synchronize();
  const std::vector<float> rows = test::read(y);
  CHECK(std::vector<float>(rows.begin(), rows.begin() + 4) == std::vector<float>{10, 12, 2, 4});
  for (std::size_t i = 4; i < 8; ++i) CHECK(std::isnan(rows[i]));
  CHECK(std::vector<float>(rows.begin() + 8, rows.end()) == std::vector<float>{6, 8});
  CHECK(rig.device.findings().empty());
}

TEST_CASE("rows of a table are whole blocks") {
  const test::Rig rig;
  const Buffer<u8> table(rig.context, 2 * 144);
  const Buffer<u32> ids(rig.context, 1);
  const Buffer<f32> y(rig.context, 288);
  const Embedding kernel{.columns = 288, .vocabulary = 1, .table = ElementType::q4_k};
  const Error error = test::error_of(
      [&] { rig.launcher.launch(kernel, {.y = y, .table = table, .ids = ids}, rig.stream); });
  CHECK(error.code == "bad-parameter");
  CHECK(error.kernel == "embedding");
  CHECK(error.message ==
        "columns is 288, but a row of q4_k is whole blocks of 256 values; pass a multiple of 256, "
        "or another type");
  CHECK(test::error_of([&] { (void)kernel.geometry(); }).message == error.message);
}
