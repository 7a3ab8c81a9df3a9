// bench/validation/points.cpp - published timings that predictions are held to
#include "bench/validation/points.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/validation/kernels.hpp"
#include "cli_common/program.hpp"
#include "support/format.hpp"

namespace ptxgen::validation {

namespace {

using nlohmann::json;

[[noreturn]] void refuse(const json& series, std::string_view what) {
  throw cli::UsageError(format_text("the points of '{}' on '{}': {}",
                                    series.value("name", std::string("?")),
                                    series.value("gpu", std::string("?")), what));
}

const ptx::Gpu& gpu_of(const json& series) {
  const ptx::Gpu* const gpu = ptx::find_gpu(series.at("gpu").get<std::string>());
  if (gpu == nullptr) refuse(series, "there is no such GPU in the table");
  return *gpu;
}

Boundary boundary_of(const json& series) {
  const std::string name = series.value("boundary", std::string("stream"));
  for (const Boundary boundary : {Boundary::Stream, Boundary::Graph, Boundary::Programmatic}) {
    if (to_string(boundary) == name) return boundary;
  }
  refuse(series,
         format_text("there is no boundary '{}'; write stream, graph or programmatic", name));
}

Regime regime_of(const json& series) {
  const std::string name = series.at("regime");
  for (const Regime regime : {Regime::Reads, Regime::Mixed, Regime::Repeated, Regime::Gemv}) {
    if (to_string(regime) == name) return regime;
  }
  refuse(series,
         format_text("there is no regime '{}'; write reads, mixed, repeated or gemv", name));
}

Point stream_of(const json& series, const json& point) {
  return stream_point(point.at("block"), series.at("arrays_read"), series.at("arrays_written"),
                      point.at("gb_per_s"));
}

Point small_of(const json& series, const json& point) {
  return small_point(gpu_of(series), point.at("elements"), point.at("block"), point.at("gb_per_s"));
}

Point elementwise_of(const json& series, const json& point) {
  return library_point(gpu_of(series), point.at("name"), point.at("bytes_read"),
                       point.at("bytes_written"), point.at("us"));
}

Point gemv_of(const json& series, const json& point) {
  Point result;
  result.problem.n = point.at("n");
  result.problem.k = point.at("k");
  result.problem.layout = GemvLayout::R;
  const std::string type = series.at("dtype");
  result.problem.weights = type == "bf16"  ? ElementType::bf16
                           : type == "f32" ? ElementType::f32
                                           : ElementType::f16;
  result.problem.x = result.problem.y = result.problem.weights;
  result.label = format_text("{} x {}", result.problem.n, result.problem.k);
  result.measured_us = point.at("us");
  if (!point.contains("rows")) return result;
  GemvPlan& plan = result.plan.emplace();
  plan.problem = result.problem;
  plan.rows = point.at("rows");
  plan.unroll = point.at("unroll");
  plan.warps_out = point.at("warps");
  plan.blocks = static_cast<std::uint32_t>(plan.strips());
  plan.blocks_per_sm = point.at("blocks_per_sm");
  result.label +=
      format_text(", {} rows, {} loads, {} warps", plan.rows, plan.unroll, plan.warps_out);
  return result;
}

struct Kind {
  std::string_view name;
  Point (*read)(const json& series, const json& point);
  bool warm;
};
constexpr Kind kKinds[] = {{"stream", stream_of, false},
                           {"small", small_of, true},
                           {"elementwise", elementwise_of, false},
                           {"gemv", gemv_of, false}};

Series series_of(const json& document) {
  const std::string name = document.at("kind");
  const auto* const kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                        [&](const Kind& row) { return row.name == name; });
  if (kind == std::end(kKinds)) {
    refuse(document,
           format_text("there is no kind '{}'; write stream, small, elementwise or gemv", name));
  }
  Series series;
  series.name = document.at("name");
  series.gpu = gpu_of(document).name;
  series.source = document.at("source");
  series.regime = regime_of(document);
  series.options = {boundary_of(document), kind->warm};
  for (const json& point : document.at("points")) {
    series.points.push_back(kind->read(document, point));
  }
  return series;
}

}  // namespace

std::vector<Series> read_points(const json& document) {
  std::vector<Series> all;
  for (const json& series : document.at("series")) {
    try {
      all.push_back(series_of(series));
    } catch (const json::exception& error) {
      refuse(series, error.what());
    }
  }
  return all;
}

}  // namespace ptxgen::validation
