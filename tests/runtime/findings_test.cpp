// tests/runtime/findings_test.cpp - findings of launches: logged, kept, handed on, thrown
#include "ptxgen/runtime/device/findings.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "ptxgen/builder.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/runtime.hpp"
#include "runtime/object_support.hpp"
#include "support/temporary_directory.hpp"
#include "support/trace_summary.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

constexpr LaunchGeometry kWarp{.grid = {1, 1, 1}, .block = {32, 1, 1}};

/// The line of this file whose statement is at fault.
constexpr int kReadsLine = __LINE__ + 6;
auto reads_kernel() {
  return build_kernel("reads", "sm_80", params(param<Ptr<f32>>("out")),
                      [](KernelBuilder& k, Ptr<f32> out) {
                        const auto tile = k.shared<f32>(32);
                        const Value<u32> t = k.tid_x();
                        const Value<f32> x = tile[t];
                        out[t] = x;
                      });
}

constexpr int kBeyondLine = __LINE__ + 3;
auto beyond_kernel() {
  return build_kernel("beyond", "sm_80", params(param<Ptr<f32>>("out")),
                      [](KernelBuilder& k, Ptr<f32> out) { out[k.tid_x() + 1000000] = 1.0f; });
}

LauncherOptions plain_options() {
  LauncherOptions options;
  options.settings = Settings{};
  options.cache.mode = CacheMode::MemoryOnly;
  return options;
}

Settings settings_with(const char* strict) {
  Settings settings;
  settings.strict = strict;
  return settings;
}

struct Gpu {
  explicit Gpu(const char* strict = "0")
      : device(Device::open("emulator", settings_with(strict))),
        context(device),
        stream(context),
        launcher(context, plain_options()),
        out(context, 64) {}
  ~Gpu() {
    if (context.poisoned()) Context::reset(device);
  }

  const Device device;
  const Context context;
  const Stream stream;
  const Launcher launcher;
  const Buffer<f32> out;
};

std::string here(int line) { return std::string(__FILE__) + ":" + std::to_string(line); }

}  // namespace

TEST_CASE("an error that hardware would not notice is logged at once, in the builder's terms") {
  CaughtLog log;
  const Gpu gpu;
  gpu.launcher.launch(reads_kernel(), kWarp, gpu.stream, gpu.out);
  gpu.stream.synchronize();
  const std::vector<std::string> lines = log.take();
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], StartsWith(here(kReadsLine) + ": error: "));
  CHECK_THAT(lines[0], Contains("[uninitialized-read]\n    ld.shared.f32 "));
  CHECK_THAT(lines[0], Contains("\n    by thread (0,0,0) of block (0,0,0)"));
  CHECK_THAT(lines[0], Contains("\n    found 32 times; this is the first"));
  CHECK_THAT(lines[0],
             Contains("\n    in a launch of kernel 'reads', grid (1,1,1), block (32,1,1)"));
  CHECK_THAT(lines[0], !Contains("<module>"));
}

TEST_CASE("findings are objects, by launch and kernel") {
  CaughtLog log;
  const Gpu gpu;
  const auto kernel = reads_kernel();
  const LaunchRecord first = gpu.launcher.launch(kernel, kWarp, gpu.stream, gpu.out);
  const LaunchRecord second = gpu.launcher.launch(kernel, kWarp, gpu.stream, gpu.out);
  gpu.stream.synchronize();
  CHECK(first.launch != 0);
  CHECK(second.launch > first.launch);
  const std::vector<LaunchFinding> all = gpu.device.findings();
  REQUIRE(all.size() == 2);
  const LaunchFinding& one = all[0];
  CHECK(one.launch == first.launch);
  CHECK(one.kernel == "reads");
  CHECK(one.grid == Dim3{1, 1, 1});
  CHECK(one.block == Dim3{32, 1, 1});
  CHECK(one.finding.severity == Severity::Error);
  CHECK(one.finding.rule == "uninitialized-read");
  CHECK(std::string(one.finding.cpp.file) == __FILE__);
  CHECK(static_cast<int>(one.finding.cpp.line) == kReadsLine);
  CHECK(one.finding.line == 0);
  CHECK_THAT(one.statement, StartsWith("ld.shared.f32 "));
  CHECK(one.thread_index == Dim3{0, 0, 0});
  CHECK(one.count == 32);
  CHECK_FALSE(one.fault);
  CHECK(gpu.device.findings(second.launch).size() == 1);
  CHECK(gpu.device.findings("reads").size() == 2);
  CHECK(gpu.device.findings("other").empty());
  CHECK(gpu.device.finding_counts().errors == 2);
  CHECK(gpu.device.finding_counts().all() == 2);
  const Device copy = gpu.device;
  copy.clear_findings();
  CHECK(gpu.device.findings().empty());
  CHECK(gpu.device.finding_counts().all() == 0);
}

