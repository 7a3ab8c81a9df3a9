// tests/builder/math_accuracy.hpp - errors of the builder's functions against fp64
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/runtime.hpp"

namespace ptxgen::test {

/// The emulated device, with everything that a launch needs.
struct MathRig {
  MathRig() : device(Device::open("emulator")), context(device), stream(context) {}
  Device device;
  Context context;
  ptxgen::Stream stream{context};
  Launcher launcher{context};
};

using MathCode = std::function<Value<f32>(const Value<f32>&)>;

/// What the code computes for each x.
inline std::vector<float> values_of(MathRig& rig, const MathCode& code,
                                    const std::vector<float>& x) {
  const auto kernel = build_kernel("values", "sm_90", {"x", "y", "n"},
                                   [&](KernelBuilder& k, Ptr<f32> from, Ptr<f32> to, Value<u32> n) {
                                     const Value<u32> i = k.global_thread_x();
                                     k.if_(i < n, [&] {
                                       const Value<f32> value = from[i];
                                       to[i] = code(value);
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

struct MathFunction {
  std::string_view name;
  double (*exact)(double);
  Value<f32> (*emit)(const Value<f32>&, Accuracy, SourceLocation);
};
inline const MathFunction kMathFunctions[] = {
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

/// The function of that name, which must be there.
inline const MathFunction& math_function(std::string_view name) {
  return *std::find_if(std::begin(kMathFunctions), std::end(kMathFunctions),
                       [&](const MathFunction& f) { return f.name == name; });
}
inline MathCode math_code(std::string_view name, Accuracy accuracy) {
  return [&f = math_function(name), accuracy](const Value<f32>& x) {
    return f.emit(x, accuracy, SourceLocation::current());
  };
}

/// The largest error over the bound's arguments, less its absolute part.
struct MathError {
  double ulp = 0;
  float at = 0;
  std::size_t values = 0;
};

/// `work(begin, end)` for parts of [0, count), one for each thread of the host.
template <class Work>
void in_parallel(std::size_t count, const Work& work) {
  const std::size_t parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < parts; ++i) {
    threads.emplace_back(
        [&work, begin = count * i / parts, end = count * (i + 1) / parts] { work(begin, end); });
  }
}

inline bool is_argument(const MathBound& bound, float x) noexcept {
  return x >= bound.low && x <= bound.high;
}

/// Adds the error of the result `y` of `x`. A NaN is an infinite error.
inline void add_error(const MathBound& bound, float x, float y, double exact, MathError& worst) {
  ++worst.values;
  const double error = std::abs(double{y} - exact) - bound.absolute;
  // No unit in the last place is smaller.
  if (error <= worst.ulp * std::abs(exact) * 0x1p-24) return;
  const double ulps = error / unit_in_last_place(ElementType::f32, exact);
  if (ulps <= worst.ulp) return;
  worst.ulp = std::isnan(ulps) ? INFINITY : ulps;
  worst.at = x;
}

/// Arguments of one function, and the results in fp64.
struct MathSamples {
  std::vector<float> x;
  std::vector<double> exact;

  explicit MathSamples(std::vector<float> arguments, const MathFunction& function)
      : x(std::move(arguments)), exact(x.size()) {
    in_parallel(x.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) exact[i] = function.exact(double{x[i]});
    });
  }
};

/// Adds the errors of one form of the function.
inline void add_errors(MathRig& rig, const MathBound& bound, const MathSamples& samples,
                       MathError& worst) {
  const std::vector<float>& x = samples.x;
  if (std::none_of(x.begin(), x.end(), [&](float value) { return is_argument(bound, value); })) {
    return;
  }
  const std::vector<float> y = values_of(rig, math_code(bound.function, bound.accuracy), x);
  std::mutex mutex;
  in_parallel(x.size(), [&](std::size_t begin, std::size_t end) {
    MathError part{worst.ulp, worst.at, 0};
    for (std::size_t i = begin; i < end; ++i) {
      if (is_argument(bound, x[i])) add_error(bound, x[i], y[i], samples.exact[i], part);
    }
    const std::lock_guard lock(mutex);
    part.values += worst.values;
    worst = part.ulp > worst.ulp ? part : MathError{worst.ulp, worst.at, part.values};
  });
}

/// Over every `stride`-th bit pattern of f32; a power of two up to 2^16. `bounds` are of one
/// function, whose fp64 results they share.
inline std::vector<MathError> largest_errors(MathRig& rig, std::span<const MathBound> bounds,
                                             std::uint64_t stride) {
  constexpr std::size_t kLaunch = std::size_t{1} << 22;
  const MathFunction& function = math_function(bounds.front().function);
  std::vector<MathError> worst(bounds.size());
  std::vector<float> x;
  const auto add = [&] {
    const MathSamples samples(std::exchange(x, {}), function);
    for (std::size_t i = 0; i < bounds.size(); ++i) add_errors(rig, bounds[i], samples, worst[i]);
  };
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += stride) {
    // The low bits vary too.
    const std::uint64_t low = (bits >> 16) & 0xff & (stride - 1);
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits | low));
    if (std::any_of(bounds.begin(), bounds.end(),
                    [&](const MathBound& bound) { return is_argument(bound, value); })) {
      x.push_back(value);
    }
    if (x.size() == kLaunch) add();
  }
  if (!x.empty()) add();
  return worst;
}
inline MathError largest_error(MathRig& rig, const MathBound& bound, std::uint64_t stride) {
  return largest_errors(rig, {&bound, 1}, stride).front();
}

}  // namespace ptxgen::test
