// bench/gemv/run.cpp - measures a list of problems on a device
#include "bench/gemv/run.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <new>

#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/support/error.hpp"
#include "ptxgen/version.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::gemv_bench {

namespace {

using Clock = std::chrono::steady_clock;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", std::gmtime(&now));
  return text;
}

// The matrices may use nine tenths of the free memory, copies included; the rest is for outputs,
// workspace and other programs.
std::uint64_t memory_for_matrices(const Context& context, const BenchOptions& options) {
  const std::uint64_t free = context.memory().free / 10 * 9;
  const bool copies =
      std::find(options.arms.begin(), options.arms.end(), "copy") != options.arms.end();
  return free / (copies ? 2 : 1);
}

ShapeResult measure_problem(const Context& context, ArmMaker& maker, const Lead& lead,
                            const BenchShape& shape, const GemvProblem& problem,
                            const BenchOptions& options) {
  ShapeResult result;
  result.shape = shape;
  result.problem = problem;
  result.rotation = rotation_of(matrix_bytes(problem), options.rotation_bytes, options.min_chain,
                                memory_for_matrices(context, options));
  try {
    const GemvData data(context, problem, result.rotation, options.seed);
    Arms arms = maker.make(problem, options.arms);
    result.missing = std::move(arms.missing);
    const Arm verify = maker.roofline_arm(matrix_bytes(problem));
    result.arms = measure_arms(context, data, std::move(arms.arms), verify, lead, options.measure);
  } catch (const Error& error) {
    result.failed = error.what();
  } catch (const std::bad_alloc&) {
    result.failed = "the host has too little memory for " +
                    count_text(result.rotation.bytes(), "byte") + " of matrices";
  }
  return result;
}

}  // namespace

BenchOptions default_bench_options(const DeviceInfo& device) {
  BenchOptions options;
  options.layouts = {GemvLayout::T, GemvLayout::R};
  options.types = {ElementType::f32, ElementType::f16, ElementType::bf16};
  if (device.kind == DeviceKind::Emulator) {
    options.measure.samples = 5;
    options.min_chain = 4;
    options.lead_bytes = 4096;
    options.ceiling_sizes = {std::uint64_t{1} << 16, std::uint64_t{1} << 14, 4};
    return options;
  }
  const std::uint64_t l2 = std::max<std::uint64_t>(device.limits.l2_bytes, 1u << 20);
  options.rotation_bytes = 4 * l2;
  options.lead_bytes = 2 * l2;
  options.ceiling_sizes.stream_bytes = std::max<std::uint64_t>(8 * l2, std::uint64_t{1} << 29);
  return options;
}

BenchMachine machine_of(const Device& device, const std::string& name) {
  const DeviceInfo& info = device.info();
  const ptx::Gpu gpu = gpu_of(info);
  BenchMachine machine;
  machine.device = name;
  machine.gpu = info.name;
  machine.emulated = info.kind == DeviceKind::Emulator;
  machine.driver = format_text("{}{}.{}", machine.emulated ? "emulated " : "",
                               info.driver_version / 1000, info.driver_version % 1000 / 10);
  machine.target = info.target;
  machine.table = gpu.name;
  machine.version = std::string(kVersion);
  machine.started = utc_now();
  machine.multiprocessors = info.limits.multiprocessors;
  machine.clock_khz = info.limits.clock_khz;
  machine.l2_bytes = info.limits.l2_bytes;
  machine.memory_bytes = info.limits.memory_bytes;
  machine.datasheet_gb_per_s = gpu.bandwidth_gb_per_s;
  return machine;
}

GemvProblem bench_problem(const BenchShape& shape, GemvLayout layout, ElementType type) {
  GemvProblem problem;
  problem.k = shape.k;
  problem.n = shape.n;
  problem.layout = layout;
  problem.weights = type;
  if (!is_block_format(type)) problem.x = problem.y = type;
  return problem;
}

BenchRun run_bench(const Device& device, const BenchMachine& machine, const BenchOptions& options,
                   const Settings& settings, const BenchProgress& progress) {
  const Clock::time_point begin = Clock::now();
  const auto late = [&] {
    const std::chrono::duration<double> passed = Clock::now() - begin;
    return options.seconds > 0 && passed.count() >= options.seconds;
  };
  BenchRun run;
  run.machine = machine;
  run.samples = options.measure.samples;
  run.seed = options.seed;
  run.rotation_bytes = options.rotation_bytes;
  run.lead_bytes = options.lead_bytes;

  const Context context(device);
  LauncherOptions launching;
  launching.settings = settings;
  const Launcher launcher(context, launching);
  ArmMaker maker(context, launcher, settings);
  const Lead lead(context, maker, options.lead_bytes);
  const std::size_t all = options.shapes.size() * options.layouts.size() * options.types.size();
  if (options.ceilings) {
    if (progress) progress(0, all, "ceilings");
    run.ceilings = measure_ceilings(context, launcher, maker, lead, options.measure.samples,
                                    options.seed, options.ceiling_sizes);
  }
  std::size_t done = 0;
  for (const BenchShape& shape : options.shapes) {
    for (const ElementType type : options.types) {
      for (const GemvLayout layout : options.layouts) {
        const GemvProblem problem = bench_problem(shape, layout, type);
        if (progress) progress(done, all, to_text(problem));
        ++done;
        // Blocks are parts of rows.
        if (is_block_format(type) && layout == GemvLayout::T) continue;
        if (late() || context.poisoned()) {
          run.left_out.push_back(to_text(problem));
          continue;
        }
        run.shapes.push_back(measure_problem(context, maker, lead, shape, problem, options));
      }
    }
  }
  run.machine.cublas = maker.cublas_version();
  run.machine.nvrtc = maker.nvrtc_version();
  return run;
}

}  // namespace ptxgen::gemv_bench
