// src/analysis/affine_forms.cpp - arithmetic of affine forms and of ranges
#include "analysis/affine_forms.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace ptxgen::inline v0::analysis {

namespace {

constexpr std::size_t kMaxTerms = 16;
constexpr std::size_t kMaxAssumptions = 8;
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::int64_t times(std::int64_t a, std::int64_t b, unsigned bits) noexcept {
  return signed_bits(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b), bits);
}
std::int64_t plus(std::int64_t a, std::int64_t b, unsigned bits) noexcept {
  return signed_bits(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b), bits);
}

// Sorts, adds up equal terms, drops zeros.
void normalise(AffineForm& form) {
  std::ranges::sort(form.terms, {}, &AffineTerm::symbols);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < form.terms.size();) {
    AffineTerm term = form.terms[i];
    for (++i; i < form.terms.size() && form.terms[i].symbols == term.symbols; ++i)
      term.coefficient = plus(term.coefficient, form.terms[i].coefficient, form.bits);
    if (term.coefficient != 0) form.terms[kept++] = term;
  }
  form.terms.resize(kept);
}

std::optional<std::array<std::uint32_t, 3>> joined(const AffineTerm& a, const AffineTerm& b) {
  std::array<std::uint32_t, 6> all{a.symbols[0], a.symbols[1], a.symbols[2],
                                   b.symbols[0], b.symbols[1], b.symbols[2]};
  std::ranges::sort(all);  // kNone is the greatest
  if (all[3] != ptx::kNone) return std::nullopt;
  return std::array<std::uint32_t, 3>{all[0], all[1], all[2]};
}

}  // namespace

AffineForm constant_form(std::int64_t value, unsigned bits) {
  AffineForm form;
  form.bits = static_cast<std::uint8_t>(bits);
  form.constant = signed_bits(static_cast<std::uint64_t>(value), bits);
  return form;
}

AffineForm symbol_form(std::uint32_t symbol, unsigned bits) {
  AffineForm form = constant_form(0, bits);
  form.terms.push_back({1, {symbol, ptx::kNone, ptx::kNone}});
  return form;
}

AffineForm sum(const AffineForm& a, const AffineForm& b, std::int64_t factor) {
  AffineForm result = a;
  result.constant = plus(a.constant, times(b.constant, factor, a.bits), a.bits);
  for (const AffineTerm& term : b.terms)
    result.terms.push_back({times(term.coefficient, factor, a.bits), term.symbols});
  normalise(result);
  assume(result, b);
  return result;
}

AffineForm scaled(const AffineForm& a, std::int64_t factor) {
  AffineForm result = constant_form(0, a.bits);
  return sum(result, a, factor);
}

std::optional<AffineForm> product(const AffineForm& a, const AffineForm& b) {
  if (b.is_constant()) {
    AffineForm result = scaled(a, b.constant);
    assume(result, b);
    return result;
  }
  AffineForm result = scaled(b, a.constant);
  assume(result, a);
  for (const AffineTerm& x : a.terms) {
    result.terms.push_back({times(x.coefficient, b.constant, a.bits), x.symbols});
    for (const AffineTerm& y : b.terms) {
      const auto symbols = joined(x, y);
      if (!symbols) return std::nullopt;
      result.terms.push_back({times(x.coefficient, y.coefficient, a.bits), *symbols});
    }
  }
  normalise(result);
  return result;
}

AffineForm resized(const AffineForm& a, unsigned bits) {
  AffineForm result = a;
  result.bits = static_cast<std::uint8_t>(bits);
  result.constant = signed_bits(static_cast<std::uint64_t>(a.constant), bits);
  for (AffineTerm& term : result.terms)
    term.coefficient = signed_bits(static_cast<std::uint64_t>(term.coefficient), bits);
  std::erase_if(result.terms, [](const AffineTerm& term) { return term.coefficient == 0; });
  return result;
}

bool too_big(const AffineForm& form) noexcept {
  return form.terms.size() > kMaxTerms || form.assumptions.size() > kMaxAssumptions;
}

void assume(AffineForm& form, std::uint32_t assumption) {
  const auto at = std::ranges::lower_bound(form.assumptions, assumption);
  if (at == form.assumptions.end() || *at != assumption) form.assumptions.insert(at, assumption);
}

void assume(AffineForm& form, const AffineForm& from) {
  for (const std::uint32_t assumption : from.assumptions) assume(form, assumption);
}

unsigned zero_bits(const AffineForm& form) noexcept {
  unsigned min = form.bits;
  const auto look = [&](std::int64_t value) {
    if (value != 0)
      min = std::min<unsigned>(
          min, static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(value))));
  };
  look(form.constant);
  for (const AffineTerm& term : form.terms) look(term.coefficient);
  return min;
}

std::uint64_t common_factor(const AffineForm& form) noexcept {
  std::uint64_t factor = 0;
  for (const AffineTerm& term : form.terms) {
    const auto value = static_cast<std::uint64_t>(term.coefficient);
    factor = std::gcd(factor, term.coefficient < 0 ? 0 - value : value);
  }
  return factor;
}

std::optional<std::int64_t> checked_sum(std::int64_t a, std::int64_t b) noexcept {
  if (b > 0 ? a > kMax - b : a < kMin - b) return std::nullopt;
  return a + b;
}

std::optional<std::int64_t> checked_product(std::int64_t a, std::int64_t b) noexcept {
  if (a == 0 || b == 0) return 0;
  // The quotient of the least number by -1 is out of range itself.
  if ((a == -1 && b == kMin) || (b == -1 && a == kMin)) return std::nullopt;
  const auto result =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  if (result / b != a) return std::nullopt;
  return result;
}

AffineRange operator+(const AffineRange& a, const AffineRange& b) noexcept {
  if (!a.known || !b.known) return {};
  const auto min = checked_sum(a.min, b.min), max = checked_sum(a.max, b.max);
  if (!min || !max) return {};
  return {true, *min, *max};
}

AffineRange operator*(const AffineRange& a, const AffineRange& b) noexcept {
  if (!a.known || !b.known) return {};
  AffineRange result{true, kMax, kMin};
  for (const std::int64_t x : {a.min, a.max}) {
    for (const std::int64_t y : {b.min, b.max}) {
      const auto corner = checked_product(x, y);
      if (!corner) return {};
      result.min = std::min(result.min, *corner);
      result.max = std::max(result.max, *corner);
    }
  }
  return result;
}

AffineRange range_of_width(unsigned bits, bool is_signed) noexcept {
  if (bits >= 64) return is_signed ? AffineRange{true, kMin, kMax} : AffineRange{};
  const std::int64_t size = std::int64_t{1} << bits;
  return is_signed ? AffineRange{true, -size / 2, size / 2 - 1} : AffineRange{true, 0, size - 1};
}

}  // namespace ptxgen::inline v0::analysis
