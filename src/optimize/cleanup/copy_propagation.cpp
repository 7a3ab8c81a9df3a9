// src/optimize/cleanup/copy_propagation.cpp - replaces reads of copies by their sources
#include <algorithm>

#include "optimize/cleanup/cleanup.hpp"
#include "optimize/scopes.hpp"
#include "ptxgen/optimize/passes.hpp"
#include "ptxgen/ptx/operand_specs.hpp"
#include "ptxgen/ptx/verifier.hpp"

namespace ptxgen::inline v0::optimize {

using namespace ptx;
using analysis::Outcome;
using Version = analysis::Version;

namespace {

// Visits statements in dominance order: a copy of a copy is rewritten before its result is
// read.
class Propagation {
 public:
  Propagation(Function& function, PassContext& context)
      : function_(function),
        context_(context),
        facts_(context.facts(function), false),
        scopes_(context.facts(function).scopes()),
        copies_(facts_.versions.size()) {}

  void run() {
    for (const std::uint32_t block : facts_.cfg.order()) {
      if (!facts_.constants.executable(block)) continue;
      const analysis::Block& b = facts_.cfg.blocks()[block];
      for (std::uint32_t i = b.first; i < b.end; ++i) {
        context_.visit();
        if (function_.body[i].kind == StatementKind::Instruction) statement(i);
      }
    }
  }

 private:
  // A register and the version of it that was copied.
  struct Copied {
    Register reg;
    std::uint32_t version = kNone;
  };

  void statement(std::uint32_t i) {
    // What the instruction copies is seen before its operands change.
    const std::uint32_t result = copy_made(i);
    const std::uint16_t source = result == kNone ? std::uint16_t{0} : copied_operand_;
    if (result == kNone && !reads_known(i)) return;
    guard(i);
    const Instruction& s = function_.body[i];
    last_ = {};
    const OperandSpecs specs(function_, s);
    for (std::size_t o = 0; o < s.operand_count; ++o) {
      const OperandSpec* spec = specs[o];
      if (spec == nullptr || spec->role == OperandRole::Destination ||
          spec->role == OperandRole::Returns)
        continue;
      Copied now;
      const Operand operand = function_.operands_of(s)[o];
      if (operand.kind == OperandKind::Vector || operand.kind == OperandKind::List) {
        for (std::uint32_t e = 0; e < operand.index; ++e) now = place(i, operand.id + e, nullptr);
      } else {
        now = place(i, s.first_operand + static_cast<std::uint32_t>(o), spec);
      }
      if (result != kNone && o == source) last_ = now;
    }
    if (result != kNone && last_.version != kNone) copies_[result] = last_;
  }

  // Whether something that it reads is a copy or a constant.
  [[nodiscard]] bool reads_known(std::uint32_t i) const {
    const auto accesses = facts_.index.accesses(i);
    return std::any_of(accesses.begin(), accesses.end(), [&](const analysis::NumberedAccess& a) {
      const std::uint32_t version = a.write ? kNone : facts_.versions.read(i, a.reg);
      return version != kNone &&
             (copies_[version].version != kNone || facts_.constants.of(version));
    });
  }

  [[nodiscard]] bool plain(const Operand& o) const {
    return o.kind == OperandKind::Register && o.component == 0 && !o.negated &&
           function_.registers[o.id].vector == 1;
  }
  [[nodiscard]] unsigned width(const Operand& o) const {
    return bits(function_.type_of(o.as_register()));
  }

  // The version that an instruction makes if that is a copy of a register, else kNone.
  std::uint32_t copy_made(std::uint32_t i) {
    const Instruction& s = function_.body[i];
    const auto operands = function_.operands_of(s);
    if (operands.empty() || !plain(operands[0])) return kNone;
    const std::uint32_t reg = facts_.index.find(operands[0].as_register());
    const std::uint32_t version = reg == kNone ? kNone : facts_.versions.written(i, reg);
    if (version == kNone) return kNone;
    if (!only_computes(s)) return kNone;
    const Outcome outcome = facts_.constants.outcome(i, false);
    if (outcome.kind != Outcome::Kind::Source || outcome.count != 1) return kNone;
    copied_operand_ = outcome.source;
    const Operand& from = operands[copied_operand_];
    if (!plain(from)) return kNone;
    // A guarded copy leaves the old value in some threads.
    if (facts_.versions[version].partial) return kNone;
    // A conversion between registers that are wider than its types cuts and extends.
    if (width(from) != width(operands[0])) return kNone;
    if (s.op == Op::cvt_int && bits(s.type(0)) != width(operands[0])) return kNone;
    return version;
  }

  // What the version that statement `i` reads of a register is a copy of, if that can be read
  // there instead.
  Copied original(std::uint32_t i, std::uint32_t version) {
    const Copied copied = copies_[version];
    if (copied.version == kNone) return {};
    const std::uint32_t reg = facts_.index.find(copied.reg);
    if (facts_.versions.before(i, reg) != copied.version) {
      refuse(i, version, "source-changed", "may hold another value by then");
      return {};
    }
    if (!scopes_.visible(copied.reg, i)) {
      refuse(i, version, "out-of-scope", "cannot be named there");
      return {};
    }
    return copied;
  }

