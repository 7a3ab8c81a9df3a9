// src/check/shared_race/overlap.cpp - overlap of two accesses by different threads
#include "check/shared_race/overlap.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "analysis/affine_forms.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;

namespace {

constexpr SymbolKey kNoSymbols{kNone, kNone, kNone};
constexpr std::int64_t kMaxShifts = 256;
constexpr std::int64_t kUnbounded = std::numeric_limits<std::int32_t>::max();

bool belongs(Pairs pairs, const Classes* harmless, std::uint32_t a, std::uint32_t b) {
  if (harmless != nullptr && (*harmless)[a] == (*harmless)[b]) return false;
  switch (pairs) {
    case Pairs::Different:
      return a != b;
    case Pairs::OtherWarps:
      return a / 32 != b / 32;
    case Pairs::SameWarp:
      return a != b && a / 32 == b / 32;
    case Pairs::All:
      break;
  }
  return true;
}

/// The symbols in the difference of two addresses.
struct Remainder {
  SymbolKey single = kNoSymbols;  ///< a symbol on which both threads agree, or any unknown one
  std::int64_t coefficient = 0;
  bool only_single = true;
  std::uint64_t divisor = 0;  ///< of all coefficients; 0 if there are none
};

Remainder remainder_of(const Comparison& c) {
  Remainder left;
  std::map<SymbolKey, std::pair<std::int64_t, std::int64_t>> terms;
  for (const auto& [key, coefficient] : c.a->address.rest) terms[key].first = coefficient;
  for (const auto& [key, coefficient] : c.b->address.rest) terms[key].second = coefficient;
  const auto add = [&](std::int64_t coefficient) {
    const auto size = static_cast<std::uint64_t>(coefficient < 0 ? -coefficient : coefficient);
    left.divisor = std::gcd(left.divisor, size);
  };
  for (const auto& [key, both] : terms) {
    if (key != kNoSymbols && c.same(key)) {
      const std::int64_t difference = both.first - both.second;
      if (difference == 0) continue;
      add(difference);
      left.only_single &= left.single == kNoSymbols;
      left.single = key;
      left.coefficient = difference;
    } else {
      add(both.first);
      add(both.second);
      left.only_single = false;
      if (left.single == kNoSymbols) left.single = key;
    }
  }
  return left;
}

std::int64_t reduced(std::int64_t value, std::uint64_t modulus) {
  if (modulus == 0) return value;
  const auto m = static_cast<std::int64_t>(modulus);
  const std::int64_t rest = value % m;
  return rest < 0 ? rest + m : rest;
}

/// Calls `fn(thread)` for addresses from `low` to below `high`, until it returns true.
template <class Fn>
bool any(const AddressList& sorted, std::int64_t low, std::int64_t high, Fn&& fn) {
  auto at = std::lower_bound(sorted.begin(), sorted.end(), std::pair{low, std::uint32_t{0}});
  for (; at != sorted.end() && at->first < high; ++at) {
    if (fn(at->second)) return true;
  }
  return false;
}

/// Whether any two accesses have common bytes if those of `b` are `shift` further, by any
/// threads. One pass over both lists.
bool touches(const AddressList& a, const AddressList& b, const Comparison& c, std::int64_t shift) {
  if (a.empty() || b.empty()) return false;
  const auto bytes_a = static_cast<std::int64_t>(c.bytes_a);
  const auto bytes_b = static_cast<std::int64_t>(c.bytes_b);
  if (b.back().first + shift <= a.front().first - bytes_b) return false;
  std::size_t next = 0;
  for (const auto& [address, thread] : a) {
    while (next < b.size() && b[next].first + shift <= address - bytes_b) ++next;
    if (next == b.size()) return false;
    if (b[next].first + shift < address + bytes_a) return true;
  }
  return false;
}

bool touches(const Comparison& c, std::uint64_t modulus) {
  const AddressList& a = c.a->sorted(modulus);
  const AddressList& b = c.b->sorted(modulus);
  if (touches(a, b, c, 0)) return true;
  if (modulus == 0) return false;
  const auto m = static_cast<std::int64_t>(modulus);
  // Accesses wider than the modulus are left to the caller.
  if (std::int64_t{c.bytes_a} + c.bytes_b > m) return true;
  return touches(a, b, c, m) || touches(a, b, c, -m);
}

/// The first pair whose bytes overlap modulo `modulus` (0: exactly).
std::optional<std::pair<std::uint32_t, std::uint32_t>> near_pair(const Comparison& c,
                                                                 std::uint64_t modulus,
                                                                 std::uint64_t& budget) {
  if (!touches(c, modulus)) return std::nullopt;
  const AddressList& others = c.b->sorted(modulus);
  const auto m = static_cast<std::int64_t>(modulus);
  std::optional<std::pair<std::uint32_t, std::uint32_t>> found;
  for (std::uint32_t s = 0; s < c.a->may.size() && !found && budget != 0; ++s) {
    if (!c.a->may[s]) continue;
    const std::int64_t address = reduced(c.a->address.values[s], modulus);
    const std::int64_t low = address - static_cast<std::int64_t>(c.bytes_b) + 1;
    const std::int64_t high = address + static_cast<std::int64_t>(c.bytes_a);
    const auto take = [&](std::uint32_t t) {
      if (budget != 0) --budget;
      if (budget != 0 && !belongs(c.pairs, c.harmless, s, t)) return false;
      found = {s, t};
      return true;
    };
    if (modulus == 0) {
      any(others, low, high, take);
    } else if (high - low >= m) {
      any(others, 0, m, take);
    } else {
      if (any(others, std::max<std::int64_t>(low, 0), std::min(high, m), take)) break;
      if (low < 0 && any(others, low + m, m, take)) break;
      if (high > m) any(others, 0, high - m, take);
    }
  }
  return found;
}

// One symbol ----------------------------------------------------------------------------------

std::int64_t floor_divided(std::int64_t a, std::int64_t b) {
  if (b < 0) return floor_divided(-a, -b);
  return analysis::floor_quotient(a, b);
}
std::int64_t ceiling_divided(std::int64_t a, std::int64_t b) { return -floor_divided(-a, b); }

/// The range of a symbol.
struct Bounds {
  std::int64_t min = -kUnbounded;
  std::int64_t max = kUnbounded;

