// src/cli/commands/decode_estimate.cpp - ptxgen decode-estimate: the time of one token, predicted
#include "cli_common/decode_estimate.hpp"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/commands/commands.hpp"
#include "cli_common/device_choice.hpp"
#include "cli_common/gemv_report.hpp"
#include "cli_common/text_table.hpp"
#include "ptxgen/kernels/attention/cache_types.hpp"
#include "ptxgen/model/estimate.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

struct DecodeEstimateArguments {
  DecodeOptions decode;
  std::string file;
  std::string gpu;
  std::uint32_t context = model::EstimateOptions{}.context;
  std::string cache = std::string(to_string(model::EstimateOptions{}.cache));
  std::string boundary = "graph";
  bool gemvs = false;
};

/// An estimate with everything that its report names.
struct TokenReport {
  nlohmann::json model;  ///< of the table, or a file's name
  std::string subject;   ///< "llama-2-7b q4_k_m"
  ptx::Gpu gpu;
  model::EstimateOptions options;
  model::DecodeEstimate estimate;

  [[nodiscard]] bool fits() const { return estimate.bytes() <= gpu.memory_bytes; }
};

model::EstimateOptions estimate_options(const DecodeEstimateArguments& options) {
  model::EstimateOptions result;
  result.context = options.context;
  std::optional<ElementType> cache;
  for (const Word<ElementType>& word : kCacheTypes) {
    if (word.name == options.cache) cache = word.value;
  }
  if (!cache) {
    throw UsageError(format_text("--kv-type {}: write f32, f16, bf16 or q8_0", options.cache));
  }
  result.cache = *cache;
  for (const Boundary one : {Boundary::Stream, Boundary::Graph, Boundary::Programmatic}) {
    if (to_string(one) != options.boundary) continue;
    result.boundary = one;
    return result;
  }
  throw UsageError(
      format_text("--boundary {}: write stream, graph or programmatic", options.boundary));
}

TokenReport token_report(const DecodeEstimateArguments& options) {
  const DecodeOptions& decode = options.decode;
  TokenReport report;
  report.options = estimate_options(options);
  report.gpu = planned_gpu(options.gpu, decode.device, Settings::from_environment());
  if (report.options.boundary == Boundary::Programmatic && ptx::sm_of(report.gpu) < 90) {
    throw UsageError(format_text("--boundary programmatic: {} has no programmatic launch",
                                 report.gpu.full_name));
  }
  if (!options.file.empty()) {
    const gguf::File file(options.file);
    report.subject = options.file;
    report.model = {{"file", options.file}};
    report.estimate = model::estimate_decode(file, report.gpu, report.options);
  } else {
    const DecoderModel& named = decoder_model(decode.model);
    report.subject = format_text("{} {}", named.name, decode.dtype);
    report.model = to_json(named);
    report.estimate =
        model::estimate_decode(model::config_of(named), decode.dtype, report.gpu, report.options);
  }
  return report;
}

nlohmann::json token_json(const TokenReport& report) {
  const model::DecodeEstimate& estimate = report.estimate;
  nlohmann::json kernels = nlohmann::json::array();
  for (const model::EstimatedLaunches& row : estimate.rows) {
    kernels.push_back({{"step", row.step},
                       {"kernel", row.kernel},
                       {"shape", row.shape},
                       {"launches", row.launches},
                       {"bytes", row.bytes},
                       {"us", row.us},
                       {"boundary_us", row.boundary_us},
                       {"bound_by", row.bound_by},
                       {"error_band", to_json(row.error)}});
  }
  return {{"model", report.model},
          {"gpu", to_json(report.gpu)},
          {"context", report.options.context},
          {"kv_type", to_string(report.options.cache)},
          {"boundary", to_string(report.options.boundary)},
          {"unproved", unproved(report.options.boundary)},
          {"kernels", std::move(kernels)},
          {"launches", estimate.launches},
          {"weight_bytes", estimate.weight_bytes},
          {"cache_bytes", estimate.cache_bytes},
          {"bytes", estimate.bytes()},
          {"fits", report.fits()},
          {"predicted_us", estimate.us},
          {"boundary_us", estimate.boundary_us},
          {"predicted_tokens_per_s", estimate.tokens_per_s()},
          {"error_band", to_json(estimate.error)},
          {"roofline_tokens_per_s",
           {{"datasheet", estimate.roofline(report.gpu.bandwidth_gb_per_s)},
            {"read", estimate.roofline(read_rate(report.gpu))}}}};
}

TextTable launch_table(const model::DecodeEstimate& estimate) {
  TextTable table({"step", "kernel", "launches", "MB each", "us each", "us in all", "bound by"});
  for (const model::EstimatedLaunches& row : estimate.rows) {
    table.add({row.step, row.kernel, std::to_string(row.launches),
               fixed(static_cast<double>(row.bytes) / 1e6, 3), fixed(row.us, 2),
               fixed(row.launches * row.us, 1), std::string(row.bound_by)});
  }
  return table;
}

