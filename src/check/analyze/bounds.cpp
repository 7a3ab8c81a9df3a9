// src/check/analyze/bounds.cpp - the rule unchecked-bounds
#include <string>

#include "check/analyze/rules.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

namespace {

using namespace ptx;
using analysis::Version;

/// Sources of a value.
enum Index : std::uint8_t {
  kConstant = 0,
  kThread = 1,  ///< the thread's number in its block
  kBlock = 2,   ///< the block's number in the grid
};

/// Follows thread and block indices through arithmetic, not through memory. Bits are only added, so
/// the time is linear.
class Indices {
 public:
  explicit Indices(const RuleFindings& findings)
      : function_(findings.function()),
        index_(findings.facts().index()),
        versions_(findings.facts().versions()),
        bits_(versions_.size()) {
    std::vector<std::uint32_t> open;
    for (std::uint32_t v = 0; v < versions_.size(); ++v) {
      if (refresh(v)) open.push_back(v);
    }
    while (!open.empty()) {
      const std::uint32_t changed = open.back();
      open.pop_back();
      for (const analysis::VersionUse& use : versions_.uses(changed)) {
        if (use.version != kNone && refresh(use.version)) open.push_back(use.version);
        if (use.statement == kNone) continue;
        analysis::for_each_access(
            function_, function_.body[use.statement], [&](const analysis::RegisterAccess& access) {
              if (!access.write) return;
              const std::uint32_t reg = index_.find(access.reg);
              const std::uint32_t written = versions_.written(use.statement, reg);
              if (written != kNone && refresh(written)) open.push_back(written);
            });
      }
    }
  }

  /// Of the register in an operand or its address.
  [[nodiscard]] std::uint8_t of(std::uint32_t statement, const Operand& operand) const {
    if (operand.kind == OperandKind::Special) return of_special(operand);
    const bool named =
        operand.kind == OperandKind::Register ||
        (operand.kind == OperandKind::Memory && operand.base == OperandKind::Register);
    return named ? of(statement, operand.as_register()) : std::uint8_t{kConstant};
  }
  [[nodiscard]] std::uint8_t of(std::uint32_t statement, Register reg) const {
    const std::uint32_t number = index_.find(reg);
    const std::uint32_t read = number == kNone ? kNone : versions_.read(statement, number);
    return read == kNone ? std::uint8_t{kConstant} : bits_[read];
  }

 private:
  static std::uint8_t of_special(const Operand& operand) {
    const auto reg = static_cast<SpecialRegister>(operand.id);
    if (reg == SpecialRegister::tid || reg == SpecialRegister::laneid ||
        reg == SpecialRegister::warpid)
      return kThread;
    return reg == SpecialRegister::ctaid ? std::uint8_t{kBlock} : std::uint8_t{kConstant};
  }

  bool refresh(std::uint32_t v) {
    const Version& version = versions_[v];
    std::uint8_t result = bits_[v];
    if (version.kind == Version::Kind::Phi) {
      for (const std::uint32_t input : versions_.inputs(v)) {
        if (input != kNone) result |= bits_[input];
      }
    } else if (version.kind == Version::Kind::Write) {
      if (version.previous != kNone) result |= bits_[version.previous];
      result |= computed(version.statement);
    }
    const bool grown = result != bits_[v];
    bits_[v] = result;
    return grown;
  }

  std::uint8_t computed(std::uint32_t statement) const {
    const Instruction& s = function_.body[statement];
    const OpInfo& row = info(s.op);
    constexpr Flag kNoArithmetic = Flag::ReadsMemory | Flag::Convergent | Flag::Call;
    if (has(row.flags, kNoArithmetic)) return kConstant;
    const auto operands = function_.operands_of(s);
    std::uint8_t result = kConstant;
    for (std::size_t i = 1; i < operands.size(); ++i) result |= of(statement, operands[i]);
    // A combination of comparisons is one.
    if (is_predicate(operands)) return result;
    return is_bounded(row.mnemonic, result) ? std::uint8_t{kConstant} : result;
  }

  bool is_predicate(std::span<const Operand> operands) const {
    return !operands.empty() && operands[0].kind == OperandKind::Register &&
           function_.type_of(operands[0].as_register()) == Type::pred;
  }

