// src/analysis/overlap.cpp - overlap of accesses by different threads
#include "ptxgen/analysis/overlap.hpp"

#include <algorithm>
#include <numeric>

#include "analysis/affine_values.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;
using Kind = AffineSymbol::Kind;

namespace {

constexpr std::uint64_t kMaxThreads = 4096;

using Index = std::array<std::uint32_t, 3>;

// One side of the question, taken apart: address = own + sum of (factor * multiplier) + free terms.
struct Side {
  struct Thread {
    Index tid{};
    std::uint64_t own = 0;               // of the thread's index alone
    std::vector<std::uint64_t> factors;  // for each multiplier
  };
  std::vector<Thread> threads;
  AffineForm free;      // terms of which nothing but a range is known
  bool certain = true;  // all conditions could be evaluated
};

// Symbols that both threads have the same value of: their product, as in AffineTerm.
using Multiplier = std::array<std::uint32_t, 3>;

class Question {
 public:
  Question(const Affine& affine, const OverlapQuestion& question)
      : affine_(affine),
        question_(question),
        one_dimension_(question.block.size[1] == 1 && question.block.size[2] == 1),
        values_(affine, Leaf{this}) {}

  OverlapAnswer ask(const ThreadAccess& a, const ThreadAccess& b) {
    const BlockBounds& block = question_.block;
    const std::uint64_t threads =
        std::uint64_t{block.size[0]} * block.size[1] * std::uint64_t{block.size[2]};
    if (block.kind == BlockBounds::Kind::Unknown) return {};
    if (threads > kMaxThreads || threads == 0) return {};
    if (a.bytes == 0 || b.bytes == 0) return {Overlap::Never, {}, {}};
    if (!affine_.assumptions_hold(a.address, block)) return {};
    if (!affine_.assumptions_hold(b.address, block)) return {};
    if (a.address.bits != b.address.bits) return {};
    bits_ = a.address.bits;
    sizes_ = {a.bytes, b.bytes};
    collect(a.address);
    collect(b.address);
    Side x = side(a), y = side(b);
    if (x.threads.empty() || y.threads.empty()) return {Overlap::Never, {}, {}};
    const bool exact = x.free.terms.empty() && y.free.terms.empty();
    step_ = std::gcd(common_factor(x.free), common_factor(y.free));
    const bool keyed =
        std::ranges::any_of(multipliers_, [&](const auto& m) { return differs(m, x, y); });
    OverlapAnswer answer = keyed ? each_pair(x, y) : sorted(x, y);
    if (answer.kind != Overlap::Possible) return answer;
    const bool shown =
        exact && block.kind == BlockBounds::Kind::Exact && x.certain && y.certain && exact_found_;
    if (!shown) return {};
    return answer;
  }

 private:
  struct Leaf {
    const Question* question;
    std::optional<std::int64_t> operator()(std::uint32_t symbol) const {
      return question->of_thread(symbol);
    }
  };

  std::optional<std::int64_t> of_thread(std::uint32_t symbol) const {
    const AffineSymbol& s = affine_.symbols()[symbol];
    if (s.kind == Kind::Thread) return thread_[s.component];
    if (s.kind == Kind::Lane &&
        (one_dimension_ || question_.block.kind == BlockBounds::Kind::Exact)) {
      const auto& size = question_.block.size;
      return (thread_[0] + size[0] * (thread_[1] + size[1] * thread_[2])) % 32;
    }
    return std::nullopt;
  }

  // Whether the two threads have the same value of it.
  bool common(std::uint32_t symbol) const {
    const AffineSymbol& s = affine_.symbols()[symbol];
    if (s.restless) return false;
    const LoopForest& forest = affine_.cfg().loops();
    if (s.loop != kNoNode) {
      if (question_.common_loop == kNoNode) return false;
      const Loop& changes = forest.loops()[s.loop];
      const Loop& both = forest.loops()[question_.common_loop];
      // It must be that loop or one around it.
      if (changes.begin > both.begin || both.end > changes.end) return false;
    }
    return s.kind == Kind::Iteration || s.agreement >= Agreement::Block;
  }

  // The factors of a term that are the same for both; nothing if another is not of the thread.
  std::optional<Multiplier> multiplier(const AffineTerm& term) {
    Multiplier found{kNone, kNone, kNone};
    std::size_t count = 0;
    for (const std::uint32_t factor : term.symbols) {
      if (factor == kNone) break;
      if (common(factor))
        found[count++] = factor;
      else if (!values_.symbol(factor))
        return std::nullopt;
    }
    return found;
  }

