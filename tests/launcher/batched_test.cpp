// tests/launcher/batched_test.cpp - batched kernels against their single-row twins, bit for bit
#include <catch2/catch.hpp>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "rig.hpp"
#include "support/random_values.hpp"

using namespace ptxgen;

namespace {

// `batched(rows, out)` against `single(row, out of the row)`, over row lengths that are aligned and
// that are not.
template <class Batched, class Single>
void check_rows(const test::Rig& rig, std::uint32_t rows, std::uint32_t n, const Batched& batched,
                const Single& single) {
  INFO(rows << " rows of " << n);
  const std::size_t count = std::size_t{rows} * n;
  const Buffer<f32> a(rig.context, random_values(count, 1));
  const Buffer<f32> b(rig.context, random_values(count, 2));
  const Buffer<f32> together(rig.context, count), apart(rig.context, count);
  batched(a, b, together);
  for (std::uint32_t row = 0; row < rows; ++row) {
    const auto of_row = [&](const Buffer<f32>& all) {
      return DeviceRange(DeviceRange(all).address + std::uint64_t{4} * row * n,
                         std::uint64_t{4} * n, ptx::Type::f32);
    };
    single(of_row(a), of_row(b), of_row(apart));
  }
  rig.stream.synchronize();
  CHECK(test::read(together) == test::read(apart));
}

}  // namespace

TEST_CASE("every row of a batch is the single-row kernel's, bit for bit") {
  const test::Rig rig;
  for (const std::uint32_t rows : {1u, 2u, 3u, 7u, 17u}) {
    for (const std::uint32_t n : {256u, 301u}) {
      check_rows(
          rig, rows, n,
          [&](const auto& a, const auto& b, const auto& out) {
            rig.launcher.launch(BatchedResidualAdd{rows, n}, {.out = out, .a = a, .b = b},
                                rig.stream);
          },
          [&](const auto& a, const auto& b, const auto& out) {
            rig.launcher.launch(ResidualAdd{n}, {.out = out, .a = a, .b = b}, rig.stream);
          });
      check_rows(
          rig, rows, n,
          [&](const auto& a, const auto& b, const auto& out) {
            rig.launcher.launch(BatchedSwiglu{rows, n}, {.out = out, .gate = a, .up = b},
                                rig.stream);
          },
          [&](const auto& a, const auto& b, const auto& out) {
            rig.launcher.launch(Swiglu{n}, {.out = out, .gate = a, .up = b}, rig.stream);
          });
    }
  }
}

TEST_CASE("every row of rmsnorm, with and without a residual, is that of a launch of one row") {
  const test::Rig rig;
  for (const std::uint32_t rows : {1u, 2u, 3u, 7u, 17u}) {
    constexpr std::uint32_t kColumns = 301;
    const Buffer<f32> weight(rig.context, random_values(kColumns, 9));
    const auto norm = [&](std::uint32_t count) {
      return [&rig, &weight, count](const auto& a, const auto&, const auto& out) {
        rig.launcher.launch(RmsNorm{count, kColumns}, {.y = out, .x = a, .weight = weight},
                            rig.stream);
      };
    };
    check_rows(rig, rows, kColumns, norm(rows), norm(1));
    const auto fused = [&](std::uint32_t count) {
      return [&rig, &weight, count](const auto& a, const auto& b, const auto& out) {
        const FusedResidualRmsNorm kernel{.rows = count, .columns = kColumns, .write_sum = false};
        rig.launcher.launch(kernel, {.y = out, .x = a, .residual = b, .weight = weight},
                            rig.stream);
      };
    };
    check_rows(rig, rows, kColumns, fused(rows), fused(1));
  }
}

TEST_CASE("the grid of a batch has a block for 256 elements of a row, and its y is the row") {
  const LaunchGeometry grid = BatchedSwiglu{7, 8960}.geometry();
  CHECK(grid == LaunchGeometry{{35, 7, 1}, {256, 1, 1}});
  CHECK(BatchedResidualAdd{64, 1537}.geometry() == LaunchGeometry{{7, 64, 1}, {256, 1, 1}});
  CHECK(RmsNorm{7, 1536}.geometry() == LaunchGeometry{{1, 7, 1}, {256, 1, 1}});
  for (const BatchedResidualAdd empty : {BatchedResidualAdd{0, 5}, BatchedResidualAdd{5, 0}}) {
    CHECK(test::error_of([&] { (void)empty.geometry(); }).code == "empty-grid");
  }
}
