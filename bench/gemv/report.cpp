// bench/gemv/report.cpp - a run of gemv-bench as JSON and CSV
#include <charconv>
#include <nlohmann/json.hpp>

#include "bench/gemv/results.hpp"
#include "cli_common/files.hpp"
#include "cli_common/gemv_report.hpp"
#include "cli_common/program.hpp"

namespace ptxgen::gemv_bench {

namespace {

using nlohmann::json;

json statistics_json(const Statistics& us) {
  return {{"n", us.n},          {"median", us.median},     {"ci_low", us.low},
          {"ci_high", us.high}, {"coverage", us.coverage}, {"p5", us.p5},
          {"p95", us.p95},      {"least", us.min},         {"most", us.max}};
}

json metric_json(const Arm& arm, const MetricResult& metric) {
  json document = {
      {"us", statistics_json(metric.us)},
      {"gb_per_s",
       metric.us.median > 0 ? static_cast<double>(arm.bytes) / metric.us.median * 1e-3 : 0},
      {"checked_launches", metric.checked},
      {"differing_bits", metric.differing}};
  if (!metric.samples.empty()) document["samples_us"] = metric.samples;
  return document;
}

json arm_json(const ArmResult& result) {
  json document = {{"arm", result.arm.name},
                   {"detail", result.arm.detail},
                   {"bytes", result.arm.bytes},
                   {"right", result.wrong.empty()}};
  if (!result.wrong.empty()) document["wrong"] = result.wrong;
  if (result.arm.result == Arm::Result::Product) {
    document["nmse"] = result.nmse;
    document["worst_error_over_bound"] = result.worst;
  }
  if (result.arm.plan) document["plan"] = cli::to_json(*result.arm.plan);
  if (result.arm.prediction) document["prediction"] = cli::to_json(*result.arm.prediction);
  for (const MetricResult& metric : result.metrics) {
    document[std::string(to_string(metric.metric))] = metric_json(result.arm, metric);
  }
  return document;
}

json shape_json(const ShapeResult& shape) {
  json arms = json::array();
  for (const ArmResult& arm : shape.arms) arms.push_back(arm_json(arm));
  json missing = json::array();
  for (const MissingArm& arm : shape.missing) {
    missing.push_back({{"arm", arm.name}, {"why", arm.why}});
  }
  json document = {{"problem", to_text(shape.problem)},
                   {"layout", to_string(shape.problem.layout)},
                   {"dtype", to_string(shape.problem.weights)},
                   {"k", shape.problem.k},
                   {"n", shape.problem.n},
                   {"who", shape.shape.who},
                   {"matrix_bytes", shape.bytes()},
                   {"matrices", shape.rotation.matrices},
                   {"rotation_bytes", shape.rotation.bytes()},
                   {"cold", shape.rotation.cold()},
                   {"chain", shape.rotation.chain},
                   {"arms", std::move(arms)},
                   {"missing", std::move(missing)}};
  if (!shape.failed.empty()) document["failed"] = shape.failed;
  return document;
}

json machine_json(const BenchMachine& machine) {
  return {{"device", machine.device},
          {"gpu", machine.gpu},
          {"driver", machine.driver},
          {"target", machine.target},
          {"planned_as", machine.table},
          {"ptxgen", machine.version},
          {"nvrtc", machine.nvrtc},
          {"cublas", machine.cublas},
          {"started", machine.started},
          {"multiprocessors", machine.multiprocessors},
          {"clock_khz", machine.clock_khz},
          {"l2_bytes", machine.l2_bytes},
          {"memory_bytes", machine.memory_bytes},
          {"datasheet_gb_per_s", machine.datasheet_gb_per_s},
          {"emulated", machine.emulated}};
}

json ceiling_json(const Ceiling& ceiling) {
  json document = {{"name", ceiling.name}, {"what", ceiling.doc}, {"bytes", ceiling.bytes}};
  if (!ceiling.missing.empty()) {
    document["missing"] = ceiling.missing;
  } else if (!ceiling.wrong.empty()) {
    document["wrong"] = ceiling.wrong;
  } else {
    document["us"] = statistics_json(ceiling.us);
    document["gb_per_s"] = ceiling.gb_per_s();
  }
  return document;
}

// A number that is read back exactly.
std::string exact(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

// RFC 4180.
std::string field(std::string_view text) {
  if (text.find_first_of(",\"\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string json_of(const BenchRun& run) {
  json shapes = json::array();
  for (const ShapeResult& shape : run.shapes) shapes.push_back(shape_json(shape));
  json ceilings = json::array();
  for (const Ceiling& ceiling : run.ceilings) ceilings.push_back(ceiling_json(ceiling));
  json verdicts = json::array();
  for (const Verdict& verdict : run.verdicts) {
    verdicts.push_back({{"id", verdict.id},
                        {"claim", verdict.claim},
                        {"verdict", to_string(verdict.says)},
                        {"measured", verdict.measured}});
  }
  json document = {{"machine", machine_json(run.machine)},
                   {"samples", run.samples},
                   {"seed", run.seed},
                   {"rotation_bytes", run.rotation_bytes},
                   {"lead_bytes", run.lead_bytes},
                   {"right", run.right()},
                   {"ceilings", std::move(ceilings)},
                   {"problems", std::move(shapes)},
                   {"left_out", run.left_out},
                   {"verdicts", std::move(verdicts)}};
  if (run.machine.emulated) {
    document["note"] = "these times are the emulator's on this host; they say nothing about a GPU";
  }
  return cli::text_of(document);
}

std::string csv_of(const BenchRun& run) {
  std::string text =
      "device,driver,layout,dtype,k,n,who,arm,metric,samples,median_us,ci_low_us,ci_high_us,p5_us,"
      "p95_us,bytes,gb_per_s,predicted_us,matrices,chain,checked_launches,differing_bits,nmse,"
      "detail,timing_source\n";
  for (const ShapeResult& shape : run.shapes) {
    for (const ArmResult& arm : shape.arms) {
      for (const MetricResult& metric : arm.metrics) {
        const auto add = [&text](const std::string& value) { text += value + ","; };
        add(field(run.machine.gpu));
        add(field(run.machine.driver));
        add(std::string(to_string(shape.problem.layout)));
        add(std::string(to_string(shape.problem.weights)));
        add(std::to_string(shape.problem.k));
        add(std::to_string(shape.problem.n));
        add(field(shape.shape.who));
        add(arm.arm.name);
        add(std::string(to_string(metric.metric)));
        add(std::to_string(metric.us.n));
        for (const double us :
             {metric.us.median, metric.us.low, metric.us.high, metric.us.p5, metric.us.p95}) {
          add(exact(us));
        }
        add(std::to_string(arm.arm.bytes));
        add(exact(metric.us.median > 0
                      ? static_cast<double>(arm.arm.bytes) / metric.us.median * 1e-3
                      : 0));
        const std::optional<GemvPrediction>& prediction = arm.arm.prediction;
        add(!prediction || metric.metric == Metric::Stream ? std::string()
            : metric.metric == Metric::Isolated            ? exact(prediction->isolated_us)
                                                           : exact(prediction->chained_us));
        add(std::to_string(shape.rotation.matrices));
        add(std::to_string(shape.rotation.chain));
        add(std::to_string(metric.checked));
        add(std::to_string(metric.differing));
        add(arm.arm.result == Arm::Result::Product ? exact(arm.nmse) : std::string());
        add(field(arm.arm.detail));
        text += run.machine.emulated ? "host\n" : "cuda_events\n";
      }
    }
  }
  return text;
}

}  // namespace ptxgen::gemv_bench
