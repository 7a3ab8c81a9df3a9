// tests/launcher/top_k_test.cpp - argmax and top_k: ties, NaN, infinities, long rows, many launches
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "rig.hpp"
#include "support/random_values.hpp"

using namespace ptxgen;

namespace {

using Indices = std::vector<std::uint32_t>;

struct Picked {
  std::vector<float> values;
  Indices indices;
};

Picked top_k(const test::Rig& rig, const std::vector<float>& x, std::uint32_t k,
             std::uint32_t rows = 1) {
  const Buffer<f32> in(rig.context, x);
  const Buffer<f32> values(rig.context, std::vector<float>(rows * k, NAN));
  const Buffer<u32> indices(rig.context, Indices(rows * k, ~0u));
  const TopK kernel{rows, static_cast<std::uint32_t>(x.size()) / rows, k};
  rig.launcher.launch(kernel, {.values = values, .indices = indices, .x = in}, rig.stream);
  rig.stream.synchronize();
  return {test::read(values), test::read(indices)};
}

std::uint32_t argmax(const test::Rig& rig, const std::vector<float>& x) {
  const Buffer<f32> in(rig.context, x);
  const Buffer<u32> index(rig.context, Indices(1, ~0u));
  const Argmax kernel{.columns = static_cast<std::uint32_t>(x.size())};
  rig.launcher.launch(kernel, {.index = index, .x = in}, rig.stream);
  rig.stream.synchronize();
  return test::read(index)[0];
}

// The first k indices by a stable sort: descending, NaN last.
Indices sorted(const std::vector<float>& x, std::uint32_t k) {
  Indices order(x.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return x[a] > x[b] || (!std::isnan(x[a]) && std::isnan(x[b]));
  });
  order.resize(k);
  return order;
}

void check_order(const test::Rig& rig, const std::vector<float>& x, std::uint32_t k) {
  const Picked picked = top_k(rig, x, k);
  CHECK(picked.indices == sorted(x, k));
  for (std::uint32_t i = 0; i < k; ++i) {
    CHECK(std::bit_cast<std::uint32_t>(picked.values[i]) ==
          std::bit_cast<std::uint32_t>(x[picked.indices[i]]));
  }
  CHECK(argmax(rig, x) == sorted(x, 1)[0]);
}

}  // namespace

TEST_CASE("of equal elements the lowest index comes first, also across blocks") {
  const test::Rig rig;
  check_order(rig, std::vector<float>(300, 2.5f), 256);
  check_order(rig, std::vector<float>(10000, -1.0f), 100);
  std::vector<float> some(10000, 0.0f);
  for (const std::size_t i : {9999u, 4096u, 4095u, 5u}) some[i] = 3;
  check_order(rig, some, 6);
  CHECK(argmax(rig, some) == 5);
}

TEST_CASE("zeros of either sign are equal, and keep their signs") {
  const test::Rig rig;
  check_order(rig, {-1, -0.0f, 0, -0.0f, 0}, 4);
  CHECK(argmax(rig, {-1, -0.0f, 0}) == 1);
  CHECK(std::signbit(top_k(rig, {-1, -0.0f, 0}, 1).values[0]));
}

TEST_CASE("a NaN of either sign is below every number, infinities are in order") {
  const test::Rig rig;
  const std::vector<float> x = {NAN, -INFINITY, 1, -NAN, INFINITY, -2, NAN, 0x1p-149f};
  CHECK(top_k(rig, x, 8).indices == Indices{4, 2, 7, 5, 1, 0, 3, 6});
  check_order(rig, x, 8);
  check_order(rig, std::vector<float>(5000, NAN), 3);
  CHECK(argmax(rig, std::vector<float>(5000, NAN)) == 0);
  std::vector<float> one(9000, NAN);
  one[8999] = -INFINITY;
  CHECK(argmax(rig, one) == 8999);
  check_order(rig, one, 2);
}

TEST_CASE("a vocabulary of 262144: elements of one block, and of all") {
  const test::Rig rig;
  std::vector<float> x = random_values(262144, 7);
  check_order(rig, x, 256);
  std::sort(x.begin(), x.end());
  check_order(rig, x, 256);
  std::reverse(x.begin(), x.end());
  check_order(rig, x, 40);
  CHECK(rig.device.findings().empty());
}

TEST_CASE("elements that differ in their last bit only") {
  const test::Rig rig;
  std::vector<float> x(5000, 1.0f);
  for (std::size_t i = 0; i < x.size(); i += 3) x[i] = std::nextafterf(1.0f, 2.0f);
  check_order(rig, x, 256);
  for (float& element : x) element = -element;
  check_order(rig, x, 200);
}

TEST_CASE("rows are independent, launches leave the workspace ready, and bits do not change") {
  const test::Rig rig;
  constexpr std::uint32_t kRows = 17;
  const std::vector<float> x = random_values(kRows * 5000, 3);
  const Picked first = top_k(rig, x, 33, kRows);
  for (std::uint32_t row = 0; row < kRows; ++row) {
    const std::vector<float> of_row(x.begin() + row * 5000, x.begin() + (row + 1) * 5000);
    const Indices expected = sorted(of_row, 33);
    CHECK(std::equal(expected.begin(), expected.end(), first.indices.begin() + row * 33));
  }
  for (int launch = 0; launch < 3; ++launch) {
    const Picked again = top_k(rig, x, 33, kRows);
    CHECK(again.indices == first.indices);
    CHECK(again.values == first.values);
  }
}

TEST_CASE("more elements than a row has are refused") {
  const Error error = test::error_of([] { (void)TopK{.columns = 10, .k = 50}.geometry(); });
  CHECK(error.kernel == "top_k");
  CHECK(error.code == "bad-parameter");
  CHECK(error.message == "k is 50, but a row has 10 elements; pick no more than there are");
  const test::Rig rig;
  CHECK(test::error_of([&] { (void)top_k(rig, {1, 2, 3}, 4); }).code == "bad-parameter");
  CHECK(test::error_of([&] { (void)top_k(rig, std::vector<float>(300), 257); }).message ==
        "k is 257, outside 1..256");
}
