// tests/launcher/launcher_test.cpp - cache keys, prepare, gates, own kernels, stages
#include <catch2/catch.hpp>

#include "launcher/rig.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx/parser.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

using Scale = Kernel<Ptr<f32>, f32>;

Scale scale_kernel(const ptx::Target& target, std::string_view name = "scale") {
  return build_kernel(name, target.name, params(param<Ptr<f32>>("x"), param<f32>("factor")),
                      [](KernelBuilder& k, Ptr<f32> x, Value<f32> factor) {
                        const Value<u32> i = k.tid_x();
                        const Value<f32> value = x[i];
                        x[i] = value * factor;
                      });
}

std::uint64_t compiles(const Rig& rig) { return rig.launcher.cache().statistics().compiles; }

// An entry that stores a register nothing declares.
constexpr std::string_view kBadPtx =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry bad(.param .u64 out)\n{\n"
    "  .reg .b64 %rd<2>;\n  .reg .b32 %r<2>;\n"
    "  ld.param.u64 %rd1, [out];\n  mov.u32 %r1, 1;\n  st.global.f64 [%rd1], %r1;\n  ret;\n}\n";

int unloaded = 0;

driver::CUresult count_unload(driver::CUmodule module) {
  ++unloaded;
  return driver::emulated::table().module_unload(module);
}

}  // namespace

TEST_CASE("what a host captures on a stream of its own stays loaded") {
  driver::Table table = driver::emulated::table();
  table.module_unload = count_unload;
  unloaded = 0;
  {
    Rig rig(plain_options(), table);
    const Stream hosts(rig.context);
    const Stream stream = Stream::borrowed(rig.context, hosts.handle());
    CHECK(stream.is_borrowed());
    const Buffer<f32> x(rig.context, std::vector<float>{1, 2, 3});
    const KernelRequest wanted[] = {{"vadd", {3}}, {"copy", {3}}};
    rig.launcher.prepare(wanted);

    REQUIRE(table.ctx_push_current(rig.context.handle()) == driver::CUDA_SUCCESS);
    REQUIRE(table.stream_begin_capture(hosts.handle(), driver::CU_STREAM_CAPTURE_MODE_RELAXED) ==
            driver::CUDA_SUCCESS);
    CHECK(rig.launcher.launch(Vadd{.n = 3}, {.c = x, .a = x, .b = x}, stream).cached);
    driver::CUgraph graph = nullptr;
    driver::CUgraphExec executable = nullptr;
    REQUIRE(table.stream_end_capture(hosts.handle(), &graph) == driver::CUDA_SUCCESS);
    REQUIRE(table.graph_instantiate_with_flags(&executable, graph, 0) == driver::CUDA_SUCCESS);
    rig.launcher.cache().clear();
    CHECK(unloaded == 1);  // copy
    CHECK(table.graph_launch(executable, hosts.handle()) == driver::CUDA_SUCCESS);
    hosts.synchronize();
    CHECK(read(x) == std::vector<float>{2, 4, 6});
    CHECK(table.graph_exec_destroy(executable) == driver::CUDA_SUCCESS);
    CHECK(table.graph_destroy(graph) == driver::CUDA_SUCCESS);
    REQUIRE(table.ctx_pop_current(nullptr) == driver::CUDA_SUCCESS);
  }
  CHECK(unloaded == 2);
}

TEST_CASE("GEMV modules are kept by shape and choice, elementwise ones by name") {
  Rig rig;
  const Buffer<f32> memory(rig.context, 4096);
  const DeviceSpan<f32> all = memory;
  const auto gemv = [&](std::uint32_t k, std::uint32_t n) {
    return rig.launcher.gemv(all.subspan(0, n), all.subspan(1000, k * n), all.subspan(3000, k), k,
                             n, rig.stream);
  };
  CHECK_FALSE(gemv(10, 20).cached);
  CHECK_FALSE(gemv(20, 10).cached);
  CHECK(gemv(10, 20).cached);
  CHECK(compiles(rig) == 2);
  CHECK_FALSE(
      rig.launcher.launch(Vadd{.n = 10}, {.c = all, .a = all, .b = all}, rig.stream).cached);
  CHECK(rig.launcher.launch(Vadd{.n = 4096}, {.c = all, .a = all, .b = all}, rig.stream).cached);
  CHECK(compiles(rig) == 3);
  rig.stream.synchronize();
}

