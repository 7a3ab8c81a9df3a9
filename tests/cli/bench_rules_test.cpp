// tests/cli/bench_rules_test.cpp - work models, samples, validation, CSV lines of the benchmark
#include "cli/commands/bench_rules.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace ptxgen::cli;

namespace {

using Indices = std::vector<std::uint64_t>;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> ramp(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i) * 0.25f - 3.0f;
  return values;
}

}  // namespace

TEST_CASE("the work models are those of the specification") {
  CHECK(bytes_model({BenchOp::Vadd, BenchType::F32, 1000, 0}) == 12000);
  CHECK(bytes_model({BenchOp::Vadd, BenchType::F16, 1000, 0}) == 6000);
  CHECK(bytes_model({BenchOp::Vadd, BenchType::Bf16, 1000, 0}) == 6000);
  CHECK(flops_model({BenchOp::Vadd, BenchType::F16, 1000, 0}) == 1000);
  CHECK(bytes_model({BenchOp::Copy, BenchType::F32, 1000, 0}) == 8000);
  CHECK(flops_model({BenchOp::Copy, BenchType::F32, 1000, 0}) == 0);
  CHECK(bytes_model({BenchOp::FmaRpt, BenchType::F32, 1000, 7}) == 8000);
  CHECK(flops_model({BenchOp::FmaRpt, BenchType::F32, 1000, 7}) == 14000);
  // Beyond 32 bits.
  CHECK(flops_model({BenchOp::FmaRpt, BenchType::F32, 1u << 30, 1u << 30}) == 1ull << 61);
  CHECK(bytes_model({BenchOp::Vadd, BenchType::F32, 0x7fffffff, 0}) == 12ull * 0x7fffffff);
}

TEST_CASE("rates are total work over total time, in decimal units") {
  CHECK(achieved(1'000'000, 100, 1.0) == Approx(100.0));  // 10^8 in a millisecond
  CHECK(achieved(1ull << 61, 1000, 1e9) == Approx(static_cast<double>(1ull << 61) * 1e-12));
  CHECK(achieved(0, 100, 1.0) == 0);
  CHECK(achieved(1, 1, 0.0) == 0);
}

TEST_CASE("the samples of 1, 2, 3, 1023, 1024, 1025 and 2^20 elements") {
  CHECK(validation_indices(0).empty());
  CHECK(validation_indices(1) == Indices{0});
  CHECK(validation_indices(2) == Indices{0, 1});
  CHECK(validation_indices(3) == Indices{0, 1, 2});
  // Up to 1024 elements: each. (n - 1) / (n - 1) = 1.
  for (const std::uint64_t n : {1023u, 1024u}) {
    const Indices indices = validation_indices(n);
    REQUIRE(indices.size() == n);
    for (std::uint64_t i = 0; i < n; ++i) CHECK(indices[i] == i);
  }
  // 1024 / 1023 = 1: 0 .. 1023, and the last.
  const Indices indices_1025 = validation_indices(1025);
  REQUIRE(indices_1025.size() == 1025);
  for (std::uint64_t i = 0; i < 1025; ++i) CHECK(indices_1025[i] == i);
  // 1048575 / 1023 = 1025: 0, 1025, ..., 1023 * 1025 = 1048575, which is the last.
  const Indices large = validation_indices(1u << 20);
  REQUIRE(large.size() == 1024);
  for (std::uint64_t j = 0; j < 1024; ++j) CHECK(large[j] == 1025 * j);
  CHECK(large.back() == (1u << 20) - 1);
  // 2046 / 1023 = 2 hits the end; 2047 / 1023 = 2 does not, so the end is added.
  CHECK(validation_indices(2047).size() == 1024);
  CHECK(validation_indices(2047).back() == 2046);
  const Indices odd = validation_indices(2048);
  REQUIRE(odd.size() == 1025);
  CHECK(odd[1023] == 2046);
  CHECK(odd[1024] == 2047);
  CHECK(all_indices(3) == Indices{0, 1, 2});
}

TEST_CASE("one wrong element is found at the first, the last and inside") {
  constexpr std::size_t kN = 4096;  // 4095 / 1023 = 4: 0, 4, 8, ...
  const Indices indices = validation_indices(kN);
  const std::vector<float> a = ramp(kN);
  const std::vector<float> b(kN, 0.5f);
  std::vector<float> c(kN);
  for (std::size_t i = 0; i < kN; ++i) c[i] = a[i] + b[i];
  CHECK(validate_vadd(a, b, c, indices).ok());
  CHECK(validate_vadd(a, b, c, indices).compared == indices.size());
  for (const std::size_t planted : {std::size_t{0}, std::size_t{400}, kN - 1}) {
    INFO("element " << planted);
    std::vector<float> wrong = c;
    wrong[planted] = std::nextafter(wrong[planted], kInf);
    const Validation found = validate_vadd(a, b, wrong, indices);
    CHECK_FALSE(found.ok());
    CHECK(found.wrong == 1);
    CHECK(found.first_wrong == planted);
    CHECK(found.max_error > 0);
  }
  // Between the samples it is found by looking at all of them.
  std::vector<float> between = c;
  between[401] += 1;
  CHECK(validate_vadd(a, b, between, indices).ok());
  CHECK_FALSE(validate_vadd(a, b, between, all_indices(kN)).ok());
  // Nothing compared is nothing shown.
  CHECK_FALSE(validate_vadd(a, b, c, {}).ok());
}

