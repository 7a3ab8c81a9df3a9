// src/check/analyze/arithmetic.cpp - the rules self-subtract and stale-accumulator
#include <algorithm>
#include <string>

#include "check/analyze/rules.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;
using analysis::Version;
using analysis::VersionUse;

std::uint32_t copied_version(analysis::Facts& facts, std::uint32_t version) {
  const analysis::Versions& versions = facts.versions();
  const Function& function = facts.function();
  // A bound instead of a memory of what was seen: longer chains of copies are no program's.
  for (int step = 0; step < 64; ++step) {
    const Version& v = versions[version];
    if (v.kind != Version::Kind::Write || v.partial) break;
    const Instruction& s = function.body[v.statement];
    if (!s.is(Op::mov) || s.guard.present()) break;
    const auto operands = function.operands_of(s);
    if (operands.size() != 2 || operands[1].kind != OperandKind::Register ||
        operands[0].component != 0 || operands[1].component != 0)
      break;
    const std::uint32_t from =
        versions.read(v.statement, facts.index().find(operands[1].as_register()));
    if (from == kNone) break;
    version = from;
  }
  return version;
}

namespace {

std::uint32_t version_read(analysis::Facts& facts, std::uint32_t statement,
                           const Operand& operand) {
  if (operand.kind != OperandKind::Register) return kNone;
  const std::uint32_t reg = facts.index().find(operand.as_register());
  return reg == kNone ? kNone : facts.versions().read(statement, reg);
}

// self-subtract -------------------------------------------------------------------------------

void check_subtraction(RuleFindings& findings, std::uint32_t statement) {
  const Instruction& s = findings.at(statement);
  const auto operands = findings.function().operands_of(s);
  if (operands.size() < 3 || operands[1].component != operands[2].component) return;
  analysis::Facts& facts = findings.facts();
  const std::uint32_t a = version_read(facts, statement, operands[1]);
  const std::uint32_t b = version_read(facts, statement, operands[2]);
  if (a == kNone || b == kNone) return;
  const std::uint32_t source = copied_version(facts, a);
  if (source != copied_version(facts, b)) return;
  std::string message;
  if (a == b) {
    message = format_text("{} is subtracted from itself", findings.name(operands[1]));
  } else {
    message = format_text("{} is subtracted from {}, a copy of the same value",
                          findings.name(operands[2]), findings.name(operands[1]));
  }
  const Version& version = facts.versions()[source];
  const std::uint32_t written =
      version.kind == Version::Kind::Write ? version.statement : std::uint32_t{kNone};
  if (written != kNone) message += format_text(" as written at {}", findings.place(written));
  Finding& finding = findings.report(
      Severity::Warning, "self-subtract", statement,
      format_text("{}: the difference is always 0", message),
      "copies of one register are one value; the old value is lost when the register is "
      "overwritten",
      "copy the old value into a register of its own before the new one is written");
  if (written != kNone) finding.other_line = findings.at(written).line;
}

// stale-accumulator ---------------------------------------------------------------------------

/// Which operands may be the sum so far, as a mask of their positions.
unsigned accumulator_operands(const Instruction& s) {
  const std::string_view mnemonic = info(s.op).mnemonic;
  if (mnemonic == "add" || mnemonic == "min" || mnemonic == "max") return 0b0110;
  if (mnemonic == "sub") return 0b0010;
  if (mnemonic == "fma" || mnemonic == "mad") return 0b1000;
  return 0;
}

class StaleAccumulators {
 public:
  explicit StaleAccumulators(RuleFindings& findings)
      : findings_(findings),
        facts_(findings.facts()),
        function_(findings.function()),
        cfg_(facts_.cfg()),
        loops_(cfg_.loops()),
        versions_(facts_.versions()) {}

  void check(std::uint32_t statement) {
    const Instruction& s = function_.body[statement];
    const unsigned places = accumulator_operands(s);
    if (places == 0 || s.guard.present()) return;
    loop_ = loops_.innermost(cfg_.block_of(statement));
    if (loop_ == analysis::kNoNode) return;
    const auto operands = function_.operands_of(s);
    if (operands.empty() || operands[0].kind != OperandKind::Register) return;
    for (std::size_t i = 1; i < operands.size() && i < 4; ++i) {
      if ((places >> i & 1u) == 0) continue;
      const std::uint32_t initial = version_read(facts_, statement, operands[i]);
      if (initial == kNone || !starts_sum(s, initial)) continue;
      if (!varies(statement, i) || !is_lost(statement)) continue;
      report(statement, operands[0], operands[i], initial);
      return;
    }
  }

