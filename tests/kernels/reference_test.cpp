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

namespace {

/// The reference of a kernel for operands by name; `out` has the inputs' size.
std::vector<double> reference(const KernelDescription& kernel, std::vector<std::uint64_t> values,
                              HostOperands host, std::string_view out) {
  kernel.reference_of(kernel.make_spec(values).get(), host);
  return host[out].values;
}

}  // namespace

TEST_CASE("fma_rpt rounds each step once") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const float a = 1.0f + 0x1p-12f;
  const auto chain = [&](std::uint64_t k) {
    HostOperands host;
    host.all = {{"in", {1, 3, nan}, {}}, {"out", {0, 0, 0}, {}}, {"a", {a}, {}}, {"b", {-1}, {}}};
    return reference(*find_kernel("fma_rpt"), {3, k}, host, "out");
  };
  CHECK(chain(2)[0] == double{std::fmaf(std::fmaf(1.0f, a, -1.0f), a, -1.0f)});
  CHECK(chain(2)[0] == 0x1p-12 + 0x1p-24 - 1.0);
  CHECK(std::isnan(chain(2)[2]));
  CHECK(chain(0)[1] == 3);
}

TEST_CASE("vadd and copy") {
  HostOperands host;
  host.all = {{"a", {1, 2}, {}}, {"b", {0.5, -2}, {}}, {"c", {9, 9}, {}}};
  CHECK(reference(*find_kernel("vadd"), {2, 0}, host, "c") == std::vector<double>{1.5, 0});
  host.all = {{"in", {0x7fc00001u, 0xffffffffu}, {}}, {"out", {0, 0}, {}}};
  CHECK(reference(*find_kernel("copy"), {2}, host, "out") ==
        std::vector<double>{0x7fc00001u, 0xffffffffu});
}

TEST_CASE("a reference that names an operand which the call does not have is told so") {
  HostOperands host;
  host.all = {{"in", {1}, {}}, {"out", {0}, {}}};
  try {
    (void)host.input("x");
    FAIL("x was found");
  } catch (const Error& error) {
    CHECK(error.code == "arguments");
    CHECK(error.message == "the call has no operand 'x'; it has: in, out");
  }
}

TEST_CASE("elements become fp64 and back, rounded once") {
  CHECK(to_elements(ElementType::f32, std::array{1.0 + 0x1p-24}) ==
        to_elements(ElementType::f32, std::array{1.0}));
  // Just above the middle of two f16: by way of f32 it would be rounded down, to even.
  const auto above = to_elements(ElementType::f16, std::array{1.0 + 0x1p-11 + 0x1p-40});
  CHECK(to_values(ElementType::f16, above) == std::vector<double>{1.0 + 0x1p-10});
  const auto below = to_elements(ElementType::bf16, std::array{-(1.0 + 0x1p-8 - 0x1p-40)});
  CHECK(to_values(ElementType::bf16, below) == std::vector<double>{-1.0});
  CHECK(to_values(ElementType::u32, to_elements(ElementType::u32, std::array{4294967295.0})) ==
        std::vector<double>{4294967295.0});
  CHECK(unit_in_last_place(ElementType::f32, 1.5) == 0x1p-23);
  CHECK(unit_in_last_place(ElementType::f16, 0) == 0x1p-24);
  CHECK(unit_in_last_place(ElementType::bf16, -3) == 0x1p-6);
  CHECK_THROWS_AS(to_elements(ElementType::q4_k, std::array<double, 256>{}), Error);
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