  void guard(std::uint32_t i) {
    Instruction& s = function_.body[i];
    if (!s.guard.present()) return;
    const std::uint32_t reg = facts_.index.find(s.guard.predicate);
    const std::uint32_t version = reg == kNone ? kNone : facts_.versions.read(i, reg);
    if (version == kNone) return;
    const Copied copied = original(i, version);
    if (copied.version == kNone || function_.type_of(copied.reg) != Type::pred) return;
    const Instruction before = s;
    s.guard.predicate = copied.reg;
    done(i, before, "copy");
  }

  // The operand at a place of the pool; returns what it names afterwards, if that is a register.
  Copied place(std::uint32_t i, std::uint32_t at, const OperandSpec* spec) {
    const Operand old = function_.operands[at];
    const bool address = old.kind == OperandKind::Memory && old.base == OperandKind::Register;
    if (old.kind != OperandKind::Register && !address) return {};
    const std::uint32_t reg = facts_.index.find(old.as_register());
    const std::uint32_t version = reg == kNone ? kNone : facts_.versions.read(i, reg);
    if (version == kNone) return {};
    const Copied unchanged{old.as_register(), version};
    if (old.component != 0 || function_.registers[old.id].vector != 1) return unchanged;
    if (spec != nullptr && !address && immediate(i, at, *spec)) return {};
    const Copied copied = original(i, version);
    if (copied.version == kNone) return unchanged;
    Operand by = old;
    by.id = copied.reg.decl.value;
    by.index = copied.reg.index;
    // A list has no types: those of the function's parameters must not change.
    const bool listed = spec == nullptr;
    if ((listed && function_.type_of(copied.reg) != function_.type_of(old.as_register())) ||
        !try_operand(i, at, by, "copy")) {
      refuse(i, version, "type-mismatch", "has a type that the instruction does not take there");
      return unchanged;
    }
    return copied;
  }

  // Constants replace registers where a source may be either.
  bool immediate(std::uint32_t i, std::uint32_t at, const OperandSpec& spec) {
    if (spec.role != OperandRole::Source && spec.role != OperandRole::Value) return false;
    const Instruction& s = function_.body[i];
    const Type type = operand_type(s, spec);
    const TypeKind of = kind(type);
    const bool integer = of == TypeKind::Bits || of == TypeKind::Unsigned || of == TypeKind::Signed;
    // Integers that stand for the bits of a half or of packed values are hard to read, and not all
    // instructions take them.
    if (!integer && type != Type::f32 && type != Type::f64) return false;
    const auto value = facts_.constants.source(i, at - s.first_operand, spec);
    if (!value) return false;
    return try_operand(i, at, constant_operand(type, *value), "constant-operand");
  }

  bool try_operand(std::uint32_t i, std::uint32_t at, const Operand& by, std::string_view reason) {
    const Operand old = function_.operands[at];
    const std::string before =
        context_.explains() ? quoted(context_, function_, function_.body[i]) : std::string();
    function_.operands[at] = by;
    if (!check_operands(context_.module(), function_, function_.body[i]).rule.empty()) {
      function_.operands[at] = old;
      return false;
    }
    report(i, before, reason);
    return true;
  }

  void done(std::uint32_t i, const Instruction& before, std::string_view reason) {
    report(i, context_.explains() ? quoted(context_, function_, before) : std::string(), reason);
  }
  void report(std::uint32_t i, const std::string& before, std::string_view reason) {
    context_.decide(function_, i, true, reason,
                    context_.explains()
                        ? before + " became " + quoted(context_, function_, function_.body[i])
                        : std::string());
    context_.changed();
  }
  void refuse(std::uint32_t i, std::uint32_t version, std::string_view reason,
              std::string_view why) {
    if (!context_.explains()) {
      context_.decide(function_, i, false, reason);
      return;
    }
    const auto name = [&](Register reg) {
      return "'" + name_of(context_.module(), function_, reg) + "'";
    };
    context_.decide(function_, i, false, reason,
                    quoted(context_, function_, function_.body[i]) + " goes on reading " +
                        name(facts_.index[facts_.versions[version].reg]) + ", a copy of " +
                        name(copies_[version].reg) + ", which " + std::string(why));
  }

  Function& function_;
  PassContext& context_;
  CleanupFacts facts_;
  const Scopes& scopes_;
  std::vector<Copied> copies_;  // of each version
  std::uint16_t copied_operand_ = 0;
  Copied last_;
};

}  // namespace

void copy_propagation(Function& function, PassContext& context) {
  if (understood(function, context)) Propagation(function, context).run();
}

}  // namespace ptxgen::inline v0::optimize
