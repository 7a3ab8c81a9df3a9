// src/cli/commands/gemv_job.cpp - one GEMV on a device, compared with fp64
#include "cli/commands/gemv_job.hpp"

#include <algorithm>
#include <chrono>

#include "cli/commands/commands.hpp"
#include "cli/commands/launch_observer.hpp"
#include "ptxgen/kernels/gemv/coalesced.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/kernels/gemv/strided.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
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

// The operands in memory order; empty where the problem has none.
struct Inputs {
  Inputs(const GemvProblem& p, std::uint64_t seed)
      : a(random_elements(p.matrix_elements(), p.weights, seed)),
        x(random_elements(p.k, p.x, ~seed)),
        y(random_elements(p.scaled ? p.n : 0, p.y, seed ^ 0x5a5a5a5a)),
        bias(random_elements(p.bias ? p.n : 0, p.y, seed + 1)),
        residual(random_elements(p.residual ? p.n : 0, p.y, seed + 2)) {}
  std::vector<std::byte> a, x, y, bias, residual;
};

Buffer<u8> upload(const Context& context, std::span<const std::byte> values) {
  return {context, std::span(reinterpret_cast<const std::uint8_t*>(values.data()), values.size())};
}

struct Buffers {
  Buffers(const Context& context, const GemvProblem& p, const Inputs& from)
      : y(p.scaled ? upload(context, from.y)
                   : Buffer<u8>(context, std::uint64_t{p.n} * bytes(p.y))),
        a(upload(context, from.a)),
        x(upload(context, from.x)),
        bias(upload(context, from.bias)),
        residual(upload(context, from.residual)) {}
  Buffer<u8> y, a, x, bias, residual, workspace;
};

GemvOperands operands_of(const GemvJob& job, const Buffers& buffers) {
  GemvOperands operands;
  operands.y = buffers.y;
  operands.a = buffers.a;
  operands.x = buffers.x;
  operands.bias = buffers.bias;
  operands.residual = buffers.residual;
  if (job.problem.scaled) operands.alpha = job.alpha;
  if (job.problem.scaled) operands.beta = job.beta;
  return operands;
}

// The best plan of the choice, for a target that is not the device's own.
GemvPlan plan_for(const GemvJob& job, GemvChoice choice, ptx::Gpu gpu) {
  gpu.target = job.target->name;
  for (const GemvCandidate& candidate : rank_gemv_plans(job.problem, gpu)) {
    if (choice == GemvChoice::Auto || to_string(candidate.plan.path) == to_string(choice)) {
      return candidate.plan;
    }
  }
  throw UsageError("--impl " + std::string(to_string(choice)) + ": no such plan serves " +
                   to_text(job.problem) + " on " + std::string(job.target->name));
}

template <class Spec>
LaunchPlan built_here(GemvOutcome& outcome, const GemvJob& job, const Launcher& launcher,
                      const Buffers& buffers, const ptxgen::Stream& stream) {
  const Spec spec{job.problem.k, job.problem.n};
  const auto kernel = timed(outcome, "generate", [&] { return spec.build(*job.target); });
  const auto at = [](const Buffer<u8>& buffer) {
    return DeviceAddress<f32>{buffer.address().value};
  };
  const auto block = Spec::KernelType::pack(at(buffers.y), at(buffers.a), at(buffers.x),
                                            job.problem.k, job.problem.n);
  return launcher.plan(kernel, spec.geometry(), {block.data(), block.size()}, stream);
}

LaunchPlan planned_here(GemvOutcome& outcome, const GemvJob& job, const Context& context,
                        const Launcher& launcher, Buffers& buffers, const ptxgen::Stream& stream) {
  outcome.plan = plan_for(job, launcher.gemv_choice(), gpu_of(context.device().info()));
  outcome.implementation = to_string(outcome.plan->path);
  const Gemv spec{*outcome.plan};
  const auto kernel = timed(outcome, "generate", [&] { return spec.build(*job.target); });
  buffers.workspace = Buffer<u8>(context, outcome.plan->workspace_bytes());
  buffers.workspace.fill_bytes(0);
  const auto at = [](const Buffer<u8>& buffer) {
    return DeviceAddress<b8>{buffer.address().value};
  };
  const auto block = Gemv::KernelType::pack(
      at(buffers.y), at(buffers.a), at(buffers.x), at(buffers.bias), at(buffers.residual),
      at(buffers.workspace), job.problem.scaled ? job.alpha : 1.0f,
      job.problem.scaled ? job.beta : 0.0f);
  return launcher.plan(kernel, spec.geometry(), {block.data(), block.size()}, stream);
}

