// src/check/shared_race/forms.cpp - addresses and conditions by thread
#include "check/shared_race/forms.hpp"

#include <algorithm>

#include "analysis/affine_forms.hpp"
#include "ptx/semantics/compare.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;
using analysis::AffineForm;
using analysis::AffineOperation;
using analysis::AffineSymbol;
using analysis::AffineTerm;
using analysis::kNoNode;

namespace {

constexpr SymbolKey kNoSymbols{kNone, kNone, kNone};
/// Maximum nesting of operations; deeper ones stay symbols.
constexpr int kMaxDepth = 24;

std::int64_t sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

std::int64_t number(std::int64_t value, unsigned bits, bool is_signed) {
  const auto pattern = static_cast<std::uint64_t>(value);
  return is_signed ? analysis::signed_bits(pattern, bits)
                   : static_cast<std::int64_t>(analysis::pattern(pattern, bits));
}

bool holds(Modifier comparison, std::int64_t a, std::int64_t b, bool is_signed) {
  return ptx::holds(comparison,
                    ordering(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b),
                             is_signed ? Type::s64 : Type::u64));
}

Space space_of_symbol(const Module& module, std::uint32_t id) {
  const Symbol& symbol = module.symbols[id];
  if (symbol.kind == SymbolKind::Variable) return module.variables[symbol.index].space;
  if (symbol.kind == SymbolKind::FunctionVariable)
    return module.functions[symbol.function].variables[symbol.index].space;
  return Space::Generic;
}

}  // namespace

AffineForm expanded(const analysis::Affine& affine, const AffineForm& form) {
  AffineForm out = form;
  for (int step = 0; step < 16; ++step) {
    const auto at = std::find_if(out.terms.begin(), out.terms.end(), [&](const AffineTerm& term) {
      return term.symbols[1] == kNone && affine.expansion(term.symbols[0]) != nullptr;
    });
    if (at == out.terms.end()) break;
    const AffineTerm term = *at;
    out.terms.erase(at);
    out = analysis::sum(out, analysis::resized(*affine.expansion(term.symbols[0]), out.bits),
                        term.coefficient);
  }
  return out;
}

ThreadForms::ThreadForms(analysis::Facts& facts, const analysis::Affine& affine,
                         std::array<std::uint32_t, 3> shape)
    : facts_(facts),
      affine_(affine),
      shape_(shape),
      threads_(std::max(1u, shape[0] * shape[1] * shape[2])) {}

// Values --------------------------------------------------------------------------------------

const ThreadForms::Column* ThreadForms::column(std::uint32_t symbol) {
  const auto known = columns_.find(symbol);
  if (known != columns_.end()) return known->second ? &*known->second : nullptr;
  const AffineSymbol& s = affine_.symbols()[symbol];
  std::optional<Column> out;
  if (s.kind == AffineSymbol::Kind::Thread || s.kind == AffineSymbol::Kind::Lane) {
    Column values(threads_);
    for (std::uint32_t t = 0; t < threads_; ++t) {
      const std::array<std::uint32_t, 3> at{t % shape_[0], t / shape_[0] % shape_[1],
                                            t / shape_[0] / shape_[1]};
      values[t] = s.kind == AffineSymbol::Kind::Lane ? t % 32 : at[s.component % 3];
    }
    out = std::move(values);
  } else if (s.kind == AffineSymbol::Kind::BlockShape) {
    out = Column(threads_, shape_[s.component % 3]);
  } else if (const AffineForm* expansion = affine_.expansion(symbol)) {
    columns_[symbol] = std::nullopt;  // ends a recursion through the symbol itself
    out = column(*expansion);
  } else if (s.kind == AffineSymbol::Kind::Operation && s.depth <= kMaxDepth) {
    std::array<Column, 3> operands;
    bool all = true;
    for (std::size_t i = 0; i < 3 && all; ++i) {
      if (s.operands[i] == kNone) continue;
      std::optional<Column> operand = column(affine_.form(s.operands[i]));
      all = operand.has_value();
      if (all) operands[i] = std::move(*operand);
    }
    if (all) out = operation(s, operands);
  }
  std::optional<Column>& kept = columns_[symbol];
  kept = std::move(out);
  return kept ? &*kept : nullptr;
}

