// src/check/parity/sources.cpp - parameters and block indices that values depend on
#include "check/parity/sources.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;
using analysis::AffineSymbol;
using analysis::Version;

Sources::Sources(analysis::Facts& facts)
    : facts_(facts), versions_(facts.versions()), sets_(versions_.size()) {
  std::vector<std::uint32_t> open;
  for (std::uint32_t v = 0; v < versions_.size(); ++v) {
    if (refresh(v)) open.push_back(v);
  }
  const Function& function = facts.function();
  while (!open.empty()) {
    const std::uint32_t changed = open.back();
    open.pop_back();
    for (const analysis::VersionUse& use : versions_.uses(changed)) {
      if (use.version != kNone && refresh(use.version)) open.push_back(use.version);
      if (use.statement == kNone) continue;
      const auto written = [&](const analysis::RegisterAccess& access) {
        if (!access.write) return;
        const std::uint32_t version =
            versions_.written(use.statement, facts_.index().find(access.reg));
        if (version != kNone && refresh(version)) open.push_back(version);
      };
      analysis::for_each_access(function, function.body[use.statement], written);
    }
  }
}

SourceSet Sources::of(std::uint32_t statement, const Operand& operand) const {
  if (operand.kind != OperandKind::Vector && operand.kind != OperandKind::List)
    return of_plain(statement, operand);
  SourceSet all = 0;
  for (const Operand& element : facts_.function().elements(operand))
    all |= of_plain(statement, element);
  return all;
}

SourceSet Sources::of_guard(std::uint32_t statement) const {
  const Guard& guard = facts_.function().body[statement].guard;
  return guard.present() ? of_plain(statement, Operand::reg(guard.predicate)) : 0;
}

SourceSet Sources::of_address(const analysis::AffineForm& form) const {
  SourceSet all = 0;
  for (const analysis::AffineTerm& term : form.terms) {
    for (const std::uint32_t symbol : term.symbols) {
      if (symbol != kNone) all |= of_symbol(symbol);
    }
  }
  return all;
}

// Only grows, so that the solution is reached in linear time.
bool Sources::refresh(std::uint32_t v) {
  const Version& version = versions_[v];
  SourceSet all = sets_[v];
  if (version.kind == Version::Kind::Phi) {
    for (const std::uint32_t input : versions_.inputs(v)) all |= of_version(input);
  } else if (version.kind == Version::Kind::Write) {
    all |= of_version(version.previous) | computed(version.statement);
  }
  const bool grown = all != sets_[v];
  sets_[v] = all;
  return grown;
}

SourceSet Sources::computed(std::uint32_t statement) const {
  const Function& function = facts_.function();
  const Instruction& s = function.body[statement];
  const auto operands = function.operands_of(s);
  const bool loads = has(info(s.op).flags, Flag::ReadsMemory | Flag::Call);
  if (loads && space_of(s.get(Field::Space)) != Space::Param) return 0;
  SourceSet all = of_guard(statement);
  for (std::size_t i = 1; i < operands.size(); ++i) all |= of(statement, operands[i]);
  return all;
}

SourceSet Sources::of_plain(std::uint32_t statement, const Operand& operand) const {
  if (operand.kind == OperandKind::Special) {
    const bool block = static_cast<SpecialRegister>(operand.id) == SpecialRegister::ctaid;
    return block && operand.component != 0 ? block_index(operand.component - 1u) : 0;
  }
  const bool memory = operand.kind == OperandKind::Memory;
  const OperandKind kind = memory ? operand.base : operand.kind;
  if (kind == OperandKind::Symbol && operand.id < facts_.module().symbols.size()) {
    const Symbol& symbol = facts_.module().symbols[operand.id];
    if (symbol.kind == SymbolKind::Parameter) return parameter_source(symbol.index);
    const Variable* variable = analysis::variable_of(facts_.module(), operand.id);
    return variable != nullptr && variable->space == Space::Shared ? kSharedAddress : 0;
  }
  if (kind != OperandKind::Register) return 0;
  const std::uint32_t reg = facts_.index().find(operand.as_register());
  return reg == kNone ? 0 : of_version(versions_.read(statement, reg));
}

SourceSet Sources::of_symbol(std::uint32_t number) const {
  const analysis::Affine& affine = facts_.affine();
  const AffineSymbol& symbol = affine.symbols()[number];
  switch (symbol.kind) {
    case AffineSymbol::Kind::Block:
      return block_index(symbol.component);
    case AffineSymbol::Kind::Parameter:
      return parameter_source(symbol.id);
    case AffineSymbol::Kind::Address: {
      const Variable* variable = analysis::variable_of(facts_.module(), symbol.id);
      return variable != nullptr && variable->space == Space::Shared ? kSharedAddress : 0;
    }
    case AffineSymbol::Kind::Phi:
    case AffineSymbol::Kind::Rest:
    case AffineSymbol::Kind::Value:
      return of_version(symbol.id);
    case AffineSymbol::Kind::Operation:
      break;
    default:
      return 0;
  }
  SourceSet all = 0;
  for (const std::uint32_t form : symbol.operands) {
    if (form != kNone) all |= of_address(affine.form(form));
  }
  return all;
}

}  // namespace ptxgen::inline v0::gates