  void collect(const AffineForm& form) {
    for (const AffineTerm& term : form.terms) {
      const auto found = multiplier(term);
      if (!found || (*found)[0] == kNone) continue;
      if (std::ranges::find(multipliers_, *found) == multipliers_.end())
        multipliers_.push_back(*found);
    }
  }

  Side side(const ThreadAccess& access) {
    Side result;
    result.free.bits = access.address.bits;
    for (const AffineTerm& term : access.address.terms)
      if (!multiplier(term)) result.free.terms.push_back(term);
    const auto& size = question_.block.size;
    for (std::uint32_t z = 0; z < size[2]; ++z) {
      for (std::uint32_t y = 0; y < size[1]; ++y) {
        for (std::uint32_t x = 0; x < size[0]; ++x) {
          thread_ = {x, y, z};
          values_.forget();
          if (admitted(access, result)) result.threads.push_back(evaluated(access.address));
        }
      }
    }
    return result;
  }

  bool admitted(const ThreadAccess& access, Side& side) {
    bool all = true;
    for (const AffineForm& condition : access.conditions) {
      const auto holds = values_.bits(condition);
      const bool sure = holds && affine_.assumptions_hold(condition, question_.block);
      if (sure && *holds == 0) all = false;
      if (!sure) side.certain = false;
    }
    return all;
  }

  Side::Thread evaluated(const AffineForm& address) {
    Side::Thread result{thread_, static_cast<std::uint64_t>(address.constant),
                        std::vector<std::uint64_t>(multipliers_.size())};
    for (const AffineTerm& term : address.terms) {
      const auto found = multiplier(term);
      if (!found) continue;
      auto one = static_cast<std::uint64_t>(term.coefficient);
      for (const std::uint32_t factor : term.symbols) {
        if (factor == kNone) break;
        if (!common(factor)) one *= static_cast<std::uint64_t>(*values_.symbol(factor));
      }
      if ((*found)[0] == kNone) {
        result.own += one;
      } else {
        const auto at = std::ranges::find(multipliers_, *found) - multipliers_.begin();
        result.factors[static_cast<std::size_t>(at)] += one;
      }
    }
    return result;
  }

  // Whether the factor is not the same for all threads of both sides.
  bool differs(const Multiplier& m, const Side& x, const Side& y) const {
    const auto at =
        static_cast<std::size_t>(std::ranges::find(multipliers_, m) - multipliers_.begin());
    const std::uint64_t first = x.threads.front().factors[at];
    const auto other = [&](const Side::Thread& t) { return t.factors[at] != first; };
    const bool within_x = std::ranges::any_of(x.threads, other);
    const std::uint64_t first_y = y.threads.front().factors[at];
    const bool within_y = std::ranges::any_of(
        y.threads, [&](const Side::Thread& t) { return t.factors[at] != first_y; });
    return within_x || within_y;
  }

  // What two addresses may differ by besides what is known: multiples of this, or 0: nothing.
  std::uint64_t step_between(const Side::Thread& s, const Side::Thread& t) const {
    std::uint64_t step = step_;
    for (std::size_t i = 0; i < s.factors.size(); ++i) {
      const std::int64_t apart = signed_bits(s.factors[i] - t.factors[i], bits_);
      const auto size = static_cast<std::uint64_t>(apart);
      step = std::gcd(step, apart < 0 ? 0 - size : size);
    }
    return step;
  }

  // An unknown number of steps, modulo 2^bits: only its power of two counts.
  std::uint64_t modulus(std::uint64_t step) const {
    if (step == 0 || question_.no_wrap) return step;
    const std::uint64_t two = step & (0 - step);
    return bits_ < 64 && two > (std::uint64_t{1} << bits_) ? std::uint64_t{1} << bits_ : two;
  }

  bool can_coincide(const Side::Thread& s, const Side::Thread& t) {
    const std::uint64_t step = modulus(step_between(s, t));
    const std::int64_t apart = signed_bits(s.own - t.own, bits_);
    if (step == 0) return apart > -std::int64_t{sizes_[0]} && apart < std::int64_t{sizes_[1]};
    const std::uint64_t left = rest_of(apart, step);
    return left < sizes_[1] || step - left < sizes_[0];
  }

