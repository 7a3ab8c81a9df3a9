// src/kernels/elementwise/bias_activation.cpp - a bias and an activation, in place
#include "ptxgen/kernels/elementwise/bias_activation.hpp"

#include <cmath>

#include "kernels/parts/geometry.hpp"
#include "kernels/parts/words.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kOfThread = 4;  // elements

Value<f32> activated(KernelBuilder& k, const BiasActivation& spec, const Value<f32>& x) {
  switch (spec.activation) {
    case Activation::Relu:
      return k.selp(0.0f, x, x < 0.0f);
    case Activation::GeluSigmoid:
      return x * sigmoid(x * 1.702f, spec.precise ? Accuracy::Precise : Accuracy::Approximate);
    default:
      return x;
  }
}

}  // namespace

BuiltKernel BiasActivation::build(const ptx::Target& target) const {
  check_parameters(*this);
  return build_kernel(
      kernel_name<BiasActivation>, target.name,
      params(param<Ptr<b8>>("out"), param<Ptr<f32>>("bias"), param<u32>("n"),
             param<u32>("bias_size")),
      [&](KernelBuilder& k, Ptr<b8> out, Ptr<f32> bias, Value<u32> count, Value<u32> width) {
        k.max_threads(kMaxBlockThreads);
        const Value<u32> thread = k.global_thread_x();
        const Value<u32> block_threads = k.ntid_x();
        const Value<u32> threads = k.mul_lo(block_threads, k.nctaid_x());
        // The index of the bias follows that of the element, so there is no division in the loop.
        auto column = k.var(k.rem(thread, width));
        const Value<u32> step = k.rem(threads, width);
        k.for_(thread, count, threads, [&](Value<u32> i) {
          const Ptr<b8> at = out.offset_bytes(k.mul_wide(i, bytes(type)));
          const Value<f32> element = expand(k, load_floats(k, at, type, 1), 1)[0];
          const Value<u32> of_bias = column;
          const Value<f32> summand = bias[of_bias];
          store_floats(k, at, type, {activated(k, *this, element + summand)});
          const Value<u32> next = of_bias + step;
          const Pred wraps = next >= width;
          column = k.selp(next - width, next, wraps);
        });
      });
}

LaunchGeometry BiasActivation::geometry() const {
  return one_dimensional(kernel_name<BiasActivation>, bias_size == 0 ? 0 : n, kOfThread * kThreads,
                         kThreads);
}

KernelCost BiasActivation::cost() const noexcept {
  const std::uint64_t array = std::uint64_t{bytes(type)} * n;
  const unsigned flops = activation == Activation::GeluSigmoid ? 6 : 1;
  return {.bytes_read = array + std::uint64_t{4} * bias_size,
          .bytes_written = array,
          .flops = std::uint64_t{flops} * n};
}

void Describe<BiasActivation>::reference(const BiasActivation& spec, HostOperands& host) {
  HostOperands::Operand& out = host["out"];
  const std::vector<double>& bias = host.input("bias");
  out.magnitude.resize(out.values.size());
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const double x = out.values[i] + bias[i % bias.size()];
    out.magnitude[i] = std::abs(x);
    out.values[i] = spec.activation == Activation::Relu          ? (x < 0 ? 0 : x)
                    : spec.activation == Activation::GeluSigmoid ? x / (1 + std::exp(-1.702 * x))
                                                                 : x;
  }
}

// The sum is rounded once, which is the result where out is f32 and there is no GELU. GELU: its
// factor is at most 1, and its error is that of sigmoid; the sum's error changes x times the factor
// by less than twice as much; the argument's product changes the factor by less than one unit; the
// product.
ErrorBound Describe<BiasActivation>::bound(const BiasActivation& spec) {
  if (spec.activation != Activation::GeluSigmoid) {
    return spec.type == ElementType::f32 ? ErrorBound{.exact = true}
                                         : ErrorBound{.relative = 0x1p-24};
  }
  const MathBound& sigmoid =
      math_bound("sigmoid", spec.precise ? Accuracy::Precise : Accuracy::Approximate);
  return {.relative = (sigmoid.ulp + 4) * 0x1p-23, .absolute = 1e-36};
}

}  // namespace ptxgen::inline v0
