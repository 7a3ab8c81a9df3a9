// src/cli/commands/predict.cpp - ptxgen predict: the predicted time of a launch
#include "ptxgen/kernels/model/predict.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands/commands.hpp"
#include "cli/commands/gemm_ranking.hpp"
#include "cli/commands/library_kernel.hpp"
#include "cli_common/device_choice.hpp"
#include "cli_common/gemv_problem.hpp"
#include "cli_common/gemv_report.hpp"
#include "cli_common/text_table.hpp"
#include "ptxgen/kernels/attention/flash_predict.hpp"
#include "ptxgen/kernels/gemv/operands.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

constexpr std::string_view kStream = "stream";
constexpr std::string_view kTermNames[] = {"launch", "blocks", "latency", "dram", "l2"};

struct PredictArguments {
  std::string kernel;
  std::vector<std::string> settings;
  std::string gpu;
  std::string device;
  std::string boundary = "graph";
  bool warm = false;
  // Of a stated stream.
  std::uint64_t blocks = 0;
  std::uint64_t block = 256;
  std::uint64_t bytes_per_thread = 16;
  std::uint64_t written_per_thread = 0;
  std::uint64_t loads_in_flight = 1;
  std::uint64_t blocks_per_sm = 0;
  std::string output;
  bool json = false;
};

/// A prediction as it is reported: of a launch, or of a family's first choice.
struct Predicted {
  std::string subject;  ///< "rmsnorm rows = 4, columns = 4096"
  double us = 0;
  std::vector<std::pair<std::string_view, double>> terms;
  std::string_view bound_by;
  ErrorBand error;
  std::string work;  ///< the launch in words
};

Boundary boundary_of(const std::string& name) {
  for (const Boundary boundary : {Boundary::Stream, Boundary::Graph, Boundary::Programmatic}) {
    if (to_string(boundary) == name) return boundary;
  }
  throw UsageError(format_text("--boundary {}: write stream, graph or programmatic", name));
}

std::string work_text(const LaunchWork& work) {
  return format_text(
      "{} read, {} written, {} of {}, {} on an SM, {:.0f} bytes of a thread in flight",
      count_text(work.bytes_read, "byte"), count_text(work.bytes_written, "byte"),
      count_text(work.blocks, "block"), count_text(work.threads, "thread"), work.blocks_per_sm,
      work.bytes_in_flight);
}

Predicted predicted(std::string subject, const LaunchWork& work, const ptx::Gpu& gpu,
                    const PredictOptions& how) {
  const LaunchPrediction prediction = predict(work, gpu, how);
  const LaunchTerms& terms = prediction.terms;
  const double values[] = {terms.launch, terms.blocks, terms.latency, terms.dram, terms.l2};
  Predicted result;
  result.subject = std::move(subject);
  result.us = prediction.us;
  for (std::size_t i = 0; i < std::size(values); ++i)
    result.terms.emplace_back(kTermNames[i], values[i]);
  result.bound_by = prediction.bound_by;
  result.error = prediction.error;
  result.work = work_text(work);
  return result;
}

std::uint32_t checked(const char* option, std::uint64_t value, std::uint64_t low,
                      std::uint64_t high) {
  if (value < low || value > high) {
    throw UsageError(format_text("{} {}: write {} to {}", option, value, low, high));
  }
  return static_cast<std::uint32_t>(value);
}

LaunchWork stream_work(const PredictArguments& options, const ptx::Gpu& gpu) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 31;
  LaunchWork work;
  work.blocks = checked("--blocks", options.blocks, 1, kMany);
  work.threads = checked("--block", options.block, 1, 1024);
  const std::uint64_t threads = work.blocks * work.threads;
  const std::uint32_t bytes = checked("--bytes-per-thread", options.bytes_per_thread, 0, kMany);
  const std::uint32_t loads = checked("--loads-in-flight", options.loads_in_flight, 1, 1024);
  work.bytes_read = threads * bytes;
  work.bytes_written =
      threads * checked("--written-per-thread", options.written_per_thread, 0, kMany);
  // Loads of 16 bytes, or of what a thread reads if that is less.
  work.bytes_in_flight = std::min<double>(bytes, 16.0 * loads);
  if (bytes == 0) work.bytes_in_flight = 16;
  const std::uint32_t fitting =
      std::min<std::uint32_t>(gpu.threads_per_sm / work.threads, gpu.blocks_per_sm);
  work.blocks_per_sm = options.blocks_per_sm == 0
                           ? std::max(1u, fitting)
                           : checked("--blocks-per-sm", options.blocks_per_sm, 1, fitting);
  return work;
}

