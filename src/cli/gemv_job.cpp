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

// How the kernel is launched: by the launcher's own gemv or, for a target that is not the device's,
// built here and launched as anybody's kernel.
class Launching {
 public:
  Launching(const GemvJob& job, const Launcher& launcher, const ptx::Target& own)
      : job_(job),
        launcher_(launcher),
        strided_(launcher.gemv_choice() == GemvChoice::Strided),
        built_here_(job.target != nullptr && job.target->name != own.name &&
                    launcher.gemv_choice() != GemvChoice::Cublas) {}

  void generate(GemvOutcome& outcome) {
    if (built_here_) timed(outcome, "generate", [&] { build(); });
  }

  // From spec, or what was built here, to the loaded module.
  void make_ready() const {
    if (built_here_) {
      (void)launcher_.load(kernel_->module(), kernel_->name());
      return;
    }
    const KernelRequest request{"gemv", {job_.k, job_.n}};
    try {
      launcher_.prepare({&request, 1});
    } catch (const Error&) {
      // The launch tries again and has cuBLAS to fall back on, or throws the same.
      if (launcher_.gemv_choice() != GemvChoice::Auto) throw;
    }
  }

  [[nodiscard]] LaunchRecord launch(const Buffers& buffers, const ptxgen::Stream& stream) const {
    if (!built_here_) {
      return launcher_.gemv(buffers.y, buffers.a, buffers.x, job_.k, job_.n, stream);
    }
    const auto block = GemvCoalesced::KernelType::pack(buffers.y.address(), buffers.a.address(),
                                                       buffers.x.address(), job_.k, job_.n);
    LaunchRecord record =
        launcher_.launch(*kernel_, geometry_, {block.data(), block.size()}, stream);
    record.kernel = strided_ ? GemvStrided::kName : GemvCoalesced::kName;
    record.implementation = to_string(strided_ ? GemvChoice::Strided : GemvChoice::Coalesced);
    record.reason = "built for --target";
    return record;
  }

 private:
  void build() {
    if (strided_) {
      const GemvStrided spec{job_.k, job_.n};
      kernel_.emplace(spec.build(*job_.target));
      geometry_ = spec.geometry();
    } else {
      const GemvCoalesced spec{job_.k, job_.n};
      kernel_.emplace(spec.build(*job_.target));
      geometry_ = spec.geometry();
    }
  }

  const GemvJob& job_;
  const Launcher& launcher_;
  bool strided_;
  bool built_here_;
  std::optional<BuiltKernel> kernel_;
  LaunchGeometry geometry_;
};

std::string origin_of(const CacheStatistics& statistics) {
  if (statistics.lower_hits != 0) return std::string(to_string(CacheLayer::LowerFolder));
  if (statistics.disk_hits != 0) return std::string(to_string(CacheLayer::Disk));
  if (statistics.driver_hints != 0) return std::string(to_string(CacheLayer::DriverHint));
  return std::string(to_string(CacheLayer::Compiled));
}

// What is known of the kernel beyond its launch.
void describe(GemvOutcome& outcome, const GemvJob& job, const LaunchRecord& record,
              const ptx::Target& target) {
  outcome.kernel = record.kernel;
  outcome.implementation = record.implementation;
  outcome.reason = record.reason;
  outcome.geometry = record.geometry;
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
  Launching launching(job, launcher, device.target());
  launching.generate(outcome);
  const Clock::time_point begin = Clock::now();
  launching.make_ready();
  double rest = microseconds_since(begin);
  LaunchRecord record;
  outcome.fault = timed(outcome, "run", [&] {
    record = launching.launch(buffers, stream);
    return wait_for(stream);
  });
  describe(outcome, job, record, target);
  std::vector<std::pair<std::string, double>> stages;
  const StageTimes loading = launcher.stages(outcome.kernel);
  for (const StageTime& stage : loading.stages) {
    stages.emplace_back(std::string(stage.stage), stage.microseconds);
    rest -= stage.microseconds;
  }
  if (!outcome.hash.empty()) outcome.origin = origin_of(launcher.cache().statistics());
  // Above all what it takes to keep the module for the next process.
  stages.emplace_back("rest", std::max(rest, 0.0));
  outcome.stages.insert(outcome.stages.begin(), stages.begin(), stages.end());
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
