// bench/bench_launch.cpp - what the launcher adds to a bare launch call
//
// The table is the emulated driver's with a launch that does nothing, so that what is measured is
// the library alone: checks, lookup, context, argument block. Allocations of the measured calls are
// counted by operator new and must be 0. The context is current in the thread, as it is in an
// engine's; where it is not, each launch makes it so and leaves the thread as it was. After the
// runs the differences to the bare call are printed beside the limits that the project has set
// itself; the program fails if a launch allocates.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <new>
#include <stdexcept>
#include <string>

#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* counted(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace ptxgen;
using driver::CUfunction;
using driver::CUresult;
using driver::CUstream;

constexpr std::uint32_t kRows = 4096;
constexpr std::uint32_t kColumns = 4096;

std::uint64_t launches = 0;

CUresult launch_nothing(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void**, void**) {
  ++launches;
  return driver::CUDA_SUCCESS;
}

driver::Table idle_table() {
  driver::Table table = driver::emulated::table();
  table.launch_kernel = launch_nothing;
  return table;
}

/// A plan that splits its sums, so that launches need memory for the parts.
struct SplitPlans final : GemvPlanSource {
  std::optional<TunedGemv> find(const GemvProblem& problem) const override {
    GemvPlan plan;
    plan.problem = problem;
    plan.blocks = static_cast<std::uint32_t>(plan.strips() * 33);
    return TunedGemv{plan, "bench"};
  }
};
const SplitPlans split_plans;

LauncherOptions quiet_options(GemvChoice choice) {
  LauncherOptions options;
  options.gemv = choice;
  options.gemv_plans = &split_plans;
  options.cache.mode = CacheMode::MemoryOnly;
  return options;
}

// Everything a launch needs. The matrix is never touched; its buffer is as large as it would be.
struct Rig {
  Rig()
      : table(idle_table()),
        device(Device::open(table, 0)),
        context(device),
        stream(context),
        launcher(context, quiet_options(GemvChoice::Auto)),
        baseline(context, quiet_options(GemvChoice::Coalesced)),
        y(context, kColumns),
        a(context, std::uint64_t{kRows} * kColumns),
        x(context, kRows),
        plan(launcher.plan(GemvProblem{.k = kRows, .n = kColumns}, {.y = y, .a = a, .x = x},
                           stream)) {
    if (table.ctx_set_current(context.handle()) != driver::CUDA_SUCCESS)
      throw std::runtime_error("the context cannot be made current");
  }

  const driver::Table table;
  const Device device;
  const Context context;
  const Stream stream;
  const Launcher launcher, baseline;
  const Buffer<f32> y, a, x;
  const LaunchPlan plan;
};

// Runs `launch` in the loop and counts what it allocates.
template <class Launch>
void measure(benchmark::State& state, const Launch& launch) {
  launch();
  const std::uint64_t launches_before = launches;
  const std::uint64_t before = allocations.load();
  std::uint64_t calls = 0;
  for (auto _ : state) {
    launch();
    ++calls;
  }
  const std::uint64_t allocated = allocations.load() - before;
  state.counters["allocations"] = static_cast<double>(allocated);
  if (launches - launches_before != calls) state.SkipWithError("calls and launches differ");
  if (allocated != 0) state.SkipWithError("a launch allocated memory");
}

void bare_table(benchmark::State& state, const Rig& rig) {
  // As an engine without a launcher would: arguments and pointers to them, one call of the table.
  const auto function =
      rig.launcher.load(GemvCoalesced{kRows, kColumns}.build(rig.device.target()).module());
  const LaunchGeometry geometry = GemvCoalesced{kRows, kColumns}.geometry();
  measure(state, [&] {
    std::uint64_t y = rig.y.address().value;
    std::uint64_t a = rig.a.address().value;
    std::uint64_t x = rig.x.address().value;
    std::uint32_t k = kRows;
    std::uint32_t n = kColumns;
    void* arguments[] = {&y, &a, &x, &k, &n};
    benchmark::DoNotOptimize(arguments);
    const CUresult result = rig.table.launch_kernel(
        function.handle(), geometry.grid.x, geometry.grid.y, geometry.grid.z, geometry.block.x,
        geometry.block.y, geometry.block.z, geometry.dynamic_shared_bytes, rig.stream.handle(),
        arguments, nullptr);
    benchmark::DoNotOptimize(result);
  });
}

