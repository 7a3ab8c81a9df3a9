// src/cli/commands/plan.cpp - ptxgen plan: the ranking of plans, and why
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli_common/device_choice.hpp"
#include "cli_common/gemv_problem.hpp"
#include "cli_common/gemv_report.hpp"
#include "cli_common/text_table.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct Options {
  std::string kernel;
  std::vector<std::string> settings;
  std::string gpu;
  std::string device;
  std::uint64_t top = 5;
  std::string output;
  bool json = false;
};

// Microseconds for the weights alone.
double roofline_us(const GemvProblem& problem, double gb_per_s) {
  const double weights = static_cast<double>(problem.k) * problem.n * bytes(problem.weights);
  return weights / gb_per_s * 1e-3;
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
      "that a reader gets\n\n",
      roofline_us(problem, gpu.bandwidth_gb_per_s), gpu.bandwidth_gb_per_s,
      roofline_us(problem, read), read);
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

void plan_command(const Options& options) {
  if (options.kernel != "gemv") {
    throw UsageError("there is no planner for '" + options.kernel + "'; there is one for: gemv");
  }
  const GemvProblem problem = gemv_problem(options.settings);
  const ptx::Gpu gpu = planned_gpu(options.gpu, options.device, Settings::from_environment());
  const std::vector<GemvCandidate> ranking = rank_gemv_plans(problem, gpu);
  const std::size_t shown = std::min<std::size_t>(ranking.size(), options.top);
  write_output(options.output, options.json ? text_of(as_json(problem, gpu, ranking, shown))
                                            : as_text(problem, gpu, ranking, shown));
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  Command command(
      app, "plan",
      "Rank the ways to compute a GEMV on a GPU, with the predicted times, and say why");
  command.footer(
      "Example: ptxgen plan gemv -p k=4096 -p n=11008 -p layout=R -p dtype=bf16 --gpu h200");
  command.add_option("kernel", options->kernel, "gemv").required();
  command.add_option("-p", options->settings, std::string(kGemvSettingsHelp)).one_value_each();
  command.add_option("--gpu", options->gpu, "t4 to rtx5090, or sm_90 and the like");
  command.add_option("--device", options->device,
                     "cuda:N: plan for that GPU by its own description");
  command.add_option("--top", options->top, "how many of the ranking to show")
      .range(1, 1000)
      .capture_default_str();
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: {\"problem\",\"gpu\",\"roofline_us\",\"candidates\"}");
  command.callback([options, &exit_code] {
    plan_command(*options);
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