  // Pair by pair. Pairs without unknowns prove an overlap and are tried first.
  OverlapAnswer each_pair(const Side& x, const Side& y) {
    OverlapAnswer found{Overlap::Never, {}, {}};
    for (const Side::Thread& s : x.threads) {
      for (const Side::Thread& t : y.threads) {
        if (s.tid == t.tid || !can_coincide(s, t)) continue;
        const bool exact = step_between(s, t) == 0;
        if (found.kind == Overlap::Never || exact) found = {Overlap::Possible, s.tid, t.tid};
        if (exact) {
          exact_found_ = true;
          return found;
        }
      }
    }
    return found;
  }

  static std::uint64_t rest_of(std::int64_t value, std::uint64_t step) {
    if (value >= 0) return static_cast<std::uint64_t>(value) % step;
    const std::uint64_t below = (0 - static_cast<std::uint64_t>(value)) % step;
    return below == 0 ? 0 : step - below;
  }

  // The same factors everywhere: in the order of addresses.
  OverlapAnswer sorted(const Side& x, const Side& y) {
    const std::uint64_t full = step_between(x.threads.front(), y.threads.front());
    const std::uint64_t step = modulus(full);
    exact_found_ = full == 0;
    const std::uint64_t sizes = std::uint64_t{sizes_[0]} + sizes_[1] - 1;
    // Where the unknown parts are between known bounds the addresses may be too far apart.
    constexpr std::int64_t kWidest = 1 << 24;
    const AffineRange unknown = affine_.range(x.free, question_.block) +
                                affine_.range(y.free, question_.block) * exactly(-1);
    const bool same_factors = x.threads.front().factors == y.threads.front().factors;
    if (same_factors && full != 0 && unknown.known && unknown.max - unknown.min < kWidest) {
      const auto width = sizes + static_cast<std::uint64_t>(unknown.max - unknown.min);
      const auto near = nearby(x, y, 0, static_cast<std::uint64_t>(unknown.min), width);
      if (near.kind == Overlap::Never) return near;
    }
    if (step != 0 && sizes >= step) return any_two(x, y);
    return nearby(x, y, step, 0, sizes);
  }

  // Two threads whose addresses, modulo `step` (0: 2^bits), are so near that they meet when `more`
  // to `more` + `width` - (bytes of both) + 1 is added to the first.
  OverlapAnswer nearby(const Side& x, const Side& y, std::uint64_t step, std::uint64_t more,
                       std::uint64_t width) const {
    const auto reduced = [&](std::uint64_t value) {
      return step == 0 ? pattern(value, bits_) : rest_of(signed_bits(value, bits_), step);
    };
    std::vector<std::pair<std::uint64_t, const Side::Thread*>> order;
    for (const Side::Thread& t : y.threads) order.emplace_back(reduced(t.own), &t);
    std::ranges::stable_sort(order, {}, [](const auto& one) { return one.first; });
    for (const Side::Thread& s : x.threads) {
      // b in (a - bytes of b, a + bytes of a), round the end.
      const std::uint64_t from = reduced(s.own + more - (sizes_[1] - 1));
      auto at =
          std::ranges::lower_bound(order, from, {}, [](const auto& one) { return one.first; });
      for (std::size_t tried = 0; tried < order.size(); ++tried, ++at) {
        if (at == order.end()) at = order.begin();
        if (reduced(at->first - from) >= width) break;
        if (at->second->tid != s.tid) return {Overlap::Possible, s.tid, at->second->tid};
      }
    }
    return {Overlap::Never, {}, {}};
  }

  static OverlapAnswer any_two(const Side& x, const Side& y) {
    for (const Side::Thread& s : x.threads) {
      for (const Side::Thread& t : y.threads)
        if (s.tid != t.tid) return {Overlap::Possible, s.tid, t.tid};
    }
    return {Overlap::Never, {}, {}};
  }

  const Affine& affine_;
  const OverlapQuestion& question_;
  bool one_dimension_;
  Index thread_{};
  AffineValues<Leaf> values_;
  std::vector<Multiplier> multipliers_;
  std::uint64_t step_ = 0;
  unsigned bits_ = 64;
  std::array<std::uint32_t, 2> sizes_{};
  bool exact_found_ = false;
};

}  // namespace

OverlapAnswer may_overlap(const Affine& affine, const ThreadAccess& a, const ThreadAccess& b,
                          const OverlapQuestion& question) {
  return Question(affine, question).ask(a, b);
}

}  // namespace ptxgen::inline v0::analysis
