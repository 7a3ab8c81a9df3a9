// src/cli/commands/plan.cpp - ptxgen plan: how a kernel would be launched, and why
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/commands/gemm_ranking.hpp"
#include "cli/commands/library_kernel.hpp"
#include "cli_common/device_choice.hpp"
#include "cli_common/gemv_problem.hpp"
#include "cli_common/gemv_report.hpp"
#include "cli_common/text_table.hpp"
#include "ptxgen/kernels/gemm/gemm.hpp"
#include "ptxgen/kernels/gemv/operands.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct PlanArguments {
  std::string kernel;
  std::vector<std::string> settings;
  std::string gpu;
  std::string device;
  std::uint64_t top = 5;
  std::string output;
  bool json = false;
};

double transfer_us(std::uint64_t bytes, double gb_per_s) {
  return static_cast<double>(bytes) / gb_per_s * 1e-3;
}

// Microseconds for the weights alone.
double roofline_us(const GemvProblem& problem, double gb_per_s) {
  return transfer_us(problem.n * bytes(problem.weights, problem.k), gb_per_s);
}

nlohmann::json as_json(const GemvProblem& problem, const ptx::Gpu& gpu,
                       const std::vector<GemvCandidate>& ranking, std::size_t shown) {
  nlohmann::json candidates = nlohmann::json::array();
  for (std::size_t i = 0; i < shown; ++i) {
    candidates.push_back({{"plan", to_json(ranking[i].plan)},
                          {"prediction", to_json(ranking[i].prediction)},
                          {"why", ranking[i].why}});
  }
  return {{"kernel", "gemv"},
          {"problem", to_json(problem)},
          {"gpu", to_json(gpu)},
          {"roofline_us",
           {{"datasheet", roofline_us(problem, gpu.bandwidth_gb_per_s)},
            {"read", roofline_us(problem, read_rate(gpu))}}},
          {"considered", ranking.size()},
          {"candidates", std::move(candidates)}};
}

std::string as_text(const GemvProblem& problem, const ptx::Gpu& gpu,
                    const std::vector<GemvCandidate>& ranking, std::size_t shown) {
  const double read = read_rate(gpu);
  std::string text = format_text("{} on {}, {} SMs\n", to_text(problem), gpu.full_name, gpu.sms);
  text += format_text(
      "weights alone: {:.2f} us at the {:.0f} GB/s of the datasheet, {:.2f} us at the {:.0f} GB/s "
      "that a reader gets\npredicted times; {}\n\n",
      roofline_us(problem, gpu.bandwidth_gb_per_s), gpu.bandwidth_gb_per_s,
      roofline_us(problem, read), read, error_text(ranking.front().prediction.error));
  TextTable table({"", "isolated us", "chained us", "GB/s", "KiB in flight", "waves", "tail %",
                   "registers", "workspace B"});
  for (std::size_t i = 0; i < shown; ++i) {
    const GemvPrediction& prediction = ranking[i].prediction;
    table.add({std::to_string(i + 1), fixed(prediction.isolated_us, 2),
               fixed(prediction.chained_us, 2), fixed(prediction.bandwidth_gb_per_s, 0),
               fixed(prediction.bytes_in_flight_per_sm / 1024, 1), fixed(prediction.waves, 2),
               fixed(100 * prediction.tail_loss, 2), std::to_string(prediction.registers),
               std::to_string(prediction.workspace_bytes)});
  }
  text += table.line(0) + "\n";
  for (std::size_t i = 0; i < shown; ++i) {
    text +=
        table.line(i + 1) + "\n    " + to_text(ranking[i].plan) + "\n    " + ranking[i].why + "\n";
  }
  return text;
}

nlohmann::json as_json(const LibraryKernel& kernel, const ptx::Gpu& gpu,
                       const LaunchGeometry& geometry, const KernelCost& cost) {
  return {{"kernel", kernel.entry->name},
          {"parameters", parameters_json(*kernel.entry, kernel.values)},
          {"gpu", to_json(gpu)},
          {"grid", {geometry.grid.x, geometry.grid.y, geometry.grid.z}},
          {"block", {geometry.block.x, geometry.block.y, geometry.block.z}},
          {"cluster", geometry.cluster.x},
          {"dynamic_shared_bytes", geometry.dynamic_shared_bytes},
          {"bytes", cost.bytes()},
          {"flops", cost.flops},
          {"roofline_us",
           {{"datasheet", transfer_us(cost.bytes(), gpu.bandwidth_gb_per_s)},
            {"read", transfer_us(cost.bytes(), read_rate(gpu))}}}};
}

