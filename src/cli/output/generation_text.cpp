// src/cli/output/generation_text.cpp - the report of a generation
#include "cli/output/generation_text.hpp"

#include <map>
#include <nlohmann/json.hpp>

#include "cli_common/gemv_report.hpp"
#include "cli_common/text_table.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

using nlohmann::json;

namespace {

std::string megabytes(double bytes) { return format_text("{:.1f} MB", bytes * 1e-6); }

// Of steps, or of nothing.
double each(double amount, std::uint64_t steps) {
  return steps == 0 ? 0 : amount / static_cast<double>(steps);
}

// What the weights and the cache of a step arrive at, in 1e9 bytes per second.
double achieved_gb_per_s(const GenerationReport& report) {
  return report.bytes_per_token() * report.result.tokens_per_second() * 1e-9;
}

// The launches of one step: counted on the emulated device, else those that the session lists.
struct KernelRow {
  std::string kernel;
  double launches = 0;
  double lane_instructions = 0;
  double share = 0;
};
std::vector<KernelRow> kernel_rows(const GenerationReport& report) {
  std::vector<KernelRow> rows;
  const Generation& result = report.result;
  if (report.run.emulated()) {
    const double seconds = total(result.decode_kernels).seconds;
    for (const KernelStatistics& kernel : result.decode_kernels) {
      rows.push_back({kernel.kernel, each(static_cast<double>(kernel.launches), result.steps),
                      static_cast<double>(kernel.lane_instructions),
                      seconds > 0 ? kernel.seconds / seconds : 0});
    }
    return rows;
  }
  std::map<std::string, double> launches;
  for (const model::Step& step : report.session.steps()) ++launches[std::string(step.kernel)];
  for (const auto& [kernel, count] : launches) rows.push_back({kernel, count, 0, 0});
  return rows;
}

json kernels_json(const GenerationReport& report) {
  json list = json::array();
  for (const KernelRow& row : kernel_rows(report)) {
    json kernel = {{"kernel", row.kernel}, {"launches_per_token", row.launches}};
    if (report.run.emulated()) {
      kernel["lane_instructions_per_token"] = row.lane_instructions;
      kernel["time_share"] = row.share;
    }
    list.push_back(std::move(kernel));
  }
  return list;
}

std::string kernels_text(const GenerationReport& report) {
  const bool emulated = report.run.emulated();
  TextTable table(
      emulated ? std::vector<std::string>{"kernel", "launches", "lane instructions", "time, %"}
               : std::vector<std::string>{"kernel", "launches"});
  for (const KernelRow& row : kernel_rows(report)) {
    std::vector<std::string> cells = {row.kernel, format_text("{:.0f}", row.launches)};
    if (emulated) {
      cells.push_back(format_text("{:.0f}", row.lane_instructions));
      cells.push_back(format_text("{:.1f}", 100 * row.share));
    }
    table.add(std::move(cells));
  }
  std::string text = "a token, by kernel:\n";
  for (std::size_t i = 0; i < table.rows(); ++i) text += table.line(i) + "\n";
  return text;
}

json prompt_json(const GenerationReport& report) {
  json list = json::array();
  for (const KernelStatistics& kernel : report.result.prefill_kernels) {
    list.push_back(
        {{"kernel", kernel.kernel}, {"launches", kernel.launches}, {"seconds", kernel.seconds}});
  }
  return list;
}

std::string prompt_text(const GenerationReport& report) {
  const double seconds = total(report.result.prefill_kernels).seconds;
  TextTable table({"kernel", "launches", "s", "time, %"});
  for (const KernelStatistics& kernel : report.result.prefill_kernels) {
    table.add({kernel.kernel, format_text("{}", kernel.launches),
               format_text("{:.2f}", kernel.seconds),
               format_text("{:.1f}", seconds > 0 ? 100 * kernel.seconds / seconds : 0)});
  }
  std::string text = "the prompt, by kernel:\n";
  for (std::size_t i = 0; i < table.rows(); ++i) text += table.line(i) + "\n";
  return text;
}

std::string roofline_text(const GenerationReport& report) {
  const ptx::Gpu gpu = gpu_of(report.run.device());
  const double achieved = achieved_gb_per_s(report);
  if (!report.run.on_gpu()) return format_text("{:.2f} GB/s of the host's memory", achieved);
  std::string text =
      format_text("{:.0f} GB/s, {:.1f} % of the {:.0f} GB/s that {} reads at", achieved,
                  100 * achieved / read_rate(gpu), read_rate(gpu), gpu.full_name);
  if (report.copy_gb_per_s) {
    text += format_text("; {:.1f} % of a copy measured beside ({:.0f} GB/s)",
                        100 * achieved / *report.copy_gb_per_s, *report.copy_gb_per_s);
  }
  return text;
}

// The rate of the GEMM kernel that took longest, on the emulated device.
struct GemmRate {
  std::string_view kernel;
  double operations = 0;
  double gflops = 0;
};

// Operations of the layers' products for the chunks that GEMM kernels multiply. One kernel has them
// all where the planner chose the same for every matrix; else there is no rate.
GemmRate gemm_rate(const GenerationReport& report) {
  const model::ModelConfig& config = report.model.config();
  const std::uint64_t rows = report.session.options().prefill_rows;
  const std::uint64_t tokens = report.job.prompt.size();
  const std::uint64_t rest = tokens % rows;
  const std::uint64_t counted = rows < model::kMinGemmRows   ? 0
                                : rest < model::kMinGemmRows ? tokens - rest
                                                             : tokens;
  const std::uint64_t width = config.width;
  const std::uint64_t matrices =
      width * (2 * config.q_width() + 2 * config.kv_width()) + 3 * width * config.ffn;
  GemmRate rate;
  double seconds = 0;
  for (const KernelStatistics& kernel : report.result.prefill_kernels) {
    if (!kernel.kernel.starts_with("gemm_")) continue;
    if (!rate.kernel.empty()) return {};
    rate.kernel = kernel.kernel;
    seconds = kernel.seconds;
  }
  if (rate.kernel.empty()) return {};
  rate.operations = 2.0 * static_cast<double>(matrices * config.layers * counted);
  rate.gflops = seconds > 0 ? rate.operations / seconds * 1e-9 : 0;
  return rate;
}

std::string comparison_text(const LogitsComparison& comparison) {
  return format_text(
      "nmse {:.3g} over {}{}{}", comparison.nmse, count_text(comparison.positions, "position"),
      comparison.first_difference
          ? format_text(", another top token at position {}", *comparison.first_difference)
          : "",
      comparison.ok() ? "" : format_text("; WRONG: expects at most {:g}", comparison.max_nmse));
}

}  // namespace