TEST_CASE("after prepare nothing is compiled any more") {
  Rig rig;
  struct Heard {
    std::vector<std::size_t> done;
    std::size_t total = 0;
  } heard;
  const KernelRequest wanted[] = {{"gemv", {30, 40}},
                                  {"gemv_strided", {30, 40}},
                                  {"vadd", {100}},
                                  {"copy", {100}},
                                  {"fma_rpt", {100, 5}}};
  rig.launcher.prepare(wanted, {[](void* user, std::size_t done, std::size_t total) {
                                  auto& it = *static_cast<Heard*>(user);
                                  it.done.push_back(done);
                                  it.total = total;
                                },
                                &heard});
  CHECK(heard.done == std::vector<std::size_t>{1, 2, 3, 4, 5});
  CHECK(heard.total == 5);
  const Buffer<f32> memory(rig.context, 3000);
  const DeviceSpan<f32> all = memory;
  CHECK(rig.launcher
            .gemv(all.subspan(0, 40), all.subspan(100, 1200), all.subspan(2000, 30), 30, 40,
                  rig.stream)
            .cached);
  CHECK(rig.launcher.launch(Vadd{.n = 3000}, {.c = all, .a = all, .b = all}, rig.stream).cached);
  const DeviceSpan<b32> words{{all.address.value}, 1000}, others{{all.address.value + 4000}, 1000};
  CHECK(rig.launcher.launch(Copy{.n = 1000}, {.out = words, .in = others}, rig.stream).cached);
  CHECK(rig.launcher
            .launch(FmaRpt{.n = 3000, .k = 9}, {.out = all, .in = all, .a = 1, .b = 1}, rig.stream)
            .cached);
  const CacheStatistics statistics = rig.launcher.cache().statistics();
  CHECK(statistics.compiles == 5);
  CHECK(statistics.misses_since_prepare == 0);
  rig.stream.synchronize();
}

TEST_CASE("prepare refuses kernels that do not exist and values out of range") {
  Rig rig;
  const KernelRequest unknown[] = {{"gems", {1, 2}}};
  const Error error = error_of([&] { rig.launcher.prepare(unknown); });
  CHECK(error.code == "no-kernel");
  CHECK(error.message.starts_with(
      "there is no kernel 'gems'; there are: " + std::string(catalog().front().name) + ", "));
  CHECK(error.message.ends_with(", " + std::string(catalog().back().name)));
  const KernelRequest zero[] = {{"gemv", {5, 0}}};
  CHECK(error_of([&] { rig.launcher.prepare(zero); }).code == "bad-parameter");
}

TEST_CASE("kernels of others go through the same cache, arguments through the signature") {
  Rig rig;
  const auto kernel = scale_kernel(rig.device.target());
  const Buffer<f32> x(rig.context, std::vector<float>{1, 2, 3});
  const LaunchGeometry geometry{.grid = {1, 1, 1}, .block = {3, 1, 1}};
  const auto block = Scale::pack(x.address(), 2.0f);
  const std::span<const std::byte> arguments(block.data(), block.size());
  const LaunchRecord first = rig.launcher.launch(kernel, geometry, arguments, rig.stream);
  CHECK(first.kernel == "scale");
  CHECK_FALSE(first.cached);
  CHECK(rig.launcher.launch(kernel, geometry, arguments, rig.stream).cached);
  CHECK_FALSE(
      rig.launcher
          .launch(scale_kernel(rig.device.target(), "scale2"), geometry, arguments, rig.stream)
          .cached);
  CHECK(read(x) == std::vector<float>{8, 16, 24});
  CHECK(error_of([&] {
          rig.launcher.launch(kernel, geometry, arguments.first(8), rig.stream);
        }).code == "arguments");
  const auto plan = [&] {
    // The plan keeps what it needs of a kernel that goes.
    const auto short_lived = scale_kernel(rig.device.target(), "scale3");
    return rig.launcher.plan(short_lived, geometry, arguments, rig.stream);
  }();
  plan.launch();
  CHECK(plan.record().kernel == "scale3");
  CHECK(read(x) == std::vector<float>{16, 32, 48});
  const Function loaded = rig.launcher.load(kernel.module());
  CHECK(loaded.name() == "scale");
  loaded.launch(rig.stream, geometry, arguments);
  CHECK(read(x) == std::vector<float>{32, 64, 96});
}