  void at_least(std::int64_t value) { min = std::max(min, value); }
  void at_most(std::int64_t value) { max = std::min(max, value); }
  [[nodiscard]] bool none() const noexcept { return min > max; }

  /// low <= factor * symbol <= high.
  void keep(std::int64_t factor, std::int64_t low, std::int64_t high) {
    if (factor > 0) {
      at_least(ceiling_divided(low, factor));
      at_most(floor_divided(high, factor));
    } else {
      at_least(ceiling_divided(high, factor));
      at_most(floor_divided(low, factor));
    }
  }
  void keep(const analysis::AffineRange& range) {
    if (!range.known) return;
    at_least(range.min);
    at_most(range.max);
  }
  void keep(const ThreadCondition& condition, std::uint32_t thread) {
    const std::int64_t value = condition.values[thread];
    const std::int64_t factor = condition.coefficient;
    switch (condition.comparison) {
      case Modifier::lt:  // value + factor * symbol < 0
        return condition.holds ? keep(factor, -kUnbounded, -value - 1)
                               : keep(factor, -value, kUnbounded);
      case Modifier::le:
        return condition.holds ? keep(factor, -kUnbounded, -value)
                               : keep(factor, -value + 1, kUnbounded);
      case Modifier::eq:
        if (condition.holds) keep(factor, -value, -value);
        return;
      case Modifier::ne:
        if (!condition.holds) keep(factor, -value, -value);
        return;
      default:
        return;
    }
  }
};

/// Looks for two threads and a value of the symbol for which both execute their accesses to common
/// bytes.
std::optional<std::pair<std::uint32_t, std::uint32_t>> solved(const Comparison& c,
                                                              const SymbolKey& key,
                                                              std::int64_t coefficient,
                                                              std::uint64_t& budget) {
  const analysis::AffineRange range = c.ranges->of(key);
  // A comparison of numbers that may wrap around says nothing about the symbol.
  const auto usable = [&](const AccessForm& form) {
    std::vector<const ThreadCondition*> conditions;
    for (const ThreadCondition& condition : form.conditions) {
      if (condition.key == key && c.ranges->is_integer(condition)) conditions.push_back(&condition);
    }
    return conditions;
  };
  const std::vector<const ThreadCondition*> of_a = usable(*c.a), of_b = usable(*c.b);
  const auto bounds_of = [&](std::span<const ThreadCondition* const> conditions,
                             std::uint32_t thread) {
    Bounds bounds;
    bounds.keep(range);
    for (const ThreadCondition* condition : conditions) bounds.keep(*condition, thread);
    return bounds;
  };
  std::vector<Bounds> others;
  for (std::uint32_t t = 0; t < c.b->may.size(); ++t) others.push_back(bounds_of(of_b, t));
  for (std::uint32_t s = 0; s < c.a->may.size(); ++s) {
    if (!c.a->may[s]) continue;
    const Bounds own = bounds_of(of_a, s);
    for (std::uint32_t t = 0; t < c.b->may.size(); ++t) {
      if (!c.b->may[t] || !belongs(c.pairs, c.harmless, s, t)) continue;
      if (budget == 0) return std::pair{s, t};
      --budget;
      Bounds both = own;
      both.at_least(others[t].min);
      both.at_most(others[t].max);
      // -bytes_a < a - b < bytes_b, where a - b = difference + coefficient * symbol.
      const std::int64_t difference = c.a->address.values[s] - c.b->address.values[t];
      const std::int64_t low = 1 - static_cast<std::int64_t>(c.bytes_a) - difference;
      const std::int64_t high = static_cast<std::int64_t>(c.bytes_b) - 1 - difference;
      if (coefficient != 0) {
        both.keep(coefficient, low, high);
      } else if (low > 0 || high < 0) {
        continue;
      }
      if (!both.none()) return std::pair{s, t};
    }
  }
  return std::nullopt;
}

/// The symbols in conditions of both accesses, if their addresses have none.
std::vector<SymbolKey> common_conditions(const Comparison& c) {
  std::vector<SymbolKey> keys;
  for (const ThreadCondition& x : c.a->conditions) {
    for (const ThreadCondition& y : c.b->conditions) {
      if (x.key == y.key && std::ranges::find(keys, x.key) == keys.end() && c.same(x.key))
        keys.push_back(x.key);
    }
  }
  return keys;
}

Overlap result(Conflict conflict,
               const std::optional<std::pair<std::uint32_t, std::uint32_t>>& threads,
               const SymbolKey& unknown = kNoSymbols) {
  if (!threads) return {};
  return {conflict, threads->first, threads->second, unknown};
}

}  // namespace

