// src/qa/fixture.cpp - what the functions of lines work with
#include "qa/fixture.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/device/buffer.hpp"
#include "support/random_values.hpp"

namespace ptxgen::qa {

namespace {

constexpr std::size_t kGuardElements = 64;
constexpr float kGuard = -123456.0f;

emulator::Dim3 emulated(const Dim3& size) { return {size.x, size.y, size.z}; }

std::vector<float> guarded_nans(std::size_t count) {
  std::vector<float> values(count + 2 * kGuardElements, kGuard);
  std::fill(values.begin() + kGuardElements, values.end() - kGuardElements,
            std::numeric_limits<float>::quiet_NaN());
  return values;
}

// y without its guards.
GemvRun without_guards(const std::vector<float>& values) {
  GemvRun run;
  run.y.assign(values.begin() + kGuardElements, values.end() - kGuardElements);
  for (std::size_t i = 0; i < kGuardElements; ++i) {
    run.guards_kept =
        run.guards_kept && values[i] == kGuard && values[values.size() - 1 - i] == kGuard;
  }
  return run;
}

// The module's first kernel with its arguments; `launch` refers to the other members.
struct PreparedLaunch {
  PreparedLaunch(emulator::Device& device, const ptx::Module& module,
                 const LaunchGeometry& geometry, const std::vector<std::uint64_t>& arguments)
      : program(emulator::Program::load(device, module)) {
    const emulator::Program::Kernel& kernel = program.kernels().front();
    block.resize(kernel.parameter_bytes);
    for (std::size_t i = 0; i < kernel.parameters.size() && i < arguments.size(); ++i) {
      std::memcpy(block.data() + kernel.parameters[i].offset, &arguments[i],
                  std::min<std::size_t>(kernel.parameters[i].bytes, sizeof arguments[i]));
    }
    launch.kernel = kernel.name;
    launch.grid = emulated(geometry.grid);
    launch.block = emulated(geometry.block);
    launch.cluster = emulated(geometry.cluster);
    launch.dynamic_shared_bytes = geometry.dynamic_shared_bytes;
    launch.parameters = block;
  }
  PreparedLaunch(const PreparedLaunch&) = delete;
  PreparedLaunch& operator=(const PreparedLaunch&) = delete;

  emulator::Program program;
  std::vector<std::byte> block;
  emulator::Launch launch;
};

}  // namespace

Problem random_problem(std::uint32_t k, std::uint32_t n, std::uint64_t seed, float low,
                       float high) {
  Problem problem;
  problem.k = k;
  problem.n = n;
  problem.a = random_values(std::size_t{k} * n, seed);
  problem.x = random_values(k, seed + 1000000);
  for (std::vector<float>* values : {&problem.a, &problem.x}) {
    for (float& value : *values) value = low + (high - low) * (value * 0.5f + 0.5f);
  }
  return problem;
}

Fixture::Fixture(const Surroundings& shared, const Mutant* mutant)
    : facts(shared.facts), record(shared.record), shared_(&shared), mutant_(mutant) {
  for (const KernelDescription& kernel : ptxgen::catalog()) catalog.push_back(kernel);
  if (mutant_ != nullptr && mutant_->arm != nullptr) mutant_->arm(*this);
}

const Context& Fixture::context() {
  if (!context_) context_.emplace(device());
  return *context_;
}

Launcher Fixture::launcher(GemvChoice gemv) {
  LauncherOptions options;
  options.settings = settings();
  options.settings.gemv = "auto";
  options.gemv = gemv;
  options.cache.mode = CacheMode::MemoryOnly;
  return Launcher(context(), std::move(options));
}

ptx::Module Fixture::edited(ptx::Module module) const {
  if (mutant_ != nullptr && mutant_->edit != nullptr) mutant_->edit(module);
  return module;
}

GemvRun Fixture::gemv(const ptx::Module& module, const LaunchGeometry& geometry,
                      const Problem& problem) {
  std::vector<float> all = guarded_nans(problem.n);
  const std::string entry(module.text(module.functions.front().name));
  if (!facts.gpu) {
    Emulation emulation(gpu_of(device().info()));
    const std::uint64_t y = emulation.upload(all);
    emulator::Result result =
        emulation.launch(module, geometry,
                         {y + kGuardElements * sizeof(float), emulation.upload(problem.a),
                          emulation.upload(problem.x), problem.k, problem.n});
    GemvRun run = without_guards(emulation.download<float>(y, all.size()));
    run.result = std::move(result);
    return run;
  }
  const Stream stream(context());
  Buffer<f32> y(context(), all);
  const Buffer<f32> a(context(), problem.a);
  const Buffer<f32> x(context(), problem.x);
  ModuleOptions unchecked;
  unchecked.gates = false;
  const LoadedKernel<Ptr<f32>, Ptr<f32>, Ptr<f32>, u32, u32> kernel(
      Module::load(context(), module, unchecked).function(entry));
  kernel.launch(stream, geometry, DeviceSpan<f32>(y).subspan(kGuardElements, problem.n), a, x,
                problem.k, problem.n);
  stream.synchronize();
  y.read(all);
  return without_guards(all);
}

emulator::Result Emulation::launch(const ptx::Module& module, const LaunchGeometry& geometry,
                                   const std::vector<std::uint64_t>& arguments,
                                   const emulator::Options& options) {
  PreparedLaunch prepared(device_, module, geometry, arguments);
  return emulator::run(prepared.program, prepared.launch, options);
}

emulator::Result Emulation::observe(const ptx::Module& module, const LaunchGeometry& geometry,
                                    const std::vector<std::uint64_t>& arguments,
                                    emulator::Observer& observer,
                                    const emulator::Options& options) {
  PreparedLaunch prepared(device_, module, geometry, arguments);
  return emulator::observe(prepared.program, prepared.launch, observer, options);
}

std::uint64_t count_rule(const emulator::Result& result, emulator::Rule rule) {
  return static_cast<std::uint64_t>(
      std::ranges::count(result.findings, rule, &emulator::RunFinding::rule));
}

std::string first_error(const emulator::Result& result) {
  for (const emulator::RunFinding& finding : result.findings) {
    if (finding.finding.severity == Severity::Error) {
      return finding.finding.rule + ": " + finding.finding.message;
    }
  }
  return "no error";
}

std::string first_error(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.severity == Severity::Error) return finding.rule + ": " + finding.message;
  }
  return "no error";
}

std::size_t count_errors(const std::vector<Finding>& findings) {
  return static_cast<std::size_t>(
      std::ranges::count(findings, Severity::Error, &Finding::severity));
}

}  // namespace ptxgen::qa
