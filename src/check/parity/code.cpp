// src/check/parity/code.cpp - a kernel as the parity checks see it
#include "check/parity/code.hpp"

#include <algorithm>

#include "analysis/copies.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;

const Function* only_entry(const Module& module) noexcept {
  const Function* entry = nullptr;
  for (const Function& function : module.functions) {
    if (!function.entry || function.declaration) continue;
    if (entry != nullptr) return nullptr;
    entry = &function;
  }
  return entry;
}

ParityCode::ParityCode(ModuleFacts& module)
    : facts_(module.of(*only_entry(module.module()))), sources_(*facts_) {
  for (std::uint32_t i = 0; i < function().body.size(); ++i) {
    if (function().body[i].kind == StatementKind::Instruction) look(i);
  }
}

void ParityCode::look(std::uint32_t statement) {
  const Instruction& s = function().body[statement];
  const Flag flags = info(s.op).flags;
  const bool writes = has(flags, Flag::WritesMemory);
  if (!writes && !has(flags, Flag::ReadsMemory)) return;
  if (!facts_->cfg().reachable(facts_->cfg().block_of(statement))) return;
  if (const auto copy = analysis::copy_of(function(), s)) {
    if (copy->from_space == Space::Global) add(statement, *copy->from, false);
    if (copy->to_space == Space::Global) add(statement, *copy->to, true);
    return;
  }
  const auto operands = function().operands_of(s);
  const auto address = std::find_if(operands.begin(), operands.end(), [](const Operand& operand) {
    return operand.kind == OperandKind::Memory;
  });
  const Space space = space_of(s.get(Field::Space));
  const bool global = space == Space::Global || space == Space::Generic;
  if (address != operands.end() && global) add(statement, *address, writes);
}

void ParityCode::add(std::uint32_t statement, const Operand& address, bool writes) {
  const analysis::AffineForm form = facts_->affine().of(statement, address);
  const SourceSet sources = sources_.of_address(form);
  accesses_.push_back({statement, pointer_of(form, sources), sources, writes});
}

std::uint32_t ParityCode::pointer_of(const analysis::AffineForm& form, SourceSet sources) const {
  const analysis::Affine& affine = facts_->affine();
  const std::uint32_t base = affine.base_term(form);
  if (base != kNone) {
    const analysis::AffineSymbol& symbol = affine.symbols()[form.terms[base].symbols[0]];
    if (symbol.kind == analysis::AffineSymbol::Kind::Parameter) return symbol.id;
  }
  std::uint32_t only = kNone;
  for (std::uint32_t i = 0; i < function().parameters.size(); ++i) {
    const bool wide = bits(function().parameters[i].type) == 64;
    if (!wide || (sources & parameter_source(i)) == 0) continue;
    if (only != kNone) return kNone;
    only = i;
  }
  return only;
}

std::string_view ParityCode::parameter_name(std::uint32_t parameter) const {
  return module().text(function().parameters[parameter].name);
}

std::uint32_t ParityCode::parameter(std::string_view name) const {
  for (std::uint32_t i = 0; i < function().parameters.size(); ++i) {
    if (parameter_name(i) == name) return i;
  }
  return kNone;
}

std::uint32_t ParityCode::load_of(std::uint32_t parameter) const {
  for (std::uint32_t i = 0; i < function().body.size(); ++i) {
    const Instruction& s = function().body[i];
    if (s.kind != StatementKind::Instruction) continue;
    for (const Operand& operand : function().operands_of(s)) {
      const bool named = operand.kind == OperandKind::Memory &&
                         operand.base == OperandKind::Symbol &&
                         operand.id < module().symbols.size();
      if (!named) continue;
      const Symbol& symbol = module().symbols[operand.id];
      if (symbol.kind == SymbolKind::Parameter && symbol.index == parameter) return i;
    }
  }
  return kNone;
}

SourceSet ParityCode::deciding(std::uint32_t statement) const {
  SourceSet all = sources_.of_guard(statement);
  const analysis::Cfg& cfg = facts_->cfg();
  for (const std::uint32_t block : cfg.deciders(cfg.block_of(statement))) {
    const std::uint32_t branch = cfg.blocks()[block].terminator;
    if (branch != kNone) all |= sources_.of_guard(branch);
  }
  return all;
}

std::string ParityCode::place(std::uint32_t statement) const {
  const Instruction& s = function().body[statement];
  const std::string text = ptx::print(module(), function(), s);
  return s.line != 0 ? format_text("line {}: {}", s.line, text) : text;
}

Finding ParityCode::finding(std::uint32_t statement, std::string message, std::string_view reason,
                            std::string_view cure) const {
  RuleFindings one(*facts_);
  one.report(Severity::Error, "parity", statement, std::move(message), reason, cure);
  std::vector<Finding> taken;
  one.take(taken);
  return std::move(taken.front());
}

namespace {

// The step of the loop's first test against a number that depends on `parameter`; 0 if the step is
// not constant.
std::optional<std::uint64_t> step_to(const ParityCode& code, std::uint32_t loop,
                                     SourceSet parameter) {
  const analysis::Inductions& inductions = code.facts().inductions();
  for (const analysis::LoopTest& test : inductions.tests(loop)) {
    if (!test.goes_on || test.goes_on->bound.kind != analysis::LoopTerm::Kind::Version) continue;
    if ((code.sources().of_version(test.goes_on->bound.version) & parameter) == 0) continue;
    const analysis::LoopTerm& step = inductions.of(loop)[test.goes_on->value.variable].step;
    return step.constant() ? step.value : 0;
  }
  return std::nullopt;
}

// The loops inside `parent`; they come in the order of the text, outer ones first. Of a loop up to
// `omitted` only what is inside it.
std::string text_of(const ParityCode& code, std::uint32_t parent, SourceSet omitted) {
  const analysis::LoopForest& forest = code.facts().cfg().loops();
  std::string text;
  for (std::uint32_t i = 0; i < forest.loops().size(); ++i) {
    if (forest.loops()[i].parent != parent) continue;
    const std::string inside = text_of(code, i, omitted);
    text += omitted != 0 && step_to(code, i, omitted) ? inside : "(" + inside + ")";
  }
  return text;
}

}  // namespace

std::string loop_text(const ParityCode& code, SourceSet omitted) {
  return text_of(code, analysis::kNoNode, omitted);
}

std::optional<std::uint64_t> step_of_loop_to(const ParityCode& code, SourceSet parameter) {
  for (std::uint32_t loop = 0; loop < code.facts().cfg().loops().loops().size(); ++loop) {
    const auto step = step_to(code, loop, parameter);
    if (step && *step != 0) return step;
  }
  return std::nullopt;
}

}  // namespace ptxgen::inline v0::gates
