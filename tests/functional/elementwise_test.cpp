// tests/functional/elementwise_test.cpp - vadd, copy and fma_rpt, bit for bit
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "functional/gemv_cases.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::functional;

namespace {

constexpr std::uint32_t kSizes[] = {1, 2, 31, 32, 33, 255, 256, 257, 1021, 4096, 9000, 1 << 17};

// Numbers of every kind: ordinary, huge, tiny, subnormal, signed zeros, infinities, NaN.
std::vector<float> all_kinds(std::size_t count, std::uint64_t seed) {
  Numbers numbers(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    switch (numbers.integer(0, 9)) {
      case 0:
        value = std::bit_cast<float>(static_cast<std::uint32_t>(numbers.bits()));
        break;
      case 1:
        value = numbers.between(1e6f, 1e7f);
        break;
      case 2:
        value = numbers.between(-0x1p-126f, 0x1p-126f);
        break;
      case 3:
        value = numbers.integer(0, 1) == 0 ? 0.0f : -0.0f;
        break;
      case 4:
        value = numbers.between(-1, 1) * std::numeric_limits<float>::max();
        break;
      default:
        value = numbers.between(-100, 100);
    }
  }
  values[0] = -0.0f;
  if (count > 2) values[1] = std::numeric_limits<float>::infinity();
  if (count > 3) values[2] = std::numeric_limits<float>::quiet_NaN();
  return values;
}

void chains(std::span<const float> in, std::span<float> out, std::uint32_t k, float a, float b) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = in[i];
    for (std::uint32_t t = 0; t < k; ++t) out[i] = std::fmaf(out[i], a, b);
  }
}

// Equal bits, or both NaN: which NaN an operation makes is the device's affair.
std::size_t differences(const std::vector<float>& got, const std::vector<float>& expected) {
  std::size_t different = got.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    const bool same =
        std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(expected[i]);
    different += !(same || (std::isnan(got[i]) && std::isnan(expected[i])));
  }
  return different;
}

std::vector<float> read(const Buffer<f32>& buffer) {
  std::vector<float> values(buffer.size());
  buffer.read(values);
  return values;
}

}  // namespace

TEST_CASE("vadd gives the sums, bit for bit, apart and in place") {
  on_every_place([](Place& place) {
    for (const std::uint32_t n : kSizes) {
      INFO("n = " << n);
      const std::vector<float> a = all_kinds(n, n);
      const std::vector<float> b = all_kinds(n, n + 1);
      std::vector<float> expected(n);
      for (std::size_t i = 0; i < n; ++i) expected[i] = a[i] + b[i];
      const Buffer<f32> left(place.context, a);
      const Buffer<f32> right(place.context, b);
      const Buffer<f32> sum(place.context, n);
      const LaunchRecord record =
          place.launcher.launch(Vadd{.n = n}, {.c = sum, .a = left, .b = right}, place.stream);
      place.stream.synchronize();
      CHECK(differences(read(sum), expected) == 0);
      CHECK(record.kernel == "vadd");
      CHECK(record.geometry == Vadd{n}.geometry());
      place.launcher.launch(Vadd{.n = n}, {.c = left, .a = left, .b = right}, place.stream);
      place.stream.synchronize();
      CHECK(differences(read(left), expected) == 0);
    }
  });
}

namespace {

// 16-bit sums: equal bits, or both NaN.
template <class T>
void check_halves(Place& place, std::uint32_t n, std::uint16_t max_finite) {
  const ElementType type = detail::kSame<T, f16> ? ElementType::f16 : ElementType::bf16;
  INFO("vadd of " << to_string(type) << ", n = " << n);
  Numbers numbers(n);
  std::vector<std::uint16_t> a(n);
  std::vector<std::uint16_t> b(n);
  for (std::uint16_t& bits : a) bits = static_cast<std::uint16_t>(numbers.bits());
  for (std::uint16_t& bits : b) bits = static_cast<std::uint16_t>(numbers.bits());
  std::vector<std::uint16_t> expected(n);
  std::vector<double> sums = to_values(type, std::as_bytes(std::span(a)));
  const std::vector<double> others = to_values(type, std::as_bytes(std::span(b)));
  for (std::size_t i = 0; i < n; ++i) sums[i] += others[i];
  std::memcpy(expected.data(), to_elements(type, sums).data(), n * sizeof(std::uint16_t));
  const Buffer<T> left(place.context, a);
  const Buffer<T> right(place.context, b);
  const Buffer<T> sum(place.context, n);
  const LaunchRecord record = place.launcher.launch(
      Vadd{.n = n, .type = type}, {.c = sum, .a = left, .b = right}, place.stream);
  place.stream.synchronize();
  std::vector<std::uint16_t> got(n);
  sum.read(got);
  const auto is_nan = [&](std::uint16_t bits) { return (bits & 0x7fffu) > max_finite + 1u; };
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    wrong += !(got[i] == expected[i] || (is_nan(got[i]) && is_nan(expected[i])));
  }
  CHECK(wrong == 0);
  CHECK(record.kernel == "vadd");
}

}  // namespace

