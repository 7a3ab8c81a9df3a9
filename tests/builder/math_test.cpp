// tests/builder/math_test.cpp - elementary functions against fp64, block reductions
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/runtime.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// The emulated device, with everything that a launch needs.
struct Rig {
  Rig() : device(Device::open("emulator")), context(device), stream(context), launcher(context) {}
  Device device;
  Context context;
  ptxgen::Stream stream;
  Launcher launcher;
};

using Function = std::function<Value<f32>(const Value<f32>&)>;

std::vector<float> values_of(Rig& rig, const Function& function, const std::vector<float>& x) {
  const auto kernel = build_kernel(
      "values", "sm_90", params(param<Ptr<f32>>("x"), param<Ptr<f32>>("y"), param<u32>("n")),
      [&](KernelBuilder& k, Ptr<f32> from, Ptr<f32> to, Value<u32> n) {
        const Value<u32> i = k.global_thread_x();
        k.if_(i < n, [&] {
          const Value<f32> value = from[i];
          to[i] = function(value);
        });
      });
  const Buffer<f32> in(rig.context, x);
  const Buffer<f32> out(rig.context, x.size());
  const auto n = static_cast<std::uint32_t>(x.size());
  rig.launcher.launch(kernel, {.grid = {(n + 255) / 256}, .block = {256}}, rig.stream, in, out, n);
  rig.stream.synchronize();
  std::vector<float> y(x.size());
  out.read(y);
  return y;
}

struct Tested {
  std::string_view function;
  double (*exact)(double);
  Value<f32> (*emit)(const Value<f32>&, Accuracy, SourceLocation);
};
const Tested kTested[] = {
    {"exp", [](double x) { return std::exp(x); }, exp},
    {"exp2", [](double x) { return std::exp2(x); }, exp2},
    {"log", [](double x) { return std::log(x); }, log},
    {"log2", [](double x) { return std::log2(x); }, log2},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, sigmoid},
    {"tanh", [](double x) { return std::tanh(x); }, tanh},
    {"erf", [](double x) { return std::erf(x); }, erf},
    {"sin", [](double x) { return std::sin(x); }, sin},
    {"cos", [](double x) { return std::cos(x); }, cos},
};

const Tested& tested(std::string_view function) {
  const auto found = std::find_if(std::begin(kTested), std::end(kTested),
                                  [&](const Tested& t) { return t.function == function; });
  REQUIRE(found != std::end(kTested));
  return *found;
}

Function with(std::string_view function, Accuracy accuracy) {
  return [&tested = tested(function), accuracy](const Value<f32>& x) {
    return tested.emit(x, accuracy, SourceLocation::current());
  };
}

/// Every 2^16-th bit pattern every day, every 2^8-th with --full.
std::vector<float> patterns(double low, double high) {
  const std::uint64_t stride = test::full() ? 1u << 8 : 1u << 16;
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += stride) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits | (bits >> 16 & 0xff)));
    if (value >= low && value <= high) values.push_back(value);
  }
  return values;
}

}  // namespace

TEST_CASE("each function is within its documented error of fp64") {
  Rig rig;
  for (const MathBound& bound : kMathBounds) {
    const std::vector<float> x = patterns(bound.low, bound.high);
    const std::vector<float> y = values_of(rig, with(bound.function, bound.accuracy), x);
    double worst = 0;
    float worst_at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = tested(bound.function).exact(double{x[i]});
      const double error = std::max(0.0, std::abs(double{y[i]} - exact) - bound.absolute);
      const double ulps = error / unit_in_last_place(ElementType::f32, exact);
      if (ulps > worst || std::isnan(ulps)) {
        worst = std::isnan(ulps) ? INFINITY : ulps;
        worst_at = x[i];
      }
    }
    const bool precise = bound.accuracy == Accuracy::Precise;
    WARN(bound.function << (precise ? ", precise: " : ", approximate: ") << worst << " ulp at "
                        << worst_at << ", bound " << bound.ulp << ", " << x.size() << " values");
    CHECK(x.size() > 10000);
    CHECK(worst <= bound.ulp);
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
          values_of(rig, with(special.function, accuracy), special.arguments);
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
    const std::vector<float> y = values_of(rig, with(function, Accuracy::Precise), x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = tested(function).exact(double{x[i]});
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
    CHECK(both(true) == values_of(rig, with("sin", accuracy), x));
    CHECK(both(false) == values_of(rig, with("cos", accuracy), x));
  }
}

namespace {

// Every thread's result of three reductions one after the other, in a loop.
template <class T>
std::vector<detail::Host<T>> reduced(Rig& rig, const std::vector<detail::Host<T>>& x, Reduce how) {
  const auto threads = static_cast<std::uint32_t>(x.size());
  const auto kernel =
      build_kernel("reduced", "sm_90", params(param<Ptr<T>>("x"), param<Ptr<T>>("y")),
                   [&](KernelBuilder& k, Ptr<T> from, Ptr<T> to) {
                     k.required_threads(threads);
                     const Value<u32> thread = k.tid_x();
                     const Value<T> value = from[thread];
                     auto result = k.var(value);
                     k.for_(0u, 3u, 1u, [&] { result = k.block_reduce(value, threads, how); });
                     to[thread] = result;
                   });
  const Buffer<T> in(rig.context, x);
  const Buffer<T> out(rig.context, x.size());
  const LaunchRecord record =
      rig.launcher.launch(kernel, {.grid = {1}, .block = {threads}}, rig.stream, in, out);
  rig.stream.synchronize();
  CHECK(rig.device.findings(record.launch).empty());
  std::vector<detail::Host<T>> y(x.size());
  out.read(y);
  return y;
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
