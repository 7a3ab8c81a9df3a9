// src/cli/output/run_report.cpp - findings and counters of a run, its progress
#include "cli/output/run_report.hpp"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "support/format.hpp"

namespace ptxgen::cli {

using nlohmann::json;

namespace {

json to_json(const emulator::Dim3& position) { return {position.x, position.y, position.z}; }

json to_json(const emulator::MemoryCounters& group) {
  return {{"requests", group.requests},
          {"sectors", group.sectors},
          {"ideal_sectors", group.ideal_sectors},
          {"bytes", group.bytes}};
}

json to_json(const emulator::SharedCounters& group) {
  return {{"requests", group.requests},
          {"wavefronts", group.wavefronts},
          {"ideal_wavefronts", group.ideal_wavefronts},
          {"bank_conflicts", group.bank_conflicts}};
}

// "12 s", "3 min", "7 h", "200 days".
std::string duration_text(double seconds) {
  struct Unit {
    double seconds;
    double until;
    const char* name;
  };
  constexpr Unit kUnits[] = {
      {1, 120, " s"}, {60, 120, " min"}, {3600, 48, " h"}, {86400, 1e18, " days"}};
  for (const Unit& unit : kUnits) {
    const double count = seconds / unit.seconds;
    if (count < unit.until)
      return std::to_string(static_cast<std::uint64_t>(count + 0.5)) + unit.name;
  }
  return "more than a lifetime";
}

}  // namespace

json to_json(const emulator::RunFinding& finding) {
  json result = to_json(finding.finding);
  // A difference between schedules belongs to no thread.
  const bool somewhere = finding.rule != emulator::Rule::Nondeterminism;
  result["block"] = somewhere ? to_json(finding.block) : json(nullptr);
  result["thread"] = finding.has_thread ? to_json(finding.thread) : json(nullptr);
  if (finding.has_other) {
    result["other"] = {{"line", finding.other.line},
                       {"block", to_json(finding.other.block)},
                       {"thread", to_json(finding.other.thread)}};
  }
  result["count"] = finding.count;
  return result;
}

json to_json(const std::vector<emulator::RunFinding>& findings) {
  json list = json::array();
  for (const emulator::RunFinding& finding : findings) list.push_back(to_json(finding));
  return list;
}

json to_json(emulator::RuleSet rules) {
  json list = json::array();
  for (std::size_t i = 0; i < emulator::rules().size(); ++i) {
    if (rules.has(static_cast<emulator::Rule>(i))) list.push_back(emulator::rules()[i].name);
  }
  return list;
}

std::string not_checked(emulator::RuleSet rules) {
  return rules.empty() ? std::string() : "; not checked: " + emulator::to_text(rules);
}

ExitCode verdict(const std::vector<emulator::RunFinding>& findings, bool strict) {
  std::vector<Finding> all;
  for (const emulator::RunFinding& finding : findings) all.push_back(finding.finding);
  return verdict(all, strict);
}

json to_json(const emulator::Counters& counters) {
  json opcodes = json::object();
  for (const emulator::OpCount& op : counters.opcodes) opcodes[op.mnemonic] = op.executions;
  json result = {{"warp_instructions", counters.warp_instructions},
                 {"thread_instructions", counters.thread_instructions},
                 {"opcodes", std::move(opcodes)},
                 {"warp_execution_efficiency", counters.warp_execution_efficiency()},
                 {"branches", counters.branches},
                 {"divergent_branches", counters.divergent_branches},
                 {"barriers", counters.barriers},
                 {"atomics", counters.atomics},
                 {"blocks_per_sm", counters.blocks_per_sm},
                 {"waves", counters.waves},
                 {"global_load", to_json(counters.global_load)},
                 {"global_store", to_json(counters.global_store)},
                 {"local_load", to_json(counters.local_load)},
                 {"local_store", to_json(counters.local_store)},
                 {"shared_load", to_json(counters.shared_load)},
                 {"shared_store", to_json(counters.shared_store)}};
  // Kernels without bulk copies and clusters have none of these.
  const auto bulk = [&](const char* name, const emulator::BulkCounters& group) {
    if (group.copies == 0) return;
    result[name] = {{"copies", group.copies}, {"bytes", group.bytes}, {"sectors", group.sectors}};
  };
  bulk("bulk_load", counters.bulk_load);
  bulk("bulk_store", counters.bulk_store);
  bulk("bulk_peer", counters.bulk_peer);
  const auto peer = [&](const char* name, const emulator::PeerCounters& group) {
    if (group.requests != 0) result[name] = {{"requests", group.requests}, {"bytes", group.bytes}};
  };
  peer("peer_load", counters.peer_load);
  peer("peer_store", counters.peer_store);
  return result;
}

json lines_json(const emulator::Counters& counters) {
  json lines = json::array();
  for (const emulator::LineCounters& line : counters.lines) {
    json result = {{"line", line.line},
                   {"opcode", line.opcode},
                   {"function", line.function},
                   {"executions", line.executions},
                   {"thread_executions", line.thread_executions},
                   {"predicated_on", line.predicated_on},
                   {"divergent", line.divergent}};
    if (line.memory.requests != 0) result["memory"] = to_json(line.memory);
    if (line.shared.requests != 0) result["shared"] = to_json(line.shared);
    lines.push_back(std::move(result));
  }
  return lines;
}

json sources_json(std::span<const emulator::SourceCounters> sources) {
  json list = json::array();
  for (const emulator::SourceCounters& source : sources) {
    json result = {{"file", source.file},
                   {"line", source.line},
                   {"instructions", source.instructions},
                   {"executions", source.executions},
                   {"thread_executions", source.thread_executions},
                   {"predicated_on", source.predicated_on},
                   {"divergent", source.divergent}};
    if (source.memory.requests != 0) result["memory"] = to_json(source.memory);
    if (source.shared.requests != 0) result["shared"] = to_json(source.shared);
    list.push_back(std::move(result));
  }
  return list;
}

std::string_view name_of(emulator::Status status) noexcept {
  switch (status) {
    case emulator::Status::Ok:
      return "ok";
    case emulator::Status::Findings:
      return "findings";
    case emulator::Status::Fault:
      return "fault";
  }
  return "fault";
}

std::string progress_text(std::uint64_t done, std::uint64_t total, std::string_view units,
                          double seconds) {
  std::string text =
      format_text("{} of {} {} after {}", done, total, units, duration_text(seconds));
  if (done == 0) return text;
  const double share =
      static_cast<double>(total - std::min(done, total)) / static_cast<double>(done);
  return text + ", about " + duration_text(seconds * share) + " left";
}

ProgressBar::ProgressBar(std::string label)
    : ProgressBar(std::move(label), "blocks", "; --max-launch-instructions limits a run") {}

ProgressBar::ProgressBar(std::string label, std::string_view units, std::string_view hint)
    : label_(std::move(label)),
      units_(units),
      hint_(hint),
      begin_(Clock::now()),
      terminal_(is_terminal(Stream::Err)) {
  // A short run shows no bar.
  next_ = begin_ + (terminal_ ? std::chrono::milliseconds(300) : std::chrono::milliseconds(2000));
}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::clear() {
  if (shown_) std::cerr << "\r\x1b[K" << std::flush;
  shown_ = false;
}

emulator::Progress ProgressBar::sink() noexcept {
  return {[](void* user, std::uint64_t done, std::uint64_t total) {
            static_cast<ProgressBar*>(user)->show(done, total);
          },
          this};
}

void ProgressBar::show(std::uint64_t done, std::uint64_t total) {
  const auto now = Clock::now();
  if (now < next_ || total == 0) return;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  if (!terminal_) {
    next_ = begin_ + 2 * (now - begin_);
    if (done == total) return;
    std::cerr << label_ << ": " << progress_text(done, total, units_, seconds) << hint_
              << std::endl;
    return;
  }
  next_ = now + std::chrono::milliseconds(100);
  constexpr std::size_t kWidth = 40;
  const double share = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  const auto full = static_cast<std::size_t>(share * static_cast<double>(kWidth));
  std::cerr << '\r' << label_ << " [" << std::string(full, '#') << std::string(kWidth - full, '.')
            << "] " << progress_text(done, total, units_, seconds) << "\x1b[K" << std::flush;
  shown_ = true;
}

}  // namespace ptxgen::cli
