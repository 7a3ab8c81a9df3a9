// src/check/shared_race/shared_race.cpp - the gate shared_race
#include <algorithm>
#include <string>

#include "check/module_facts.hpp"
#include "check/rule_findings.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

namespace {

using namespace ptx;

constexpr std::string_view kRule =
    "between two barriers the threads of a block run in any order, and so do those of one warp";

using Shape = std::array<std::uint32_t, 3>;

std::string thread_text(std::uint32_t thread, const Shape& shape) {
  return format_text("thread ({},{},{})", thread % shape[0], thread / shape[0] % shape[1],
                     thread / shape[0] / shape[1]);
}

/// What the access does, as a noun or a verb.
std::string_view kind_text(const SharedAccess& access) {
  return access.reads && access.writes ? "change" : access.writes ? "write" : "read";
}

class Report {
 public:
  Report(RuleFindings& findings, const RaceCheck& check) : findings_(findings), check_(check) {}

  /// `others`: second accesses of further pairs with the same text.
  void pair(const RacePair& pair, const std::vector<std::uint32_t>& others = {}) {
    const SharedAccess& first = check_.accesses[pair.first];
    const SharedAccess& second = check_.accesses[pair.second];
    const Severity severity = pair.every_launch                  ? Severity::Error
                              : pair.same_value || pair.unlikely ? Severity::Note
                                                                 : Severity::Warning;
    Finding& finding =
        findings_.report(severity, pair.same_value ? "race-same-value" : "shared-race",
                         first.statement, pair.witness ? proved(pair) : possible(pair), {}, {});
    finding.other_line = findings_.at(second.statement).line;
    if (first.statement != second.statement)
      finding.details.push_back(format_text(
          "other: {}: {}", findings_.place(second.statement),
          ptx::print(findings_.module(), findings_.function(), findings_.at(second.statement))));
    if (!others.empty()) finding.details.push_back(format_text("also with: {}", places(others)));
    if (!check_.shape_known || pair.witness)
      finding.details.push_back(format_text("launch: {}", launch(pair)));
    if (pair.witness && !pair.every_launch)
      finding.details.push_back(format_text("not in every launch: {}", harmless(pair)));
    if (!pair.witness && !pair.same_value)
      finding.details.push_back(format_text("not shown: {}", doubt(pair)));
    if (pair.same_value) return;
    finding.details.push_back(format_text("rule: {}", kRule));
    finding.details.push_back(format_text("cure: {}", cure(pair)));
  }

  void incomplete() {
    const Function& function = findings_.function();
    const auto& accesses = check_.accesses;
    Finding& finding = findings_.report(
        Severity::Warning, "shared-race", accesses.front().statement,
        format_text(
            "this kernel has too many accesses to shared memory between barriers to compare "
            "all of them: races of '{}' are not excluded",
            findings_.module().text(function.name)),
        {}, "split the kernel, or run it on the emulator, which finds races as they happen");
    finding.other_line = findings_.at(accesses.back().statement).line;
  }

 private:
  std::string places(const std::vector<std::uint32_t>& accesses) const {
    std::string text;
    for (const std::uint32_t access : accesses) {
      if (!text.empty()) text += ", ";
      text += findings_.place(check_.accesses[access].statement);
    }
    return text;
  }

  std::string other_place(const RacePair& pair) const {
    return findings_.place(check_.accesses[pair.second].statement);
  }

  /// `bytes 4..7 of 'tile'`.
  std::string bytes(const Witness& witness, std::uint64_t address, std::uint32_t count) const {
    const std::uint64_t first = address - witness.variable_base;
    const std::string text = format_text("bytes {}..{}", first, first + count - 1);
    if (witness.variable == kNone) return text;
    const Symbol& symbol = findings_.module().symbols[witness.variable];
    return format_text("{} of '{}'", text, findings_.module().text(symbol.name));
  }

  std::string proved(const RacePair& pair) const {
    const Witness& witness = *pair.witness;
    const SharedAccess& first = check_.accesses[pair.first];
    const SharedAccess& second = check_.accesses[pair.second];
    const bool same_bytes =
        witness.first_address == witness.second_address && first.bytes == second.bytes;
    const std::string other_bytes =
        same_bytes ? "them" : bytes(witness, witness.second_address, second.bytes);
    const bool one = first.statement == second.statement;
    return format_text("{} {}s {}, and {}{} {}s {}{}; no barrier separates them",
                       thread_text(witness.first_thread, pair.shape), kind_text(first),
                       bytes(witness, witness.first_address, first.bytes),
                       one ? "by the same instruction " : "",
                       thread_text(witness.second_thread, pair.shape), kind_text(second),
                       other_bytes, one ? "" : " at " + other_place(pair));
  }