std::optional<ThreadForms::Column> ThreadForms::column(const AffineForm& form) {
  Column values(threads_, form.constant);
  for (const AffineTerm& term : form.terms) {
    Column factors(threads_, term.coefficient);
    for (const std::uint32_t symbol : term.symbols) {
      if (symbol == kNone) break;
      const Column* known = column(symbol);
      if (known == nullptr) return std::nullopt;
      for (std::uint32_t t = 0; t < threads_; ++t) factors[t] = product(factors[t], (*known)[t]);
    }
    for (std::uint32_t t = 0; t < threads_; ++t) values[t] = sum(values[t], factors[t]);
  }
  for (std::int64_t& value : values)
    value = analysis::signed_bits(static_cast<std::uint64_t>(value), form.bits);
  return values;
}

ThreadForms::Column ThreadForms::operation(const AffineSymbol& symbol,
                                           const std::array<Column, 3>& operands) const {
  Column out(threads_);
  std::array<unsigned, 3> width{64, 64, 64};
  for (std::size_t i = 0; i < 3; ++i) {
    if (symbol.operands[i] != kNone) width[i] = affine_.form(symbol.operands[i]).bits;
  }
  for (std::uint32_t t = 0; t < threads_; ++t) {
    const auto value = [&](std::size_t i, bool is_signed) {
      return operands[i].empty() ? 0 : number(operands[i][t], width[i], is_signed);
    };
    const std::int64_t a = value(0, symbol.is_signed), b = value(1, symbol.is_signed);
    const auto bits_a = static_cast<std::uint64_t>(value(0, false));
    const auto bits_b = static_cast<std::uint64_t>(value(1, false));
    std::int64_t result = 0;
    switch (symbol.operation) {
      case AffineOperation::Quotient:
        result = bits_b == 0 ? 0 : static_cast<std::int64_t>(bits_a / bits_b);
        break;
      case AffineOperation::Remainder:
        result = bits_b == 0 ? 0 : static_cast<std::int64_t>(bits_a % bits_b);
        break;
      case AffineOperation::Minimum:
        result = holds(Modifier::lt, a, b, symbol.is_signed) ? a : b;
        break;
      case AffineOperation::Maximum:
        result = holds(Modifier::lt, a, b, symbol.is_signed) ? b : a;
        break;
      case AffineOperation::And:
        result = static_cast<std::int64_t>(bits_a & bits_b);
        break;
      case AffineOperation::Or:
        result = static_cast<std::int64_t>(bits_a | bits_b);
        break;
      case AffineOperation::Xor:
        result = static_cast<std::int64_t>(bits_a ^ bits_b);
        break;
      case AffineOperation::ShiftLeft:
        result = bits_b >= symbol.bits ? 0 : static_cast<std::int64_t>(bits_a << bits_b);
        break;
      case AffineOperation::ShiftRight:
        if (symbol.is_signed)
          result = a >> std::min<std::uint64_t>(bits_b, 63);
        else
          result = bits_b >= symbol.bits ? 0 : static_cast<std::int64_t>(bits_a >> bits_b);
        break;
      case AffineOperation::Compare:
        result = holds(symbol.comparison, a, b, symbol.is_signed) ? 1 : 0;
        break;
      case AffineOperation::Select:
        result = bits_a != 0 ? value(1, true) : value(2, true);
        break;
      case AffineOperation::None:
        break;
    }
    out[t] = number(result, symbol.bits, symbol.is_signed);
  }
  return out;
}

// Forms ---------------------------------------------------------------------------------------

