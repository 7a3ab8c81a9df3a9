// tests/launcher/rmsnorm_test.cpp - the fused norm against residual_add and rmsnorm
#include <catch2/catch.hpp>

#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "rig.hpp"
#include "support/random_values.hpp"

using namespace ptxgen;

namespace {

constexpr std::uint32_t kRows = 3;
constexpr std::uint32_t kColumns = 500;
constexpr std::size_t kElements = std::size_t{kRows} * kColumns;

// Random elements of the type.
Buffer<u8> random_buffer(const test::Rig& rig, ElementType type, std::uint64_t seed) {
  const std::vector<float> values = random_values(kElements, seed);
  const std::vector<std::byte> elements =
      to_elements(type, std::vector<double>(values.begin(), values.end()));
  const auto* first = reinterpret_cast<const std::uint8_t*>(elements.data());
  return Buffer<u8>(rig.context, std::span(first, elements.size()));
}

void check_fused(ElementType type) {
  const test::Rig rig;
  const Buffer<u8> x = random_buffer(rig, type, 1);
  const Buffer<u8> residual = random_buffer(rig, type, 2);
  const Buffer<f32> weight(rig.context, random_values(kColumns, 3));
  const Buffer<u8> sum(rig.context, x.size()), y(rig.context, x.size());
  const Buffer<u8> fused_y(rig.context, x.size());
  rig.launcher.launch(ResidualAdd{kElements, type}, {.out = sum, .a = x, .b = residual},
                      rig.stream);
  rig.launcher.launch(RmsNorm{kRows, kColumns, type}, {.y = y, .x = sum, .weight = weight},
                      rig.stream);
  const FusedResidualRmsNorm only_y{kRows, kColumns, type, false};
  rig.launcher.launch(only_y, {.y = fused_y, .x = x, .residual = residual, .weight = weight},
                      rig.stream);
  rig.stream.synchronize();
  CHECK(test::read(fused_y) == test::read(y));
  // The residual stream in place, y in the place of x.
  const FusedResidualRmsNorm with_sum{kRows, kColumns, type};
  rig.launcher.launch(with_sum,
                      {.y = x, .sum = residual, .x = x, .residual = residual, .weight = weight},
                      rig.stream);
  rig.stream.synchronize();
  CHECK(test::read(residual) == test::read(sum));
  CHECK(test::read(x) == test::read(y));
}

}  // namespace

TEST_CASE("the fused norm is residual_add and rmsnorm, bit for bit, in place too") {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    INFO(to_string(type));
    check_fused(type);
  }
}

TEST_CASE("y and sum of the fused norm are not the same memory") {
  const test::Rig rig;
  const Buffer<u8> x = random_buffer(rig, ElementType::f32, 1);
  const Buffer<u8> residual = random_buffer(rig, ElementType::f32, 2);
  const Buffer<f32> weight(rig.context, random_values(kColumns, 3));
  const Error error = test::error_of([&] {
    rig.launcher.launch(
        FusedResidualRmsNorm{kRows, kColumns},
        {.y = residual, .sum = residual, .x = x, .residual = residual, .weight = weight},
        rig.stream);
  });
  CHECK(error.code == "aliasing");
  CHECK_THAT(error.message, Catch::Contains("the kernel writes both: give sum separate memory"));
}
