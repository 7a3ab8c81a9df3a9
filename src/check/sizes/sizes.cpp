// src/check/sizes/sizes.cpp - the bits of parameters that a kernel uses
#include "ptxgen/check/sizes.hpp"

#include <bit>

#include "check/rule_findings.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

namespace {

using namespace ptx;
using analysis::Version;

using Mask = std::uint64_t;
constexpr Mask kAll = ~Mask{0};

Mask low(unsigned bits) { return bits >= 64 ? kAll : (Mask{1} << bits) - 1; }
/// All bits up to the highest one: those that a carry passes.
Mask up_to_highest(Mask bits) { return low(static_cast<unsigned>(std::bit_width(bits))); }

/// The bits of registers that can have an effect, found backwards from the effects. Bits are only
/// added, so the time is linear.
class UsedBits {
 public:
  explicit UsedBits(analysis::Facts& facts)
      : function_(facts.function()),
        index_(facts.index()),
        versions_(facts.versions()),
        used_(versions_.size()) {
    for (std::uint32_t i = 0; i < function_.body.size(); ++i) {
      if (has_effect(i)) use_sources(i, kAll);
    }
    while (!open_.empty()) {
      const std::uint32_t version = open_.back();
      open_.pop_back();
      spread(version);
    }
  }

  [[nodiscard]] Mask of(std::uint32_t version) const { return used_[version]; }

 private:
  [[nodiscard]] bool has_effect(std::uint32_t i) const {
    const Instruction& s = function_.body[i];
    if (s.kind != StatementKind::Instruction) return false;
    constexpr Flag kEffects = Flag::WritesMemory | Flag::Barrier | Flag::Convergent |
                              Flag::Terminator | Flag::Branch | Flag::Call | Flag::Volatile |
                              Flag::Fence | Flag::Asynchronous;
    return has(info(s.op).flags, kEffects) || !versions_.writes(i);
  }

  void use(std::uint32_t version, Mask bits) {
    if (version == kNone || (used_[version] | bits) == used_[version]) return;
    used_[version] |= bits;
    open_.push_back(version);
  }
  // Every register that the statement reads, guard and addresses included.
  void use_sources(std::uint32_t statement, Mask bits) {
    analysis::for_each_access(function_, function_.body[statement],
                              [&](const analysis::RegisterAccess& access) {
                                if (!access.write) use(read(statement, access.reg), bits);
                              });
  }
  [[nodiscard]] std::uint32_t read(std::uint32_t statement, Register reg) const {
    const std::uint32_t number = index_.find(reg);
    return number == kNone ? kNone : versions_.read(statement, number);
  }

  // What a used version is made of.
  void spread(std::uint32_t version) {
    const Version& v = versions_[version];
    const Mask bits = used_[version];
    if (v.kind == Version::Kind::Phi) {
      for (const std::uint32_t input : versions_.inputs(version)) use(input, bits);
      return;
    }
    if (v.kind != Version::Kind::Write) return;
    if (v.previous != kNone) use(v.previous, bits);
    const Instruction& s = function_.body[v.statement];
    if (s.guard.present()) use(read(v.statement, s.guard.predicate), kAll);
    if (!use_known(v.statement, s, bits)) use_sources(v.statement, kAll);
  }