TEST_CASE("statements of one source line with one cause are one entry of the log") {
  CaughtLog log;
  const Gpu gpu;
  constexpr int kLine = __LINE__ + 5;
  const auto kernel = build_kernel("twice", "sm_80", params(param<Ptr<f32>>("out")),
                                   [](KernelBuilder& k, Ptr<f32> out) {
                                     const auto tile = k.shared<f32>(64);
                                     const Value<u32> t = k.tid_x();
                                     const Value<f32> x = tile[t], y = tile[t + 32];
                                     out[t] = x + y;
                                   });
  for (int i = 0; i < 2; ++i) gpu.launcher.launch(kernel, kWarp, gpu.stream, gpu.out);
  gpu.stream.synchronize();
  const std::vector<std::string> lines = log.take();
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], StartsWith(here(kLine) + ": error: ") && Contains("\n    ld.shared.f32 "));
  CHECK_THAT(lines[0], Contains("\n    2 findings of this cause, 64 times in all; this is the "
                                "first\n") &&
                           !Contains("found 32 times"));
  // Each of them is an object.
  const std::vector<LaunchFinding> all = gpu.device.findings();
  REQUIRE(all.size() == 4);
  CHECK(all[0].statement != all[1].statement);
  CHECK_THAT(all[1].text, Contains("\n    found 32 times; this is the first\n"));
}

TEST_CASE("one cause is logged once, then after 10, 100, ... launches") {
  CaughtLog log;
  const Gpu gpu;
  const auto kernel = gpu.launcher.load(reads_kernel());
  for (int i = 0; i < 99; ++i) gpu.launcher.launch(kernel, kWarp, gpu.stream, gpu.out);
  gpu.stream.synchronize();
  const std::vector<std::string> lines = log.take();
  REQUIRE(lines.size() == 2);
  CHECK(lines[1] == "again in kernel 'reads': uninitialized-read at " + here(kReadsLine) +
                        ", in 10 launches so far");
  gpu.device.clear_findings();
  gpu.launcher.launch(kernel, kWarp, gpu.stream, gpu.out);
  gpu.stream.synchronize();
  const std::vector<std::string> anew = log.take();
  REQUIRE(anew.size() == 1);
  CHECK(anew[0] == lines[0]);
}

TEST_CASE("objects are kept up to a limit and counted beyond it") {
  CaughtLog log;
  const Gpu gpu;
  const auto kernel = gpu.launcher.load(reads_kernel());
  for (int i = 0; i < 1003; ++i) gpu.launcher.launch(kernel, kWarp, gpu.stream, gpu.out);
  gpu.stream.synchronize();
  CHECK(gpu.device.findings().size() == 1000);
  CHECK(gpu.device.finding_counts().errors == 1003);
  CHECK(gpu.device.finding_counts().dropped == 3);
}

