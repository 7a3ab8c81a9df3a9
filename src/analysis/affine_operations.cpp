// src/analysis/affine_operations.cpp - non-affine operations on affine forms
#include <algorithm>
#include <bit>

#include "analysis/affine_solver.hpp"
#include "analysis/uniformity_sources.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

namespace {

bool is_power_of_two(std::int64_t value) {
  return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value));
}

// The only loop in which something changes that changes in both; `clash` if there is none.
std::uint32_t deeper(const LoopForest& forest, std::uint32_t a, std::uint32_t b, bool& clash) {
  if (a == b || b == kNoNode) return a;
  if (a == kNoNode) return b;
  std::uint32_t low = a, high = b;
  if (forest.loops()[low].depth < forest.loops()[high].depth) std::swap(low, high);
  constexpr int kFarthest = 64;
  std::uint32_t loop = low;
  for (int i = 0; i < kFarthest && loop != kNoNode; ++i, loop = forest.loops()[loop].parent) {
    if (loop == high) return low;
  }
  clash = true;
  return low;
}

}  // namespace

std::uint32_t AffineSolver::form_number(const AffineForm& form) {
  std::vector<std::uint64_t> key{form.bits, static_cast<std::uint64_t>(form.constant)};
  for (const AffineTerm& term : form.terms) {
    key.push_back(static_cast<std::uint64_t>(term.coefficient));
    for (const std::uint32_t factor : term.symbols) key.push_back(factor);
  }
  const auto [at, result] =
      form_numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(r_.forms_.size()));
  if (result) {
    r_.forms_.push_back(form);
    r_.forms_.back().assumptions.clear();
  }
  return at->second;
}

std::uint32_t AffineSolver::symbol(const AffineSymbol& wanted) {
  const std::vector<std::uint64_t> key{static_cast<std::uint64_t>(wanted.kind),
                                       static_cast<std::uint64_t>(wanted.operation),
                                       static_cast<std::uint64_t>(wanted.comparison),
                                       wanted.component,
                                       wanted.bits,
                                       wanted.is_signed ? 1u : 0u,
                                       wanted.id,
                                       wanted.offset,
                                       wanted.operands[0],
                                       wanted.operands[1],
                                       wanted.operands[2]};
  const auto [at, result] =
      symbol_numbers_.try_emplace(key, static_cast<std::uint32_t>(r_.symbols_.size()));
  if (result) (void)new_symbol(wanted);
  return at->second;
}

std::uint32_t AffineSolver::new_symbol(const AffineSymbol& result) {
  r_.symbols_.push_back(result);
  r_.add_range();
  r_.expansions_.push_back(kNone);
  r_.expansion_assumes_.push_back(kNone);
  r_.left_.push_back(kNone);
  const auto number = static_cast<std::uint32_t>(r_.symbols_.size() - 1);
  if (result.loop != kNoNode && left_apart_[result.loop] && result.kind != Kind::Iteration) {
    AffineSymbol left = result;
    left.left = true;
    left.agreement = weaker(left.agreement, leaving_[result.loop]);
    left.loop = cfg_.loops().loops()[result.loop].parent;
    r_.left_.back() = number + 1;
    (void)new_symbol(left);
  }
  return number;
}

AffineForm AffineSolver::operation(Operation kind, std::span<const AffineForm> operands,
                                   unsigned bits, bool is_signed, Modifier comparison) {
  AffineSymbol result;
  result.kind = Kind::Operation;
  result.operation = kind;
  result.comparison = comparison;
  result.bits = static_cast<std::uint8_t>(bits);
  result.is_signed = is_signed;
  result.agreement = Agreement::Grid;
  AffineForm assumed;
  std::uint8_t depth = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    result.operands[i] = form_number(operands[i]);
    assume(assumed, operands[i]);
    for (const AffineTerm& term : operands[i].terms) {
      for (const std::uint32_t factor : term.symbols) {
        if (factor == kNone) break;
        const AffineSymbol& s = r_.symbols_[factor];
        depth = std::max(depth, s.depth);
        result.agreement = weaker(result.agreement, s.agreement);
        result.restless = result.restless || s.restless;
        result.loop = deeper(cfg_.loops(), result.loop, s.loop, result.restless);
      }
    }
  }
  result.depth = static_cast<std::uint8_t>(std::min(depth + 1, 255));
  AffineForm form = symbol_form(symbol(result), bits);
  assume(form, assumed);
  return form;
}

AffineRange AffineSolver::number_range(const AffineForm& form, bool is_signed) const {
  const AffineRange width = range_of_width(form.bits, is_signed);
  if (form.is_constant() && !is_signed) {
    const std::uint64_t value = pattern(static_cast<std::uint64_t>(form.constant), form.bits);
    return value >> 63 != 0 ? AffineRange{} : exactly(static_cast<std::int64_t>(value));
  }
  const AffineRange range = r_.range(form, r_.block_);
  if (form.bits >= 64 && !is_signed) return range.known && range.min >= 0 ? range : AffineRange{};
  return within(range, width) ? range : width;
}