  /// Whether the operation bounds its result: a clamp, or a cut of the whole index to some bits.
  /// The thread index alone is small anyway, so cutting it is no check.
  static bool is_bounded(std::string_view mnemonic, std::uint8_t result) {
    if (mnemonic == "min" || mnemonic == "selp") return true;
    return (result & kBlock) != 0 && (mnemonic == "and" || mnemonic == "rem" || mnemonic == "bfe");
  }

  const Function& function_;
  const analysis::RegisterIndex& index_;
  const analysis::Versions& versions_;
  std::vector<std::uint8_t> bits_;
};

/// Blocks that control reaches only if a comparison of an index allows it.
std::vector<bool> guarded_blocks(const RuleFindings& findings, const Indices& indices) {
  const Function& function = findings.function();
  const analysis::Cfg& cfg = findings.facts().cfg();
  std::vector<bool> guarded(cfg.blocks().size());
  for (const std::uint32_t block : cfg.order()) {
    const std::uint32_t above = cfg.dominators().immediate(block);
    if (above == analysis::kNoNode || above >= guarded.size()) continue;
    guarded[block] = guarded[above];
    const std::uint32_t end = cfg.blocks()[above].terminator;
    if (guarded[block] || end == kNone || !function.body[end].guard.present()) continue;
    const bool decides = !cfg.post_dominators().dominates(block, above);
    guarded[block] = decides && indices.of(end, function.body[end].guard.predicate) != kConstant;
  }
  return guarded;
}

bool makes_generic_addresses(const Function& function) {
  for (const Instruction& s : function.body) {
    if (!s.is(Op::cvta)) continue;
    const Space space = space_of(s.get(Field::Space));
    if (space == Space::Shared || space == Space::Local) return true;
  }
  return false;
}

bool says_block_shape(const Function& function, const GateOptions& options) {
  if (options.block[0] != 0) return true;
  for (const Directive& directive : function.directives) {
    if (directive.kind == DirectiveKind::reqntid || directive.kind == DirectiveKind::maxntid)
      return true;
  }
  return false;
}

}  // namespace

void find_unchecked_bounds(RuleFindings& findings, const GateOptions& options) {
  const Function& function = findings.function();
  if (!function.entry) return;
  const Indices indices(findings);
  const std::vector<bool> guarded = guarded_blocks(findings, indices);
  const analysis::Cfg& cfg = findings.facts().cfg();
  const bool generic = !makes_generic_addresses(function);
  const bool few_threads = says_block_shape(function, options);
  std::uint32_t first = kNone;
  std::uint32_t count = 0;
  const Operand* base = nullptr;
  bool over_grid = false;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const Instruction& s = function.body[i];
    constexpr Flag kMemory = Flag::ReadsMemory | Flag::WritesMemory;
    if (s.kind != StatementKind::Instruction || !has(info(s.op).flags, kMemory)) continue;
    const Space space = space_of(s.get(Field::Space));
    if (space != Space::Global && !(generic && space == Space::Generic)) continue;
    for (const Operand& operand : function.operands_of(s)) {
      if (operand.kind != OperandKind::Memory) continue;
      const std::uint8_t result = indices.of(i, operand);
      // The launch decides the number of blocks.
      if ((result & kThread) == 0) continue;
      // The thread index alone stays within the declared block.
      if (few_threads && (result & kBlock) == 0) continue;
      if (!cfg.reachable(cfg.block_of(i)) || guarded[cfg.block_of(i)]) continue;
      if (s.guard.present() && indices.of(i, s.guard.predicate) != kConstant) continue;
      if (first == kNone) {
        first = i;
        base = &operand;
        over_grid = (result & kBlock) != 0;
      }
      ++count;
    }
  }
  if (first == kNone) return;
  std::string message = format_text(
      "the address {} depends on the thread's index, which nothing compares with a bound",
      findings.name(*base));
  if (count > 1) {
    message += format_text("; so do those of {} more access{} of this kernel", count - 1,
                           (count > 2 ? "es" : ""));
  }
  findings.report(
      Severity::Warning, "unchecked-bounds", first, std::move(message),
      over_grid
          ? "a grid is whole blocks: unless the size is a multiple of the block, the last block "
            "has threads beyond it"
          : "without .reqntid and .maxntid the launch decides how many threads a block has",
      "compare the index with the size, and guard the access or branch around it (around work, not "
      "around barriers)");
}

}  // namespace ptxgen::inline v0::gates
