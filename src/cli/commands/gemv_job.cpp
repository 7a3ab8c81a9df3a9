// src/cli/commands/gemv_job.cpp - one GEMV on a device, compared with fp64
#include "cli/commands/gemv_job.hpp"

#include <algorithm>

#include "cli/commands/launch_observer.hpp"
#include "cli/output/ptx_hash.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"

namespace ptxgen::cli {

namespace {

std::string origin_of(const CacheStatistics& statistics) {
  if (statistics.lower_hits != 0) return std::string(to_string(CacheLayer::LowerFolder));
  if (statistics.disk_hits != 0) return std::string(to_string(CacheLayer::Disk));
  if (statistics.driver_hints != 0) return std::string(to_string(CacheLayer::DriverHint));
  return std::string(to_string(CacheLayer::Compiled));
}

// Properties of the kernel beside its launch.
void describe(GemvOutcome& outcome, const ChosenKernel& chosen, const ptx::Gpu& gpu,
              const ptx::Target& target) {
  const std::string text = ptx::print(chosen.kernel->build_of(chosen.spec, target));
  outcome.geometry = chosen.kernel->geometry_of(chosen.spec, gpu);
  outcome.hash = hash_of(text);
  outcome.check = ptx::verify(ptx::parse(text, outcome.result.kernel + ".ptx"),
                              {.target = {}, .entry = outcome.result.kernel});
}

// "launch" of the result becomes the stages of the launcher and the rest.
StageTimes all_stages(const StageTimes& loading, const StageTimes& result) {
  StageTimes all = loading;
  double rest = result.of("launch");
  for (const StageTime& stage : loading.stages) rest -= stage.microseconds;
  // Mostly the time to store the module for the next process.
  all.add("rest", std::max(rest, 0.0));
  for (const StageTime& stage : result.stages) {
    if (stage.stage != "launch") all.add(stage.stage, stage.microseconds);
  }
  return all;
}

}  // namespace

GemvOutcome run_gemv(const Device& device, const GemvJob& job, const Settings& settings) {
  const Context context(device);
  LauncherOptions how;
  how.gemv = job.choice;
  how.target = job.target;
  how.settings = settings;
  const Launcher launcher(context, how);
  ProgressBar bar("gemv");
  std::optional<LaunchObserver> observer;
  if (device.info().kind == DeviceKind::Emulator) {
    observer.emplace(context, driver::emulated::default_options(), bar);
  }
  const KernelDescription& kernel = kDescription<GemvProblem>;
  std::vector<std::uint64_t> values(kernel.parameters.size());
  kernel.values_of(&job.problem, values.data());
  VerifyOptions options;
  options.seed = job.seed;
  options.scalars = {{.name = "alpha", .number = job.alpha}, {.name = "beta", .number = job.beta}};

  GemvOutcome outcome;
  outcome.result = verify(launcher, context, kernel, values, options);
  Verification& result = outcome.result;
  if (result.error && result.error->code != "device-fault") throw *result.error;
  const ptx::Target& target = job.target != nullptr ? *job.target : device.target();
  if (target.name != device.target().name) result.reason = "built for --target";
  const ptx::Gpu gpu = gpu_of(device.info());
  const ChosenKernel chosen = launcher.choose(job.problem, aligned_operands(job.problem));
  outcome.target = target.name;
  outcome.cost = kernel.cost_of(&job.problem);
  if (chosen.kernel != nullptr && chosen.kernel->name == result.kernel) {
    outcome.plan = launcher.gemv_plan(job.problem);
    if (outcome.plan) outcome.prediction = predict(*outcome.plan, gpu);
    describe(outcome, chosen, gpu, target);
    outcome.origin = origin_of(launcher.cache().statistics());
  }
  outcome.stages = all_stages(launcher.stages(result.kernel), result.stages);
  if (observer) outcome.emulated = observer->result();
  return outcome;
}

}  // namespace ptxgen::cli
