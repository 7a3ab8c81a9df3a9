// src/check/shared_race/ranges.cpp - ranges of the symbols of addresses
#include "check/shared_race/ranges.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "analysis/affine_forms.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;
using analysis::AffineForm;
using analysis::AffineRange;
using analysis::AffineSymbol;

namespace {

/// Sums of bounded terms stay far below the limits of 64 bits.
constexpr std::int64_t kLargest = std::int64_t{1} << 40;
/// The largest number on which threads agree, as the gate assumes.
constexpr std::int64_t kAgreed = std::numeric_limits<std::int32_t>::max();

bool is_small(const AffineRange& range) {
  return range.known && range.min >= -kLargest && range.max <= kLargest;
}

/// Whether the numbers of a form are those of its width.
bool fits(const AffineRange& range, unsigned bits, bool is_signed) {
  if (bits >= 64 && !is_signed) return range.known && range.min >= 0;
  return within(range, analysis::range_of_width(bits, is_signed));
}

std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
  return -analysis::floor_quotient(-a, b);
}

}  // namespace

SymbolRanges::SymbolRanges(analysis::Facts& facts, const analysis::Affine& affine,
                           std::array<std::uint32_t, 3> shape)
    : facts_(facts), affine_(affine), block_{analysis::BlockBounds::Kind::Exact, shape} {}

// Forms -------------------------------------------------------------------------------------------

AffineRange SymbolRanges::range(const AffineForm& form) {
  bound_loops();
  return affine_.range(form, block_, known_);
}

AffineRange SymbolRanges::of(const SymbolKey& key) {
  // No symbol: unknown bytes.
  if (key[0] == kNone) return {};
  AffineForm form;
  form.terms.push_back({1, key});
  return range(form);
}

AffineRange SymbolRanges::of(std::span<const std::pair<SymbolKey, std::int64_t>> terms) {
  AffineRange all = analysis::exactly(0);
  for (const auto& [key, coefficient] : terms) {
    all = all + analysis::exactly(coefficient) * of(key);
    if (!is_small(all)) return {};
  }
  return all;
}

AffineRange SymbolRanges::of_number(const AffineForm& form, bool is_signed) {
  if (form.is_constant() && !is_signed && form.bits < 64) {
    return analysis::exactly(static_cast<std::int64_t>(
        analysis::pattern(static_cast<std::uint64_t>(form.constant), form.bits)));
  }
  AffineRange found = range(form);
  if (const AffineRange left = above_minimum(form); left.known) found = left;
  return fits(found, form.bits, is_signed) && assumptions_hold(form) ? found : AffineRange{};
}

/// Of a - min(a, b), which is how far a is above b, or 0.
AffineRange SymbolRanges::above_minimum(const AffineForm& form) {
  for (std::size_t i = 0; i < form.terms.size(); ++i) {
    const analysis::AffineTerm& term = form.terms[i];
    if (term.coefficient != -1 || term.symbols[1] != kNone) continue;
    const AffineSymbol& symbol = affine_.symbols()[term.symbols[0]];
    if (symbol.kind != AffineSymbol::Kind::Operation || symbol.bits != form.bits ||
        symbol.operation != analysis::AffineOperation::Minimum)
      continue;
    AffineForm rest = form;
    rest.terms.erase(rest.terms.begin() + static_cast<std::ptrdiff_t>(i));
    for (const std::size_t at : {0u, 1u}) {
      if (!same_terms(rest, affine_.form(symbol.operands[at]))) continue;
      const AffineRange a = of_number(rest, symbol.is_signed);
      const AffineRange b = of_number(affine_.form(symbol.operands[1 - at]), symbol.is_signed);
      if (a.known && b.known)
        return {true, std::max<std::int64_t>(0, a.min - b.max),
                std::max<std::int64_t>(0, a.max - b.min)};
    }
  }
  return {};
}

bool SymbolRanges::assumptions_hold(const AffineForm& form) {
  if (!form.may_wrap()) return true;
  bound_loops();
  return affine_.assumptions_hold(form, block_, known_);
}

// Loops -------------------------------------------------------------------------------------------

// Outer loops first: what an inner one tests may depend on their iterations.
void SymbolRanges::bound_loops() {
  if (loops_known_) return;
  loops_known_ = true;
  const auto loops = facts_.cfg().loops().loops();
  std::vector<std::uint32_t> order(loops.size());
  for (std::uint32_t loop = 0; loop < order.size(); ++loop) order[loop] = loop;
  std::ranges::sort(order, {}, [&](std::uint32_t loop) { return loops[loop].begin; });
  std::vector<std::vector<std::uint32_t>> symbols(loops.size());
  for (std::uint32_t s = 0; s < affine_.symbols().size(); ++s) {
    const AffineSymbol& symbol = affine_.symbols()[s];
    if (symbol.kind == AffineSymbol::Kind::Iteration ||
        symbol.kind == AffineSymbol::Kind::FinalIteration)
      symbols[symbol.id].push_back(s);
  }
  analysis::AffineRanges bounded(affine_.symbols().size());
  for (const std::uint32_t loop : order) {
    // Ranges that were computed before those of this loop's iterations may be too wide.
    known_ = bounded;
    const AffineRange range = iterations(loop);
    if (!range.known) continue;
    for (const std::uint32_t symbol : symbols[loop]) bounded[symbol] = range;
  }
  known_ = std::move(bounded);
}