TEST_CASE("a fault names kernel, C++ line and statement, and carries nothing of other launches") {
  CaughtLog log;
  const Gpu gpu;
  gpu.launcher.launch(reads_kernel(), kWarp, gpu.stream, gpu.out);
  gpu.launcher.launch(beyond_kernel(), kWarp, gpu.stream, gpu.out);
  const auto error = error_of([&] { gpu.stream.synchronize(); });
  REQUIRE(error);
  CHECK(error->code == "device-fault");
  CHECK(error->kernel == "beyond");
  CHECK(std::string(error->site.file) == __FILE__);
  CHECK(static_cast<int>(error->site.line) == kBeyondLine);
  CHECK_THAT(error->excerpt, StartsWith("st.global.f32 "));
  CHECK_THAT(error->log, StartsWith(here(kBeyondLine) + ": error: "));
  CHECK_THAT(error->log, Contains("in a launch of kernel 'beyond'"));
  CHECK_THAT(error->log, !Contains("uninitialized-read"));
  CHECK_THAT(error->describe(), Contains("built at " + here(kBeyondLine)));
  const auto later = error_of([&] { gpu.stream.synchronize(); });
  REQUIRE(later);
  CHECK(later->code == "context-lost");
  CHECK(later->kernel == "beyond");
  CHECK(later->log == error->log);
  const std::vector<std::string> lines = log.take();
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Contains("uninitialized-read"));
  CHECK(lines[1] == error->log);
  REQUIRE(gpu.device.findings("beyond").size() == 1);
  CHECK(gpu.device.findings("beyond")[0].fault);
}

TEST_CASE("a fault that no call waits for is logged, and clean-ups add nothing") {
  CaughtLog log;
  {
    const Device device = Device::open("emulator", Settings{});
    {
      const Context context(device);
      const Stream stream(context);
      const Launcher launcher(context, plain_options());
      const Buffer<f32> out(context, 64);
      launcher.launch(beyond_kernel(), kWarp, stream, out);
      while (device.findings().empty()) std::this_thread::yield();
    }
    Context::reset(device);
  }
  const std::vector<std::string> lines = log.take();
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Contains("in a launch of kernel 'beyond'"));
}

TEST_CASE("the trace of a device is written with it, though a lost context keeps its modules") {
  CaughtLog log;
  const TemporaryDirectory folder;
  Settings settings;
  settings.trace = folder.file("trace.json");
  {
    const Device device = Device::open("emulator", settings);
    const Context context(device);
    const Stream stream(context);
    const Launcher launcher(context, plain_options());
    const Buffer<f32> out(context, 64);
    launcher.launch(beyond_kernel(), kWarp, stream, out);
    CHECK(error_of([&] { stream.synchronize(); }));
  }
  const TraceSummary summary = summarize_trace(read_file(settings.trace));
  Context::reset(Device::open("emulator", Settings{}));
  REQUIRE(summary.span("beyond") != nullptr);
  CHECK(summary.span("beyond")->category == "emulator");
  CHECK(summary.overlapping == 0);
}

TEST_CASE("an error carries the log of its own call only") {
  CaughtLog log;
  const Gpu gpu;
  // Another caller's refused call, in this thread and in another one.
  const auto refused = [&] {
    driver::CUdeviceptr address = 0;
    CHECK(gpu.device.table().mem_alloc(&address, 0) != driver::CUDA_SUCCESS);
    driver::CUfunction none = nullptr;
    CHECK(gpu.device.table().launch_kernel(none, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) !=
          driver::CUDA_SUCCESS);
  };
  const auto pushed = gpu.device.table().ctx_push_current(gpu.context.handle());
  REQUIRE(pushed == driver::CUDA_SUCCESS);
  refused();
  std::thread([&] {
    CHECK(gpu.device.table().ctx_push_current(gpu.context.handle()) == driver::CUDA_SUCCESS);
    refused();
  }).join();
  const auto error = error_of([&] { Buffer<f32>(gpu.context, std::uint64_t{1} << 50); });
  REQUIRE(error);
  CHECK(error->code == "out-of-memory");
  CHECK_THAT(error->log, !Contains("a launch names a function"));
}

TEST_CASE("through the stand-in library findings are logged at once, and faults keep their own") {
  CaughtLog log;
  // A device of a driver that is not the library's own, as the stand-in is.
  const driver::Table table = driver::emulated::table();
  const Device device = Device::open(table, 0, DeviceKind::Cuda, Settings{});
  {
    const Context context(device);
    const Stream stream(context);
    const Launcher launcher(context, plain_options());
    const Buffer<f32> out(context, 64);
    for (int i = 0; i < 2; ++i) launcher.launch(reads_kernel(), kWarp, stream, out);
    stream.synchronize();
    const std::vector<std::string> lines = log.take();
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], Contains("[uninitialized-read]") && Contains("ld.shared.f32"));
    launcher.launch(reads_kernel(), kWarp, stream, out);
    launcher.launch(beyond_kernel(), kWarp, stream, out);
    const auto error = error_of([&] { stream.synchronize(); });
    REQUIRE(error);
    CHECK(error->code == "device-fault");
    CHECK_THAT(error->log, Contains("in a launch of kernel 'beyond'"));
    CHECK_THAT(error->log, !Contains("uninitialized-read"));
  }
  Context::reset(device);
}