  // Rows of integers in which a bit of the result depends on some bits of the sources. Whether it
  // is one of them.
  bool use_known(std::uint32_t statement, const Instruction& s, Mask bits) {
    const auto operands = function_.operands_of(s);
    if (operands.size() < 2 || operands[0].kind != OperandKind::Register) return false;
    const std::string_view name = info(s.op).mnemonic;
    const auto source = [&](std::size_t i, Mask of) {
      if (operands[i].kind == OperandKind::Register) {
        use(read(statement, operands[i].as_register()), of);
      }
    };
    const auto constant = [&](std::size_t i) {
      return i < operands.size() && operands[i].kind == OperandKind::Integer;
    };
    if (name == "mov" && operands.size() == 2 && plain(operands)) {
      source(1, bits);
    } else if (name == "cvt" && operands.size() == 2 && integers(operands)) {
      // The bits above the source are its sign.
      const unsigned width = ptx::bits(function_.type_of(operands[1].as_register()));
      source(1, (bits & low(width)) | ((bits & ~low(width)) != 0 ? Mask{1} << (width - 1) : 0));
    } else if (name == "and" && constant(2)) {
      source(1, bits & operands[2].value);
    } else if (name == "shl" && constant(2) && operands[2].value < 64) {
      source(1, bits >> operands[2].value);
    } else if (name == "shr" && constant(2) && operands[2].value < 32) {
      // Shifted in are zeros, or the sign.
      const unsigned width = ptx::bits(function_.type_of(operands[0].as_register()));
      source(1, (bits << operands[2].value & low(width)) | Mask{1} << (width - 1));
    } else if (name == "div" && constant(2) && s.type() != Type::s32 && s.type() != Type::s64 &&
               std::has_single_bit(operands[2].value)) {
      source(1, bits << std::countr_zero(operands[2].value));
    } else if ((name == "add" || name == "sub") && integers(operands) && operands.size() == 3) {
      source(1, up_to_highest(bits));
      source(2, up_to_highest(bits));
    } else {
      return false;
    }
    return true;
  }
  [[nodiscard]] bool plain(std::span<const Operand> operands) const {
    return operands[0].component == 0 && operands[1].component == 0;
  }
  [[nodiscard]] bool integers(std::span<const Operand> operands) const {
    for (const Operand& operand : operands) {
      if (operand.kind != OperandKind::Register) continue;
      const TypeKind kind = ptx::kind(function_.type_of(operand.as_register()));
      if (kind != TypeKind::Bits && kind != TypeKind::Unsigned && kind != TypeKind::Signed) {
        return false;
      }
    }
    return operands[1].kind == OperandKind::Register && plain(operands);
  }

  const Function& function_;
  const analysis::RegisterIndex& index_;
  const analysis::Versions& versions_;
  std::vector<Mask> used_;
  std::vector<std::uint32_t> open_;
};

/// The parameter that a statement loads as a whole, or kNone.
std::uint32_t loaded_parameter(const Module& module, const Function& function,
                               const Instruction& s) {
  if (s.kind != StatementKind::Instruction || s.op != Op::ld ||
      space_of(s.get(Field::Space)) != Space::Param)
    return kNone;
  for (const Operand& operand : function.operands_of(s)) {
    if (operand.kind != OperandKind::Memory || operand.base != OperandKind::Symbol) continue;
    if (operand.id >= module.symbols.size() || operand.value != 0) return kNone;
    const Symbol& symbol = module.symbols[operand.id];
    return symbol.kind == SymbolKind::Parameter && symbol.index < function.parameters.size()
               ? symbol.index
               : std::uint32_t{kNone};
  }
  return kNone;
}

void check_function(RuleFindings& findings, std::span<const SizeDeclaration> declared) {
  const Function& function = findings.function();
  const UsedBits bits(findings.facts());
  const analysis::Versions& versions = findings.facts().versions();
  for (const SizeDeclaration& size : declared) {
    Mask used = 0;
    std::uint32_t first = kNone;
    for (std::uint32_t i = 0; i < function.body.size(); ++i) {
      const std::uint32_t parameter =
          loaded_parameter(findings.module(), function, function.body[i]);
      if (parameter == kNone ||
          findings.module().text(function.parameters[parameter].name) != size.name)
        continue;
      if (first == kNone) first = i;
      analysis::for_each_access(
          function, function.body[i], [&](const analysis::RegisterAccess& access) {
            if (!access.write) return;
            const std::uint32_t version =
                versions.written(i, findings.facts().index().find(access.reg));
            if (version != kNone) used |= bits.of(version);
          });
    }
    if (used == 0) continue;
    const Mask step = Mask{1} << std::countr_zero(used);
    if (step == 1 || size.multiple % step == 0) continue;
    findings.report(
        Severity::Error, "size-rounded-down", first,
        format_text("only multiples of {} of {} make a difference: up to {} elements at its end "
                    "are lost",
                    step, size.name, step - size.multiple),
        "a number of whole tiles leaves out an incomplete one",
        format_text("count the tiles by ({} + {}) / {}, and guard the elements of the last one; or "
                    "declare that {} is a multiple of {}",
                    size.name, step - 1, step, size.name, step));
  }
}

}  // namespace

std::vector<Finding> sizes(const Module& module, std::span<const SizeDeclaration> declared) {
  std::vector<Finding> all;
  for (const Item& item : module.items) {
    if (item.kind != Item::Kind::Function) continue;
    const Function& function = module.functions[item.index];
    if (function.declaration || !function.entry) continue;
    analysis::Facts facts(module, function);
    RuleFindings findings(facts);
    check_function(findings, declared);
    findings.take(all);
  }
  return all;
}

}  // namespace ptxgen::inline v0::gates