TEST_CASE("what the gates refuse is not loaded, and turning them off is told") {
  const ptx::Module bad = ptx::parse(kBadPtx, "bad.ptx");
  {
    Rig rig;
    const Error error = error_of([&] { (void)rig.launcher.load(bad); });
    CHECK(error.stage == Stage::Verify);
    CHECK(error.code == "type-mismatch");
    CHECK(error.kernel == "bad");
    CHECK(error.log.find("st.global.f64") != std::string::npos);
    CHECK(rig.launcher.cache().statistics().modules == 0);
  }
  const LogOfTest log;
  LauncherOptions options = plain_options();
  options.gates = false;
  Rig rig(options);
  CHECK(log.text().find("the gates are off: kernels are loaded unchecked") != std::string::npos);
  // The driver's own compiler is the next to see it.
  CHECK(error_of([&] { (void)rig.launcher.load(bad); }).stage == Stage::Load);
}

TEST_CASE("a launcher without gates shares no key with one that has them") {
  // Both launchers have a cache of their own; what is compared is that neither option is ignored.
  LauncherOptions options = plain_options();
  options.gates = false;
  Rig rig(options);
  const Buffer<f32> memory(rig.context, 100);
  rig.launcher.launch(Vadd{.n = 100}, {.c = memory, .a = memory, .b = memory}, rig.stream);
  rig.stream.synchronize();
  const StageTimes stages = rig.launcher.stages("vadd");
  CHECK(stages.of("build") > 0);
  CHECK(stages.of("gates") == 0);
}

TEST_CASE("the stages of a miss are kept for each kernel") {
  Rig rig;
  const Buffer<f32> memory(rig.context, 100);
  CHECK(rig.launcher.stages("vadd").stages.empty());
  rig.launcher.launch(Vadd{.n = 100}, {.c = memory, .a = memory, .b = memory}, rig.stream);
  rig.stream.synchronize();
  std::vector<std::string> names;
  for (const StageTime& stage : rig.launcher.stages("vadd").stages) names.emplace_back(stage.stage);
  REQUIRE(names.size() >= 5);
  CHECK(std::vector<std::string>(names.begin(), names.begin() + 4) ==
        std::vector<std::string>{"build", "passes", "gates", "print"});
  CHECK(names.back() == "load");
}

TEST_CASE("cold launches load anew each time and keep nothing") {
  LauncherOptions options = plain_options();
  options.module.cold = true;
  Rig rig(options);
  const Buffer<f32> memory(rig.context, std::vector<float>(100, 1.0f));
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(
        rig.launcher.launch(Vadd{.n = 100}, {.c = memory, .a = memory, .b = memory}, rig.stream)
            .cached);
  }
  CHECK(read(memory) == std::vector<float>(100, 8.0f));
  CHECK(compiles(rig) == 3);
  CHECK(rig.launcher.cache().statistics().modules == 0);
}

TEST_CASE("a stream of another context is refused") {
  Rig rig;
  const Device emulator = Device::open("emulator:t4");
  const Context other(emulator);
  const Stream foreign(other);
  const Buffer<f32> memory(rig.context, 100);
  CHECK(error_of([&] {
          rig.launcher.launch(Vadd{.n = 100}, {.c = memory, .a = memory, .b = memory}, foreign);
        }).code == "other-context");
}