std::string as_text(const LibraryKernel& kernel, const ptx::Gpu& gpu,
                    const LaunchGeometry& geometry, const KernelCost& cost) {
  const ErasedValue spec = kernel.entry->make_spec(kernel.values);
  const Dim3& grid = geometry.grid;
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  const std::uint32_t threads = geometry.block.x * geometry.block.y * geometry.block.z;
  return format_text(
      "{} {} on {}, {} SMs\n"
      "one implementation: a grid of ({},{},{}), {} of {}, {} of dynamic shared memory\n"
      "{}, {} operations; the bytes alone: {:.2f} us at the {:.0f} GB/s of the datasheet, {:.2f} "
      "us at the {:.0f} GB/s that a reader gets\n",
      kernel.entry->name, shape_text(*kernel.entry, spec.get()), gpu.full_name, gpu.sms, grid.x,
      grid.y, grid.z, count_text(blocks, "block"), count_text(threads, "thread"),
      count_text(geometry.dynamic_shared_bytes, "byte"), count_text(cost.bytes(), "byte"),
      cost.flops, transfer_us(cost.bytes(), gpu.bandwidth_gb_per_s), gpu.bandwidth_gb_per_s,
      transfer_us(cost.bytes(), read_rate(gpu)), read_rate(gpu));
}

// The ranking of a family's plans.
std::string gemv_ranking(const PlanArguments& options, const ptx::Gpu& gpu) {
  const GemvProblem problem = gemv_problem(options.settings, GemvWeights::All);
  const std::vector<GemvCandidate> ranking = rank_gemv_plans(problem, gpu);
  const std::size_t shown = std::min<std::size_t>(ranking.size(), options.top);
  return options.json ? text_of(as_json(problem, gpu, ranking, shown))
                      : as_text(problem, gpu, ranking, shown);
}

// The one way to launch a kernel that is no family.
std::string single_plan(const PlanArguments& options, const ptx::Gpu& gpu) {
  const LibraryKernel kernel = library_kernel(options.kernel, options.settings);
  const ErasedValue spec = kernel.entry->make_spec(kernel.values);
  const LaunchGeometry geometry = kernel.entry->geometry_of(spec.get(), gpu);
  const KernelCost cost = kernel.entry->cost_of(spec.get());
  return options.json ? text_of(as_json(kernel, gpu, geometry, cost))
                      : as_text(kernel, gpu, geometry, cost);
}

std::string plan_text(const PlanArguments& options) {
  const KernelDescription* const kernel = find_kernel(options.kernel);
  const ptx::Gpu gpu = planned_gpu(options.gpu, options.device, Settings::from_environment());
  const void* const type = kernel == nullptr ? nullptr : kernel->type;
  if (type == kDescription<GemvProblem>.type) return gemv_ranking(options, gpu);
  if (type == kDescription<GemmProblem>.type) {
    return gemm_ranking(library_kernel(options.kernel, options.settings), gpu, options.top,
                        options.json);
  }
  return single_plan(options, gpu);
}

void plan_command(const PlanArguments& options) {
  write_output(options.output, plan_text(options));
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PlanArguments>();
  Command command(app, "plan",
                  "Say how a kernel would be launched on a GPU; for gemv and gemm rank the ways, "
                  "with predicted times");
  command.footer(
      "Example: ptxgen plan gemv -p k=4096 -p n=11008 -p layout=R -p dtype=bf16 --gpu h200");
  command.add_option("kernel", options->kernel, "a name that `ptxgen list` shows").required();
  command
      .add_option("-p", options->settings,
                  "NAME=VALUE, repeatable; for gemv " + std::string(kAnyGemvSettingsHelp))
      .one_value_each();
  command.add_option("--gpu", options->gpu, "t4 to rtx5090, or sm_90 and the like");
  command.add_option("--device", options->device,
                     "cuda:N: plan for that GPU by its own description");
  command.add_option("--top", options->top, "how many of the ranking to show (gemv, gemm)")
      .range(1, 1000)
      .capture_default_str();
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag(
      "--json", options->json,
      "one JSON document: {\"gpu\",\"roofline_us\",..}, for gemv and gemm with \"candidates\"");
  command.callback([options, &exit_code] {
    plan_command(*options);
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
