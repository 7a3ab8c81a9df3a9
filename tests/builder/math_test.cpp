// tests/builder/math_test.cpp - elementary functions against fp64, block reductions
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>

#include "math_accuracy.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

using Rig = test::MathRig;
using test::math_code;
using test::math_function;
using test::values_of;

}  // namespace

TEST_CASE("each function is within its documented error of fp64") {
  Rig rig;
  for (const MathBound& bound : kMathBounds) {
    INFO(bound.function << (bound.accuracy == Accuracy::Precise ? ", precise" : ", approximate"));
    // docs/accuracy_page_is_up_to_date tries every 2^8-th.
    const test::MathError worst = test::largest_error(rig, bound, 1u << 16);
    INFO("at " << worst.at << ", of " << worst.values << " values");
    CHECK(worst.values > 10000);
    CHECK(worst.ulp <= bound.ulp);
  }
}

TEST_CASE("functions of infinities, zeros and NaN") {
  Rig rig;
  constexpr float kPi = 3.14159265f;
  const float nan = std::nanf("");
  struct Special {
    std::string_view function;
    std::vector<float> arguments;
    std::vector<float> results;
  };
  const Special kSpecial[] = {
      {"exp", {-kInf, kInf, nan, 0.0f, -0.0f, -1000, 1000}, {0, kInf, nan, 1, 1, 0, kInf}},
      {"exp2",
       {-kInf, kInf, nan, 0.0f, -0.0f, -1000, 1000, 10},
       {0, kInf, nan, 1, 1, 0, kInf, 1024}},
      {"log", {-kInf, kInf, nan, 0.0f, -0.0f, -1, 1}, {nan, kInf, nan, -kInf, -kInf, nan, 0}},
      {"log2",
       {-kInf, kInf, nan, 0.0f, -0.0f, -1, 1, 1024, 0x1p-20f},
       {nan, kInf, nan, -kInf, -kInf, nan, 0, 10, -20}},
      {"sigmoid", {-kInf, kInf, nan, 0.0f, -1000, 1000}, {0, 1, nan, 0.5f, 0, 1}},
      {"tanh", {-kInf, kInf, nan, 0.0f, -0.0f, -100, 100}, {-1, 1, nan, 0.0f, -0.0f, -1, 1}},
      {"erf", {-kInf, kInf, nan, 0.0f, -0.0f, -100, 100}, {-1, 1, nan, 0.0f, -0.0f, -1, 1}},
      {"sin", {-kInf, kInf, nan, 0.0f, -0.0f}, {nan, nan, nan, 0.0f, -0.0f}},
      {"cos", {-kInf, kInf, nan, 0.0f, -0.0f, 2 * kPi}, {nan, nan, nan, 1, 1, 1}},
  };
  for (const Special& special : kSpecial) {
    for (const Accuracy accuracy : {Accuracy::Precise, Accuracy::Approximate}) {
      const std::vector<float> y =
          values_of(rig, math_code(special.function, accuracy), special.arguments);
      for (std::size_t i = 0; i < y.size(); ++i) {
        INFO(special.function << (accuracy == Accuracy::Precise ? ", precise: " : ": ")
                              << special.arguments[i] << " gives " << y[i]);
        if (std::isnan(special.results[i])) {
          CHECK(std::isnan(y[i]));
        } else {
          CHECK(y[i] == special.results[i]);
          CHECK(std::signbit(y[i]) == std::signbit(special.results[i]));
        }
      }
    }
  }
}

TEST_CASE("the precise sine and cosine are right for angles of any size") {
  Rig rig;
  std::vector<float> x = {131071, 131072, 131073, 0x1p30f, 0x1p60f, 3.4028235e38f,
                          // next to multiples of pi / 2, where most bits cancel
                          0x1.921fb6p+0f, 0x1.f9cbe2p+7f, 16367173.0f * 0x1p72f};
  for (std::size_t i = 0, count = x.size(); i < count; ++i) x.push_back(-x[i]);
  for (const std::string_view function : {"sin", "cos"}) {
    const std::vector<float> y = values_of(rig, math_code(function, Accuracy::Precise), x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = math_function(function).exact(double{x[i]});
      INFO(function << " of " << x[i] << " is " << exact << ", not " << y[i]);
      CHECK(std::abs(y[i] - exact) <= 2 * unit_in_last_place(ElementType::f32, exact));
    }
  }
}

TEST_CASE("sine and cosine of one angle are those that the single functions give") {
  Rig rig;
  const std::vector<float> x = {0, 1, -2.5f, 100, 1e6f, -1e20f};
  for (const Accuracy accuracy : {Accuracy::Precise, Accuracy::Approximate}) {
    const auto both = [&](bool sine) {
      return values_of(
          rig,
          [&](const Value<f32>& angle) {
            const SinCos pair = sincos(angle, accuracy);
            return sine ? pair.sin : pair.cos;
          },
          x);
    };
    CHECK(both(true) == values_of(rig, math_code("sin", accuracy), x));
    CHECK(both(false) == values_of(rig, math_code("cos", accuracy), x));
  }
}