const AddressList& AccessForm::sorted(std::uint64_t modulus) const {
  for (const Sorted& known : sorted_) {
    if (known.modulus == modulus) return known.addresses;
  }
  AddressList list;
  for (std::uint32_t t = 0; t < may.size(); ++t) {
    if (may[t]) list.emplace_back(reduced(address.values[t], modulus), t);
  }
  if (!std::is_sorted(list.begin(), list.end())) std::sort(list.begin(), list.end());
  sorted_.push_back({modulus, std::move(list)});
  return sorted_.back().addresses;
}

Overlap overlap(const AddressList& a, std::uint32_t bytes_a, AddressList b, std::uint32_t bytes_b,
                Pairs pairs, std::uint64_t& budget, const Classes* harmless) {
  std::sort(b.begin(), b.end());
  for (const auto& [address, s] : a) {
    const std::int64_t low = address - static_cast<std::int64_t>(bytes_b) + 1;
    const std::int64_t high = address + static_cast<std::int64_t>(bytes_a);
    auto at = std::lower_bound(b.begin(), b.end(), std::pair{low, std::uint32_t{0}});
    for (; at != b.end() && at->first < high; ++at) {
      if (budget != 0) --budget;
      if (budget == 0 || belongs(pairs, harmless, s, at->second))
        return {Conflict::Possible, s, at->second, kNoSymbols};
    }
  }
  return {};
}