void gemv_by(benchmark::State& state, const Rig& rig, const Launcher& launcher) {
  const DeviceSpan<f32> y = rig.y;
  const DeviceSpan<f32> a = rig.a;
  const DeviceSpan<f32> x = rig.x;
  measure(state, [&] {
    const LaunchRecord record = launcher.gemv(y, a, x, kRows, kColumns, rig.stream);
    benchmark::DoNotOptimize(record);
  });
}

void launcher_gemv(benchmark::State& state, const Rig& rig) { gemv_by(state, rig, rig.launcher); }
void launcher_coalesced(benchmark::State& state, const Rig& rig) {
  gemv_by(state, rig, rig.baseline);
}

void launcher_problem(benchmark::State& state, const Rig& rig) {
  GemvProblem problem;
  problem.k = kRows;
  problem.n = kColumns;
  GemvOperands operands;
  operands.y = rig.y;
  operands.a = rig.a;
  operands.x = rig.x;
  measure(state, [&] {
    const LaunchRecord record = rig.launcher.launch(problem, operands, rig.stream);
    benchmark::DoNotOptimize(record);
  });
}

void plan(benchmark::State& state, const Rig& rig) {
  measure(state, [&] { rig.plan.launch(); });
}

// The output that --benchmark_format asks for, and the shortest processor time of each row for the
// sums at the end: nothing here waits, and what else the machine does is not the launcher's.
class Reporter : public benchmark::BenchmarkReporter {
 public:
  explicit Reporter(benchmark::BenchmarkReporter& out) : out_(out) {}
  bool ReportContext(const Context& context) override { return out_.ReportContext(context); }
  void Finalize() override { out_.Finalize(); }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      failed = failed || run.error_occurred;
      if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
      const double ns = run.GetAdjustedCPUTime();
      const auto [at, fresh] = best.emplace(run.run_name.function_name, ns);
      if (!fresh) at->second = std::min(at->second, ns);
    }
    out_.ReportRuns(runs);
  }
  std::map<std::string, double> best;
  bool failed = false;

 private:
  benchmark::BenchmarkReporter& out_;
};

void print_difference(const Reporter& reporter, const char* name, double limit) {
  const auto bare = reporter.best.find("launch/bare_table");
  const auto row = reporter.best.find(name);
  if (bare == reporter.best.end() || row == reporter.best.end()) return;
  std::fprintf(stderr, "%s adds %.1f ns of processor time to the bare call, limit %.0f ns\n", name,
               row->second - bare->second, limit);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const Rig rig;
  benchmark::RegisterBenchmark("launch/bare_table", bare_table, std::cref(rig));
  benchmark::RegisterBenchmark("launch/launcher_gemv", launcher_gemv, std::cref(rig));
  benchmark::RegisterBenchmark("launch/launcher_problem", launcher_problem, std::cref(rig));
  benchmark::RegisterBenchmark("launch/launcher_coalesced", launcher_coalesced, std::cref(rig));
  benchmark::RegisterBenchmark("launch/plan", plan, std::cref(rig));
  Reporter reporter(*benchmark::CreateDefaultDisplayReporter());
  benchmark::RunSpecifiedBenchmarks(&reporter);
  print_difference(reporter, "launch/launcher_gemv", 150);
  print_difference(reporter, "launch/launcher_problem", 150);
  print_difference(reporter, "launch/launcher_coalesced", 150);
  print_difference(reporter, "launch/plan", 30);
  return reporter.failed ? 1 : 0;
}
