// src/analysis/affine.cpp - values and addresses as affine sums
#include "ptxgen/analysis/affine.hpp"

#include <algorithm>
#include <map>

#include "analysis/affine_solver.hpp"
#include "analysis/uniformity_sources.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;
using Kind = AffineSymbol::Kind;

bool same_terms(const AffineForm& a, const AffineForm& b) noexcept {
  return a.bits == b.bits && a.constant == b.constant && a.terms == b.terms;
}

BlockBounds block_bounds(const Function& function, const UniformityOptions& options) {
  BlockBounds bounds;
  if (const auto shape = block_shape(function, options); shape[0] != 0)
    return {BlockBounds::Kind::Exact, shape};
  for (const Directive& directive : function.directives) {
    if (directive.kind != DirectiveKind::maxntid || directive.count == 0) continue;
    std::array<std::uint32_t, 3> size{1, 1, 1};
    for (std::size_t i = 0; i < directive.count && i < 3; ++i) size[i] = directive.values[i];
    if (size[0] == 0 || size[1] == 0 || size[2] == 0) continue;
    for (std::size_t i = 0; i < 3; ++i) size[i] = std::min(size[i], bounds.size[i]);
    return {BlockBounds::Kind::Bounded, size};
  }
  return bounds;
}

Affine::Affine(const Module& module, const Function& function, const Cfg& cfg,
               const RegisterIndex& index, const Versions& versions, const Uniformity& uniformity,
               const UniformityOptions& options)
    : module_(&module),
      function_(&function),
      cfg_(&cfg),
      index_(&index),
      versions_(&versions),
      uniformity_(&uniformity),
      block_(block_bounds(function, options)) {
  AffineSolver(*this, options).solve();
}

// --- queries ------------------------------------------------------------------------------------

AffineForm Affine::of(std::uint32_t statement, const Operand& operand) const {
  const std::uint32_t block = cfg_->block_of(statement);
  const OperandKind kind = operand.kind == OperandKind::Memory ? operand.base : operand.kind;
  switch (kind) {
    case OperandKind::Integer:
      return constant_form(operand.offset(), 64);
    case OperandKind::Register: {
      const std::uint32_t reg = index_->find(operand.as_register());
      const std::uint32_t version = reg == kNone ? kNone : versions_->read(statement, reg);
      if (version == kNone || operand.component != 0) break;
      const AffineForm form = of_version(version, block);
      if (operand.kind != OperandKind::Memory) return form;
      return sum(form, constant_form(operand.offset(), form.bits));
    }
    case OperandKind::Symbol: {
      const std::uint32_t symbol = find(Kind::Address, operand.id);
      if (symbol == kNone) break;
      return sum(symbol_form(symbol, 64), constant_form(operand.offset(), 64));
    }
    default:
      break;
  }
  return symbol_form(unknown_, 64);
}

AffineForm Affine::guard(std::uint32_t statement) const {
  const Instruction& s = function_->body[statement];
  if (!s.guard.present()) return constant_form(1, 1);
  const AffineForm form = of(statement, Operand::reg(s.guard.predicate));
  return s.guard.negated ? sum(constant_form(-1, 1), form, -1) : form;
}

AffineForm Affine::of_version(std::uint32_t version, std::uint32_t block) const {
  return expand(versions_forms_[version], block);
}

const AffineForm* Affine::expansion(std::uint32_t symbol) const noexcept {
  return expansions_[symbol] == kNone ? nullptr : &forms_[expansions_[symbol]];
}