std::optional<std::vector<std::int64_t>> shifts(const Terms& a, const Terms& b,
                                                const Comparison& comparison,
                                                const analysis::AffineRange& reach) {
  struct Term {
    std::int64_t coefficient;
    analysis::AffineRange symbol;
  };
  std::map<SymbolKey, std::pair<std::int64_t, std::int64_t>> both;
  for (const auto& [key, coefficient] : a) both[key].first = coefficient;
  for (const auto& [key, coefficient] : b) both[key].second = coefficient;
  std::vector<Term> terms;
  for (const auto& [key, pair] : both) {
    const auto [x, y] = pair;
    const analysis::AffineRange range = comparison.ranges->of(key);
    if (!range.known || range.min < -kUnbounded || range.max > kUnbounded) return std::nullopt;
    if (comparison.same(key)) {
      if (x != y) terms.push_back({x - y, range});
    } else if (x == y) {
      terms.push_back({x, {true, range.min - range.max, range.max - range.min}});
    } else {
      if (x != 0) terms.push_back({x, range});
      if (y != 0) terms.push_back({-y, range});
    }
  }
  std::vector<std::int64_t> result{0};
  for (const Term& term : terms) {
    const std::int64_t count = term.symbol.max - term.symbol.min + 1;
    if (count > kMaxShifts || static_cast<std::int64_t>(result.size()) * count > kMaxShifts)
      return std::nullopt;
    std::vector<std::int64_t> next;
    for (const std::int64_t shift : result) {
      for (std::int64_t value = term.symbol.min; value <= term.symbol.max; ++value)
        next.push_back(shift + term.coefficient * value);
    }
    result = std::move(next);
  }
  std::erase_if(result, [&](std::int64_t shift) { return shift < reach.min || shift > reach.max; });
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

Overlap overlap(const Comparison& c, std::uint64_t& budget) {
  const ThreadForm& a = c.a->address;
  const ThreadForm& b = c.b->address;
  const bool known = a.known && b.known;
  if (known && a.variable != b.variable && a.variable != kNone && b.variable != kNone) return {};
  if (!known || a.variable != b.variable) {
    // Any bytes may overlap, but both accesses must be executed.
    for (std::uint32_t s = 0; s < c.a->may.size(); ++s) {
      for (std::uint32_t t = 0; c.a->may[s] && t < c.b->may.size(); ++t) {
        if (c.b->may[t] && belongs(c.pairs, c.harmless, s, t))
          return {Conflict::Maybe, s, t, kNoSymbols};
      }
    }
    return {};
  }
  const Remainder left = remainder_of(c);
  if (left.divisor == 0) {
    auto threads = near_pair(c, 0, budget);
    if (!threads) return {};
    // One symbol whose values allow no two threads is enough.
    for (const SymbolKey& key : common_conditions(c)) {
      threads = solved(c, key, 0, budget);
      if (!threads) return {};
    }
    return result(Conflict::Possible, threads);
  }
  const auto threads = near_pair(c, left.divisor, budget);
  if (!threads || !left.only_single) return result(Conflict::Maybe, threads, left.single);
  return result(Conflict::Maybe, solved(c, left.single, left.coefficient, budget), left.single);
}

}  // namespace ptxgen::inline v0::gates