json to_json(const GenerationReport& report) {
  const Generation& result = report.result;
  const FindingCounts findings = report.run.findings();
  json document = {
      {"model", report.model.config().name},
      {"architecture", to_string(report.model.config().architecture)},
      {"device", report.run.device_name()},
      {"gpu", report.run.device().name},
      {"seed", report.job.sampler.seed},
      {"chat_template", report.chat_template.empty() ? json(nullptr) : json(report.chat_template)},
      {"prompt_tokens", report.job.prompt},
      {"tokens", result.tokens},
      {"text", report.text ? json(*report.text) : json(nullptr)},
      {"stop", result.stop},
      {"context", report.session.options().context},
      {"kv_type", to_string(report.session.options().cache)},
      {"load_seconds", report.run.load_seconds()},
      {"prefill_seconds", result.prefill_seconds},
      {"first_token_seconds", result.first_token_seconds},
      {"decode_seconds", result.decode_seconds},
      {"tokens_per_second", result.tokens_per_second()},
      {"bytes_per_token", report.bytes_per_token()},
      {"peak_resident_bytes", peak_resident_bytes()},
      {"findings",
       {{"errors", findings.errors}, {"warnings", findings.warnings}, {"notes", findings.notes}}}};
  if (report.run.emulated()) {
    document["lane_instructions_per_token"] = total(result.decode_kernels).lane_instructions;
  } else {
    const double achieved = achieved_gb_per_s(report);
    document["achieved_gb_per_s"] = achieved;
    if (report.run.on_gpu()) {
      document["roofline_share"] = achieved / read_rate(gpu_of(report.run.device()));
    }
    if (report.copy_gb_per_s) document["copy_gb_per_s"] = *report.copy_gb_per_s;
    if (report.copy_gb_per_s) document["copy_share"] = achieved / *report.copy_gb_per_s;
  }
  if (report.comparison) {
    const LogitsComparison& comparison = *report.comparison;
    document["logits_nmse"] = comparison.nmse;
    document["logits_compared"] = comparison.positions;
    document["logits_first_difference"] =
        comparison.first_difference ? json(*comparison.first_difference) : json(nullptr);
  }
  document["prefill_type"] = to_string(report.session.options().prefill_type);
  if (report.run.emulated()) {
    document["prefill_launches"] = total(result.prefill_kernels).launches;
  }
  if (report.by_kernel) {
    document["kernels"] = kernels_json(report);
    document["prefill_kernels"] = prompt_json(report);
    if (const GemmRate rate = gemm_rate(report); rate.gflops > 0) {
      document["prefill_gemm_gflops"] = rate.gflops;
    }
  }
  return document;
}

