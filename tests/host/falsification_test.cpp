// tests/host/falsification_test.cpp - rows 82 to 89 of the falsification list
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "backends.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "ptxgen/runtime/launch/verify.hpp"
#include "runtime/object_support.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

std::vector<std::uint64_t> smallest_case(const KernelDescription& kernel) {
  std::vector<std::uint64_t> best;
  std::uint64_t fewest = ~std::uint64_t{0};
  for (const std::vector<std::uint64_t>& values : kernel.cases()) {
    const ErasedValue spec = kernel.make_spec(values);
    std::uint64_t elements = 0;
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i) {
      if (is_memory(kernel.arguments[i].role)) elements += kernel.elements_of(spec.get(), i);
    }
    if (elements < fewest) {
      fewest = elements;
      best = values;
    }
  }
  return best;
}

std::vector<float> samples(std::size_t count, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = step * static_cast<float>(i % 41) - 1;
  return values;
}

}  // namespace

TEST_CASE("falsification 82: the same backend is chosen every time") {
  for (const std::string& backend : {std::string("auto"), std::string("scalar")}) {
    std::set<std::string> chosen;
    for (int i = 0; i < 20; ++i) {
      const Device device = Device::open("host", test::host_settings(backend));
      chosen.insert(device.info().host);
      CHECK(device.info().name == "host (" + device.info().host + ")");
    }
    CHECK(chosen.size() == 1);
    CHECK(*chosen.begin() == (backend == "auto" ? test::backends().front() : backend));
  }
  for (const std::string& backend : test::backends()) {
    CHECK(Device::open("host", test::host_settings(backend)).info().host == backend);
  }
  const test::Place place("host");
  const Buffer<f32> a(place.context, samples(100, 0.1f));
  const Buffer<f32> c(place.context, std::size_t{100});
  for (int i = 0; i < 5; ++i) {
    const LaunchRecord record =
        place.launcher.launch(Vadd{.n = 100}, {.c = c, .a = a, .b = a}, place.stream);
    CHECK(record.implementation == test::backends().front());
  }
}

TEST_CASE("falsification 85: with every backend switched off in turn, what is left computes") {
  // Without a GPU, then with vectors of one kind alone, then with none: "scalar" comes last.
  CHECK(test::backends().back() == "scalar");
  Settings nothing = test::host_settings("auto");
  nothing.device = "auto:host";
  CHECK(Device::open({}, nothing).info().kind == DeviceKind::Host);
  for (const std::string& backend : test::backends()) {
    const test::Place place("auto:host", backend);
    CHECK(place.device.info().host == backend);
    for (const KernelDescription& kernel : catalog()) {
      const Verification result =
          verify(place.launcher, place.context, kernel, smallest_case(kernel));
      INFO(backend << " " << kernel.name << ", " << result.shape << ": " << result.error_text()
                   << result.first_wrong);
      CHECK(result.ok());
    }
  }
}

TEST_CASE("falsification 86: the vectors offered are those that the system reports") {
  if (host_targets().empty()) return test::skip("this build has no Highway: install libhwy-dev");
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; std::getline(file, line) && flags.empty();) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) flags.insert(word);
  }
  if (flags.empty()) return test::skip("no flags of an x86 processor in /proc/cpuinfo");
  const auto has = [&](std::initializer_list<const char*> names) {
    for (const char* const name : names) {
      if (!flags.contains(name)) return false;
    }
    return true;
  };
  for (const HostTarget& target : host_targets()) {
    INFO(target.name);
    const bool expected =
        target.name == "sse4"   ? has({"sse4_1", "sse4_2", "ssse3", "aes", "pclmulqdq"})
        : target.name == "avx2" ? has({"avx", "avx2", "fma", "f16c", "bmi1", "bmi2", "abm"})
        : target.name == "avx512"
            ? has({"avx2", "avx512f", "avx512vl", "avx512bw", "avx512dq", "avx512cd"})
            : true;
    CHECK(target.supported == expected);
  }
  CHECK(host_targets().back().name == "portable");
}

