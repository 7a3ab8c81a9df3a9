// src/check/shared_race/shared_race.cpp - the gate shared_race
#include <algorithm>
#include <string>

#include "check/shared_race/check.hpp"
#include "check/rule_findings.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::inline v0::gates {

namespace {

using namespace ptx;

constexpr std::string_view kRule =
    "between two barriers the threads of a block run in any order, and so do those of one warp";

std::string thread_text(std::uint32_t thread, const std::array<std::uint32_t, 3>& shape) {
  return "thread (" + std::to_string(thread % shape[0]) + "," +
         std::to_string(thread / shape[0] % shape[1]) + "," +
         std::to_string(thread / shape[0] / shape[1]) + ")";
}

std::string verb(const SharedAccess& access, bool third_person) {
  const std::string_view word = access.reads && access.writes ? "change"
                                : access.writes               ? "write"
                                                              : "read";
  return std::string(word) + (third_person ? "s" : "");
}

std::string noun(const SharedAccess& access) {
  return access.reads && access.writes ? "change" : access.writes ? "write" : "read";
}

class Report {
 public:
  Report(RuleFindings& findings, const RaceCheck& check) : findings_(findings), check_(check) {}

  /// `others`: further partners of the same access, about which the same could be said.
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
      finding.details.push_back(
          "other: " + findings_.place(second.statement) + ": " +
          ptx::print(findings_.module(), findings_.function(), findings_.at(second.statement)));
    if (!others.empty()) finding.details.push_back("also with: " + places(others));
    if (!check_.shape_known || pair.witness) finding.details.push_back("launch: " + launch(pair));
    if (pair.witness && !pair.every_launch)
      finding.details.push_back("not in every launch: " + harmless(pair));
    if (!pair.witness && !pair.same_value) finding.details.push_back("not shown: " + doubt(pair));
    if (pair.same_value) return;
    finding.details.push_back("rule: " + std::string(kRule));
    finding.details.push_back("cure: " + cure(pair));
  }