// From spec to loaded module, ready to launch: by the launcher's own gemv or, for a target that is
// not the device's, built here and planned as a user-defined kernel.
LaunchPlan make_plan(GemvOutcome& outcome, const GemvJob& job, const Context& context,
                     const Launcher& launcher, Buffers& buffers, const ptxgen::Stream& stream) {
  const GemvChoice choice = launcher.gemv_choice();
  const bool own = job.target == nullptr || job.target->name == context.device().target().name;
  const auto make = [&] {
    if (own || choice == GemvChoice::Cublas) {
      LaunchPlan plan = launcher.plan(job.problem, operands_of(job, buffers), stream);
      outcome.implementation = plan.record().implementation;
      if (plan.record().kernel == Gemv::kName) outcome.plan = launcher.gemv_plan(job.problem);
      return plan;
    }
    if (choice == GemvChoice::Coalesced || choice == GemvChoice::Strided) {
      outcome.implementation = to_string(choice);
      return choice == GemvChoice::Strided
                 ? built_here<GemvStrided>(outcome, job, launcher, buffers, stream)
                 : built_here<GemvCoalesced>(outcome, job, launcher, buffers, stream);
    }
    return planned_here(outcome, job, context, launcher, buffers, stream);
  };
  LaunchPlan plan = make();
  outcome.kernel = plan.record().kernel;
  outcome.reason = plan.record().reason.empty() ? "built for --target" : plan.record().reason;
  return plan;
}

std::string origin_of(const CacheStatistics& statistics) {
  if (statistics.lower_hits != 0) return std::string(to_string(CacheLayer::LowerFolder));
  if (statistics.disk_hits != 0) return std::string(to_string(CacheLayer::Disk));
  if (statistics.driver_hints != 0) return std::string(to_string(CacheLayer::DriverHint));
  return std::string(to_string(CacheLayer::Compiled));
}

// Properties of the kernel beside its launch.
void describe(GemvOutcome& outcome, const GemvJob& job, const Device& device,
              const ptx::Target& target) {
  outcome.target = target.name;
  GemvPlan cost_only;
  cost_only.problem = job.problem;
  outcome.cost = Gemv{cost_only}.cost();
  const bool has_ptx = outcome.implementation != "cublas" && device.info().kind != DeviceKind::Host;
  if (!has_ptx) return;
  const GemvProblem& p = job.problem;
  const ptx::Module module = outcome.plan ? Gemv{*outcome.plan}.build(target).module()
                             : outcome.implementation == "strided"
                                 ? GemvStrided{p.k, p.n}.build(target).module()
                                 : GemvCoalesced{p.k, p.n}.build(target).module();
  const std::string text = ptx::print(module);
  outcome.hash = hash_of(text);
  outcome.check = ptx::verify(ptx::parse(text, outcome.kernel + ".ptx"),
                              {.target = {}, .entry = outcome.kernel});
}

std::uint64_t roundings(const GemvOutcome& outcome, const GemvProblem& problem) {
  if (outcome.plan) return outcome.plan->roundings();
  if (outcome.implementation == "strided") return GemvStrided{problem.k, problem.n}.roundings();
  // cuBLAS may add in any order, in the worst case sequentially.
  return std::max<std::uint64_t>(problem.k, 1);
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
  // Mostly the time to store the module for the next process.
  stages.emplace_back("rest", std::max(loading, 0.0));
  outcome.stages.insert(outcome.stages.begin(), stages.begin(), stages.end());
}

// Waits; the message of a fault, or nothing.
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

  const GemvProblem& problem = job.problem;
  const Inputs inputs = timed(outcome, "inputs", [&] { return Inputs(problem, job.seed); });
  Buffers buffers = timed(outcome, "upload", [&] { return Buffers(context, problem, inputs); });

  ProgressBar bar("gemv");
  std::optional<LaunchObserver> observer;
  if (device.info().kind == DeviceKind::Emulator) {
    observer.emplace(context, driver::emulated::default_options(), bar);
  }
  const Clock::time_point begin = Clock::now();
  const LaunchPlan plan = make_plan(outcome, job, context, launcher, buffers, stream);
  const double loading = microseconds_since(begin);
  outcome.geometry = plan.record().geometry;
  outcome.fault = timed(outcome, "run", [&] {
    plan.launch();
    return wait_for(stream);
  });
  describe(outcome, job, device, target);
  if (outcome.plan) outcome.prediction = predict(*outcome.plan, gpu_of(device.info()));
  list_stages(outcome, launcher.stages(outcome.kernel), loading);
  if (!outcome.hash.empty()) outcome.origin = origin_of(launcher.cache().statistics());
  if (observer) outcome.emulated = observer->result();
  if (!outcome.fault.empty()) return outcome;

  std::vector<std::uint8_t> elements(buffers.y.size());
  timed(outcome, "download", [&] { buffers.y.read(elements); });
  const GemvReference reference = timed(outcome, "reference", [&] {
    GemvInputs of{inputs.a, inputs.x, inputs.y, inputs.bias, inputs.residual};
    if (problem.scaled) of.alpha = job.alpha;
    if (problem.scaled) of.beta = job.beta;
    return gemv_reference(problem, of);
  });
  outcome.comparison = timed(outcome, "compare", [&] {
    const std::vector<float> y = values_of(std::as_bytes(std::span(elements)), problem.y);
    return compare(y, problem.y, reference, roundings(outcome, problem));
  });
  outcome.ok = outcome.comparison.outside == 0 &&
               (!outcome.emulated || outcome.emulated->status == emulator::Status::Ok);
  return outcome;
}

}  // namespace ptxgen::cli