AffineForm Affine::expand(const AffineForm& form, std::uint32_t block) const {
  constexpr int kMaxSteps = 64;
  const auto inside = [&](std::uint32_t loop) {
    return loop == kNoNode || cfg_->loops().contains(loop, block);
  };
  AffineForm result = constant_form(form.constant, form.bits);
  assume(result, form);
  std::vector<AffineTerm> open = form.terms;
  for (int step = 0; !open.empty(); ++step) {
    AffineTerm term = open.back();
    open.pop_back();
    std::size_t at = 0;
    while (at < 3 && (term.symbols[at] == kNone || expansions_[term.symbols[at]] == kNone)) ++at;
    AffineForm alone = constant_form(0, form.bits);
    if (at < 3 && step < kMaxSteps) {
      const std::uint32_t phi = term.symbols[at];
      const AffineForm& expansion = forms_[expansions_[phi]];
      AffineForm others = constant_form(0, form.bits);
      AffineTerm rest = term;
      rest.symbols[at] = kNone;
      std::ranges::sort(rest.symbols);
      if (rest.symbols[0] == kNone)
        others.constant = rest.coefficient;
      else
        others.terms.push_back(rest);
      if (const auto grown = product(resized(expansion, form.bits), others)) {
        result.constant = sum(result, constant_form(grown->constant, form.bits)).constant;
        assume(result, *grown);
        if (form.bits > symbols_[phi].bits && expansion_assumes_[phi] != kNone)
          assume(result, expansion_assumes_[phi]);
        open.insert(open.end(), grown->terms.begin(), grown->terms.end());
        continue;
      }
    }
    // Outside of a loop its iterations have ended, for some threads earlier than for others.
    for (std::uint32_t& factor : term.symbols) {
      while (factor != kNone && !inside(symbols_[factor].loop)) {
        const AffineSymbol& s = symbols_[factor];
        const std::uint32_t after =
            s.kind == Kind::Iteration ? final_iteration_[s.id] : left_[factor];
        if (after == kNone) break;
        factor = after;
      }
    }
    std::ranges::sort(term.symbols);
    alone.terms.push_back(term);
    result = sum(result, alone);
  }
  return result;
}

std::uint32_t Affine::find(Kind kind, std::uint32_t id) const {
  for (std::uint32_t s = 0; s < symbols_.size(); ++s) {
    if (symbols_[s].kind != kind) continue;
    const bool by_component = kind == Kind::Thread || kind == Kind::Block ||
                              kind == Kind::BlockShape || kind == Kind::GridShape;
    if (kind == Kind::Lane || (by_component ? symbols_[s].component : symbols_[s].id) == id)
      return s;
  }
  return kNone;
}

std::optional<std::int64_t> Affine::coefficient(const AffineForm& form,
                                                std::uint32_t symbol) const {
  std::int64_t found = 0;
  std::vector<std::uint32_t> open;
  for (const AffineTerm& term : form.terms) {
    const bool alone = term.symbols[1] == kNone;
    for (const std::uint32_t factor : term.symbols) {
      if (factor == kNone) continue;
      if (factor == symbol && !alone) return std::nullopt;
      if (factor == symbol)
        found = term.coefficient;
      else
        open.push_back(factor);
    }
  }
  // In an operand?
  std::vector<bool> seen(symbols_.size());
  while (!open.empty()) {
    const std::uint32_t factor = open.back();
    open.pop_back();
    if (factor == symbol) return std::nullopt;
    if (seen[factor]) continue;
    seen[factor] = true;
    for (const std::uint32_t operand : symbols_[factor].operands) {
      if (operand == kNone) continue;
      for (const AffineTerm& term : forms_[operand].terms) {
        for (const std::uint32_t inner : term.symbols)
          if (inner != kNone) open.push_back(inner);
      }
    }
  }
  return found;
}

AffineForm Affine::difference(const AffineForm& a, const AffineForm& b) { return sum(a, b, -1); }

Affine::Parts Affine::split(const AffineForm& form, Agreement agreeing) const {
  Parts parts{constant_form(0, form.bits), constant_form(form.constant, form.bits)};
  for (const AffineTerm& term : form.terms) {
    const bool agrees = std::ranges::all_of(term.symbols, [&](std::uint32_t factor) {
      return factor == kNone || symbols_[factor].agreement >= agreeing;
    });
    (agrees ? parts.agreeing : parts.differing).terms.push_back(term);
  }
  return parts;
}

// --- ranges -------------------------------------------------------------------------------------

// The ranges of symbols in blocks of some shape, where they are not those of the function.
struct Affine::Ranges {
  const BlockBounds& block;
  const std::vector<AffineRange>* all = nullptr;  // of every symbol, or
  AffineRanges& some;
  bool by_ways = false;  // phis have the ranges of their inputs
  int depth = 0;         // of phis among inputs of phis
};

AffineRange Affine::range(const AffineForm& form, const BlockBounds& block) const {
  AffineRanges none;
  Ranges known{block, block == block_ ? &ranges_ : nullptr, none};
  return range(form, known);
}

