// src/cli/output/explanation_text.cpp - an explanation as text and as JSON
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/args/pass_choice.hpp"
#include "cli/commands/explanation.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

using nlohmann::json;

namespace {

/// "12.3", with one decimal.
std::string rounded(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", number);
  return text;
}

double percent(const Occupancy& occupancy) {
  return occupancy.max_warps == 0 ? 0 : 100.0 * occupancy.warps / occupancy.max_warps;
}

std::string indented(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += "  " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

std::string registers_text(const RegisterUse& registers) {
  std::string text = format_text("{} a thread ({})", registers.count, registers.source);
  if (registers.assembled && registers.spill_stores + registers.spill_loads != 0) {
    text += format_text(", spills {} stored, {} loaded", count_text(registers.spill_stores, "byte"),
                        registers.spill_loads);
  }
  if (registers.max_alive != 0) {
    text += format_text(", at most {} alive at once", registers.max_alive);
    if (registers.max_alive_line != 0) {
      text += format_text(", in line {}", registers.max_alive_line);
    }
  }
  return text;
}

std::string occupancy_text(const KernelExplanation& kernel) {
  if (!kernel.occupancy) return "not known: nothing says how many threads a block has";
  const Occupancy& is = *kernel.occupancy;
  return format_text("{} of {} on a multiprocessor, {} of {} ({} %), limited by {}",
                     count_text(is.blocks, "block"), count_text(is.threads, "thread"), is.warps,
                     count_text(is.max_warps, "warp"), rounded(percent(is)), is.limited_by);
}

json spread(const analysis::Spread& spread) {
  return {{"least", spread.min}, {"most", spread.max}};
}

json access_json(const analysis::MemoryAccess& access) {
  json cpp = nullptr;
  if (access.cpp.known()) cpp = {{"file", access.cpp.file}, {"line", access.cpp.line}};
  return {{"line", access.line},
          {"cpp", std::move(cpp)},
          {"opcode", access.opcode},
          {"space", ptx::name(access.space)},
          {"copy", to_string(access.copy)},
          {"reads", access.reads},
          {"writes", access.writes},
          {"bytes", access.bytes},
          {"size", access.size_text},
          {"lanes", access.lanes},
          {"depth", access.depth},
          {"masked", access.masked},
          {"shortened", access.shortened},
          {"address", access.address_text},
          {"lane_step", access.lane_step},
          {"assumptions", access.assumptions},
          {"pattern", to_string(access.pattern)},
          {"reason", access.reason},
          {"sectors", spread(access.sectors)},
          {"ideal_sectors", access.ideal_sectors},
          {"bytes_wanted", access.bytes_wanted},
          {"wavefronts", spread(access.wavefronts)},
          {"ideal_wavefronts", access.ideal_wavefronts},
          {"any_warp", spread(access.any_warp)},
          {"factor", access.affine() ? json(access.factor()) : json(nullptr)},
          {"verdict", analysis::verdict(access)}};
}

json memory_json(const analysis::MemoryReport& report) {
  json accesses = json::array();
  for (const analysis::MemoryAccess& access : report.accesses) {
    accesses.push_back(access_json(access));
  }
  return {{"block", report.block},
          {"block_assumed", report.block_assumed},
          {"accesses", std::move(accesses)},
          {"total",
           {{"accesses", report.total.accesses},
            {"unknown", report.total.unknown},
            {"unsized", report.total.unsized},
            {"bytes_wanted", report.total.bytes_wanted},
            {"bytes_moved", spread(report.total.bytes_moved)},
            {"bank_conflicts", report.total.bank_conflicts}}}};
}

json kernel_json(const KernelExplanation& kernel) {
  json occupancy = nullptr;
  if (kernel.occupancy) {
    const Occupancy& is = *kernel.occupancy;
    occupancy = {{"threads", is.threads},  {"blocks_per_sm", is.blocks},
                 {"warps", is.warps},      {"max_warps", is.max_warps},
                 {"percent", percent(is)}, {"limited_by", is.limited_by}};
  }
  const RegisterUse& registers = kernel.registers;
  return {{"name", kernel.name},
          {"memory", memory_json(kernel.memory)},
          {"registers",
           {{"count", registers.count},
            {"source", registers.source},
            {"assembled", registers.assembled},
            {"spill_stores", registers.spill_stores},
            {"spill_loads", registers.spill_loads},
            {"max_alive", registers.max_alive},
            {"max_alive_line", registers.max_alive_line}}},
          {"shared", {{"static", kernel.static_shared}, {"dynamic", kernel.dynamic_shared}}},
          {"occupancy", std::move(occupancy)}};
}

}  // namespace

std::string to_text(const Explanation& explanation, bool all) {
  const Subject& subject = explanation.subject;
  std::string text = subject.name + " for " + subject.module.target + ", judged for " +
                     std::string(subject.gpu.full_name) + "\n\npasses\n" +
                     indented(passes_text(explanation.passes, subject.module, all));
  for (const KernelExplanation& kernel : explanation.kernels) {
    text += "\nkernel " + kernel.name + "\n" + indented(analysis::to_text(kernel.memory));
    text += "  registers: " + registers_text(kernel.registers) + "\n";
    text += "  shared memory: " + count_text(kernel.static_shared, "byte") + " static, " +
            std::to_string(kernel.dynamic_shared) + " dynamic\n";
    text += "  occupancy: " + occupancy_text(kernel) + "\n";
  }
  if (explanation.prediction) {
    text += "\nprediction: at least " + rounded(explanation.prediction->microseconds) +
            " us, for " + count_text(explanation.prediction->bytes, "byte") + " at " +
            rounded(subject.gpu.bandwidth_gb_per_s) + " GB/s\n";
  }
  return text;
}

json to_json(const Explanation& explanation) {
  const Subject& subject = explanation.subject;
  json kernels = json::array();
  for (const KernelExplanation& kernel : explanation.kernels) {
    kernels.push_back(kernel_json(kernel));
  }
  json prediction = nullptr;
  if (explanation.prediction) {
    prediction = {{"bytes", explanation.prediction->bytes},
                  {"min_microseconds", explanation.prediction->microseconds},
                  {"bandwidth_gb_per_s", subject.gpu.bandwidth_gb_per_s}};
  }
  return {{"subject", subject.name},
          {"target", subject.module.target},
          {"gpu", {{"name", subject.gpu.name}, {"full_name", subject.gpu.full_name}}},
          {"passes", to_json(explanation.passes)},
          {"kernels", std::move(kernels)},
          {"prediction", std::move(prediction)}};
}

}  // namespace ptxgen::cli