std::uint32_t ThreadForms::variable_number(std::uint32_t symbol) {
  const Module& module = facts_.module();
  const auto unsized = [&](std::uint32_t id) {
    const Symbol& s = module.symbols[id];
    return s.kind == SymbolKind::Variable && module.variables[s.index].space == Space::Shared &&
           module.variables[s.index].linkage == Linkage::Extern;
  };
  // All variables without a size begin at one address, after the sized ones: the first of them that
  // the function names represents all.
  if (!unsized(symbol)) return symbol;
  if (first_unsized_ != kNone) return first_unsized_;
  first_unsized_ = symbol;
  for (const Operand& operand : facts_.function().operands) {
    const bool named = operand.kind == OperandKind::Symbol ||
                       (operand.kind == OperandKind::Memory && operand.base == OperandKind::Symbol);
    if (named && operand.id < first_unsized_ && unsized(operand.id)) first_unsized_ = operand.id;
  }
  return first_unsized_;
}

ThreadForm ThreadForms::computed(const AffineForm& unexpanded) {
  const AffineForm form = expanded(affine_, unexpanded);
  ThreadForm out;
  out.values.assign(threads_, form.constant);
  std::map<SymbolKey, std::int64_t> rest;
  for (const AffineTerm& term : form.terms) {
    Column factors(threads_, term.coefficient);
    SymbolKey key = kNoSymbols;
    std::size_t unknown = 0;
    for (const std::uint32_t symbol : term.symbols) {
      if (symbol == kNone) break;
      const Column* known = column(symbol);
      if (known == nullptr) {
        key[unknown++] = symbol;
        continue;
      }
      for (std::uint32_t t = 0; t < threads_; ++t) factors[t] = product(factors[t], (*known)[t]);
    }
    if (unknown == 0) {
      for (std::uint32_t t = 0; t < threads_; ++t) out.values[t] = sum(out.values[t], factors[t]);
      continue;
    }
    // With a factor that differs between threads the rest differs between them too.
    if (std::adjacent_find(factors.begin(), factors.end(), std::not_equal_to<>()) != factors.end())
      return out;
    rest[key] = sum(rest[key], factors[0]);
  }
  for (const auto& [key, coefficient] : rest) {
    const std::int64_t factor =
        analysis::signed_bits(static_cast<std::uint64_t>(coefficient), form.bits);
    if (factor == 0) continue;
    const AffineSymbol& symbol = affine_.symbols()[key[0]];
    const bool alone = key[1] == kNone && factor == 1;
    if (alone && symbol.kind == AffineSymbol::Kind::Address && out.variable == kNone) {
      if (symbol.id >= facts_.module().symbols.size()) return out;
      out.variable = symbol.id;
      continue;
    }
    out.elsewhere |= alone && symbol.kind == AffineSymbol::Kind::Parameter && symbol.bits == 64;
    out.rest.emplace_back(key, factor);
  }
  for (std::int64_t& value : out.values)
    value = analysis::signed_bits(static_cast<std::uint64_t>(value), form.bits);
  if (out.variable != kNone) {
    out.elsewhere = space_of_symbol(facts_.module(), out.variable) != Space::Shared;
    out.variable = variable_number(out.variable);
  }
  out.assumptions = form.assumptions;
  out.known = true;
  return out;
}

// Conditions ----------------------------------------------------------------------------------

AccessForm ThreadForms::of(const SharedAccess& access) {
  AccessForm out;
  out.may.assign(threads_, true);
  for (std::uint32_t t = 0; t < threads_; ++t) {
    if ((access.lanes >> (t % 32) & 1u) == 0) out.may[t] = false;
  }
  const Function& function = facts_.function();
  const Instruction& s = function.body[access.statement];
  if (s.guard.present()) add_condition(affine_.guard(access.statement), true, false, out, 0);
  const AccessForm& of_block = conditions_of(facts_.cfg().block_of(access.statement));
  for (std::uint32_t t = 0; t < threads_; ++t) out.may[t] = out.may[t] && of_block.may[t];
  out.conditions.insert(out.conditions.end(), of_block.conditions.begin(),
                        of_block.conditions.end());
  if (!access.anywhere || access.bytes != 0)
    out.address = computed(affine_.of(access.statement, function.operands_of(s)[access.operand]));
  if (access.rows != 0) {
    for (std::uint32_t t = 0; t < out.address.values.size(); ++t) {
      out.address.values[t] += access.offset(t);
    }
  }
  // Only a generic address may point outside the window.
  if (space_of(s.get(Field::Space)) != Space::Generic) out.address.elsewhere = false;
  // Addresses of the window fit 32 bits, whatever register holds them.
  for (std::int64_t& value : out.address.values)
    value = analysis::signed_bits(static_cast<std::uint64_t>(value), 32);
  if (access.anywhere) {
    out.address.values.assign(threads_, 0);
    out.address.rest.assign(1, {kNoSymbols, 1});
  }
  return out;
}

