// tests/launcher/kernel_keys_test.cpp - each kernel of the catalog has modules of its own
#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "rig.hpp"
#include "support/harness.hpp"
#include "support/served_target.hpp"

using namespace ptxgen;

namespace {

// "kernel: code: message" of what it throws.
std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.stage == Stage::Build);
    return error.kernel + ": " + error.code + ": " + error.message;
  }
  return "accepted";
}

// Another value of that parameter.
std::uint64_t another(const ParameterInfo& info) {
  return info.default_value == info.max ? info.min : info.default_value + info.multiple_of;
}

KernelKey key(const KernelDescription& kernel, const std::vector<std::uint64_t>& values) {
  return kernel.key_of(kernel.make_spec(values).get());
}
bool same(const KernelKey& a, const KernelKey& b) {
  return a.values == b.values && a.plan == b.plan;
}

}  // namespace

TEST_CASE("every kernel of the catalog has a name's hash of its own") {
  std::map<std::uint64_t, std::string_view> seen;
  for (const KernelDescription& kernel : catalog()) {
    INFO(kernel.name);
    const auto [place, added] = seen.emplace(kernel.name_hash, kernel.name);
    INFO("the same hash as " << place->second);
    CHECK(added);
  }
  CHECK(seen.size() == catalog().size());
}

TEST_CASE("a parameter changes the module key exactly where it specialises the code") {
  for (const KernelDescription& kernel : catalog()) {
    const std::vector<std::uint64_t> values = kernel.default_values();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ParameterInfo& info = kernel.parameters[i];
      INFO(kernel.name << ", parameter " << info.name);
      std::vector<std::uint64_t> changed = values;
      changed[i] = another(info);
      REQUIRE(changed[i] != values[i]);
      CHECK(same(key(kernel, changed), key(kernel, values)) == !info.specializes);
    }
  }
}

TEST_CASE("a parameter that does not specialise leaves the code as it is") {
  std::size_t kernels = 0;
  for (const KernelDescription& kernel : catalog()) {
    if (kernel.family != nullptr || !test::takes(kernels++, 1, 8)) continue;
    const ptx::Target& target = test::served_target(kernel, "sm_90");
    // Some options change the code of some types alone, which the default is none of.
    std::vector<std::vector<std::uint64_t>> bases = kernel.cases();
    bases.insert(bases.begin(), kernel.default_values());
    const auto code = [&](const std::vector<std::uint64_t>& values) -> std::string {
      std::string text;
      static_cast<void>(refusal([&] { text = ptx::print(kernel.build(values, target)); }));
      return text;
    };
    for (std::size_t i = 0; i < bases[0].size(); ++i) {
      const ParameterInfo& info = kernel.parameters[i];
      INFO(kernel.name << ", parameter " << info.name);
      bool compared = false;
      bool differs = false;
      for (const std::vector<std::uint64_t>& base : bases) {
        std::vector<std::uint64_t> values = base;
        std::vector<std::uint64_t> changed = base;
        values[i] = info.default_value;
        if (base[i] == info.default_value) changed[i] = another(info);
        // Rows of whole blocks do not take one element more.
        if (code(changed).empty()) changed[i] = 2 * values[i];
        if (changed[i] == values[i] || code(values).empty() || code(changed).empty()) continue;
        compared = true;
        differs = code(values) != code(changed);
        if (differs || !info.specializes) break;
      }
      CHECK(compared);
      CHECK(differs == info.specializes);
    }
  }
}

TEST_CASE("each kernel that is prepared is the one that was asked for") {
  const test::Rig rig;
  std::size_t modules = 0;
  for (const KernelDescription& kernel : catalog()) {
    INFO(kernel.name);
    const KernelRequest request[] = {{kernel.name, kernel.default_values()}};
    rig.launcher.prepare(request);
    // No kernel was served by the module of one before it.
    CHECK(rig.launcher.cache().statistics().modules == ++modules);
  }
}

TEST_CASE("a request may leave out parameters at the end, and no more is taken") {
  const test::Rig rig;
  const KernelRequest few[] = {{"vadd", {}}, {"gemv", {64, 96}}};
  CHECK_NOTHROW(rig.launcher.prepare(few));
  const KernelRequest many[] = {{"vadd", {100, 0, 7}}};
  CHECK(refusal([&] { rig.launcher.prepare(many); }) ==
        "vadd: bad-parameter: takes 2 parameters, not 3");
  const KernelRequest wrong[] = {{"vadd", {100, 3}}};
  CHECK(refusal([&] { rig.launcher.prepare(wrong); }) ==
        "vadd: bad-parameter: type may be f32|f16|bf16");
}