namespace {

// Every thread's result of the last of three operations in a loop, in one block.
template <class T, class Operation>
std::vector<HostType<T>> in_block(Rig& rig, const std::vector<HostType<T>>& x,
                                  const Operation& operation) {
  const auto threads = static_cast<std::uint32_t>(x.size());
  const auto kernel =
      build_kernel("in_block", "sm_90", {"x", "y"}, [&](KernelBuilder& k, Ptr<T> from, Ptr<T> to) {
        k.required_threads(threads);
        const Value<u32> thread = k.tid_x();
        const Value<T> value = from[thread];
        auto result = k.var(value);
        k.for_(0u, 3u, 1u, [&] { result = operation(k, value, threads); });
        to[thread] = result;
      });
  const Buffer<T> in(rig.context, x);
  const Buffer<T> out(rig.context, x.size());
  const LaunchRecord record =
      rig.launcher.launch(kernel, {.grid = {1}, .block = {threads}}, rig.stream, in, out);
  rig.stream.synchronize();
  CHECK(rig.device.findings(record.launch).empty());
  std::vector<HostType<T>> y(x.size());
  out.read(y);
  return y;
}

template <class T>
std::vector<HostType<T>> reduced(Rig& rig, const std::vector<HostType<T>>& x, Reduce how) {
  return in_block<T>(rig, x, [&](KernelBuilder& k, const Value<T>& value, std::uint32_t threads) {
    return k.block_reduce(value, threads, how);
  });
}

}  // namespace

TEST_CASE("a block reduction gives every thread the result, in a stated order") {
  Rig rig;
  for (const std::uint32_t threads : {32u, 64u, 96u, 256u, 1024u}) {
    INFO(threads << " threads");
    std::vector<float> x(threads);
    std::vector<std::uint32_t> integers(threads);
    for (std::uint32_t i = 0; i < threads; ++i) {
      x[i] = std::sin(static_cast<float>(i * 37 % 101)) * 1000;
      integers[i] = i * 2654435761u;
    }
    // The same tree on the host: butterflies in warps, then over the warps' sums.
    const auto butterfly = [](std::vector<float> lanes) {
      lanes.resize(32, 0.0f);
      for (std::size_t distance = 16; distance != 0; distance /= 2) {
        std::vector<float> sums(32);
        for (std::size_t i = 0; i < 32; ++i) sums[i] = lanes[i] + lanes[i ^ distance];
        lanes = sums;
      }
      return lanes[0];
    };
    std::vector<float> sums;
    for (std::uint32_t w = 0; w < threads; w += 32) {
      sums.push_back(butterfly({x.begin() + w, x.begin() + w + 32}));
    }
    const float sum = sums.size() == 1 ? sums[0] : butterfly(sums);
    CHECK(reduced<f32>(rig, x, Reduce::Add) == std::vector<float>(threads, sum));
    CHECK(reduced<f32>(rig, x, Reduce::Max) ==
          std::vector<float>(threads, *std::max_element(x.begin(), x.end())));
    CHECK(reduced<u32>(rig, integers, Reduce::Min) ==
          std::vector<std::uint32_t>(threads, *std::min_element(integers.begin(), integers.end())));
    CHECK(
        reduced<u32>(rig, integers, Reduce::Add) ==
        std::vector<std::uint32_t>(threads, std::accumulate(integers.begin(), integers.end(), 0u)));
  }
}

TEST_CASE("a block reduction over part of a warp is refused") {
  try {
    (void)build_kernel("part", "sm_90", params(param<Ptr<f32>>("x")),
                       [](KernelBuilder& k, Ptr<f32> x) {
                         const Value<f32> first = x[0];
                         x[0] = k.block_reduce(first, 48);
                       });
    FAIL("48 threads were accepted");
  } catch (const Error& error) {
    CHECK(error.code == "block-size");
    CHECK(error.message ==
          "block_reduce over 48 threads; a block has a multiple of 32, up to 1024");
  }
}

TEST_CASE("reductions and scans of 64 bits are exact") {
  Rig rig;
  for (const std::uint32_t threads : {32u, 96u, 1024u}) {
    INFO(threads << " threads");
    std::vector<double> x(threads);
    std::vector<std::uint64_t> wide(threads);
    for (std::uint32_t i = 0; i < threads; ++i) {
      x[i] = i * 0x1p-30 + (i * 37 % 101);  // sums are exact
      wide[i] = i * 0x9e3779b97f4a7c15u;
    }
    CHECK(reduced<f64>(rig, x, Reduce::Add) ==
          std::vector<double>(threads, std::accumulate(x.begin(), x.end(), 0.0)));
    CHECK(reduced<u64>(rig, wide, Reduce::Max) ==
          std::vector<std::uint64_t>(threads, *std::max_element(wide.begin(), wide.end())));
  }
}

namespace {

template <class T>
std::vector<HostType<T>> scanned(Rig& rig, const std::vector<HostType<T>>& x, Reduce how) {
  return in_block<T>(rig, x, [&](KernelBuilder& k, const Value<T>& value, std::uint32_t threads) {
    return k.block_scan(value, threads, how);
  });
}

template <class T, class Combine>
void check_scan(Rig& rig, const std::vector<T>& x, Reduce how, const Combine& combine) {
  using Element = std::conditional_t<std::is_same_v<T, double>, f64, u32>;
  std::vector<T> expected(x.size());
  std::partial_sum(x.begin(), x.end(), expected.begin(), combine);
  CHECK(scanned<Element>(rig, x, how) == expected);
}

}  // namespace

TEST_CASE("a block scan combines the threads up to each one") {
  Rig rig;
  for (const std::uint32_t threads : {32u, 64u, 96u, 1024u}) {
    INFO(threads << " threads");
    std::vector<double> x(threads);
    std::vector<std::uint32_t> integers(threads);
    for (std::uint32_t i = 0; i < threads; ++i) {
      x[i] = i * 37 % 101 - 50.0;
      integers[i] = i * 2654435761u;
    }
    check_scan(rig, x, Reduce::Add, std::plus<>());
    check_scan(rig, integers, Reduce::Add, std::plus<>());
    check_scan(rig, integers, Reduce::Max, [](auto a, auto b) { return std::max(a, b); });
    check_scan(rig, integers, Reduce::Min, [](auto a, auto b) { return std::min(a, b); });
  }
}