// The first choice of the planner.
Predicted predicted_gemv(const PredictArguments& options, const ptx::Gpu& gpu,
                         const PredictOptions& how) {
  const GemvProblem problem = gemv_problem(options.settings, GemvWeights::All);
  if (how.warm) throw UsageError("--warm: a GEMV is predicted with cold weights; leave it out");
  GemvPlan plan = plan_gemv(problem, gpu);
  const bool offers = plan.programmatic;
  plan.programmatic = how.boundary == Boundary::Programmatic;
  if (plan.programmatic && !offers) {
    throw UsageError(
        format_text("--boundary programmatic: {} has no programmatic launch", gpu.full_name));
  }
  const GemvPrediction prediction = predict(plan, gpu);
  Predicted result;
  result.subject = "gemv " + to_text(problem);
  result.us = how.boundary == Boundary::Stream ? prediction.isolated_us : prediction.chained_us;
  const GemvTerms& terms = prediction.terms;
  result.terms = {
      {"launch", how.boundary == Boundary::Stream ? rates_of(gpu).stream_us : terms.boundary},
      {"blocks", terms.blocks},
      {"latency", terms.latency},
      {"dram", terms.dram},
      {"issue", terms.issue},
      {"l1", terms.l1},
      {"reduction", terms.reduction}};
  result.bound_by =
      std::max_element(result.terms.begin(), result.terms.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  result.error = prediction.error;
  result.work = to_text(plan);
  return result;
}

// The kernel that the planner of the family takes, or one that is named.
Predicted predicted_gemm(const LibraryKernel& chosen, const ErasedValue& spec, const ptx::Gpu& gpu,
                         const PredictOptions& how) {
  if (how.warm || how.boundary != Boundary::Graph) {
    throw UsageError(
        "predict: matrix products are predicted cold, as nodes of a graph; leave out "
        "--warm and --boundary");
  }
  const GemmCandidate best = gemm_candidate(*chosen.entry, spec.get(), gpu);
  const GemmPrediction& prediction = best.prediction;
  const GemmTerms& terms = prediction.terms;
  Predicted result;
  result.subject = format_text("{} {}", chosen.entry->name, shape_text(*chosen.entry, spec.get()));
  result.us = prediction.us;
  result.terms = {{"launch", terms.launch},   {"tensor", terms.tensor}, {"shared", terms.shared},
                  {"latency", terms.latency}, {"l2", terms.l2},         {"dram", terms.dram}};
  result.bound_by = prediction.bound_by;
  result.error = prediction.error;
  result.work = format_text(
      "{}: {}, {} on an SM, {:.1f} TFLOP/s{}", to_text(best.kernel),
      count_text(prediction.blocks, "block"), prediction.blocks_per_sm, prediction.tflops,
      prediction.share_of_peak == 0
          ? std::string()
          : format_text(", {:.1f} % of the tensor cores' peak", 100 * prediction.share_of_peak));
  return result;
}

// Attention of many queries, by the kernel that is named.
template <class K>
Predicted predicted_flash(const LibraryKernel& chosen, const K& kernel, const ptx::Gpu& gpu,
                          const PredictOptions& how) {
  if (how.warm || how.boundary != Boundary::Graph) {
    throw UsageError(
        "predict: attention is predicted cold, as a node of a graph; leave out --warm and "
        "--boundary");
  }
  const FlashPrediction prediction = predict(kernel, gpu);
  const FlashTerms& terms = prediction.terms;
  Predicted result;
  result.subject = format_text("{} {}", chosen.entry->name, shape_text(*chosen.entry, &kernel));
  result.us = prediction.us;
  result.terms = {{"launch", terms.launch}, {"tensor", terms.tensor},   {"exp", terms.exp},
                  {"shared", terms.shared}, {"latency", terms.latency}, {"l2", terms.l2},
                  {"dram", terms.dram}};
  if (terms.merge != 0) result.terms.emplace_back("merge", terms.merge);
  result.bound_by = prediction.bound_by;
  result.error = prediction.error;
  result.work = format_text(
      "tile {}: {}, {} on an SM, {:.1f} TFLOP/s{}", kernel.shape().name,
      count_text(prediction.blocks, "block"), prediction.blocks_per_sm, prediction.tflops,
      prediction.share_of_peak == 0
          ? std::string()
          : format_text(", {:.1f} % of the tensor cores' peak", 100 * prediction.share_of_peak));
  return result;
}

nlohmann::json as_json(const Predicted& result, const ptx::Gpu& gpu,
                       const PredictArguments& options) {
  nlohmann::json terms = nlohmann::json::object();
  for (const auto& [name, us] : result.terms) terms[std::string(name)] = us;
  return {{"subject", result.subject},
          {"gpu", to_json(gpu)},
          {"boundary", options.boundary},
          {"warm", options.warm},
          {"us", result.us},
          {"terms", std::move(terms)},
          {"bound_by", result.bound_by},
          {"error_band", to_json(result.error)},
          {"gpu_measured", rates_of(gpu).measured},
          {"work", result.work},
          {"unproved", unproved(boundary_of(options.boundary))}};
}

std::string as_text(const Predicted& result, const ptx::Gpu& gpu, const PredictArguments& options) {
  const std::string source = rates_of(gpu).measured ? "" : ", whose own rates were never measured";
  std::string text = format_text(
      "{} on {}{}\n{}\n\npredicted: {:.2f} us, {:.2f} to {:.2f} by the largest error seen ({:.0f} "
      "%; mean {:.1f} %)\nbound by {}\n\n",
      result.subject, gpu.full_name, source, result.work, result.us,
      result.us * (1 - result.error.worst), result.us * (1 + result.error.worst),
      100 * result.error.worst, 100 * result.error.mean, result.bound_by);
  TextTable table({"term", "us alone"});
  for (const auto& [name, us] : result.terms) table.add({std::string(name), fixed(us, 2)});
  for (std::size_t i = 0; i < table.rows(); ++i) text += table.line(i) + "\n";
  text += format_text("\nafter a {} boundary, data {}; docs/predictions.md explains the terms\n",
                      options.boundary, options.warm ? "as the launch ahead left them" : "cold");
  const std::string_view doubt = unproved(boundary_of(options.boundary));
  if (!doubt.empty()) text += format_text("unproved: {}\n", doubt);
  return text;
}

Predicted predicted(const PredictArguments& options, const ptx::Gpu& gpu) {
  const PredictOptions how{boundary_of(options.boundary), options.warm};
  if (options.kernel == kStream) {
    if (!options.settings.empty()) throw UsageError("predict stream takes no -p");
    return predicted("stream", stream_work(options, gpu), gpu, how);
  }
  const KernelDescription* const kernel = find_kernel(options.kernel);
  if (kernel != nullptr && kernel->type == kDescription<GemvProblem>.type) {
    return predicted_gemv(options, gpu, how);
  }
  const LibraryKernel chosen = library_kernel(options.kernel, options.settings);
  const ErasedValue spec = chosen.entry->make_spec(chosen.values);
  if (chosen.entry->type == kDescription<FlashAttention>.type) {
    return predicted_flash(chosen, *static_cast<const FlashAttention*>(spec.get()), gpu, how);
  }
  if (chosen.entry->type == kDescription<FlashAttentionTensorCore>.type) {
    return predicted_flash(chosen, *static_cast<const FlashAttentionTensorCore*>(spec.get()), gpu,
                           how);
  }
  if (chosen.entry->type == kDescription<FlashAttentionWgmma>.type) {
    return predicted_flash(chosen, *static_cast<const FlashAttentionWgmma*>(spec.get()), gpu, how);
  }
  if (is_gemm(*chosen.entry)) return predicted_gemm(chosen, spec, gpu, how);
  return predicted(format_text("{} {}", chosen.entry->name, shape_text(*chosen.entry, spec.get())),
                   launch_work(*chosen.entry, chosen.values, gpu), gpu, how);
}

void predict_command(const PredictArguments& options) {
  const ptx::Gpu gpu = planned_gpu(options.gpu, options.device, Settings::from_environment());
  const Predicted result = predicted(options, gpu);
  write_output(options.output, options.json ? text_of(as_json(result, gpu, options))
                                            : as_text(result, gpu, options));
}

}  // namespace