bool AffineSolver::is_number(const AffineForm& form, bool is_signed) const {
  const AffineRange range = r_.range(form, r_.block_);
  if (form.bits >= 64 && !is_signed) return range.known && range.min >= 0;
  return within(range, range_of_width(form.bits, is_signed));
}

std::uint32_t AffineSolver::assumption(const AffineForm& form, bool is_signed) {
  const std::uint32_t number = form_number(form);
  const auto [at, result] = assumption_numbers_.try_emplace(
      {number, is_signed}, static_cast<std::uint32_t>(r_.assumptions_.size()));
  if (result) r_.assumptions_.push_back({number, is_signed});
  return at->second;
}

AffineForm AffineSolver::widened(const AffineForm& form, unsigned bits, bool is_signed) {
  if (bits <= form.bits) return resized(form, bits);
  if (form.is_constant()) {
    AffineForm result = form;
    result.bits = static_cast<std::uint8_t>(bits);
    if (!is_signed)
      result.constant =
          static_cast<std::int64_t>(pattern(static_cast<std::uint64_t>(form.constant), form.bits));
    return result;
  }
  AffineForm result = resized(form, bits);
  if (!is_number(form, is_signed)) assume(result, assumption(form, is_signed));
  return result;
}

// --- division -----------------------------------------------------------------------------------

AffineForm AffineSolver::quotient(const AffineForm& form, std::int64_t divisor, bool is_signed) {
  if (divisor == 1) return form;
  if (form.is_constant() && !is_signed && form.bits < 64) {
    const std::uint64_t value = pattern(static_cast<std::uint64_t>(form.constant), form.bits);
    return constant_form(static_cast<std::int64_t>(value) / divisor, form.bits);
  }
  const bool exact = is_number(form, is_signed);
  AffineForm multiple = constant_form(0, form.bits), rest = constant_form(0, form.bits);
  if (exact) {
    // (divisor * multiple + rest) / divisor is multiple + rest / divisor.
    for (const AffineTerm& term : form.terms) {
      if (term.coefficient % divisor == 0)
        multiple.terms.push_back({term.coefficient / divisor, term.symbols});
      else
        rest.terms.push_back(term);
    }
    multiple.constant = floor_quotient(form.constant, divisor);
    rest.constant = form.constant - multiple.constant * divisor;
    const AffineRange left = r_.range(rest, r_.block_);
    if (left.known && left.min >= 0) {
      assume(multiple, form);
      if (left.max < divisor) return multiple;
      const AffineForm operands[] = {rest, constant_form(divisor, form.bits)};
      return sum(multiple, operation(Operation::Quotient, operands, form.bits, false));
    }
  }
  if (is_signed && !(exact && r_.range(form, r_.block_).min >= 0)) {
    const AffineForm operands[] = {
        form, constant_form(std::countr_zero(static_cast<std::uint64_t>(divisor)), form.bits)};
    return operation(Operation::ShiftRight, operands, form.bits, true);
  }
  const AffineForm operands[] = {form, constant_form(divisor, form.bits)};
  return operation(Operation::Quotient, operands, form.bits, false);
}

AffineForm AffineSolver::remainder(const AffineForm& form, std::int64_t divisor) {
  AffineForm rest = form;
  if (is_power_of_two(divisor) || is_number(form, false)) {
    // Multiples of the divisor do not count; for a power of two whether it wraps or not.
    for (AffineTerm& term : rest.terms)
      term.coefficient -= floor_quotient(term.coefficient, divisor) * divisor;
    rest.constant -= floor_quotient(rest.constant, divisor) * divisor;
    std::erase_if(rest.terms, [](const AffineTerm& term) { return term.coefficient == 0; });
    const AffineRange left = r_.range(rest, r_.block_);
    if (left.known && left.min >= 0 && left.max < divisor) return rest;
    if (!is_power_of_two(divisor) && !is_number(rest, false)) rest = form;
  }
  const AffineForm operands[] = {rest, constant_form(divisor, form.bits)};
  return operation(Operation::Remainder, operands, form.bits, false);
}

// --- bits ---------------------------------------------------------------------------------------

AffineForm AffineSolver::negation(const AffineForm& form) {
  return sum(constant_form(-1, form.bits), form, -1);
}