TEST_CASE("vadd of 16-bit floats gives the rounded sums, bit for bit") {
  on_every_place([](Place& place) {
    for (const std::uint32_t n : kSizes) {
      check_halves<f16>(place, n, 0x7bff);
      check_halves<bf16>(place, n, 0x7f7f);
    }
  });
}

TEST_CASE("the elementwise kernels take buffers at any element") {
  on_every_place([](Place& place) {
    constexpr std::uint32_t kN = 3001;
    const std::vector<float> in = all_kinds(kN + 7, 5);
    const Buffer<f32> from(place.context, in);
    const Buffer<f32> to(place.context, kN + 7);
    for (const std::uint32_t shift : {1u, 2u, 3u, 4u, 5u}) {
      INFO("from element " << shift << " to element " << 5 - shift);
      std::vector<float> expected(kN);
      chains(std::span(in).subspan(shift, kN), expected, 5, 0.5f, 2.0f);
      const auto source = DeviceSpan<f32>(from).subspan(shift, kN);
      const auto target = DeviceSpan<f32>(to).subspan(5 - shift, kN);
      place.launcher.launch(FmaRpt{.n = kN, .k = 5},
                            {.out = target, .in = source, .a = 0.5f, .b = 2.0f}, place.stream);
      place.stream.synchronize();
      const std::vector<float> all = read(to);
      const std::vector<float> got(all.begin() + 5 - shift, all.begin() + 5 - shift + kN);
      CHECK(differences(got, expected) == 0);
    }
  });
}

TEST_CASE("copy keeps every bit, NaN payloads too, and leaves what follows alone") {
  on_every_place([](Place& place) {
    for (const std::uint32_t n : kSizes) {
      INFO("n = " << n);
      Numbers numbers(n);
      std::vector<std::uint32_t> in(n);
      for (std::uint32_t& word : in) word = static_cast<std::uint32_t>(numbers.bits());
      in[0] = 0x7f800001u;  // a signalling NaN
      const Buffer<b32> from(place.context, in);
      std::vector<std::uint32_t> out(n + 100, 0xdeadbeefu);
      const Buffer<b32> to(place.context, out);
      const LaunchRecord record =
          place.launcher.launch(Copy{.n = n}, {.out = to, .in = from}, place.stream);
      place.stream.synchronize();
      to.read(out);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < out.size(); ++i) wrong += out[i] != (i < n ? in[i] : 0xdeadbeefu);
      CHECK(wrong == 0);
      CHECK(record.kernel == "copy");
    }
  });
}

TEST_CASE("fma_rpt rounds each step once, bit for bit, apart and in place") {
  on_every_place([](Place& place) {
    for (const std::uint32_t n : kSizes) {
      if (n > 10000 && !test::full()) continue;
      for (const std::uint32_t k : {0u, 1u, 3u, 4u, 5u, 128u}) {
        INFO("n = " << n << ", k = " << k);
        const std::vector<float> in = all_kinds(n, n + 2);
        std::vector<float> expected(n);
        chains(in, expected, k, 0.999f, 0.125f);
        const Buffer<f32> from(place.context, in);
        const Buffer<f32> to(place.context, n);
        place.launcher.launch(FmaRpt{.n = n, .k = k},
                              {.out = to, .in = from, .a = 0.999f, .b = 0.125f}, place.stream);
        place.stream.synchronize();
        CHECK(differences(read(to), expected) == 0);
        place.launcher.launch(FmaRpt{.n = n, .k = k},
                              {.out = from, .in = from, .a = 0.999f, .b = 0.125f}, place.stream);
        place.stream.synchronize();
        CHECK(differences(read(from), expected) == 0);
      }
    }
  });
}