  void incomplete() {
    const Function& function = findings_.function();
    const auto& accesses = check_.accesses;
    Finding& finding = findings_.report(
        Severity::Warning, "shared-race", accesses.front().statement,
        "this kernel has too many accesses to shared memory between barriers to compare all of "
        "them: races of '" +
            std::string(findings_.module().text(function.name)) + "' are not excluded",
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
    return " at " + findings_.place(check_.accesses[pair.second].statement);
  }

  /// `bytes 4..7 of 'tile'`.
  std::string bytes(const Witness& witness, std::uint64_t address, std::uint32_t count) const {
    const std::uint64_t first = address - witness.variable_base;
    std::string text = "bytes " + std::to_string(first) + ".." + std::to_string(first + count - 1);
    if (witness.variable != kNone) {
      const Symbol& symbol = findings_.module().symbols[witness.variable];
      text += " of '" + std::string(findings_.module().text(symbol.name)) + "'";
    }
    return text;
  }

  std::string proved(const RacePair& pair) const {
    const Witness& witness = *pair.witness;
    const SharedAccess& first = check_.accesses[pair.first];
    const SharedAccess& second = check_.accesses[pair.second];
    std::string text = thread_text(witness.first_thread, pair.shape) + " " + verb(first, true) +
                       " " + bytes(witness, witness.first_address, first.bytes);
    const std::string other = thread_text(witness.second_thread, pair.shape);
    const bool same_bytes =
        witness.first_address == witness.second_address && first.bytes == second.bytes;
    const std::string what =
        same_bytes ? "them" : bytes(witness, witness.second_address, second.bytes);
    if (first.statement == second.statement) {
      text += ", and by the same instruction " + other + " " + verb(second, true) + " " + what;
    } else {
      text += ", and " + other + " " + verb(second, true) + " " + what + other_place(pair);
    }
    return text + "; no barrier lies between";
  }

  std::string possible(const RacePair& pair) const {
    const SharedAccess& first = check_.accesses[pair.first];
    const SharedAccess& second = check_.accesses[pair.second];
    const bool one = first.statement == second.statement;
    if (pair.same_value) {
      return one ? "threads write the same value to the same bytes here; no barrier lies between"
                 : "this write and that" + other_place(pair) +
                       " put the same value into the same bytes; no barrier lies between";
    }
    if (pair.copying && first.done == SharedAccess::Done::Mbarrier)
      return "this copy may still be under way, or come too early, at the " + noun(second) +
             other_place(pair) +
             ", and may touch the same bytes; not every way between them leads by a wait at an "
             "mbarrier";
    if (pair.copying)
      return "this copy may still be under way at the " + noun(second) + other_place(pair) +
             ", and may touch the same bytes; nothing waits for it before";
    if (one)
      return "threads may " + verb(first, false) + " the same bytes here; no barrier lies between";
    return "this " + noun(first) + " and the " + noun(second) + other_place(pair) +
           " may touch the same bytes in two threads; no barrier lies between";
  }

  static std::string shape_text(const std::array<std::uint32_t, 3>& shape) {
    return "a block of " + std::to_string(shape[0]) + " x " + std::to_string(shape[1]) + " x " +
           std::to_string(shape[2]) + " threads";
  }

  static std::string parameters_text(std::uint64_t value) {
    return std::to_string(value) + " for every size among the parameters";
  }

  std::string launch(const RacePair& pair) const {
    std::string text = shape_text(pair.shape);
    const bool parameters = std::any_of(
        findings_.function().parameters.begin(), findings_.function().parameters.end(),
        [](const Variable& v) { return kind(v.type) != TypeKind::Float && !v.pointer; });
    if (pair.every_launch) {
      text = "every launch with " + text;
    } else if (pair.witness && !pair.witness->every_launch && parameters) {
      text += ", for example with " + parameters_text(pair.witness->parameter);
    }
    if (!check_.shape_known) text += " (.reqntid or --block would say the shape)";
    return text;
  }

  std::string harmless(const RacePair& pair) const {
    if (!check_.shape_known) return shape_text(pair.harmless) + " is free of it";
    if (pair.witness->harmless_parameter)
      return "with " + parameters_text(*pair.witness->harmless_parameter) +
             " these two threads are free of it";
    return "it depends on parameters";
  }

  std::string doubt(const RacePair& pair) const {
    if (pair.not_known.empty())
      return "whether two such threads come here between the same two barriers, which depends on "
             "conditions";
    return "that the addresses differ; they depend on " + pair.not_known;
  }

  std::string cure(const RacePair& pair) const {
    if (pair.copying && check_.accesses[pair.first].done == SharedAccess::Done::Mbarrier)
      return "before the bytes are touched: mbarrier.try_wait at the copy's mbarrier until its "
             "phase has ended, in each thread, or in one with bar.sync behind it; before they are "
             "copied over: bar.sync, or a wait at an mbarrier at which all arrive who touch them";
    if (pair.copying) return "cp.async.wait_all (or wait_group 0), then bar.sync, before it";
    if (pair.in_warp)
      return "bar.warp.sync between the two, or bar.sync where all threads of the block come";
    return "bar.sync between the two, where all threads of the block come; in a loop also between "
           "one round and the next";
  }

  RuleFindings& findings_;
  const RaceCheck& check_;
};

/// Reports a pair; those that are not proved together with later ones of the same access.
void report_with_others(Report& report, const RaceCheck& check, std::size_t i) {
  const RacePair& pair = check.pairs[i];
  const auto alike = [&](const RacePair& other) {
    return !pair.witness && !other.witness && other.first == pair.first &&
           other.same_value == pair.same_value && other.copying == pair.copying &&
           other.unlikely == pair.unlikely;
  };
  // Pairs stand in the order of their first access.
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

std::vector<Finding> shared_race(const Module& module, const GateOptions& options) {
  std::vector<Finding> all;
  const SharedAccesses accesses(module);
  for (const Item& item : module.items) {
    if (item.kind != Item::Kind::Function) continue;
    const Function& function = module.functions[item.index];
    if (function.declaration || !function.entry) continue;
    const RaceCheck check = check_races(module, function, accesses, options);
    if (check.pairs.empty() && !check.incomplete) continue;
    analysis::Facts facts(module, function, {.block = options.block});
    RuleFindings findings(facts);
    Report report(findings, check);
    for (std::size_t i = 0; i < check.pairs.size(); ++i) report_with_others(report, check, i);
    if (check.incomplete) report.incomplete();
    findings.take(all);
  }
  return all;
}

}  // namespace ptxgen::inline v0::gates