AffineForm AffineSolver::bit_and(const AffineForm& a, const AffineForm& b) {
  if (same_terms(a, b)) return a;
  if (a.is_constant() && !b.is_constant()) return bit_and(b, a);
  const unsigned bits = a.bits;
  if (b.is_constant()) {
    const std::uint64_t mask = pattern(static_cast<std::uint64_t>(b.constant), bits);
    if (a.is_constant())
      return constant_form(static_cast<std::int64_t>(static_cast<std::uint64_t>(a.constant) & mask),
                           bits);
    if (mask == 0) return constant_form(0, bits);
    const auto low = static_cast<unsigned>(std::countr_zero(mask));
    const std::uint64_t high = (mask >> low) + 1;  // 0: 64 bits
    const bool to_the_top = bits < 64 ? (mask >> (bits - 1)) != 0 : (mask >> 63) != 0;
    if (high == 0) return a;
    // One run of bits: what the numbers below its ends leave over.
    if (std::has_single_bit(high) && (to_the_top || std::bit_width(mask) < 63)) {
      const AffineForm below =
          to_the_top ? a : remainder(a, std::int64_t{1} << std::bit_width(mask));
      return low == 0 ? below : sum(below, remainder(a, std::int64_t{1} << low), -1);
    }
  }
  const AffineForm operands[] = {a, b};
  return operation(Operation::And, operands, bits, false);
}

AffineForm AffineSolver::bit_or(const AffineForm& a, const AffineForm& b, Operation kind) {
  if (same_terms(a, b)) return kind == Operation::Or ? a : constant_form(0, a.bits);
  if (a.is_constant() && !b.is_constant()) return bit_or(b, a, kind);
  if (b.is_constant() && b.constant == 0) return a;
  if (b.is_constant() &&
      pattern(static_cast<std::uint64_t>(b.constant), b.bits) == pattern(~std::uint64_t{0}, b.bits))
    return kind == Operation::Or ? b : negation(a);
  // Where no bit is set in both it is a sum.
  for (const auto& [high, low] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    const unsigned zeros = zero_bits(*high);
    const AffineRange range = number_range(*low, false);
    if (zeros > 0 && zeros < 63 && range.known && range.max < std::int64_t{1} << zeros)
      return sum(*high, *low);
  }
  const AffineForm operands[] = {a, b};
  return operation(kind, operands, a.bits, false);
}

// --- choices ------------------------------------------------------------------------------------

AffineForm AffineSolver::smaller(const AffineForm& a, const AffineForm& b, bool is_signed,
                                 Operation kind) {
  if (same_terms(a, b)) return a;
  const AffineRange x = number_range(a, is_signed), y = number_range(b, is_signed);
  if (x.known && y.known) {
    const bool minimum = kind == Operation::Minimum;
    if (x.max <= y.min) return minimum ? a : b;
    if (y.max <= x.min) return minimum ? b : a;
  }
  const AffineForm operands[] = {a, b};
  return operation(kind, operands, a.bits, is_signed);
}

AffineForm AffineSolver::compared(Modifier comparison, const AffineForm& a, const AffineForm& b,
                                  bool is_signed) {
  switch (comparison) {
    case Modifier::lo:
      return compared(Modifier::lt, a, b, false);
    case Modifier::ls:
      return compared(Modifier::le, a, b, false);
    case Modifier::gt:
    case Modifier::hi:
      return compared(Modifier::lt, b, a, comparison == Modifier::gt && is_signed);
    case Modifier::ge:
    case Modifier::hs:
      return compared(Modifier::le, b, a, comparison == Modifier::ge && is_signed);
    default:
      break;
  }
  const AffineRange x = number_range(a, is_signed), y = number_range(b, is_signed);
  if (x.known && y.known) {
    const bool below = x.max < y.min, not_above = x.max <= y.min;
    const bool above = x.min > y.max, not_below = x.min >= y.max;
    if (comparison == Modifier::lt && (below || not_below)) return constant_form(below, 1);
    if (comparison == Modifier::le && (not_above || above)) return constant_form(not_above, 1);
    if (comparison == Modifier::eq && (below || above)) return constant_form(0, 1);
    if (comparison == Modifier::ne && (below || above)) return constant_form(1, 1);
  }
  if (same_terms(a, b))
    return constant_form(comparison == Modifier::eq || comparison == Modifier::le, 1);
  const AffineForm operands[] = {a, b};
  AffineForm result = operation(Operation::Compare, operands, 1, is_signed, comparison);
  return result;
}

AffineForm AffineSolver::selected(const AffineForm& condition, const AffineForm& yes,
                                  const AffineForm& no) {
  if (same_terms(yes, no)) return yes;
  if (condition.is_constant()) return condition.constant != 0 ? yes : no;
  // What is advanced or not is a sum, of which lanes may agree on the second part.
  const AffineForm apart = sum(yes, no, -1);
  const bool one_term = apart.terms.size() + (apart.constant != 0 ? 1 : 0) == 1;
  if (yes.bits != 1 && !no.is_constant() && one_term) {
    const auto advanced = product(apart, widened(condition, yes.bits, false));
    if (advanced) return sum(no, *advanced);
  }
  const AffineForm operands[] = {condition, yes, no};
  return operation(Operation::Select, operands, yes.bits, false);
}

}  // namespace ptxgen::inline v0::analysis