const AccessForm& ThreadForms::conditions_of(std::uint32_t home) {
  const auto [known, result] = of_blocks_.try_emplace(home);
  AccessForm& out = known->second;
  if (!result) return out;
  out.may.assign(threads_, true);
  const Function& function = facts_.function();
  const analysis::Cfg& cfg = facts_.cfg();
  // Branches with exactly one successor that leads here.
  std::uint32_t below = home;
  for (int step = 0; step < 64; ++step) {
    const std::uint32_t block = cfg.dominators().immediate(below);
    if (block == kNoNode || block >= cfg.blocks().size()) break;
    const std::uint32_t end = cfg.blocks()[block].terminator;
    const auto successors = cfg.successors(block);
    const bool decides = end != kNone && function.body[end].guard.present() &&
                         successors.size() == 2 && function.body[end].op != Op::brx_idx;
    for (std::size_t way = 0; decides && way < 2; ++way) {
      const std::uint32_t to = successors[way];
      if (!cfg.dominators().dominates(to, home)) continue;
      const auto from = cfg.predecessors(to);
      const bool only = std::all_of(from.begin(), from.end(), [&](std::uint32_t p) {
        return p == block || cfg.dominators().dominates(to, p);
      });
      if (!only) continue;
      // The first successor is the target of the branch.
      add_condition(affine_.guard(end), way == 0, false, out, 0);
    }
    below = block;
  }
  return out;
}

void ThreadForms::add_condition(const AffineForm& form, bool wanted, bool assumes, AccessForm& out,
                                int depth) {
  assumes |= form.may_wrap();
  if (const auto values = column(form)) {
    for (std::uint32_t t = 0; t < threads_; ++t) {
      if (((*values)[t] & 1) != (wanted ? 1 : 0)) out.may[t] = false;
    }
    return;
  }
  if (form.terms.size() != 1 || depth > 8) return;
  const AffineTerm& term = form.terms[0];
  if (term.symbols[1] != kNone || (term.coefficient & 1) == 0) return;
  const AffineSymbol& symbol = affine_.symbols()[term.symbols[0]];
  const bool inner = wanted != ((form.constant & 1) != 0);
  if (const AffineForm* expansion = affine_.expansion(term.symbols[0]))
    return add_condition(*expansion, inner, assumes, out, depth + 1);
  if (symbol.kind != AffineSymbol::Kind::Operation) return;
  const bool both = (symbol.operation == AffineOperation::And && inner) ||
                    (symbol.operation == AffineOperation::Or && !inner);
  if (both) {
    add_condition(affine_.form(symbol.operands[0]), inner, assumes, out, depth + 1);
    add_condition(affine_.form(symbol.operands[1]), inner, assumes, out, depth + 1);
  } else if (symbol.operation == AffineOperation::Compare) {
    add_comparison(term.symbols[0], inner, assumes, out);
  }
}

void ThreadForms::add_comparison(std::uint32_t symbol, bool wanted, bool assumes, AccessForm& out) {
  const AffineSymbol& compare = affine_.symbols()[symbol];
  const AffineForm& a = affine_.form(compare.operands[0]);
  const AffineForm& b = affine_.form(compare.operands[1]);
  const ThreadForm difference = computed(analysis::Affine::difference(a, b));
  if (!difference.known || difference.variable != kNone || difference.rest.size() != 1) return;
  const auto& [key, coefficient] = difference.rest[0];
  out.conditions.push_back(
      {difference.values, key, coefficient, compare.comparison, wanted, symbol, assumes});
}

}  // namespace ptxgen::inline v0::gates