std::string token_text(const TokenReport& report) {
  const model::DecodeEstimate& estimate = report.estimate;
  const ptx::Gpu& gpu = report.gpu;
  std::string text =
      format_text("{} on {}, one token with {} in a cache of {}\n\n", report.subject, gpu.full_name,
                  count_text(report.options.context, "position"), to_string(report.options.cache));
  const TextTable table = launch_table(estimate);
  for (std::size_t i = 0; i < table.rows(); ++i) text += table.line(i) + "\n";
  text += format_text(
      "\npredicted: {:.1f} us, {:.0f} tokens/s; {:.1f} to {:.1f} us by the largest errors seen "
      "({:.0f} %; mean {:.1f} %)\n{}, whose {} boundaries are {:.1f} us of it ({:.0f} %)\n",
      estimate.us, estimate.tokens_per_s(), estimate.us * (1 - estimate.error.worst),
      estimate.us * (1 + estimate.error.worst), 100 * estimate.error.worst,
      100 * estimate.error.mean, count_text(estimate.launches, "launch"),
      to_string(report.options.boundary), estimate.boundary_us,
      100 * estimate.boundary_us / estimate.us);
  text += format_text(
      "roofline: {:.1f} MB of weights and {:.1f} MB of cache; {:.0f} tokens/s at the {:.0f} GB/s "
      "that a reader gets, {:.0f} at the {:.0f} GB/s of the datasheet\n",
      static_cast<double>(estimate.weight_bytes) / 1e6,
      static_cast<double>(estimate.cache_bytes) / 1e6, estimate.roofline(read_rate(gpu)),
      read_rate(gpu), estimate.roofline(gpu.bandwidth_gb_per_s), gpu.bandwidth_gb_per_s);
  const std::string_view doubt = unproved(report.options.boundary);
  if (!doubt.empty()) text += format_text("unproved: {}\n", doubt);
  if (!report.fits()) {
    text += format_text("the weights do not fit into the {:.0f} GB of this GPU\n",
                        static_cast<double>(gpu.memory_bytes) / 1e9);
  }
  return text;
}

int gemv_estimate(const DecodeEstimateArguments& options) {
  const DecodeOptions& decode = options.decode;
  DecodeReport report = decode_report(decode);
  report.predict_for(planned_gpu(options.gpu, decode.device, Settings::from_environment()));
  write_output(decode.output, decode.json ? text_of(to_json(report)) : to_text(report));
  return kDone;
}

int decode_command(const DecodeEstimateArguments& options) {
  const DecodeOptions& decode = options.decode;
  if (options.file.empty() == decode.model.empty()) {
    throw UsageError(
        "decode-estimate takes a GGUF file or --model NAME: write one of them, as in ptxgen "
        "decode-estimate --model llama-2-7b --dtype q4_k_m");
  }
  if (options.gemvs && decode.model.empty()) {
    throw UsageError("--gemvs is of --model; leave it out with a file");
  }
  if (options.gemvs) return gemv_estimate(options);
  if (decode.unfused) throw UsageError("--unfused is of --gemvs; add it, or leave --unfused out");
  const TokenReport report = token_report(options);
  write_output(decode.output, decode.json ? text_of(token_json(report)) : token_text(report));
  return kDone;
}

}  // namespace

void add_decode_estimate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DecodeEstimateArguments>();
  Command command(app, "decode-estimate",
                  "Predict the time of one token, kernel by kernel, beside the roofline of its "
                  "weights and cache");
  command.footer(
      "Example: ptxgen decode-estimate model.gguf --gpu h200\n"
      "         ptxgen decode-estimate --model llama-2-7b --dtype q4_k_m --gpu rtx4090\n"
      "With --measure the call runs `gemv-bench decode`, which also measures the GEMVs.");
  command.add_option("file", options->file, "a GGUF file, whose shapes and types are used");
  add_decode_options(command, options->decode, false);
  command
      .add_option("--context", options->context, "positions in the KV cache, with the token's own")
      .capture_default_str();
  command.add_option("--kv-type", options->cache, "of the KV cache: f32, f16, bf16 or q8_0")
      .capture_default_str();
  command
      .add_option("--boundary", options->boundary,
                  "between the launches: stream, graph or programmatic")
      .capture_default_str();
  command.add_flag("--gemvs", options->gemvs,
                   "only the GEMVs of --model, as `gemv-bench decode` measures them");
  command.add_option("--gpu", options->gpu, "t4 to rtx5090, or sm_90 and the like");
  command.add_option("--device", options->decode.device,
                     "cuda:N: predict for that GPU by its own description");
  command.callback([options, &exit_code] { exit_code = decode_command(*options); });
}

}  // namespace ptxgen::cli
