// tests/host/device_test.cpp - devices of kind Host: opening, errors, plans, graphs, findings
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "backends.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/findings.hpp"
#include "runtime/object_support.hpp"

using namespace ptxgen;

namespace {

constexpr std::uint32_t kCount = 1000;

std::vector<float> numbers(std::size_t count, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = step * static_cast<float>(i % 97);
  return values;
}

std::vector<float> values_of(const Buffer<f32>& buffer) {
  std::vector<float> values(buffer.size());
  buffer.read(values);
  return values;
}

}  // namespace

TEST_CASE("the host is listed, opened by name, and says what runs its kernels") {
  const test::LogOfTest log;
  const Settings settings = test::host_settings("scalar");
  const std::vector<DeviceInfo> all = Device::list(settings);
  REQUIRE(all.size() >= 2);
  CHECK(all.back().kind == DeviceKind::Host);
  CHECK(all.back().host == "scalar");
  const Device device = Device::open("host", settings);
  CHECK(device.info().name == "host (scalar)");
  CHECK(test::contains(log.text(),
                       "device host: described kernels run as their fp64 references; PTX runs on "
                       "the emulator"));
  for (const std::string& backend : test::backends()) {
    if (backend == "scalar") continue;
    const test::LogOfTest own;
    static_cast<void>(Device::open("host", test::host_settings(backend)));
    CHECK(test::contains(own.text(), "device host: described kernels run with " + backend +
                                         " vectors, others as their fp64 references"));
  }
}

TEST_CASE("auto:host is the host where there is no GPU, and says why") {
  const test::LogOfTest log;
  const Settings settings = test::host_settings("auto");
  CHECK(Device::open("auto:host", settings).info().kind == DeviceKind::Host);
  CHECK(test::contains(log.text(), "no GPU, so device 'auto:host' is the host (no NVIDIA driver "));
}

TEST_CASE("a backend that is not there is refused, with those that are") {
  const std::string text =
      test::refusal([] { static_cast<void>(Device::open("host", test::host_settings("mmx"))); });
  CHECK(test::contains(text,
                       "bad-setting: PTXGEN_HOST is 'mmx', which names no vectors of this "
                       "build; here it may be auto, simd, "));
  CHECK(text.ends_with("scalar"));
  for (const HostTarget& target : host_targets()) {
    if (target.supported) continue;
    const std::string name(target.name);
    CHECK(test::contains(
        test::refusal([&] { static_cast<void>(Device::open("host", test::host_settings(name))); }),
        "no-vectors: PTXGEN_HOST is '" + name +
            "', which this processor does not have; here it may be auto, simd, "));
  }
  const std::string simd =
      test::refusal([] { static_cast<void>(Device::open("host", test::host_settings("simd"))); });
  CHECK(simd == (host_targets().empty()
                     ? "no-vectors: PTXGEN_HOST is 'simd', but this build has no "
                       "Highway; here it may be auto, simd, scalar"
                     : "no error"));
}

TEST_CASE("calls are refused with the texts of the emulator") {
  const test::Place emulator("emulator");
  const test::Place host("host");
  const Buffer<f32> a(emulator.context, numbers(kCount, 1));
  const Buffer<f32> c(emulator.context, std::size_t{kCount});
  const auto both = [&](const Vadd& kernel, const Vadd::Operands& operands, std::string_view code) {
    const auto refused = [&](const test::Place& place) {
      return test::refusal([&] { place.launcher.launch(kernel, operands, place.stream); });
    };
    const std::string text = refused(host);
    CHECK(text == refused(emulator));
    CHECK(text.starts_with(std::string(code) + ": "));
    CHECK(text == test::refusal([&] {
            static_cast<void>(host.launcher.plan(kernel, operands, host.stream));
          }));
  };
  const DeviceRange range = c;
  both({.n = kCount + 1}, {.c = c, .a = a, .b = a}, "buffer-size");
  both({.n = kCount}, {.c = c, .a = a}, "null-pointer");
  both({.n = 10}, {.c = {range.address + 2, 400}, .a = a, .b = a}, "misaligned");
  both({.n = 10}, {.c = {range.address + 4, 400}, .a = c, .b = a}, "aliasing");
  both({.n = 10, .type = ElementType::f16}, {.c = c, .a = a, .b = a}, "operand-type");
}