TEST_CASE("strict mode throws errors from every call that waits, once each") {
  CaughtLog log;
  const Gpu gpu("1");
  CHECK(gpu.device.strict());
  const auto kernel = gpu.launcher.load(reads_kernel());
  const Event event(gpu.context);
  std::vector<float> host(64);
  const std::function<void()> waits[] = {
      [&] { gpu.stream.synchronize(); },
      [&] { gpu.context.synchronize(); },
      [&] {
        gpu.stream.record(event);
        event.synchronize();
      },
      [&] {
        while (!gpu.stream.done()) std::this_thread::yield();
        gpu.out.read(host);
      },
  };
  for (const auto& wait : waits) {
    gpu.launcher.launch(kernel, kWarp, gpu.stream, gpu.out);
    const auto error = error_of(wait);
    REQUIRE(error);
    CHECK(error->stage == Stage::Launch);
    CHECK(error->code == "uninitialized-read");
    CHECK(error->kernel == "reads");
    CHECK(static_cast<int>(error->site.line) == kReadsLine);
    CHECK_THAT(error->message, Contains("; thrown because PTXGEN_STRICT is 1"));
    CHECK_THAT(error->log, StartsWith(here(kReadsLine) + ": error: "));
    CHECK_FALSE(error_of(wait));
  }
  CHECK_FALSE(gpu.context.poisoned());
  CHECK(refusal([] { (void)Device::open("emulator", settings_with("yes")); }) ==
        "bad-setting: PTXGEN_STRICT is 'yes'; it is 0 or 1");
}

TEST_CASE("a sink gets each finding before the wait returns, and is released once") {
  struct Seen {
    const Device* device = nullptr;
    std::vector<std::uint64_t> launches;
    std::size_t kept = 0;
    std::string inside;
    int released = 0;
  } seen;
  CaughtLog log;
  {
    const Gpu gpu;
    seen.device = &gpu.device;
    const auto context = &gpu.context;
    static const Context* waits_for;
    waits_for = context;
    gpu.device.on_finding({[](void* user, const LaunchFinding& finding) {
                             auto& to = *static_cast<Seen*>(user);
                             to.launches.push_back(finding.launch);
                             to.kept = to.device->findings().size();
                             to.inside = refusal([] { waits_for->synchronize(); });
                             throw 1;  // is swallowed
                           },
                           &seen,
                           [](void* user) noexcept { ++static_cast<Seen*>(user)->released; }});
    const LaunchRecord record = gpu.launcher.launch(reads_kernel(), kWarp, gpu.stream, gpu.out);
    gpu.stream.synchronize();
    CHECK(seen.launches == std::vector{record.launch});
    CHECK(seen.kept == 1);
    CHECK_THAT(seen.inside, Contains("CUDA_ERROR_NOT_PERMITTED"));
    gpu.device.on_finding({});
    CHECK(seen.released == 1);
    gpu.launcher.launch(reads_kernel(), kWarp, gpu.stream, gpu.out);
    gpu.stream.synchronize();
    CHECK(seen.launches.size() == 1);
  }
  CHECK(seen.released == 1);
}

TEST_CASE("two devices on one GPU have the findings of their own kernels") {
  CaughtLog log;
  const Gpu custom;
  const Gpu other;
  custom.launcher.launch(reads_kernel(), kWarp, custom.stream, custom.out);
  custom.stream.synchronize();
  other.stream.synchronize();
  CHECK(custom.device.findings().size() == 1);
  CHECK(other.device.findings().empty());
}

