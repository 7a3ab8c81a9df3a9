// tests/builder/math_accuracy.hpp - errors of the builder's functions against fp64
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string_view>
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

/// Adds the errors of `x`.
inline void add_errors(MathRig& rig, const MathBound& bound, const std::vector<float>& x,
                       MathError& worst) {
  const MathFunction& function = math_function(bound.function);
  const std::vector<float> y = values_of(rig, math_code(bound.function, bound.accuracy), x);
  worst.values += x.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = function.exact(double{x[i]});
    const double error = std::max(0.0, std::abs(double{y[i]} - exact) - bound.absolute);
    const double ulps = error / unit_in_last_place(ElementType::f32, exact);
    if (ulps <= worst.ulp) continue;
    worst.ulp = std::isnan(ulps) ? INFINITY : ulps;
    worst.at = x[i];
  }
}

/// Over every `stride`-th bit pattern of f32; a power of two up to 2^16.
inline MathError largest_error(MathRig& rig, const MathBound& bound, std::uint64_t stride) {
  constexpr std::size_t kLaunch = std::size_t{1} << 22;
  MathError worst;
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += stride) {
    // The low bits vary too.
    const std::uint64_t low = (bits >> 16) & 0xff & (stride - 1);
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits | low));
    if (value >= bound.low && value <= bound.high) x.push_back(value);
    if (x.size() < kLaunch) continue;
    add_errors(rig, bound, x, worst);
    x.clear();
  }
  if (!x.empty()) add_errors(rig, bound, x, worst);
  return worst;
}

}  // namespace ptxgen::test