TEST_CASE("plans and graphs of the host compute what launches compute, again and again") {
  const test::Place place("host");
  const Buffer<f32> sum(place.context, numbers(kCount, 0));
  const Buffer<f32> a(place.context, numbers(kCount, 0.5f));
  const auto expected = [&](float times) {
    std::vector<float> values = numbers(kCount, 0.5f);
    for (float& value : values) value *= times;
    return values;
  };
  const ResidualAdd kernel{.n = kCount};
  const ResidualAdd::Operands operands{.out = sum, .a = sum, .b = a};
  {
    const LaunchPlan plan = place.launcher.plan(kernel, operands, place.stream);
    CHECK(plan.record().implementation == place.device.info().host);
    for (int i = 0; i < 3; ++i) plan.launch();
    place.stream.synchronize();
    CHECK(values_of(sum) == expected(3));
  }
  Stream stream(place.context);
  stream.begin_capture();
  place.launcher.launch(kernel, operands, stream);
  place.launcher.launch(kernel, operands, stream);
  const Graph graph = stream.end_capture();
  CHECK(values_of(sum) == expected(3));
  graph.launch(stream);
  graph.launch(stream);
  stream.synchronize();
  CHECK(values_of(sum) == expected(7));
}

TEST_CASE("a user-defined kernel runs on the emulator beside kernels of the host") {
  const test::Place place("host");
  const auto twice = build_kernel("twice", place.device.target().name,
                                  params(param<Ptr<f32>>("x"), param<u32>("n")),
                                  [](KernelBuilder& k, Ptr<f32> x, Value<u32> n) {
                                    const Value<u32> i = k.tid_x();
                                    k.if_(i < n, [&] {
                                      const Value<f32> old = x[i];
                                      x[i] = old + old;
                                    });
                                  });
  const Buffer<f32> a(place.context, numbers(kCount, 1));
  const Buffer<f32> c(place.context, std::size_t{kCount});
  // c was never written but by the host's kernel, which the emulator knows.
  place.launcher.launch(Vadd{.n = kCount}, {.c = c, .a = a, .b = a}, place.stream);
  place.launcher.launch(twice, {.grid = {1}, .block = {1000}}, place.stream, c, kCount);
  place.launcher.launch(Vadd{.n = kCount}, {.c = c, .a = c, .b = a}, place.stream);
  place.stream.synchronize();
  CHECK(values_of(c) == numbers(kCount, 5));
  CHECK(place.device.findings().empty());
}

TEST_CASE("memory that is gone when a kernel of the host runs is a fault, as of a kernel") {
  const Device device = Device::open("host", test::host_settings("auto"));
  {
    const Context context(device);
    const Stream stream(context);
    const Launcher launcher(context);
    const Buffer<f32> a(context, numbers(kCount, 1));
    const DeviceRange nowhere(DeviceRange(a).address + (std::uint64_t{1} << 32), kCount * 4);
    launcher.launch(Vadd{.n = kCount}, {.c = nowhere, .a = a, .b = a}, stream);
    const auto error = test::error_of([&] { stream.synchronize(); });
    REQUIRE(error);
    CHECK(error->code == "device-fault");
    CHECK(error->kernel == "vadd");
    CHECK(test::contains(error->log, "kernel 'vadd' on the host writes 4000 bytes at 0x"));
    CHECK(test::contains(error->log, ", which no allocation holds"));
    CHECK(test::refusal([&] {
            launcher.launch(Vadd{.n = kCount}, {.c = a, .a = a, .b = a}, stream);
          }).starts_with("context-lost: "));
  }
  Context::reset(device);
}