TEST_CASE("launches of graphs and plans are told of, with numbers of their own") {
  CaughtLog log;
  const Gpu gpu;
  const auto kernel = gpu.launcher.load(reads_kernel());
  gpu.stream.begin_capture();
  CHECK(gpu.launcher.launch(kernel, kWarp, gpu.stream, gpu.out).launch == 0);
  const Graph graph = gpu.stream.end_capture();
  CHECK(gpu.device.findings().empty());
  graph.launch(gpu.stream);
  graph.launch(gpu.stream);
  gpu.launcher.plan(kernel, kWarp, gpu.stream, gpu.out).launch();
  gpu.stream.synchronize();
  const std::vector<LaunchFinding> all = gpu.device.findings();
  REQUIRE(all.size() == 3);
  CHECK(all[0].launch != 0);
  CHECK(all[0].launch != all[1].launch);
  CHECK(all[1].launch != all[2].launch);
}

TEST_CASE("PTX from a file is named by its own lines, also after the passes") {
  CaughtLog log;
  const Gpu gpu;
  const std::string text = kernel_text(
      "ld.param.u64 %rd0, [p];\ncvta.to.global.u64 %rd1, %rd0;\nst.global.f32 [%rd1+4194304], "
      "0f3f800000;\nret;");
  const Function function = gpu.launcher.load(text, "f", "mine.ptx");
  gpu.launcher.launch(function, kWarp, gpu.stream, gpu.out);
  const auto error = error_of([&] { gpu.stream.synchronize(); });
  REQUIRE(error);
  CHECK(error->file == "mine.ptx");
  CHECK(error->line == 12);
  CHECK_THAT(error->log, StartsWith("mine.ptx:12: error: "));
}

TEST_CASE("the other party of a race is shown with its statement and its C++ line") {
  CaughtLog log;
  const Gpu gpu;
  std::vector<driver::emulated::ReportedFinding> reported;
  REQUIRE(driver::emulated::observe_launches(
              gpu.context.handle(),
              [](void* user, const driver::emulated::LaunchReport& launch) {
                static_cast<std::vector<driver::emulated::ReportedFinding>*>(user)->assign(
                    launch.findings.begin(), launch.findings.end());
              },
              &reported) == driver::CUDA_SUCCESS);
  auto options = driver::emulated::default_options();
  options.checks = emulator::RuleSet::all();
  REQUIRE(driver::emulated::set_launch_options(gpu.context.handle(), options) ==
          driver::CUDA_SUCCESS);
  constexpr int kRaceLine = __LINE__ + 4;
  const auto kernel = build_kernel("sum", "sm_80", params(param<Ptr<f32>>("total")),
                                   [](KernelBuilder&, Ptr<f32> total) {
                                     const Value<f32> old = total[0];
                                     total[0] = old + 1.0f;
                                   });
  gpu.launcher.launch(kernel, {.grid = {2, 1, 1}, .block = {32, 1, 1}}, gpu.stream, gpu.out);
  gpu.stream.synchronize();
  REQUIRE(driver::emulated::set_launch_options(
              gpu.context.handle(), driver::emulated::default_options()) == driver::CUDA_SUCCESS);
  REQUIRE(driver::emulated::observe_launches(gpu.context.handle(), nullptr, nullptr) ==
          driver::CUDA_SUCCESS);
  const auto race = std::ranges::find(reported, emulator::Rule::GlobalRace,
                                      [](const auto& one) { return one.found.rule; });
  REQUIRE(race != reported.end());
  for (const driver::emulated::FindingStatement* place : {&race->statement, &race->other}) {
    CHECK(place->ptx_line != 0);
    CHECK(std::string(place->cpp.file) == __FILE__);
    CHECK((static_cast<int>(place->cpp.line) == kRaceLine - 1 ||
           static_cast<int>(place->cpp.line) == kRaceLine));
    CHECK(place->line == 0);
    CHECK_THAT(place->text, Contains(".global.f32 "));
  }
  std::string races;
  for (const LaunchFinding& one : gpu.device.findings("sum")) {
    if (one.finding.rule == "global-race") races += one.text + "\n";
  }
  CHECK_THAT(races, Contains(here(kRaceLine)));
  CHECK_THAT(races, Contains("the other: thread "));
  CHECK_THAT(races, Contains(".global.f32 "));
  CHECK_THAT(races, Contains(" at " + std::string(__FILE__)));
}