TEST_CASE("a copied NaN is right bit for bit, another payload is wrong") {
  const std::vector<std::uint32_t> in = {0x3f800000u, 0x7fc12345u, 0x7f800001u, 0x80000000u};
  std::vector<std::uint32_t> out = in;
  const Indices indices = validation_indices(in.size());
  CHECK(validate_copy(in, out, indices).ok());
  out[1] = 0x7fc12346u;
  CHECK(validate_copy(in, out, indices).first_wrong == 1);
  out = in;
  out[3] = 0;  // 0 for -0: equal as numbers, not as bits
  CHECK_FALSE(validate_copy(in, out, indices).ok());
}

TEST_CASE("fma_rpt: fused, within the tolerance, NaN and infinities as they are") {
  CHECK(within_tolerance(1.0f, 1.0f));
  CHECK(within_tolerance(1.00019f, 1.0f));
  CHECK_FALSE(within_tolerance(1.00021f, 1.0f));
  CHECK(within_tolerance(0.00009f, 0.0f));
  CHECK_FALSE(within_tolerance(0.00011f, 0.0f));
  CHECK(within_tolerance(kNan, kNan));
  CHECK_FALSE(within_tolerance(kNan, 1.0f));
  CHECK_FALSE(within_tolerance(1.0f, kNan));
  CHECK(within_tolerance(kInf, kInf));
  CHECK_FALSE(within_tolerance(kInf, -kInf));
  CHECK_FALSE(within_tolerance(kInf, std::numeric_limits<float>::max()));
  CHECK_FALSE(within_tolerance(std::numeric_limits<float>::max(), kInf));
  CHECK_FALSE(within_tolerance(kInf, kNan));

  const std::vector<float> in = ramp(100);
  const Indices indices = all_indices(in.size());
  std::vector<float> fused = in;
  std::vector<float> apart = in;
  for (int t = 0; t < 37; ++t) {
    for (float& x : fused) x = std::fmaf(x, 0.999f, 0.001f);
    for (float& x : apart) {
      const volatile float product = x * 0.999f;
      x = product + 0.001f;
    }
  }
  CHECK(validate_fma(in, fused, 37, 0.999f, 0.001f, indices).ok());
  // Two roundings instead of one are within the tolerance, and are caught all the same.
  const Validation unfused = validate_fma(in, apart, 37, 0.999f, 0.001f, indices);
  CHECK_FALSE(unfused.ok());
  CHECK(unfused.max_error < kTolerance);
  // k = 0 is a copy.
  CHECK(validate_fma(in, in, 0, 2.0f, 3.0f, indices).ok());
}

TEST_CASE("16-bit sums are rounded once, to nearest even") {
  const std::vector<std::uint16_t> a = {0x3c00, 0x7bff, 0x0001, 0x7e00};
  const std::vector<std::uint16_t> b = {0x1000, 0x7bff, 0x8001, 0x3c00};
  std::vector<std::uint16_t> c = {0x3c00, 0x7c00, 0x0000, 0x7fff};  // halfway, to even; NaN is NaN
  CHECK(validate_vadd(BenchType::F16, a, b, c, all_indices(4)).ok());
  c[0] = 0x3c01;
  CHECK_FALSE(validate_vadd(BenchType::F16, a, b, c, all_indices(4)).ok());
}

TEST_CASE("the header of the CSV file is golden: columns are only added at the end") {
  CHECK(csv_header() ==
        "device,driver,ptx_hash,op,dtype,n,block,grid,iters,warmup,time_ms_total,bytes_model,"
        "flops_model,achieved_gbs,achieved_gflops,validated,max_error,timing_source,"
        "fma_k,fma_a,fma_b\n");
}

TEST_CASE("a line of the CSV file, field by field") {
  BenchRow row;
  row.device = "NVIDIA H200";
  row.driver = "13.0";
  row.ptx_hash = "fnv1a64:0123456789abcdef";
  row.work = {BenchOp::Vadd, BenchType::Bf16, 1 << 20, 0};
  row.block = 256;
  row.grid = 512;
  row.iters = 100;
  row.warmup = 10;
  row.time_ms_total = 0.5;
  row.validation = {1024, 0, 0, 0};
  row.timing_source = "cuda_events";
  CHECK(csv_line(row) ==
        "NVIDIA H200,13.0,fnv1a64:0123456789abcdef,vadd,bf16,1048576,256,512,100,10,0.5,6291456,"
        "1048576,1258.2912,209.7152,true,0,cuda_events,,,\n");
  row.work = {BenchOp::FmaRpt, BenchType::F32, 1024, 64};
  row.fma_a = 0.999f;
  row.fma_b = -0.25f;
  row.validation = {1024, 1, 5, 0.125};
  row.device = "a \"b\", c";
  CHECK(csv_line(row) ==
        "\"a \"\"b\"\", c\",13.0,fnv1a64:0123456789abcdef,fma_rpt,fp32,1024,256,512,100,10,0.5,"
        "8192,131072,1.6384,26.2144,false,0.125,cuda_events,64,0.999,-0.25\n");
}
