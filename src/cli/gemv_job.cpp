// src/cli/gemv_job.cpp - one GEMV on a device, compared with fp64
#include "cli/gemv_job.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "cli/launch_observer.hpp"
#include "ptxgen/kernels/gemv_coalesced.hpp"
#include "ptxgen/kernels/gemv_strided.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/runtime/buffer.hpp"
#include "ptxgen/support/error.hpp"
#include "support/random_values.hpp"

namespace ptxgen::cli {

namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

template <class Work>
auto timed(GemvOutcome& outcome, const char* name, Work&& work) {
  struct Stop {
    GemvOutcome& outcome;
    const char* name;
    Clock::time_point begin = Clock::now();
    ~Stop() { outcome.stages.emplace_back(name, microseconds_since(begin)); }
  };
  const Stop stop{outcome, name};
  return work();
}

struct Buffers {
  Buffer<f32> y, a, x;
};

struct Built {
  BuiltKernel kernel;
  LaunchGeometry geometry;
};

template <class Spec>
Built build(const GemvJob& job) {
  const Spec spec{job.k, job.n};
  return {spec.build(*job.target), spec.geometry()};
}

// From spec to loaded module, ready to launch: by the launcher's own gemv or, for a target that is
// not the device's, built here and planned as anybody's kernel.
LaunchPlan make_plan(GemvOutcome& outcome, const GemvJob& job, const Launcher& launcher,
                     const ptx::Target& own, const Buffers& buffers, const ptxgen::Stream& stream) {
  const GemvChoice choice = launcher.gemv_choice();
  if (job.target == nullptr || job.target->name == own.name || choice == GemvChoice::Cublas) {
    LaunchPlan plan = launcher.plan_gemv(buffers.y, buffers.a, buffers.x, job.k, job.n, stream);
    outcome.kernel = plan.record().kernel;
    outcome.implementation = plan.record().implementation;
    outcome.reason = plan.record().reason;
    return plan;
  }
  const bool strided = choice == GemvChoice::Strided;
  const Built built = timed(outcome, "generate", [&] {
    return strided ? build<GemvStrided>(job) : build<GemvCoalesced>(job);
  });
  outcome.kernel = built.kernel.name();
  outcome.implementation = to_string(strided ? GemvChoice::Strided : GemvChoice::Coalesced);
  outcome.reason = "built for --target";
  const auto block = GemvCoalesced::KernelType::pack(buffers.y.address(), buffers.a.address(),
                                                     buffers.x.address(), job.k, job.n);
  return launcher.plan(built.kernel, built.geometry, {block.data(), block.size()}, stream);
}

std::string origin_of(const CacheStatistics& statistics) {
  if (statistics.lower_hits != 0) return std::string(to_string(CacheLayer::LowerFolder));
  if (statistics.disk_hits != 0) return std::string(to_string(CacheLayer::Disk));
  if (statistics.driver_hints != 0) return std::string(to_string(CacheLayer::DriverHint));
  return std::string(to_string(CacheLayer::Compiled));
}

// What is known of the kernel beyond its launch.
void describe(GemvOutcome& outcome, const GemvJob& job, const ptx::Target& target) {
  outcome.target = target.name;
  const std::array<std::uint64_t, 2> values = {job.k, job.n};
  outcome.cost = GemvCoalesced{job.k, job.n}.cost();
  const CatalogEntry* const entry = find_kernel(outcome.kernel);
  if (entry == nullptr) return;
  const std::string text = ptx::print(entry->build(values, target));
  outcome.hash = hash_of(text);
  outcome.check = ptx::verify(ptx::parse(text, outcome.kernel + ".ptx"),
                              {.target = {}, .entry = outcome.kernel});
}

std::uint64_t roundings(const GemvOutcome& outcome, const GemvJob& job) {
  // cuBLAS may add in any order, at worst one after the other.
  if (outcome.implementation == "cublas") return std::max<std::uint64_t>(job.k, 1);
  if (outcome.implementation == "strided") return GemvStrided{job.k, job.n}.roundings();
  return GemvCoalesced{job.k, job.n}.roundings();
}

// Puts the launcher's stages before ours. `loading`: from spec to plan, microseconds.
void list_stages(GemvOutcome& outcome, const StageTimes& times, double loading) {
  std::vector<std::pair<std::string, double>> stages;
  for (const StageTime& stage : times.stages) {
    stages.emplace_back(std::string(stage.stage), stage.microseconds);
    loading -= stage.microseconds;
  }
  for (const auto& [name, microseconds] : outcome.stages) {
    if (name == "generate") loading -= microseconds;
  }
  // Above all what it takes to keep the module for the next process.
  stages.emplace_back("rest", std::max(loading, 0.0));
  outcome.stages.insert(outcome.stages.begin(), stages.begin(), stages.end());
}

// Waits; what a fault is called, or nothing.
std::string wait_for(const ptxgen::Stream& stream) {
  try {
    stream.synchronize();
  } catch (const Error& error) {
    if (error.code != "device-fault") throw;
    return error.what();
  }
  return {};
}

}  // namespace

GemvOutcome run_gemv(const Device& device, const GemvJob& job, const Settings& settings) {
  GemvOutcome outcome;
  const ptx::Target& target = job.target != nullptr ? *job.target : device.target();
  const Context context(device);
  const ptxgen::Stream stream(context);
  LauncherOptions options;
  options.gemv = job.choice;
  options.settings = settings;
  const Launcher launcher(context, options);

  std::vector<float> a;
  std::vector<float> x;
  timed(outcome, "inputs", [&] {
    a = random_values(std::size_t{job.k} * job.n, job.seed);
    x = random_values(job.k, ~job.seed);
  });
  std::vector<float> y(job.n);
  const Buffers buffers = timed(outcome, "upload", [&] {
    return Buffers{Buffer<f32>(context, job.n), Buffer<f32>(context, std::span<const float>(a)),
                   Buffer<f32>(context, std::span<const float>(x))};
  });

  ProgressBar bar("gemv");
  std::optional<LaunchObserver> observer;
  if (device.info().kind == DeviceKind::Emulator) {
    observer.emplace(context, driver::emulated::default_options(), bar);
  }
  const Clock::time_point begin = Clock::now();
  const LaunchPlan plan = make_plan(outcome, job, launcher, device.target(), buffers, stream);
  const double loading = microseconds_since(begin);
  outcome.geometry = plan.record().geometry;
  outcome.fault = timed(outcome, "run", [&] {
    plan.launch();
    return wait_for(stream);
  });
  describe(outcome, job, target);
  list_stages(outcome, launcher.stages(outcome.kernel), loading);
  if (!outcome.hash.empty()) outcome.origin = origin_of(launcher.cache().statistics());
  if (observer) outcome.emulated = observer->result();
  if (!outcome.fault.empty()) return outcome;

  timed(outcome, "download", [&] { buffers.y.read(y); });
  const GemvReference reference =
      timed(outcome, "reference", [&] { return gemv_reference(a, x, job.k, job.n); });
  outcome.comparison =
      timed(outcome, "compare", [&] { return compare(y, reference, roundings(outcome, job)); });
  outcome.ok = outcome.comparison.outside == 0 &&
               (!outcome.emulated || outcome.emulated->status == emulator::Status::Ok);
  return outcome;
}

}  // namespace ptxgen::cli