AffineRange Affine::range(const AffineForm& form, const BlockBounds& block,
                          AffineRanges& known) const {
  Ranges all{block, nullptr, known, true};
  return range(form, all);
}

AffineRange Affine::range(const AffineForm& form, Ranges& known) const {
  AffineRange all = exactly(form.constant);
  for (const AffineTerm& term : form.terms) {
    AffineRange one = exactly(term.coefficient);
    for (const std::uint32_t factor : term.symbols) {
      if (factor == kNone) break;
      if (known.all != nullptr) {
        one = one * (*known.all)[factor];
        continue;
      }
      if (known.some.size() < symbols_.size()) known.some.resize(symbols_.size());
      if (!known.some[factor]) {
        // Also for uses of a phi among its own inputs.
        known.some[factor] = range_of_symbol(factor, known);
        if (known.by_ways) known.some[factor] = range_of_phi(factor, known, *known.some[factor]);
      }
      one = one * *known.some[factor];
    }
    all = all + one;
  }
  return all;
}

// Of what a phi stands for, if that is a number as the symbol is; otherwise `range`.
AffineRange Affine::range_of_phi(std::uint32_t symbol, Ranges& known, AffineRange range) const {
  constexpr int kDeepest = 100;
  std::vector<std::uint32_t> ways;
  if (expansions_[symbol] != kNone) {
    ways.push_back(expansions_[symbol]);
  } else if (symbol < ways_.size()) {
    ways = ways_[symbol];
  }
  if (ways.empty() || known.depth >= kDeepest) return range;
  ++known.depth;
  const AffineSymbol& s = symbols_[symbol];
  AffineRange all;
  bool numbers = true;
  for (std::size_t i = 0; i < ways.size() && numbers; ++i) {
    const AffineForm& way = forms_[ways[i]];
    const AffineRange one = this->range(way, known);
    numbers = assumptions_hold(way, known) &&
              (s.bits >= 64 && !s.is_signed ? one.known && one.min >= 0
                                            : within(one, range_of_width(s.bits, s.is_signed)));
    all =
        all.known ? AffineRange{true, std::min(all.min, one.min), std::max(all.max, one.max)} : one;
  }
  --known.depth;
  return numbers ? all : range;
}

void Affine::add_range() {
  AffineRanges none;
  Ranges known{block_, &ranges_, none};
  ranges_.push_back(range_of_symbol(static_cast<std::uint32_t>(symbols_.size() - 1), known));
}

