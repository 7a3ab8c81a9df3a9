// src/cli_common/decode_estimate.cpp - the GEMVs of one token, predicted
#include "cli_common/decode_estimate.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "cli_common/gemv_problem.hpp"
#include "cli_common/gemv_report.hpp"
#include "cli_common/program.hpp"
#include "cli_common/text_table.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

TextTable shape_table(const DecodeEstimate& estimate) {
  TextTable table({"matrix", "k", "n", "count", "MB each", "us each", "GB/s", "us in all"});
  for (const EstimatedShape& row : estimate.shapes) {
    const double each = row.bytes() / row.shape.count;
    const double us = row.choice.prediction.chained_us;
    table.add({std::string(row.shape.name), std::to_string(row.shape.k),
               std::to_string(row.shape.n), std::to_string(row.shape.count), fixed(each / 1e6, 1),
               fixed(us, 2), fixed(each / us * 1e-3, 0), fixed(row.total_us(), 1)});
  }
  return table;
}

}  // namespace

const DecoderModel& decoder_model(const std::string& name) {
  if (const DecoderModel* model = find_decoder_model(name)) return *model;
  std::string known;
  for (const DecoderModel& model : decoder_models()) {
    known += format_text("{}{}", known.empty() ? "" : ", ", model.name);
  }
  throw UsageError(
      format_text("--model {}: there is no such model in the table; there are: {}", name, known));
}

nlohmann::json to_json(const DecoderModel& model) {
  return {{"name", model.name},
          {"card", model.card},
          {"hidden", model.hidden},
          {"intermediate", model.intermediate},
          {"layers", model.layers},
          {"heads", model.heads},
          {"kv_heads", model.kv_heads},
          {"head_dim", model.head_dim},
          {"vocabulary", model.vocabulary},
          {"tied_head", model.tied_head}};
}

double EstimatedShape::bytes() const noexcept {
  return static_cast<double>(shape.elements()) * ptxgen::bytes(problem.weights);
}

DecodeEstimate estimate_decode(const DecoderModel& model, ElementType weights, bool fused,
                               const ptx::Gpu& gpu) {
  DecodeEstimate estimate;
  for (const DecodeShape& shape : decode_shapes(model, fused)) {
    EstimatedShape row;
    row.shape = shape;
    row.problem.k = shape.k;
    row.problem.n = shape.n;
    row.problem.layout = GemvLayout::R;
    row.problem.weights = weights;
    row.choice = rank_gemv_plans(row.problem, gpu).front();
    estimate.bytes += row.bytes();
    estimate.predicted_us += row.total_us();
    estimate.gemvs += shape.count;
    estimate.shapes.push_back(std::move(row));
  }
  return estimate;
}

void add_decode_options(Command& command, DecodeOptions& options, bool needs_model) {
  Option model = command.add_option("--model", options.model, "llama-2-7b and the like");
  if (needs_model) model.required();
  command
      .add_option("--dtype", options.dtype,
                  needs_model ? "of the weights: f32, f16 or bf16"
                              : "of the weights of --model: f32 to q6_k, or q4_k_m")
      .capture_default_str();
  command.add_flag("--unfused", options.unfused,
                   "q, k, v, gate and up as separate matrices: 7 GEMVs a layer, not 4");
  command.add_option("-o,--output", options.output, "write there instead of standard output");
  command.add_flag("--json", options.json,
                   "one JSON document: {\"model\",\"gpu\",\"shapes\",\"predicted_us\",..}");
}

DecodeReport decode_report(const DecodeOptions& options) {
  DecodeReport report;
  report.model = &decoder_model(options.model);
  report.weights = gemv_type("--dtype " + options.dtype, options.dtype);
  report.fused = !options.unfused;
  return report;
}

void DecodeReport::predict_for(const ptx::Gpu& on) {
  gpu = on;
  estimate = estimate_decode(*model, weights, fused, gpu);
}

nlohmann::json to_json(const DecodeReport& report) {
  const DecodeEstimate& estimate = report.estimate;
  nlohmann::json shapes = nlohmann::json::array();
  for (const EstimatedShape& row : estimate.shapes) {
    shapes.push_back({{"name", row.shape.name},
                      {"count", row.shape.count},
                      {"problem", to_json(row.problem)},
                      {"plan", to_json(row.choice.plan)},
                      {"prediction", to_json(row.choice.prediction)},
                      {"total_us", row.total_us()}});
  }
  return {{"model", to_json(*report.model)},
          {"dtype", to_string(report.weights)},
          {"fused", report.fused},
          {"gpu", to_json(report.gpu)},
          {"gemvs", estimate.gemvs},
          {"bytes", estimate.bytes},
          {"fits", estimate.bytes <= static_cast<double>(report.gpu.memory_bytes)},
          {"shapes", std::move(shapes)},
          {"predicted_us", estimate.predicted_us},
          {"predicted_tokens_per_s", estimate.tokens_per_s()},
          {"error_band", to_json(estimate.error())},
          {"roofline_tokens_per_s",
           {{"datasheet", estimate.roofline(report.gpu.bandwidth_gb_per_s)},
            {"read", estimate.roofline(read_rate(report.gpu))}}}};
}

std::string to_text(const DecodeReport& report) {
  const DecodeEstimate& estimate = report.estimate;
  const ptx::Gpu& gpu = report.gpu;
  std::string text = format_text("{} {} on {}, the GEMVs of one token as one chain\n\n",
                                 report.model->name, to_string(report.weights), gpu.full_name);
  const TextTable table = shape_table(estimate);
  for (std::size_t i = 0; i < table.rows(); ++i) text += table.line(i) + "\n";
  text +=
      format_text("\n{:.2f} GB of weights in {} GEMVs, {:.3f} ms predicted: {:.0f} tokens/s\n{}\n",
                  estimate.bytes / 1e9, estimate.gemvs, estimate.predicted_us / 1e3,
                  estimate.tokens_per_s(), error_text(estimate.error()));
  text += format_text(
      "by the weights alone: {:.0f} tokens/s at the {:.0f} GB/s that a reader gets, "
      "{:.0f} at the {:.0f} GB/s of the datasheet\n",
      estimate.roofline(read_rate(gpu)), read_rate(gpu), estimate.roofline(gpu.bandwidth_gb_per_s),
      gpu.bandwidth_gb_per_s);
  if (estimate.bytes > static_cast<double>(gpu.memory_bytes)) {
    text += format_text("the weights do not fit into the {:.0f} GB of this GPU\n",
                        static_cast<double>(gpu.memory_bytes) / 1e9);
  }
  return text;
}

}  // namespace ptxgen::cli
