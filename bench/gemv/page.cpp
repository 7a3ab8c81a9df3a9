// bench/gemv/page.cpp - a run of gemv-bench as a page for people
#include <map>

#include "bench/gemv/results.hpp"
#include "cli_common/gemv_report.hpp"
#include "support/count.hpp"

namespace ptxgen::gemv_bench {

namespace {

// A table's cell: a bar in it would end it.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::string row(std::initializer_list<std::string> cells) {
  std::string text = "|";
  for (const std::string& one : cells) text += " " + cell(one) + " |";
  return text + "\n";
}

// "14.92 (14.90-14.95)"
std::string interval(const Statistics& us) {
  return cli::fixed(us.median, 2) + " (" + cli::fixed(us.low, 2) + "-" + cli::fixed(us.high, 2) +
         ")";
}

std::string head(const BenchRun& run) {
  const BenchMachine& machine = run.machine;
  std::string text = "# GEMV on " + machine.gpu + "\n\n";
  if (machine.emulated) {
    text +=
        "A rehearsal: these times are the emulator's on this host; they say nothing about a "
        "GPU.\n\n";
  }
  text += "| | |\n|---|---|\n";
  text += row({"device", machine.device + ", " + machine.target + ", planned as " + machine.table});
  text += row({"driver", machine.driver});
  text += row({"multiprocessors", std::to_string(machine.multiprocessors)});
  text += row({"highest clock", cli::fixed(machine.clock_khz / 1000.0, 0) + " MHz"});
  text += row({"L2", cli::fixed(static_cast<double>(machine.l2_bytes) * 1e-6, 1) + " MB"});
  text += row({"datasheet", cli::fixed(machine.datasheet_gb_per_s, 0) + " GB/s"});
  text += row({"ptxgen", machine.version});
  text += row({"NVRTC", machine.nvrtc.empty() ? "not used" : machine.nvrtc});
  text += row({"cuBLAS", machine.cublas.empty() ? "not used" : machine.cublas});
  text += row({"started", machine.started});
  text += "\nEach figure is the median of " + count_text(run.samples, "sample") +
          " in microseconds for a launch, in brackets the interval that covers the median "
          "with 95 % or more. Arms take turns, matrices rotate through " +
          cli::fixed(static_cast<double>(run.rotation_bytes) * 1e-6, 1) +
          " MB, data is random (seed " + std::to_string(run.seed) +
          "), and every timed result was checked.\n";
  return text;
}

std::string ceilings(const BenchRun& run) {
  if (run.ceilings.empty()) return {};
  std::string text = "\n## Ceilings\n\n| what | us | GB/s |\n|---|---|---|\n";
  for (const Ceiling& one : run.ceilings) {
    if (!one.missing.empty() || !one.wrong.empty()) {
      text += row({one.name + ": " + one.doc, one.missing + one.wrong, ""});
      continue;
    }
    text += row({one.name + ": " + one.doc, interval(one.us),
                 one.bytes == 0 ? "" : cli::fixed(one.gb_per_s(), 0)});
  }
  return text;
}

std::string verdicts(const BenchRun& run) {
  std::string text = "\n## Claims\n\n| | claim | verdict | measured |\n|---|---|---|---|\n";
  for (const Verdict& one : run.verdicts) {
    text += row({one.id, one.claim, std::string(to_string(one.says)), one.measured});
  }
  return text;
}

std::string rate(const ArmResult& arm, Metric metric) {
  const MetricResult* const found = arm.find(metric);
  if (found == nullptr || found->us.median <= 0) return "";
  return cli::fixed(static_cast<double>(arm.arm.bytes) / found->us.median * 1e-3, 0);
}

std::string predicted(const ArmResult& arm, Metric metric) {
  if (!arm.arm.prediction || metric == Metric::Stream) return "";
  return cli::fixed(
      metric == Metric::Isolated ? arm.arm.prediction->isolated_us : arm.arm.prediction->chained_us,
      2);
}

std::string problem(const ShapeResult& shape) {
  std::string text = "\n### " + to_text(shape.problem) + "\n\n" + shape.shape.who + "; " +
                     cli::fixed(static_cast<double>(shape.bytes()) * 1e-6, 1) + " MB, " +
                     std::to_string(shape.rotation.matrices) + " matrices, chains of " +
                     count_text(shape.rotation.chain, "launch");
  text += shape.rotation.cold() ? ".\n" : "; memory did not suffice for a cold rotation.\n";
  if (!shape.failed.empty()) text += "\nFailed: " + shape.failed + "\n";
  text +=
      "\n| arm | metric | us | GB/s | predicted us | bits differ | "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const ArmResult& arm : shape.arms) {
    if (!arm.wrong.empty()) {
      text += row({arm.arm.name, "", "WRONG: " + arm.wrong, "", "", "", arm.arm.detail});
    }
    for (const MetricResult& metric : arm.metrics) {
      text +=
          row({arm.arm.name, std::string(to_string(metric.metric)), interval(metric.us),
               rate(arm, metric.metric), predicted(arm, metric.metric),
               metric.differing == 0 ? "never" : std::to_string(metric.differing), arm.arm.detail});
    }
  }
  return text;
}

// Reasons that several problems share are said once.
std::string missing(const BenchRun& run) {
  std::map<std::string, std::size_t> reasons;
  for (const ShapeResult& shape : run.shapes) {
    for (const MissingArm& arm : shape.missing) ++reasons[arm.name + ": " + arm.why];
  }
  std::string text;
  for (const auto& [reason, count] : reasons) {
    text += "- " + reason + " (" + count_text(count, "problem") + ")\n";
  }
  for (const std::string& one : run.left_out) text += "- " + one + ": no time was left\n";
  return text.empty() ? text : "\n## Not measured\n\n" + text;
}

}  // namespace

std::string page_of(const BenchRun& run) {
  std::string text = head(run) + ceilings(run) + verdicts(run) + missing(run);
  text += "\n## Problems\n";
  for (const ShapeResult& shape : run.shapes) text += problem(shape);
  return text;
}

}  // namespace ptxgen::gemv_bench