AffineRange SymbolRanges::iterations(std::uint32_t loop) {
  AffineRange range;
  for (const analysis::LoopTest& test : facts_.inductions().tests(loop)) {
    if (!test.every_iteration || !test.goes_on) continue;
    const auto last = last_iteration(loop, *test.goes_on);
    if (last && (!range.known || *last < range.max)) range = {true, 0, *last};
  }
  return range;
}

/// The iteration in which the test fails at the latest: the counter rises, has not wrapped around
/// then, and is not below the largest bound.
std::optional<std::int64_t> SymbolRanges::last_iteration(std::uint32_t loop,
                                                         const analysis::LoopComparison& test) {
  if (test.relation != analysis::Relation::Lt && test.relation != analysis::Relation::Le) return {};
  const analysis::Induction& variable = facts_.inductions().of(loop)[test.value.variable];
  const unsigned bits = variable.bits;
  if (!variable.step.constant() || variable.down() || bits > 32) return {};
  const auto step = static_cast<std::int64_t>(variable.step.value);
  const std::int64_t offset = analysis::signed_bits(test.value.offset, bits);
  const std::uint32_t header = facts_.cfg().loops().loops()[loop].header;
  const auto number = [&](const analysis::LoopTerm& term) {
    AffineForm form = analysis::constant_form(static_cast<std::int64_t>(term.value), bits);
    if (term.kind == analysis::LoopTerm::Kind::Version)
      form = affine_.of_version(term.version, header);
    const bool fits = term.known() && form.bits == bits;
    return fits ? of_number(form, test.is_signed) : AffineRange{};
  };
  const AffineRange start = number(variable.start), bound = number(test.bound);
  if (step <= 0 || !start.known || !bound.known) return {};
  const std::int64_t end = bound.max + (test.relation == analysis::Relation::Le ? 1 : 0);
  const std::int64_t first = start.min + offset;
  const std::int64_t last = std::max<std::int64_t>(0, quotient_up(end - first, step));
  const AffineRange values{true, first, start.max + offset + last * step};
  if (!within(values, analysis::range_of_width(bits, test.is_signed))) return {};
  return last;
}

// Conditions --------------------------------------------------------------------------------------

bool SymbolRanges::is_exact(const ThreadCondition& condition) {
  const AffineRange symbol = of(condition.key);
  const AffineSymbol& compare = affine_.symbols()[condition.compare];
  const AffineRange a = of_number(affine_.form(compare.operands[0]), compare.is_signed);
  const AffineRange b = of_number(affine_.form(compare.operands[1]), compare.is_signed);
  const AffineRange width = analysis::range_of_width(32, true);
  const auto [min, max] = std::ranges::minmax(condition.values);
  return !condition.assumes && within(a + analysis::exactly(-1) * b, width) &&
         within(AffineRange{true, min, max} + analysis::exactly(condition.coefficient) * symbol,
                width);
}

SymbolRanges::Compared SymbolRanges::compared(const AffineForm& form, const SymbolKey& key,
                                              bool is_signed) {
  const auto at = std::ranges::find(form.terms, key, &analysis::AffineTerm::symbols);
  if (at == form.terms.end()) return {of_number(form, is_signed), 0};
  AffineForm rest = form;
  rest.terms.erase(rest.terms.begin() + (at - form.terms.begin()));
  AffineRange agreed = analysis::exactly(at->coefficient) * of(key);
  // Wider ranges are those of types.
  if (!within(agreed, {true, -kAgreed, kAgreed}))
    agreed = at->coefficient > 0 ? AffineRange{true, 0, kAgreed} : AffineRange{true, -kAgreed, 0};
  const AffineRange others = range(rest);
  const bool exact = fits(others + agreed, form.bits, is_signed) && assumptions_hold(form);
  return {exact ? others : AffineRange{}, at->coefficient};
}

bool SymbolRanges::is_integer(const ThreadCondition& condition) {
  if (condition.assumes) return false;
  const AffineSymbol& compare = affine_.symbols()[condition.compare];
  const auto number = [&](std::size_t i) {
    const AffineForm form = expanded(affine_, affine_.form(compare.operands[i]));
    return compared(form, condition.key, compare.is_signed);
  };
  const Compared a = number(0), b = number(1);
  // The condition has their difference, the part of each thread in 32 bits.
  return within(a.rest + analysis::exactly(-1) * b.rest, analysis::range_of_width(32, true)) &&
         condition.coefficient == a.coefficient - b.coefficient;
}

void SymbolRanges::drop_impossible(AccessForm& form) {
  for (const ThreadCondition& condition : form.conditions) {
    const AffineRange symbol = of(condition.key);
    if (!symbol.known || !is_exact(condition)) continue;
    const AffineRange rest = analysis::exactly(condition.coefficient) * symbol;
    for (std::size_t t = 0; t < form.may.size(); ++t) {
      const std::int64_t min = condition.values[t] + rest.min, max = condition.values[t] + rest.max;
      bool possible = true;
      switch (condition.comparison) {
        case Modifier::lt:
          possible = condition.holds ? min < 0 : max >= 0;
          break;
        case Modifier::le:
          possible = condition.holds ? min <= 0 : max > 0;
          break;
        case Modifier::eq:
          possible = condition.holds ? min <= 0 && max >= 0 : min != 0 || max != 0;
          break;
        default:
          break;
      }
      if (!possible) form.may[t] = false;
    }
  }
}

}  // namespace ptxgen::inline v0::gates
