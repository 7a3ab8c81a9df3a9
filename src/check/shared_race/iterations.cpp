// src/check/shared_race/iterations.cpp - accesses of a loop by iteration
#include "check/shared_race/iterations.hpp"

#include <algorithm>
#include <bit>

#include "analysis/affine_forms.hpp"
#include "ptx/semantics/compare.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;
using analysis::AffineForm;
using analysis::AffineOperation;
using analysis::AffineSymbol;
using analysis::AffineTerm;

namespace {

constexpr std::uint64_t kMaxIterations = 256;
constexpr std::uint64_t kMaxAddresses = 65'536;
constexpr int kMaxDepth = 24;

bool in_relation(analysis::Relation relation, std::int64_t a, std::int64_t b, bool is_signed) {
  constexpr Modifier kComparisons[] = {Modifier::lt, Modifier::le, Modifier::gt,
                                       Modifier::ge, Modifier::eq, Modifier::ne};
  return holds(kComparisons[static_cast<unsigned>(relation)],
               ordering(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b),
                        is_signed ? Type::s64 : Type::u64));
}

}  // namespace

LoopIterations::LoopIterations(analysis::Facts& facts, const analysis::Affine& affine,
                               std::array<std::uint32_t, 3> shape, SymbolRanges& ranges)
    : facts_(facts), affine_(affine), shape_(shape), ranges_(ranges) {}

// Dependences of an address -----------------------------------------------------------------------

bool LoopIterations::look_at(const AffineForm& form, int depth, Sources& sources,
                             std::uint64_t modulus) const {
  for (const AffineTerm& term : form.terms) {
    for (const std::uint32_t symbol : term.symbols) {
      if (symbol == kNone) break;
      // Also in a product: its remainder follows from the remainders of its factors.
      if (!look_at(symbol, depth, sources, modulus)) return false;
    }
  }
  return true;
}

bool LoopIterations::look_at(std::uint32_t symbol, int depth, Sources& sources,
                             std::uint64_t modulus) const {
  if (depth > kMaxDepth) return false;
  const AffineSymbol& s = affine_.symbols()[symbol];
  if (s.left) return false;
  switch (s.kind) {
    case AffineSymbol::Kind::Thread:
    case AffineSymbol::Kind::Lane:
    case AffineSymbol::Kind::BlockShape:
      return true;
    case AffineSymbol::Kind::Iteration:
      if (sources.iteration != kNone && sources.iteration != symbol) return false;
      sources.iteration = symbol;
      sources.periodic &= modulus != 0;
      sources.period = std::max(sources.period, modulus);
      return true;
    default:
      break;
  }
  if (const AffineForm* expansion = affine_.expansion(symbol))
    return look_at(*expansion, depth + 1, sources, modulus);
  if (s.kind != AffineSymbol::Kind::Operation) return false;
  std::uint64_t inner = 0;
  if (s.operation == AffineOperation::Remainder) {
    const AffineForm& divisor = affine_.form(s.operands[1]);
    const auto value = static_cast<std::uint64_t>(divisor.constant);
    if (divisor.is_constant() && std::has_single_bit(value)) inner = value;
  }
  for (const std::uint32_t operand : s.operands) {
    if (operand != kNone && !look_at(affine_.form(operand), depth + 1, sources, inner))
      return false;
  }
  return true;
}

// Iterations ------------------------------------------------------------------------------------

const IterationForms* LoopIterations::of(const SharedAccess& access, const AccessForm& form) {
  const auto [at, result] = known_.try_emplace(access.statement);
  if (result) at->second = computed(access, form);
  return at->second.iterations.empty() ? nullptr : &at->second;
}

bool LoopIterations::divide(const ThreadForm& address, Sources& sources,
                            IterationForms& result) const {
  const auto loops = facts_.cfg().loops().loops();
  const auto depth = [&](const Sources& of) {
    return of.iteration == kNone ? 0 : loops[affine_.symbols()[of.iteration].id].depth;
  };
  const auto sources_of = [&](const SymbolKey& key) {
    Sources found;
    for (const std::uint32_t symbol : key) {
      if (symbol != kNone && !look_at(symbol, 0, found, 0)) return Sources{};
    }
    return found;
  };
  for (const auto& [key, coefficient] : address.rest) {
    const Sources found = sources_of(key);
    if (depth(found) > depth(sources)) sources.iteration = found.iteration;
  }
  if (sources.iteration == kNone) return false;
  for (const auto& term : address.rest) {
    const Sources found = sources_of(term.first);
    if (found.iteration == sources.iteration) {
      sources.periodic &= found.periodic;
      sources.period = std::max(sources.period, found.period);
    } else if (ranges_.of(term.first).known) {
      result.rest.push_back(term);
    } else {
      return false;
    }
  }
  return true;
}

