// tests/launcher/library_keys_test.cpp - each kernel of the catalog has its own key
#include "runtime/launch/library_keys.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "rig.hpp"

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

std::vector<std::uint64_t> defaults_of(const KernelDescription& kernel) {
  std::vector<std::uint64_t> values;
  for (const ParameterInfo& parameter : kernel.parameters) {
    values.push_back(parameter.default_value);
  }
  return values;
}

// Keys as a launcher has them, told apart by the kernel's name alone.
LibraryKeys named_keys(const ModuleCache& cache) {
  const auto key = [&](std::string_view name) { return cache.key(name, {}); };
  return {key(Copy::kName),          key(FmaRpt::kName),      key(Gemv::kName),
          key(GemvCoalesced::kName), key(GemvStrided::kName), key(Vadd::kName),
          key(VaddBf16::kName),      key(VaddF16::kName)};
}

}  // namespace

TEST_CASE("every kernel of the catalog has a cache key of its own") {
  const test::Rig rig;
  const ModuleCache& cache = rig.launcher.cache();
  const LibraryKeys keys = named_keys(cache);
  std::map<std::array<std::uint64_t, 2>, std::string_view> seen;
  for (const KernelDescription& kernel : catalog()) {
    INFO(kernel.name);
    const ModuleKey key = keys.of(kernel, defaults_of(kernel));
    CHECK(key.kernel == cache.key(kernel.name, {}).kernel);
    const auto [place, added] = seen.emplace(key.kernel, kernel.name);
    INFO("the same key as " << place->second);
    CHECK(added);
  }
  CHECK(seen.size() == catalog().size());
}

TEST_CASE("each kernel that is prepared is the one that was asked for") {
  const test::Rig rig;
  std::size_t modules = 0;
  for (const KernelDescription& kernel : catalog()) {
    INFO(kernel.name);
    const KernelRequest request[] = {kernel_request(kernel, defaults_of(kernel))};
    rig.launcher.prepare(request);
    // No kernel was served by the module of one before it.
    CHECK(rig.launcher.cache().statistics().modules == ++modules);
  }
}

TEST_CASE("a kernel of the catalog without a key is refused by name") {
  const test::Rig rig;
  KernelDescription unlisted = *find_kernel("vadd");
  unlisted.name = "softmax";
  const LibraryKeys keys = named_keys(rig.launcher.cache());
  CHECK(refusal([&] { (void)keys.of(unlisted, defaults_of(unlisted)); }) ==
        "softmax: no-key: the catalog has the kernel 'softmax', but the launcher has no cache key "
        "for it, and another kernel's key would launch that kernel; add it to LibraryKeys "
        "(src/runtime/launch/library_keys.hpp), or build it and use Launcher::load");
}

TEST_CASE("values beyond what a launch or request holds are refused") {
  KernelDescription wide = *find_kernel("vadd");
  const std::vector<ParameterInfo> parameters(7, wide.parameters.front());
  wide.parameters = parameters;
  const std::vector<std::uint64_t> values(7, 1);
  const std::array<std::uint64_t, 2> held{};
  CHECK(refusal([&] { (void)kernel_request(wide, values); }) ==
        "vadd: bad-parameter: takes 7 parameters, but a launch or request holds 6; build it and "
        "use Launcher::load");
  CHECK(refusal([&] { (void)parameter_values(wide, held); }) ==
        "vadd: bad-parameter: takes 7 parameters, but a launch or request holds 2; build it and "
        "use Launcher::load");
  CHECK(refusal([&] { (void)kernel_request(*find_kernel("vadd"), values); }) ==
        "vadd: bad-parameter: takes 1 parameter, not 7");
}

TEST_CASE("a request holds the values of every kernel of the catalog") {
  for (const KernelDescription& kernel : catalog()) {
    INFO(kernel.name);
    const std::vector<std::uint64_t> values = defaults_of(kernel);
    const KernelRequest request = kernel_request(kernel, values);
    CHECK(request.kernel == kernel.name);
    const auto first = std::span(request.values).first(values.size());
    CHECK(std::vector<std::uint64_t>(first.begin(), first.end()) == values);
  }
}