void add_predict(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<PredictArguments>();
  Command command(app, "predict",
                  "Predict the time of a launch on a GPU: its terms, the largest, the error of "
                  "such predictions");
  command.footer("Example: ptxgen predict rmsnorm -p rows=1 -p columns=4096 --gpu h200");
  command.add_option("kernel", options->kernel, "a name that `ptxgen list` shows, or stream")
      .required();
  command
      .add_option("-p", options->settings,
                  "NAME=VALUE, repeatable; for gemv " + std::string(kAnyGemvSettingsHelp))
      .one_value_each();
  command.add_option("--gpu", options->gpu, "t4 to rtx5090, or sm_90 and the like");
  command.add_option("--device", options->device, "cuda:N: for that GPU by its own description");
  command
      .add_option("--boundary", options->boundary,
                  "to the kernel ahead: stream, graph or programmatic")
      .capture_default_str();
  command.add_flag("--warm", options->warm, "the kernel ahead used the same data");
  command.add_option("--blocks", options->blocks, "stream: blocks of the grid");
  command.add_option("--block", options->block, "stream: threads of a block").capture_default_str();
  command
      .add_option("--bytes-per-thread", options->bytes_per_thread,
                  "stream: bytes that a thread reads")
      .capture_default_str();
  command
      .add_option("--written-per-thread", options->written_per_thread,
                  "stream: bytes that a thread writes")
      .capture_default_str();
  command
      .add_option("--loads-in-flight", options->loads_in_flight,
                  "stream: loads of 16 bytes before a thread waits")
      .capture_default_str();
  command.add_option("--blocks-per-sm", options->blocks_per_sm,
                     "stream: resident blocks; without it as many as fit");
  command.add_option("-o,--output", options->output, "write there instead of standard output");
  command.add_flag("--json", options->json,
                   "one JSON document: {\"us\",\"terms\",\"bound_by\",\"error_band\",..}");
  command.callback([options, &exit_code] {
    predict_command(*options);
    exit_code = kDone;
  });
}

}  // namespace ptxgen::cli
