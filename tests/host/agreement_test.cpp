// tests/host/agreement_test.cpp - kernels on host and emulator with equal inputs
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <memory>

#include "backends.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "runtime/launch/checked_call.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

/// What a call on random operands left in its outputs, and how it compares with the reference.
struct Outcome {
  Verification verification;
  struct Output {
    ElementType type;
    std::vector<std::byte> elements;
    double magnitude;  // what errors are relative to: the largest of the reference
  };
  std::vector<Output> outputs;
  std::string_view implementation;
};

Outcome run(const test::Place& place, const KernelDescription& kernel,
            std::span<const std::uint64_t> values, const VerifyOptions& options) {
  Outcome outcome;
  CheckedCall call(place.context, kernel, values, options);
  outcome.verification.kernel = kernel.name;
  outcome.implementation = place.launcher.launch(call.call(), place.stream).implementation;
  place.stream.synchronize();
  call.compare(place.launcher, outcome.verification);
  for (const OperandMemory& memory : call.memory()) {
    if (!memory.written) continue;
    const auto elements = memory.elements(memory.after);
    double magnitude = 0;
    for (const HostOperands::Operand& operand : call.host().all) {
      if (operand.name != kernel.arguments[memory.output].name) continue;
      for (const double value : operand.values) magnitude = std::max(magnitude, std::abs(value));
      for (const double one : operand.magnitude) magnitude = std::max(magnitude, one);
    }
    outcome.outputs.push_back({memory.type, {elements.begin(), elements.end()}, magnitude});
  }
  return outcome;
}

bool same_bits(const Outcome& a, const Outcome& b) {
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    if (a.outputs[i].elements != b.outputs[i].elements) return false;
  }
  return a.outputs.size() == b.outputs.size();
}

/// The largest difference of two results of f32, relative to the magnitude of their output.
double relative_difference(const Outcome& a, const Outcome& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    if (a.outputs[i].type != ElementType::f32) continue;
    const std::vector<double> x = to_values(ElementType::f32, a.outputs[i].elements);
    const std::vector<double> y = to_values(ElementType::f32, b.outputs[i].elements);
    double difference = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      difference = std::max(difference, std::abs(x[j] - y[j]));
    }
    if (difference > 0) worst = std::max(worst, difference / a.outputs[i].magnitude);
  }
  return worst;
}

/// Kernels whose sums have the same order on the emulator and, with fused multiply-adds, here.
bool same_order(const KernelDescription& kernel, const void* spec, std::string_view backend) {
  if (kernel.bound_of(spec).exact) return true;
  return kernel.name == GemvCoalesced::kName && (backend == "avx512" || backend == "avx2");
}

/// Whether the emulated kernel rounds a B of another type to the 16 bits of A, as the host does
/// not.
bool rounds_weights(const KernelDescription& kernel, const std::vector<std::uint64_t>& values) {
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (kernel.parameters[i].name == "b") return values[i] != kernel.parameters[i].default_value;
  }
  return false;
}

}  // namespace

TEST_CASE("falsification 81: the host agrees with the emulator, every kernel on every backend") {
  const test::Place emulator("emulator");
  std::vector<std::unique_ptr<test::Place>> hosts;
  const std::vector<std::string> names = test::backends();
  for (const std::string& name : names)
    hosts.push_back(std::make_unique<test::Place>("host", name));
  std::size_t cases = 0;
  std::size_t listed = 0;
  for (const KernelDescription& kernel : catalog()) {
    std::size_t same = 0;
    std::size_t all = 0;
    double worst = 0;
    double share = 0;
    const std::vector<std::vector<std::uint64_t>> every = kernel.cases();
    for (const std::vector<std::uint64_t>& values : every) {
      // One case of each kernel is there always.
      if (!test::takes(listed++, 3, 9) && &values != &every.back()) continue;
      const ErasedValue spec = kernel.make_spec(values);
      const VerifyOptions options{.seed = cases + 1,
                                  .offset = static_cast<std::uint32_t>(cases % 2),
                                  .in_place = cases % 3 == 0};
      ++cases;
      const Outcome expected = run(emulator, kernel, values, options);
      for (std::size_t i = 0; i < hosts.size(); ++i) {
        // The instruction sets alternate under sanitizers.
        if (test::kSanitized && cases % hosts.size() != i) continue;
        const Outcome got = run(*hosts[i], kernel, values, options);
        INFO(kernel.name << ", " << shape_text(kernel, spec.get()) << " on " << names[i] << ": "
                         << got.verification.first_wrong);
        CHECK(got.verification.ok());
        CHECK(got.implementation ==
              (kernel.host_of == nullptr || names[i] == "scalar" ? "scalar" : names[i]));
        const bool bits = same_bits(got, expected);
        if (same_order(kernel, spec.get(), names[i])) CHECK(bits);
        const double difference = relative_difference(got, expected);
        CHECK(difference <= (rounds_weights(kernel, values) ? 0x1p-11 : 1e-5));
        worst = std::max(worst, difference);
        share = std::max(share, got.verification.worst_share);
        same += bits ? 1 : 0;
        ++all;
      }
    }
    WARN(kernel.name << ": " << same << " of " << all
                     << " results have the emulator's bits; at most " << worst
                     << " of the largest value away, error / bound " << share);
  }
  CHECK(cases >= (test::full() ? 100 : catalog().size()));
}

TEST_CASE("falsification 83: kernels are right for every remainder of a vector, on every backend") {
  for (const std::string& backend : test::backends()) {
    const test::Place place("host", backend);
    const auto check = [&](std::string_view name, std::vector<std::uint64_t> sizes) {
      const KernelDescription& kernel = kernel_named(name);
      std::vector<std::uint64_t> values = kernel.default_values();
      std::copy(sizes.begin(), sizes.end(), values.begin());
      const Verification result = verify(place.launcher, place.context, kernel, values);
      INFO(backend << " " << name << ", " << result.shape << ": " << result.error_text()
                   << result.first_wrong);
      CHECK(result.ok());
    };
    for (std::uint64_t n = 1; n <= 67; ++n) {
      for (const std::uint64_t type : {0u, 1u, 2u}) {
        if (test::kSanitized && n % 3 != type) continue;
        for (const char* const name : {"vadd", "residual_add", "elementwise_mul", "silu", "swiglu",
                                       "gelu_erf", "gelu_tanh", "gelu_sigmoid"}) {
          check(name, {n, type});
        }
        check("rmsnorm", {2, n, type});
        check("fused_residual_rmsnorm", {2, n, type});
        check("layernorm", {2, n, type});
        check("softmax", {2, n, type});
        check("per_head_rmsnorm", {1, 2, n, type});
        check("bias_activation", {3 * n, n, type});
        for (const std::uint64_t layout : {0u, 1u}) check("gemv", {n, 5, layout, type});
        check("gemv", {7, n, 0, type});
      }
    }
  }
}
