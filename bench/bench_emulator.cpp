// bench/bench_emulator.cpp - how fast the emulator runs kernels of the library
//
// Items are lane-instructions: what `thread_instructions` counts, taken from a counting run before.
// They are divided by elapsed time, not by processor time, so that rows with several host threads
// mean the same. checked = default rules and counters, bare = neither, no_global = as checked
// without the rules about races in global memory; one host thread unless the name says otherwise.
// The result of the counting run is compared with CPU code, and the buffers after the timed runs
// with that.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ptxgen/emulator.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx/target.hpp"
#include "ptxgen/support/error.hpp"
#include "support/random_values.hpp"

namespace {

using namespace ptxgen;
using emulator::RuleSet;

// A kernel with its buffers, ready to be launched any number of times.
class Job {
 public:
  Job(const BuiltKernel& kernel, const LaunchGeometry& geometry)
      : device_(emulator::default_gpu(kernel.target())),
        program_(emulator::Program::load(device_, kernel.module())),
        name_(kernel.name()) {
    launch_.kernel = name_;
    launch_.grid = {geometry.grid.x, geometry.grid.y, geometry.grid.z};
    launch_.block = {geometry.block.x, geometry.block.y, geometry.block.z};
    launch_.dynamic_shared_bytes = geometry.dynamic_shared_bytes;
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  std::uint64_t input(std::span<const float> values) {
    const std::uint64_t address = device_.allocate(values.size_bytes());
    device_.write(address, std::as_bytes(values));
    return address;
  }
  std::uint64_t output(std::size_t elements) {
    output_bytes_ = 4 * elements;
    return output_ = device_.allocate(output_bytes_);
  }
  template <class Block>
  void arguments(const Block& block) {
    parameters_.assign(block.data(), block.data() + block.size());
    launch_.parameters = parameters_;
  }

  std::vector<float> result() const {
    std::vector<float> values(output_bytes_ / 4);
    device_.read(output_, std::as_writable_bytes(std::span(values)));
    return values;
  }
  // NaNs, which no correct result holds.
  void spoil() { device_.fill(output_, std::byte{0xff}, output_bytes_); }

  emulator::Result run(const emulator::Options& options) {
    return emulator::run(program_, launch_, options);
  }

 private:
  emulator::Device device_;
  emulator::Program program_;
  std::string name_;
  emulator::Launch launch_;
  std::vector<std::byte> parameters_;
  std::uint64_t output_ = 0;
  std::uint64_t output_bytes_ = 0;
};

// A job whose result is known to be right, with the work that one launch is.
struct Checked {
  std::unique_ptr<Job> job;
  std::vector<float> expected;  // bit for bit what a launch leaves
  std::uint64_t lane_instructions = 0;
  std::string fault;
};

template <class Right>
Checked checked(std::unique_ptr<Job> job, Right&& right) {
  Checked verified;
  job->spoil();
  emulator::Options counting;
  counting.threads = 1;
  const emulator::Result result = job->run(counting);
  verified.expected = job->result();
  verified.lane_instructions = result.counters.thread_instructions;
  if (result.status != emulator::Status::Ok) {
    verified.fault = "the kernel did not run cleanly";
    for (const auto& finding : result.findings) verified.fault += "\n" + to_text(finding);
  } else if (verified.lane_instructions == 0) {
    verified.fault = "nothing was counted";
  } else if (!right(verified.expected)) {
    verified.fault = "the kernel's result is wrong";
  }
  verified.job = std::move(job);
  return verified;
}

bool equal_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

template <class Spec>
Checked gemv() {
  const Spec spec{4096, 4096};
  const auto a = random_values(std::size_t{spec.k} * spec.n, 1);
  const auto x = random_values(spec.k, 2);
  auto job = std::make_unique<Job>(spec.build(ptx::target("sm_89")), spec.geometry());
  const std::uint64_t y = job->output(spec.n);
  job->arguments(Spec::KernelType::pack(DeviceAddress<f32>{y}, DeviceAddress<f32>{job->input(a)},
                                        DeviceAddress<f32>{job->input(x)}, spec.k, spec.n));
  return checked(std::move(job), [&](std::span<const float> result) {
    const GemvReference reference = gemv_reference(a, x, spec.k, spec.n);
    for (std::size_t j = 0; j < result.size(); ++j) {
      const double bound = gemv_error_bound(reference.magnitude[j], spec.roundings());
      if (!(std::abs(double{result[j]} - reference.y[j]) <= bound)) return false;
    }
    return true;
  });
}

Checked fma_loop() {
  const FmaRpt spec{.n = 1u << 16, .k = 1024};
  const auto in = random_values(spec.n, 3);
  auto job = std::make_unique<Job>(spec.build(ptx::target("sm_89")), spec.geometry());
  const std::uint64_t out = job->output(spec.n);
  job->arguments(FmaRpt::KernelType::pack(
      DeviceAddress<f32>{job->input(in)}, DeviceAddress<f32>{out},
      static_cast<std::int32_t>(spec.n), static_cast<std::int32_t>(spec.k), 0.999f, 0.25f));
  return checked(std::move(job), [&](std::span<const float> result) {
    std::vector<float> right = in;
    for (float& value : right) {
      for (std::uint32_t i = 0; i < spec.k; ++i) value = std::fma(value, 0.999f, 0.25f);
    }
    return equal_bits(result, right);
  });
}

Checked vector_add() {
  const Vadd spec{.n = 1u << 22};
  const auto a = random_values(spec.n, 4);
  const auto b = random_values(spec.n, 5);
  auto job = std::make_unique<Job>(spec.build(ptx::target("sm_89")), spec.geometry());
  const std::uint64_t c = job->output(spec.n);
  job->arguments(Kernel<Ptr<f32>, Ptr<f32>, Ptr<f32>, u32>::pack(DeviceAddress<f32>{job->input(a)},
                                                                 DeviceAddress<f32>{job->input(b)},
                                                                 DeviceAddress<f32>{c}, spec.n));
  return checked(std::move(job), [&](std::span<const float> result) {
    std::vector<float> right(spec.n);
    std::transform(a.begin(), a.end(), b.begin(), right.begin(), std::plus<>());
    return equal_bits(result, right);
  });
}

emulator::Options how(RuleSet checks, bool counters, unsigned threads) {
  emulator::Options options;
  options.checks = checks;
  options.counters = counters;
  options.threads = threads;
  return options;
}

void measure(benchmark::State& state, Checked (*make)(), const emulator::Options& options) {
  try {
    const Checked checked = make();
    if (!checked.fault.empty()) return state.SkipWithError(checked.fault.c_str());
    checked.job->spoil();
    // The first launch touches memory that later ones find warm.
    (void)checked.job->run(options);
    std::chrono::duration<double> elapsed{0};
    for (auto _ : state) {
      const auto begin = std::chrono::steady_clock::now();
      const emulator::Result result = checked.job->run(options);
      elapsed += std::chrono::steady_clock::now() - begin;
      if (result.status != emulator::Status::Ok || !result.findings.empty()) {
        state.SkipWithError("a timed run had findings");
        break;
      }
    }
    if (!equal_bits(checked.job->result(), checked.expected)) {
      return state.SkipWithError("the timed runs left another result");
    }
    const auto items =
        static_cast<double>(checked.lane_instructions) * static_cast<double>(state.iterations());
    state.counters["items_per_second"] = items / elapsed.count();
    state.counters["lane_instructions"] = static_cast<double>(checked.lane_instructions);
  } catch (const Error& error) {
    state.SkipWithError(error.what());
  }
}

void add(const char* name, Checked (*make)(), const emulator::Options& options) {
  benchmark::RegisterBenchmark(name, [make, options](benchmark::State& state) {
    measure(state, make, options);
  })->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  const RuleSet none = RuleSet::none();
  const RuleSet usual = RuleSet::defaults();
  const RuleSet no_global =
      RuleSet(usual).remove(emulator::Rule::GlobalRace).remove(emulator::Rule::ScopeTooNarrow);
  add("gemv4096/checked", gemv<GemvCoalesced>, how(usual, true, 1));
  add("gemv4096/bare", gemv<GemvCoalesced>, how(none, false, 1));
  add("gemv4096/no_global", gemv<GemvCoalesced>, how(no_global, true, 1));
  add("fma_loop/bare", fma_loop, how(none, false, 1));
  add("gemv4096/checked/2cores", gemv<GemvCoalesced>, how(usual, true, 2));
  add("gemv4096/no_global/2cores", gemv<GemvCoalesced>, how(no_global, true, 2));
  add("gemv4096_strided/checked", gemv<GemvStrided>, how(usual, true, 1));
  add("gemv4096_strided/bare", gemv<GemvStrided>, how(none, false, 1));
  add("fma_loop/checked", fma_loop, how(usual, true, 1));
  add("vadd/checked", vector_add, how(usual, true, 1));
  add("vadd/bare", vector_add, how(none, false, 1));
  add("vadd/no_global", vector_add, how(no_global, true, 1));
  add("vadd/checked/2cores", vector_add, how(usual, true, 2));
  add("vadd/no_global/2cores", vector_add, how(no_global, true, 2));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
