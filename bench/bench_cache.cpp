// bench/bench_cache.cpp - spec to machine code: assembled against found on the disk
//
// Run with --benchmark_format=json for the figures. cache/spec_to_cubin_assembled is what a first
// process does for a GEMV (build, print, nvJitLink, publish), cache/spec_to_cubin_disk what a
// second one does (build, print, find, check), both after the library is loaded and without a
// device; the counter `times_faster` compares them. cache/hit is a module that is in memory.
// Each is checked before it is timed.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>

#include "ptxgen/kernels/gemv/coalesced.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/cache/cache_core.hpp"
#include "support/temporary_directory.hpp"

namespace {

using namespace ptxgen;

constexpr std::string_view kTarget = "sm_90";

/// Assembles with nvJitLink; loading takes the bytes and no more.
class NoDevice : public CacheBackend {
 public:
  struct Image : LoadedPayload {
    explicit Image(std::span<const std::byte> from) : bytes(from.begin(), from.end()) {}
    const std::vector<std::byte> bytes;
  };

  explicit NoDevice(const Settings& settings) : assembler_(settings) {
    for (const AssemblerFinding& tool : assembler_.tools()) {
      if (tool.tool == AssemblerTool::NvJitLink) found = tool;
    }
  }
  AssemblerFinding found;

  Generator generator(const ModuleOptions&) override {
    return {std::string(to_string(found.tool)), found.version};
  }
  std::string target(const KernelText&) override { return std::string(kTarget); }
  std::vector<std::byte> assemble(const KernelText& text, const ModuleOptions& options) override {
    AssembleOptions how;
    how.target = kTarget;
    how.tool = AssemblerTool::NvJitLink;
    how.optimization = assembler_level(options.optimization);
    return assembler_.assemble(text.ptx, how).cubin;
  }
  std::unique_ptr<LoadedPayload> load_image(std::span<const std::byte> image,
                                            const KernelText&) override {
    return std::make_unique<Image>(image);
  }
  LoadedText load_text(const KernelText&, const ModuleOptions&) override {
    throw Error(Stage::Load, "no-device", "there is no device here");
  }

 private:
  Assembler assembler_;
};

KernelText gemv_text(const void*) {
  KernelText text;
  text.module = GemvCoalesced{4096, 4096}.build(ptx::target(kTarget)).module();
  text.ptx = ptx::print(text.module);
  text.entry = GemvCoalesced::kName;
  return text;
}

ModuleKey gemv_key() {
  ModuleKey key;
  key.kernel = {1, 1};
  key.values = {4096, 4096};
  return key;
}

std::shared_ptr<NoDevice>& device() {
  static std::shared_ptr<NoDevice> result;
  return result;
}

CacheCoreOptions in_folder(const std::string& folder) {
  CacheCoreOptions options;
  options.disk.folder = folder;
  options.disk.sync = false;  // how long a disk takes to make sure is not the question
  return options;
}

std::vector<std::byte> image_of(const CachedModule& module) {
  return dynamic_cast<const NoDevice::Image*>(CacheCore::payload(module))->bytes;
}

/// False, and the benchmark skipped, without nvJitLink.
bool ready(benchmark::State& state) {
  if (device() == nullptr) device() = std::make_shared<NoDevice>(Settings::from_environment());
  if (!device()->found.found) {
    state.SkipWithError("no nvJitLink here");
    return false;
  }
  return true;
}

double assembled_us = 0;

void assembled(benchmark::State& state) {
  if (!ready(state)) return;
  double seconds = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto folder = std::make_unique<TemporaryDirectory>();
    auto cache = std::make_unique<CacheCore>(in_folder(folder->path()), device());
    state.ResumeTiming();
    const auto begin = std::chrono::steady_clock::now();
    const CachedModule module = cache->get(gemv_key(), {}, {gemv_text, nullptr});
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    state.PauseTiming();
    if (cache->statistics().compiles != 1) return state.SkipWithError("not assembled");
    cache.reset();
    folder.reset();
    state.ResumeTiming();
  }
  assembled_us = 1e6 * seconds / static_cast<double>(state.iterations());
}

void from_disk(benchmark::State& state) {
  if (!ready(state)) return;
  const TemporaryDirectory folder;
  CacheCore first(in_folder(folder.path()), device());
  const std::vector<std::byte> image = image_of(first.get(gemv_key(), {}, {gemv_text, nullptr}));
  double seconds = 0;
  for (auto _ : state) {
    // A new cache knows what a new process knows: nothing but the folder.
    const auto begin = std::chrono::steady_clock::now();
    CacheCore cache(in_folder(folder.path()), device());
    const CachedModule module = cache.get(gemv_key(), {}, {gemv_text, nullptr});
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (cache.statistics().disk_hits != 1) return state.SkipWithError("not from the disk");
    if (image_of(module) != image) return state.SkipWithError("another image");
  }
  state.counters["times_faster"] =
      assembled_us / (1e6 * seconds / static_cast<double>(state.iterations()));
}

void hit(benchmark::State& state) {
  if (!ready(state)) return;
  CacheCore cache({}, device());
  const CachedModule result = cache.get(gemv_key(), {}, {gemv_text, nullptr});
  ModuleKey key = gemv_key();
  for (auto _ : state) {
    benchmark::DoNotOptimize(key);
    const CachedModule found = cache.find(key);
    if (!found) return state.SkipWithError("not found");
  }
}

}  // namespace

BENCHMARK(assembled)->Name("cache/spec_to_cubin_assembled")->Unit(benchmark::kMicrosecond);
BENCHMARK(from_disk)->Name("cache/spec_to_cubin_disk")->Unit(benchmark::kMicrosecond);
BENCHMARK(hit)->Name("cache/hit");
BENCHMARK_MAIN();