IterationForms LoopIterations::computed(const SharedAccess& access, const AccessForm& form) {
  IterationForms result;
  if (!form.address.known || access.anywhere) return result;
  Sources sources;
  if (!divide(form.address, sources, result)) return result;
  result.loop = affine_.symbols()[sources.iteration].id;
  result.periodic = sources.periodic;
  const std::uint64_t limit =
      std::min(kMaxIterations, kMaxAddresses / std::max<std::uint64_t>(form.may.size(), 1));
  if (result.periodic && sources.period > limit) return result;
  std::vector<bool> goes_on(form.may.size(), true);
  for (std::uint64_t iteration = 0; !result.periodic || iteration < sources.period; ++iteration) {
    if (std::find(goes_on.begin(), goes_on.end(), true) == goes_on.end()) return result;
    ThreadForms forms(facts_, affine_, shape_);
    forms.fix(sources.iteration, iteration);
    AccessForm now = forms.of(access);
    if (iteration >= limit || !now.address.known || now.address.rest != result.rest) break;
    ranges_.drop_impossible(now);
    // The addresses repeat, but the set of threads need not: early iterations may have none.
    if (result.periodic) now.may = form.may;
    for (std::size_t t = 0; t < goes_on.size(); ++t) now.may[t] = now.may[t] && goes_on[t];
    result.iterations.push_back(std::move(now));
    ThreadForms next(facts_, affine_, shape_);
    next.fix(sources.iteration, iteration + 1);
    if (!result.periodic && !drop_ended_threads(result.loop, forms, next, goes_on)) break;
  }
  if (!result.periodic) result.iterations.clear();
  return result;
}

std::optional<std::vector<std::int64_t>> LoopIterations::upper_bound(
    const AffineForm& bound, const analysis::LoopComparison& comparison, ThreadForms& forms) const {
  if (auto known = forms.values(bound)) return known;
  if (comparison.relation != analysis::Relation::Lt &&
      comparison.relation != analysis::Relation::Le) {
    return std::nullopt;
  }
  const analysis::AffineRange range = ranges_.of_number(bound, comparison.is_signed);
  if (!range.known) return std::nullopt;
  return std::vector<std::int64_t>(forms.threads(), range.max);
}

bool LoopIterations::drop_ended_threads(std::uint32_t loop, ThreadForms& forms, ThreadForms& next,
                                        std::vector<bool>& goes_on) {
  const analysis::Inductions& inductions = facts_.inductions();
  const std::uint32_t header = facts_.cfg().loops().loops()[loop].header;
  bool tested = false;
  for (const analysis::LoopTest& test : inductions.tests(loop)) {
    if (!test.every_iteration || !test.goes_on) continue;
    const analysis::LoopComparison& comparison = *test.goes_on;
    const analysis::Induction& variable = inductions.of(loop)[comparison.value.variable];
    // The counter at the test: its value in this iteration, or in the next.
    const bool of_next = comparison.value.is_next && !variable.step.constant();
    const auto counter = (of_next ? next : forms).values(affine_.of_version(variable.phi, header));
    if (!counter) continue;
    const unsigned bits = variable.bits;
    std::vector<std::int64_t> bound(goes_on.size(),
                                    static_cast<std::int64_t>(comparison.bound.value));
    if (comparison.bound.kind == analysis::LoopTerm::Kind::Version) {
      const auto known =
          upper_bound(affine_.of_version(comparison.bound.version, header), comparison, forms);
      if (!known) continue;
      bound = *known;
    } else if (!comparison.bound.constant()) {
      continue;
    }
    tested = true;
    for (std::size_t t = 0; t < goes_on.size(); ++t) {
      const std::uint64_t now = static_cast<std::uint64_t>((*counter)[t]) + comparison.value.offset;
      const auto number = [&](std::uint64_t value) {
        return comparison.is_signed ? analysis::signed_bits(value, bits)
                                    : static_cast<std::int64_t>(analysis::pattern(value, bits));
      };
      if (!in_relation(comparison.relation, number(now),
                       number(static_cast<std::uint64_t>(bound[t])), comparison.is_signed))
        goes_on[t] = false;
    }
  }
  return tested;
}

}  // namespace ptxgen::inline v0::gates