std::string to_text(const GenerationReport& report) {
  std::string text;
  const auto row = [&text](std::string_view name, const std::string& value) {
    text += format_text("{:<12}{}\n", name, value);
  };
  const Generation& result = report.result;
  const model::ModelConfig& config = report.model.config();
  row("model", format_text("{}, {}, {} on {}, loaded in {:.2f} s",
                           config.name.empty() ? to_string(config.architecture) : config.name,
                           count_text(config.layers, "layer"),
                           megabytes(static_cast<double>(report.model.device_bytes())),
                           report.run.device().name, report.run.load_seconds()));
  if (!report.chat_template.empty()) row("template", report.chat_template);
  const std::uint64_t launches = total(result.prefill_kernels).launches;
  row("prompt",
      format_text(
          "{} in {:.2f} s{}{}", count_text(report.job.prompt.size(), "token"),
          result.prefill_seconds, launches != 0 ? ", " + count_text(launches, "launch") : "",
          report.session.options().prefill_type == ElementType::f32
              ? ""
              : format_text(", products in {}", to_string(report.session.options().prefill_type))));
  if (const GemmRate rate = gemm_rate(report); report.by_kernel && rate.gflops > 0) {
    row("", format_text("{:.2f} GFLOP/s of {}, {:.1f} GFLOP of products", rate.gflops, rate.kernel,
                        rate.operations * 1e-9));
  }
  if (result.first_token_seconds > 0) {
    row("first token", format_text("after {:.2f} s", result.first_token_seconds));
  }
  row("generated", format_text("{} ({})", count_text(result.tokens.size(), "token"), result.stop));
  if (result.steps != 0) {
    row("speed", format_text("{:.2f} tokens/s, {} in {:.2f} s{}", result.tokens_per_second(),
                             count_text(result.steps, "step"), result.decode_seconds,
                             report.run.emulated() ? "; the emulator's speed, not a GPU's" : ""));
    row("a token",
        format_text("{}: {} of weights, {} of keys and values", megabytes(report.bytes_per_token()),
                    megabytes(static_cast<double>(report.model.bytes_per_token())),
                    megabytes(result.cache_bytes_per_step)));
    if (report.run.emulated()) {
      const double lanes = static_cast<double>(total(result.decode_kernels).lane_instructions);
      row("", format_text("{:.1f} million lane instructions", lanes * 1e-6));
    } else {
      row("roofline", roofline_text(report));
    }
  }
  if (report.comparison) row("logits", comparison_text(*report.comparison));
  if (!report.by_kernel) return text;
  row("memory", format_text("{} resident at most, {} on the device for the session",
                            megabytes(static_cast<double>(peak_resident_bytes())),
                            megabytes(static_cast<double>(report.session.device_bytes()))));
  if (launches != 0) text += prompt_text(report);
  if (result.steps != 0) text += kernels_text(report);
  return text;
}

}  // namespace ptxgen::cli