// long because it is one switch over the kinds of symbols and operations
AffineRange Affine::range_of_symbol(std::uint32_t symbol, Ranges& known) const {
  const AffineSymbol& s = symbols_[symbol];
  const BlockBounds& block = known.block;
  const auto number = [&](std::size_t i, bool is_signed) {
    const AffineForm& form = forms_[s.operands[i]];
    const AffineRange width = range_of_width(form.bits, is_signed);
    const AffineRange found = range(form, known);
    if (form.is_constant() && !is_signed) {
      const std::uint64_t value = pattern(static_cast<std::uint64_t>(form.constant), form.bits);
      return value >> 63 != 0 ? AffineRange{} : exactly(static_cast<std::int64_t>(value));
    }
    if (form.bits >= 64 && !is_signed) return found.known && found.min >= 0 ? found : AffineRange{};
    return within(found, width) ? found : width;
  };
  switch (s.kind) {
    case Kind::Thread:
      return {true, 0, std::int64_t{block.size[s.component]} - 1};
    case Kind::Block:
      return {true, 0, s.component == 0 ? 0x7ffffffe : 0xfffe};
    case Kind::BlockShape:
      return {true, block.kind == BlockBounds::Kind::Exact ? block.size[s.component] : 1,
              block.size[s.component]};
    case Kind::GridShape:
      return {true, 1, s.component == 0 ? 0x7fffffff : 0xffff};
    case Kind::Lane:
      return {true, 0, 31};
    case Kind::Address:
      // Windows of shared memory are far smaller.
      return is_shared(s) ? AffineRange{true, 0, (1 << 24) - 1} : AffineRange{};
    case Kind::Special:
    case Kind::Parameter:
    case Kind::Phi:
    case Kind::Value:
      return range_of_width(s.bits, s.is_signed);
    case Kind::Iteration:
    case Kind::FinalIteration:
    case Kind::Rest:
      return {};
    case Kind::Operation:
      break;
  }
  const AffineRange full_range = range_of_width(s.bits, s.is_signed);
  switch (s.operation) {
    case AffineOperation::Quotient: {
      const AffineRange a = number(0, false);
      const std::int64_t by = forms_[s.operands[1]].constant;
      if (!a.known) return {};
      return {true, floor_quotient(a.min, by), floor_quotient(a.max, by)};
    }
    case AffineOperation::Remainder:
      return {true, 0, forms_[s.operands[1]].constant - 1};
    case AffineOperation::Minimum:
    case AffineOperation::Maximum: {
      const AffineRange a = number(0, s.is_signed), b = number(1, s.is_signed);
      if (!a.known || !b.known) return full_range;
      if (s.operation == AffineOperation::Minimum)
        return {true, std::min(a.min, b.min), std::min(a.max, b.max)};
      return {true, std::max(a.min, b.min), std::max(a.max, b.max)};
    }
    case AffineOperation::And: {
      const AffineRange a = number(0, false), b = number(1, false);
      if (a.known && b.known) return {true, 0, std::min(a.max, b.max)};
      return a.known   ? AffineRange{true, 0, a.max}
             : b.known ? AffineRange{true, 0, b.max}
                       : full_range;
    }
    case AffineOperation::Or:
    case AffineOperation::Xor: {
      const AffineRange a = number(0, false), b = number(1, false);
      if (!a.known || !b.known) return full_range;
      std::int64_t max = 1;
      while (max - 1 < std::max(a.max, b.max) && max < std::int64_t{1} << 61) max *= 2;
      return max - 1 < std::max(a.max, b.max) ? full_range : AffineRange{true, 0, max - 1};
    }
    case AffineOperation::Select: {
      const AffineRange a = number(1, s.is_signed), b = number(2, s.is_signed);
      if (!a.known || !b.known) return full_range;
      return {true, std::min(a.min, b.min), std::max(a.max, b.max)};
    }
    case AffineOperation::ShiftRight: {
      const AffineRange a = number(0, s.is_signed);
      return a.known && a.min >= 0 ? AffineRange{true, 0, a.max} : full_range;
    }
    default:
      return full_range;
  }
}

bool Affine::is_shared(const AffineSymbol& s) const {
  if (s.kind != Kind::Address || s.id >= module_->symbols.size()) return false;
  const Variable* variable = variable_of(*module_, s.id);
  return variable != nullptr && variable->space == Space::Shared;
}

bool Affine::assumptions_hold(const AffineForm& form, const BlockBounds& block) const {
  AffineRanges none;
  Ranges known{block, block == block_ ? &ranges_ : nullptr, none};
  return assumptions_hold(form, known);
}

bool Affine::assumptions_hold(const AffineForm& form, const BlockBounds& block,
                              AffineRanges& known) const {
  Ranges all{block, nullptr, known, true};
  return assumptions_hold(form, all);
}

bool Affine::assumptions_hold(const AffineForm& form, Ranges& known) const {
  return std::ranges::all_of(form.assumptions, [&](std::uint32_t assumption) {
    const AffineAssumption& one = assumptions_[assumption];
    const AffineForm& assumed = forms_[one.form];
    const AffineRange found = range(assumed, known);
    if (assumed.bits >= 64 && !one.is_signed) return found.known && found.min >= 0;
    return within(found, range_of_width(assumed.bits, one.is_signed));
  });
}

const Variable* variable_of(const Module& module, std::uint32_t symbol) noexcept {
  if (symbol >= module.symbols.size()) return nullptr;
  const Symbol& s = module.symbols[symbol];
  const std::vector<Variable>* from = nullptr;
  if (s.kind == ptx::SymbolKind::Variable) from = &module.variables;
  if (s.kind == ptx::SymbolKind::FunctionVariable && s.function < module.functions.size())
    from = &module.functions[s.function].variables;
  return from != nullptr && s.index < from->size() ? &(*from)[s.index] : nullptr;
}

}  // namespace ptxgen::inline v0::analysis