TEST_CASE("falsification 87: switching backends in a sequence leaves no trace") {
  constexpr std::uint32_t kElements = 1000;
  // Emulator and host have the memory of one context.
  const test::Place emulator("emulator");
  std::vector<std::unique_ptr<test::Place>> places;
  for (const std::string& name : test::backends()) {
    places.push_back(std::make_unique<test::Place>("host", name));
  }
  const Buffer<f32> a(emulator.context, samples(kElements, 0.37f));
  const Buffer<f32> b(emulator.context, samples(kElements, 0.11f));
  const auto sequence = [&](const auto& place_of_step) {
    const Buffer<f32> sum(emulator.context, samples(kElements, 0));
    for (std::size_t step = 0; step < 12; ++step) {
      const test::Place& place = place_of_step(step);
      if (step % 2 == 0) {
        place.launcher.launch(ResidualAdd{.n = kElements}, {.out = sum, .a = sum, .b = a},
                              place.stream);
      } else {
        place.launcher.launch(ElementwiseMul{.n = kElements}, {.out = sum, .a = sum, .b = b},
                              place.stream);
      }
      place.stream.synchronize();
    }
    std::vector<float> result(kElements);
    sum.read(result);
    return result;
  };
  const std::vector<float> expected =
      sequence([&](std::size_t) -> const test::Place& { return emulator; });
  const std::vector<float> mixed = sequence([&](std::size_t step) -> const test::Place& {
    return step % (places.size() + 1) == 0 ? emulator : *places[step % (places.size() + 1) - 1];
  });
  CHECK(std::memcmp(expected.data(), mixed.data(), kElements * sizeof(float)) == 0);
  CHECK(emulator.device.findings().empty());
}

TEST_CASE("falsification 88: an empty input is refused as on the emulator, and loops of none end") {
  const test::Place emulator("emulator");
  std::size_t sizes = 0;
  for (const std::string& backend : test::backends()) {
    const test::Place host("host", backend);
    for (const KernelDescription& kernel : catalog()) {
      for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
        const ParameterInfo& info = kernel.parameters[i];
        if (!info.words.empty() || info.type == "bool") continue;
        std::vector<std::uint64_t> values = smallest_case(kernel);
        values[i] = 0;
        const auto launch = [&](const test::Place& place) {
          return test::refusal(
              [&] { static_cast<void>(verify(place.launcher, place.context, kernel, values)); });
        };
        INFO(backend << " " << kernel.name << " " << info.name);
        const std::string text = launch(host);
        CHECK(text == launch(emulator));
        if (info.min > 0) CHECK(text.starts_with("bad-parameter: "));
        ++sizes;
      }
    }
    // Of a type there is no minimum to refuse: the launch does.
    const Buffer<f32> one(host.context, samples(1, 0));
    const auto refused = [&](const test::Place& place, const auto& kernel, const auto& operands) {
      return test::refusal([&] { place.launcher.launch(kernel, operands, place.stream); });
    };
    const Vadd::Operands sums{.c = one, .a = one, .b = one};
    CHECK(refused(host, Vadd{.n = 0}, sums) == refused(emulator, Vadd{.n = 0}, sums));
    CHECK(refused(host, Vadd{.n = 0}, sums).starts_with("empty-grid: "));
    const RmsNorm::Operands norm{.y = one, .x = one, .weight = one};
    CHECK(refused(host, RmsNorm{.rows = 0}, norm) == refused(emulator, RmsNorm{.rows = 0}, norm));
    const GemvOperands product{.y = one, .a = one, .x = one};
    const GemvProblem none{.k = 4, .n = 0};
    CHECK(refused(host, none, product) == refused(emulator, none, product));
    CHECK(refused(host, none, product) != "no error");
    // No term: y is 0.
    Buffer<f32> y(host.context, samples(5, 0.5f));
    for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
      y.write(samples(5, 0.5f));
      host.launcher.launch(GemvProblem{.k = 0, .n = 5, .layout = layout}, {.y = y}, host.stream);
      host.stream.synchronize();
      std::vector<float> result(5);
      y.read(result);
      CHECK(result == std::vector<float>(5, 0.0f));
    }
  }
  CHECK(sizes > 50);
}

TEST_CASE("falsification 89: a single element, every kernel on every backend and the emulator") {
  std::vector<std::string> places = test::backends();
  places.emplace_back("emulator");
  for (const std::string& name : places) {
    const test::Place place(name == "emulator" ? "emulator" : "host",
                            name == "emulator" ? "auto" : name);
    for (const KernelDescription& kernel : catalog()) {
      const Verification result =
          verify(place.launcher, place.context, kernel, smallest_case(kernel));
      INFO(name << " " << kernel.name << ", " << result.shape << ": " << result.error_text()
                << result.first_wrong);
      CHECK(result.ok());
    }
  }
}
