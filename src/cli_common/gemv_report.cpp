// src/cli_common/gemv_report.cpp - GEMV problems, plans and predictions as JSON
#include "cli_common/gemv_report.hpp"

#include <nlohmann/json.hpp>

#include "support/format.hpp"

namespace ptxgen::cli {

using nlohmann::json;

json to_json(const GemvProblem& problem) {
  return {{"text", to_text(problem)},
          {"k", problem.k},
          {"n", problem.n},
          {"layout", to_string(problem.layout)},
          {"dtype", to_string(problem.weights)},
          {"x", to_string(problem.x)},
          {"y", to_string(problem.y)},
          {"lda", problem.leading_dimension()}};
}

json to_json(const GemvPlan& plan) {
  return {{"text", to_text(plan)},
          {"path", to_string(plan.path)},
          {"load_bytes", plan.load_bytes},
          {"warps_out", plan.warps_out},
          {"warps_k", plan.warps_k},
          {"rows", plan.rows},
          {"unroll", plan.unroll},
          {"blocks", plan.blocks},
          {"threads", plan.threads()},
          {"chunk_steps", plan.chunk_steps},
          {"cluster", plan.cluster},
          {"stages", plan.stages},
          {"programmatic", plan.programmatic},
          {"streaming", plan.streaming},
          {"blocks_per_sm", plan.blocks_per_sm},
          {"strips", plan.strips()},
          {"steps", plan.steps()}};
}

json to_json(const ErrorBand& error) { return {{"mean", error.mean}, {"worst", error.worst}}; }

json to_json(const GemvPrediction& prediction) {
  const GemvTerms& terms = prediction.terms;
  return {{"bytes_read", prediction.bytes_read},
          {"bytes_written", prediction.bytes_written},
          {"weight_requests", prediction.weight_requests},
          {"weight_sectors", prediction.weight_sectors},
          {"reductions", prediction.reductions},
          {"parts", prediction.parts},
          {"workspace_bytes", prediction.workspace_bytes},
          {"registers", prediction.registers},
          {"blocks_per_sm", prediction.blocks_per_sm},
          {"waves", prediction.waves},
          {"tail_loss", prediction.tail_loss},
          {"bytes_in_flight_per_sm", prediction.bytes_in_flight_per_sm},
          {"bandwidth_gb_per_s", prediction.bandwidth_gb_per_s},
          {"isolated_us", prediction.isolated_us},
          {"chained_us", prediction.chained_us},
          {"terms",
           {{"launch", terms.boundary},
            {"blocks", terms.blocks},
            {"latency", terms.latency},
            {"dram", terms.dram},
            {"issue", terms.issue},
            {"l1", terms.l1},
            {"reduction", terms.reduction}}},
          {"error_band", to_json(prediction.error)}};
}

json to_json(const ptx::Gpu& gpu) {
  return {{"name", gpu.name},
          {"full_name", gpu.full_name},
          {"target", gpu.target},
          {"sms", gpu.sms},
          {"bandwidth_gb_per_s", gpu.bandwidth_gb_per_s},
          {"read_gb_per_s", read_rate(gpu)},
          {"latency_ns", rates_of(gpu).latency_ns}};
}

std::string error_text(const ErrorBand& error) {
  return format_text(
      "predictions of this kind are off by {:.0f} % on average, {:.0f} % at most "
      "(docs/predictions.md)",
      100 * error.mean, 100 * error.worst);
}

std::string fixed(double value, int digits) { return format_text("{:.{}f}", value, digits); }

}  // namespace ptxgen::cli
