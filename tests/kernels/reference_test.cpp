// tests/kernels/reference_test.cpp - the CPU references against hand-made results
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "ptxgen/kernels.hpp"
#include "ptxgen/support/error.hpp"
#include "support/half.hpp"

using namespace ptxgen;

TEST_CASE("the GEMV reference: y = x^T A, rows in memory order") {
  // A = | 1 2 3 |   x = | 10 |
  //     | 4 5 6 |       | 100 |
  const float a[] = {1, 2, 3, 4, 5, 6};
  const float x[] = {10, 100};
  const GemvReference reference = gemv_reference(a, x, 2, 3);
  CHECK(reference.y == std::vector<double>{410, 520, 630});
  CHECK(reference.magnitude == reference.y);
  const float minus[] = {10, -100};
  CHECK(gemv_reference(a, minus, 2, 3).y == std::vector<double>{-390, -480, -570});
  CHECK(gemv_reference(a, minus, 2, 3).magnitude == std::vector<double>{410, 520, 630});
  CHECK(gemv_reference({}, {}, 0, 3).y == std::vector<double>{0, 0, 0});
}

TEST_CASE("the GEMV reference refuses spans of other sizes") {
  const float a[] = {1, 2, 3, 4, 5, 6};
  const float x[] = {10, 100};
  try {
    (void)gemv_reference(a, x, 3, 3);
    FAIL("sizes that do not fit were accepted");
  } catch (const Error& error) {
    CHECK(error.message == "a GEMV of k = 3, n = 3 needs 9 elements in A and 3 in x, not 6 and 2");
  }
}

TEST_CASE("the error bound grows with the number of roundings") {
  CHECK(gemv_error_bound(1.0, 0) == 0.0);
  CHECK(gemv_error_bound(1.0, 1) == Approx(0x1p-24).epsilon(1e-6));
  CHECK(gemv_error_bound(8.0, 4096) == Approx(8 * 4096 * 0x1p-24).epsilon(1e-3));
  CHECK(GemvCoalesced{4096, 1}.roundings() == 4096);
  CHECK(GemvStrided{4096, 1}.roundings() == 133);
}

TEST_CASE("fma_rpt rounds each step once") {
  const float in[] = {1.0f, 3.0f, std::numeric_limits<float>::quiet_NaN()};
  float out[3] = {};
  const float a = 1.0f + 0x1p-12f;
  FmaRpt::reference(in, out, 2, a, -1.0f);
  CHECK(out[0] == std::fmaf(std::fmaf(1.0f, a, -1.0f), a, -1.0f));
  CHECK(out[0] == 0x1p-12f + 0x1p-24f - 1.0f);
  CHECK(std::isnan(out[2]));
  FmaRpt::reference(in, out, 0, a, -1.0f);
  CHECK(out[1] == 3.0f);
  FmaRpt::reference(in, out, -5, a, -1.0f);
  CHECK(out[1] == 3.0f);
}

TEST_CASE("vadd and copy") {
  const float a[] = {1, 2};
  const float b[] = {0.5f, -2};
  float c[2];
  Vadd::reference(a, b, c);
  CHECK(c[0] == 1.5f);
  CHECK(std::bit_cast<std::uint32_t>(c[1]) == 0u);
  const std::uint32_t in[] = {0x7fc00001u, 0xffffffffu};
  std::uint32_t out[2];
  Copy::reference(in, out);
  CHECK(out[0] == in[0]);
  CHECK(out[1] == in[1]);
}

TEST_CASE("16-bit floats are read exactly and rounded to nearest even") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const auto same = [&](std::uint16_t back, float value) {
      return back == half || (std::isnan(value) && back == 0x7fff);
    };
    if (!same(float_to_f16(f16_to_float(half)), f16_to_float(half))) FAIL("f16 " << bits);
    if (!same(float_to_bf16(bf16_to_float(half)), bf16_to_float(half))) FAIL("bf16 " << bits);
  }
  CHECK(f16_to_float(0x3c01) == 1.0f + 0x1p-10f);
  CHECK(f16_to_float(0x0001) == 0x1p-24f);
  CHECK(float_to_f16(1.0f + 0x1p-11f) == 0x3c00);             // halfway, to even
  CHECK(float_to_f16(1.0f + 0x1p-11f + 0x1p-23f) == 0x3c01);  // above
  CHECK(float_to_f16(1.0f + 0x3p-11f) == 0x3c02);
  CHECK(float_to_f16(65519.996f) == 0x7bff);
  CHECK(float_to_f16(65520.0f) == 0x7c00);
  CHECK(float_to_f16(-0x1p-25f) == 0x8000);
  CHECK(float_to_f16(0x1.8p-25f) == 0x0001);
  CHECK(float_to_bf16(1.0f + 0x1p-8f) == 0x3f80);
  CHECK(float_to_bf16(1.0f + 0x3p-8f) == 0x3f82);
  CHECK(float_to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
}