  std::string possible(const RacePair& pair) const {
    const SharedAccess& first = check_.accesses[pair.first];
    const SharedAccess& second = check_.accesses[pair.second];
    const bool one = first.statement == second.statement;
    if (pair.same_value && one)
      return "threads write the same value to the same bytes here; no barrier separates them";
    if (pair.same_value)
      return format_text(
          "this write and the write at {} store the same value to the same bytes; "
          "no barrier separates them",
          other_place(pair));
    if (pair.copying && first.done == SharedAccess::Done::Mbarrier)
      return format_text(
          "this copy may be in progress, or start too early, at the {} at {}, and "
          "may touch the same bytes; not every path between them waits at an "
          "mbarrier",
          kind_text(second), other_place(pair));
    if (pair.copying)
      return format_text(
          "this copy may be in progress at the {} at {}, and may touch the same "
          "bytes; no wait for it comes before",
          kind_text(second), other_place(pair));
    if (one)
      return format_text("threads may {} the same bytes here; no barrier separates them",
                         kind_text(first));
    return format_text(
        "this {} and the {} at {} may touch the same bytes in two threads; no "
        "barrier separates them",
        kind_text(first), kind_text(second), other_place(pair));
  }

  static std::string shape_text(const Shape& shape) {
    return format_text("a block of {} x {} x {} threads", shape[0], shape[1], shape[2]);
  }

  static std::string parameters_text(std::uint64_t value) {
    return format_text("{} for every integer parameter", value);
  }

  std::string launch(const RacePair& pair) const {
    std::string text = shape_text(pair.shape);
    const bool parameters = std::any_of(
        findings_.function().parameters.begin(), findings_.function().parameters.end(),
        [](const Variable& v) { return kind(v.type) != TypeKind::Float && !v.pointer; });
    if (pair.every_launch) {
      text = format_text("every launch with {}", text);
    } else if (pair.witness && !pair.witness->every_launch && parameters) {
      text += format_text(", for example with {}", parameters_text(pair.witness->parameter));
    }
    if (!check_.shape_known) text += " (.reqntid or --block would give the shape)";
    return text;
  }

  std::string harmless(const RacePair& pair) const {
    if (!check_.shape_known)
      return format_text("{} does not have this race", shape_text(pair.harmless));
    if (pair.witness->harmless_parameter)
      return format_text("with {} these two threads do not race",
                         parameters_text(*pair.witness->harmless_parameter));
    return "it depends on parameters";
  }

  std::string doubt(const RacePair& pair) const {
    if (pair.not_known.empty())
      return "that two such threads are here between the same two barriers; it depends on "
             "conditions";
    return format_text("that the addresses differ; they depend on {}", pair.not_known);
  }

  std::string_view cure(const RacePair& pair) const {
    if (pair.copying && check_.accesses[pair.first].done == SharedAccess::Done::Mbarrier)
      return "before the bytes are accessed: mbarrier.try_wait at the copy's mbarrier until its "
             "phase has ended, in each thread, or in one followed by bar.sync; before they are "
             "overwritten: bar.sync, or a wait at an mbarrier at which all threads that access "
             "them arrive";
    if (pair.copying) return "cp.async.wait_all (or wait_group 0), then bar.sync, before it";
    if (pair.in_warp)
      return "bar.warp.sync between the two, or bar.sync where all threads of the block pass";
    return "bar.sync between the two, where all threads of the block pass; in a loop also between "
           "two iterations";
  }

  RuleFindings& findings_;
  const RaceCheck& check_;
};

/// Reports a pair; a pair that is not proved together with later ones of the same access.
void report_with_others(Report& report, const RaceCheck& check, std::size_t i) {
  const RacePair& pair = check.pairs[i];
  const auto alike = [&](const RacePair& other) {
    return !pair.witness && !other.witness && other.first == pair.first &&
           other.same_value == pair.same_value && other.copying == pair.copying &&
           other.unlikely == pair.unlikely;
  };
  // Pairs are in the order of their first access.
  for (std::size_t before = i; before-- > 0 && check.pairs[before].first == pair.first;) {
    if (alike(check.pairs[before])) return;
  }
  std::vector<std::uint32_t> others;
  for (std::size_t k = i + 1; k < check.pairs.size() && check.pairs[k].first == pair.first; ++k) {
    if (alike(check.pairs[k])) others.push_back(check.pairs[k].second);
  }
  report.pair(pair, others);
}

}  // namespace

std::vector<Finding> shared_race(ModuleFacts& module_facts) {
  const Module& module = module_facts.module();
  std::vector<Finding> all;
  for (const Item& item : module.items) {
    if (item.kind != Item::Kind::Function) continue;
    const Function& function = module.functions[item.index];
    if (function.declaration || !function.entry) continue;
    const RaceCheck& check = module_facts.races(function);
    if (check.pairs.empty() && !check.incomplete) continue;
    const std::shared_ptr<analysis::Facts> facts = module_facts.of(function);
    RuleFindings findings(*facts);
    Report report(findings, check);
    for (std::size_t i = 0; i < check.pairs.size(); ++i) report_with_others(report, check, i);
    if (check.incomplete) report.incomplete();
    findings.take(all);
  }
  return all;
}

std::vector<Finding> shared_race(const Module& module, const GateOptions& options) {
  ModuleFacts facts(module, options);
  return shared_race(facts);
}

}  // namespace ptxgen::inline v0::gates