 private:
  bool in_loop(std::uint32_t block) const { return loops_.contains(loop_, block); }
  bool made_in_loop(std::uint32_t version) const {
    const Version& v = versions_[version];
    return v.kind != Version::Kind::Entry && in_loop(v.block);
  }

  /// The initial value of a sum: a constant written before the loop, or a floating-point load
  /// there.
  bool starts_sum(const Instruction& s, std::uint32_t initial) const {
    const Version& v = versions_[initial];
    if (v.kind != Version::Kind::Write || v.partial || in_loop(v.block)) return false;
    const Instruction& definition = function_.body[v.statement];
    const auto operands = function_.operands_of(definition);
    if (definition.is(Op::mov) && operands.size() == 2) {
      const OperandKind from = operands[1].kind;
      return from == OperandKind::Integer || from == OperandKind::Float32 ||
             from == OperandKind::Float64;
    }
    return kind(s.type()) == TypeKind::Float && info(definition.op).mnemonic == "ld";
  }

  /// Whether an operand other than that at `place` changes between iterations.
  bool varies(std::uint32_t statement, std::size_t place) const {
    const auto operands = function_.operands_of(function_.body[statement]);
    for (std::size_t i = 1; i < operands.size(); ++i) {
      if (i == place) continue;
      const std::uint32_t read = version_read(facts_, statement, operands[i]);
      if (read != kNone && made_in_loop(read)) return true;
    }
    return false;
  }

  /// Whether the result is read after the loop and not within it. Consecutive sums of several terms
  /// (an unrolled loop) count as one.
  bool is_lost(std::uint32_t statement) {
    for (int step = 0; step < 256; ++step) {
      const Operand& result = function_.operands_of(function_.body[statement])[0];
      const std::uint32_t written =
          versions_.written(statement, facts_.index().find(result.as_register()));
      if (written == kNone || versions_[written].partial) return false;
      std::uint32_t inside = 0;
      std::uint32_t next = kNone;
      bool outside = false;
      for (const VersionUse& use : versions_.uses(written)) {
        const std::uint32_t block =
            use.statement != kNone ? cfg_.block_of(use.statement) : versions_[use.version].block;
        if (in_loop(block)) {
          ++inside;
          next = use.statement;
        } else {
          outside = true;
        }
      }
      if (inside == 0) return outside;
      if (inside != 1 || next == kNone || !continues(next, written)) return false;
      statement = next;
    }
    return false;
  }

  /// Whether a statement adds to the version.
  bool continues(std::uint32_t statement, std::uint32_t version) const {
    const Instruction& s = function_.body[statement];
    if (s.kind != StatementKind::Instruction || s.guard.present()) return false;
    const unsigned places = accumulator_operands(s);
    const auto operands = function_.operands_of(s);
    if (operands.empty() || operands[0].kind != OperandKind::Register) return false;
    for (std::size_t i = 1; i < operands.size() && i < 4; ++i) {
      if ((places >> i & 1u) != 0 && version_read(facts_, statement, operands[i]) == version)
        return true;
    }
    return false;
  }

  void report(std::uint32_t statement, const Operand& result, const Operand& sum,
              std::uint32_t initial) {
    const std::uint32_t begun = versions_[initial].statement;
    const std::uint32_t header = cfg_.blocks()[loops_.loops()[loop_].header].first;
    Finding& finding = findings_.report(
        Severity::Warning, "stale-accumulator", statement,
        format_text(
            "{} is computed in each iteration of the loop at {} from {}, which keeps its value "
            "from {}: after the loop only the last iteration counts",
            findings_.name(result), findings_.place(header), findings_.name(sum),
            findings_.place(begun)),
        "a sum over the iterations of a loop must be read from and written to the same register",
        format_text("write the result to {}, and use that after the loop", findings_.name(sum)));
    finding.other_line = findings_.at(begun).line;
  }

  RuleFindings& findings_;
  analysis::Facts& facts_;
  const Function& function_;
  const analysis::Cfg& cfg_;
  const analysis::LoopForest& loops_;
  const analysis::Versions& versions_;
  std::uint32_t loop_ = analysis::kNoNode;
};

}  // namespace

void find_self_subtractions(RuleFindings& findings) {
  const Function& function = findings.function();
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const Instruction& s = function.body[i];
    if (s.kind != StatementKind::Instruction || info(s.op).mnemonic != "sub") continue;
    check_subtraction(findings, i);
  }
}

void find_stale_accumulators(RuleFindings& findings) {
  const Function& function = findings.function();
  if (findings.facts().cfg().loops().loops().empty()) return;
  StaleAccumulators rule(findings);
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    if (function.body[i].kind == StatementKind::Instruction) rule.check(i);
  }
}

}  // namespace ptxgen::inline v0::gates
