// bench/bench_host.cpp - GEMV on the host, read rate, emulator
//
// Each iteration reads the 64 MiB of the matrix by the same threads, then multiplies: `time` is the
// product's. read_gb_per_s and gemv_gb_per_s are medians over the iterations, share_of_read their
// quotient. share_by_cpu is the same of processor time of all threads, for machines where other
// programs run. emulator_ms: one launch of the same problem on the emulated device with its default
// checks; times_faster: that by the product's median. Types with other matrices (f16 half as large)
// are compared with reading those.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "kernels/quantization/random_blocks.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/host.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "ptxgen/support/error.hpp"
#include "support/random_values.hpp"

namespace {

using namespace ptxgen;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSize = 4096;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The bits of all words, so that none can be left out.
std::uint64_t bits_of(const std::byte* memory, std::size_t bytes) {
  constexpr std::size_t kChains = 32;
  std::uint64_t chains[kChains] = {};
  for (std::size_t at = 0; at + sizeof chains <= bytes; at += sizeof chains) {
    std::uint64_t words[kChains];
    std::memcpy(words, memory + at, sizeof words);
    for (std::size_t i = 0; i < kChains; ++i) chains[i] |= words[i];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t chain : chains) all |= chain;
  return all;
}

void read_all(const HostRun& run, const std::vector<std::byte>& memory) {
  constexpr std::size_t kStep = 16384;
  std::atomic<std::uint64_t> all{0};
  run.for_parts(memory.size() / kStep, kStep, 1, [&](std::uint64_t begin, std::uint64_t end) {
    all |= bits_of(memory.data() + begin * kStep, (end - begin) * kStep);
  });
  benchmark::DoNotOptimize(all.load());
}

struct Problem {
  GemvProblem problem;
  std::vector<std::byte> a;
  std::vector<float> x, y;

  explicit Problem(const GemvProblem& of) : problem(of), x(of.k), y(of.n) {
    a.resize(bytes(of.weights, of.matrix_elements()));
    const std::vector<float> some = random_values(std::size_t{1} << 16, 1);
    const std::vector<double> values(some.begin(), some.end());
    const std::vector<std::byte> piece = is_block_format(of.weights)
                                             ? random_blocks(of.weights, values.size(), -1, 1, 1)
                                             : to_elements(of.weights, values);
    for (std::size_t at = 0; at < a.size(); at += piece.size()) {
      std::memcpy(a.data() + at, piece.data(), std::min(piece.size(), a.size() - at));
    }
    std::copy_n(some.begin(), x.size(), x.begin());
  }
  [[nodiscard]] GemvOperands operands() {
    const auto range = [](auto& of) {
      return DeviceRange(reinterpret_cast<std::uintptr_t>(of.data()), of.size() * sizeof(of[0]));
    };
    return {.y = range(y), .a = range(a), .x = range(x)};
  }
};

// One launch on the emulated device, whose module is loaded.
double emulator_seconds(Problem& problem) {
  Settings settings = Settings::from_environment();
  const Device device = Device::open("emulator", settings);
  const Context context(device);
  const Stream stream(context);
  const Launcher launcher(context);
  const auto bytes_of = [](const std::vector<std::byte>& of) {
    return std::span(reinterpret_cast<const std::uint8_t*>(of.data()), of.size());
  };
  const Buffer<u8> a(context, bytes_of(problem.a));
  const Buffer<f32> x(context, problem.x);
  const Buffer<f32> y(context, problem.y.size());
  const LaunchPlan plan = launcher.plan(problem.problem, {.y = y, .a = a, .x = x}, stream);
  const Clock::time_point begin = Clock::now();
  plan.launch();
  stream.synchronize();
  return seconds_since(begin);
}

void measure(benchmark::State& state, const HostTarget& target, const GemvProblem& of) {
  try {
    Problem problem(of);
    const GemvOperands operands = problem.operands();
    const HostRun run(0, target.vectors);
    std::vector<double> reads, products, read_work, product_work;
    for (int i = 0; i < 2; ++i) {
      read_all(run, problem.a);
      run_on_host(kDescription<GemvProblem>, &of, &operands, run);
    }
    for (auto _ : state) {
      Clock::time_point begin = Clock::now();
      double work = processor_seconds();
      read_all(run, problem.a);
      reads.push_back(seconds_since(begin));
      read_work.push_back(processor_seconds() - work);
      begin = Clock::now();
      work = processor_seconds();
      run_on_host(kDescription<GemvProblem>, &of, &operands, run);
      products.push_back(seconds_since(begin));
      product_work.push_back(processor_seconds() - work);
      state.SetIterationTime(products.back());
    }
    const auto rate = [&](double seconds) {
      return static_cast<double>(problem.a.size()) / seconds * 1e-9;
    };
    state.counters["threads"] = run.threads();
    state.counters["read_gb_per_s"] = rate(median(reads));
    state.counters["gemv_gb_per_s"] = rate(median(products));
    state.counters["share_of_read"] = median(reads) / median(products);
    state.counters["share_by_cpu"] = median(read_work) / median(product_work);
    const double emulated = emulator_seconds(problem);
    state.counters["emulator_ms"] = emulated * 1e3;
    state.counters["times_faster"] = emulated / median(products);
  } catch (const Error& error) {
    state.SkipWithError(error.what());
  }
}

void add(const HostTarget& target, const GemvProblem& problem) {
  const std::string name = std::string("gemv4096/") +
                           (problem.layout == GemvLayout::R ? "R/" : "T/") +
                           std::string(to_string(problem.weights)) + "/" + std::string(target.name);
  benchmark::RegisterBenchmark(
      name.c_str(),
      [&target, problem](benchmark::State& state) { measure(state, target, problem); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  for (const HostTarget& target : host_targets()) {
    if (!target.supported) continue;
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
      add(target, {.k = kSize, .n = kSize, .weights = type});
      add(target, {.k = kSize, .n = kSize, .layout = GemvLayout::R, .weights = type});
    }
    for (const ElementType type :
         {ElementType::q8_0, ElementType::q4_0, ElementType::q4_k, ElementType::q6_k}) {
      add(target, {.k = kSize, .n = kSize, .layout = GemvLayout::R, .weights = type});
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
