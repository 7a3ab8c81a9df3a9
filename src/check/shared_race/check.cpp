// src/check/shared_race/check.cpp - pairs of accesses to shared memory that may race
#include "check/shared_race/check.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>

#include "analysis/uniformity_sources.hpp"
#include "check/shared_race/iterations.hpp"
#include "check/shared_race/ranges.hpp"
#include "check/shared_race/regions.hpp"
#include "check/shared_race/waits.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;
using analysis::kNoNode;

namespace {

using Shape = std::array<std::uint32_t, 3>;

// Limits of the comparison of one kernel.
constexpr std::uint64_t kMaxComparisons = 20'000;
constexpr std::uint64_t kMaxThreadPairs = 16'000'000;
constexpr std::uint64_t kMaxShifted = 1'000'000;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 30;
constexpr std::uint64_t kMaxVisits = 4'000'000;

/// Shapes to try if neither options nor .reqntid give one: with the dimensions that the kernel
/// reads, as large as .maxntid allows, and small. `.maxntid` bounds the number of threads, not each
/// dimension.
std::vector<Shape> likely_shapes(const Function& function) {
  Shape max{0, 0, 0};
  for (const Directive& directive : function.directives) {
    if (directive.kind != DirectiveKind::maxntid || directive.count == 0) continue;
    max = {1, 1, 1};
    for (std::size_t i = 0; i < directive.count && i < 3; ++i) max[i] = directive.values[i];
  }
  std::array<bool, 4> asked{};
  for (const Operand& operand : function.operands) {
    if (operand.kind != OperandKind::Special || operand.component > 3) continue;
    const auto reg = static_cast<SpecialRegister>(operand.id);
    if (reg != SpecialRegister::tid && reg != SpecialRegister::ntid) continue;
    asked[operand.component] = true;
  }
  const bool bounded = max[0] != 0 && max[1] != 0 && max[2] != 0;
  if (bounded) max = analysis::largest_block(max);
  const std::uint32_t bound = bounded ? max[0] * max[1] * max[2] : 1024;
  if (bounded && (max[1] > 1 || max[2] > 1 || !(asked[2] || asked[3]))) return {max};
  if (bounded) return {{bound, 1, 1}};
  if (asked[3]) return {{8, 8, 8}, {4, 4, 4}, {32, 4, 4}};
  if (asked[2]) return {{32, 32, 1}, {16, 16, 1}, {32, 8, 1}, {8, 8, 1}, {32, 1, 1}};
  return {{1024, 1, 1}, {64, 1, 1}, {32, 1, 1}};
}

/// One kernel in blocks of one shape, which `facts` are for.
class ShapeCheck {
 public:
  ShapeCheck(analysis::Facts& facts, const Shape& shape, RaceCheck& result)
      : facts_(facts),
        affine_(facts.affine()),
        loops_(facts_.cfg().loops().loops()),
        shape_(shape),
        forms_(facts_, affine_, shape),
        accesses_(result.accesses),
        orders_(orders_of(facts_, forms_.threads())),
        values_(facts_, affine_, shape),
        witnesses_(facts_, accesses_, orders_, values_, shape),
        ranges_(facts_, affine_, shape),
        iterations_(facts_, affine_, shape, ranges_),
        waits_(facts_, forms_, accesses_, budget_),
        access_forms_(accesses_.size()),
        extents_(accesses_.size()),
        result_(result) {
    divergent_exits_.resize(loops_.size());
    for (const analysis::AffineSymbol& symbol : affine_.symbols()) {
      if (symbol.kind == analysis::AffineSymbol::Kind::FinalIteration && !symbol.left)
        divergent_exits_[symbol.id] = symbol.agreement < analysis::Agreement::Block;
    }
  }

  std::vector<RacePair> run() {
    const Function& function = facts_.function();
    const bool in_warps = std::any_of(function.body.begin(), function.body.end(),
                                      [](const Instruction& s) { return s.is(Op::bar_warp_sync); });
    if (in_warps) {
      compare_all(false, Pairs::OtherWarps);
      compare_all(true, Pairs::SameWarp);
    } else {
      compare_all(false, Pairs::Different);
    }
    for (std::uint32_t i = 0; i < accesses_.size(); ++i) {
      if (accesses_[i].done != SharedAccess::Done::AtOnce && accesses_[i].writes) compare_copy(i);
    }
    return std::move(pairs_);
  }

 private:
  const AccessForm& form(std::uint32_t access) {
    std::optional<AccessForm>& computed = access_forms_[access];
    if (!computed) {
      computed = forms_.of(accesses_[access]);
      ranges_.drop_impossible(*computed);
    }
    return *computed;
  }

  void compare_all(bool warps, Pairs pairs) {
    const Segments segments(facts_, orders_, warps);
    std::vector<std::vector<std::uint32_t>> by_segment(segments.count());
    for (std::uint32_t i = 0; i < accesses_.size(); ++i) {
      if (facts_.cfg().reachable(facts_.cfg().block_of(accesses_[i].statement)))
        by_segment[segments.of(accesses_[i].statement)].push_back(i);
    }
    std::vector<std::uint32_t> marks(segments.count());
    std::uint32_t number = 0;
    for (const auto& starts : segments.starts()) {
      Region region(segments, starts, marks, ++number);
      visits_ += region.members().size();
      if (visits_ > kMaxVisits) result_.incomplete = true;
      if (result_.incomplete) return;
      std::vector<std::uint32_t> inside;
      for (const std::uint32_t segment : region.members())
        inside.insert(inside.end(), by_segment[segment].begin(), by_segment[segment].end());
      std::sort(inside.begin(), inside.end());
      reached_.clear();
      compare(segments, region, starts, inside, pairs);
    }
  }

  void compare(const Segments& segments, Region& region, std::span<const std::uint32_t> starts,
               const std::vector<std::uint32_t>& inside, Pairs pairs) {
    for (std::size_t x = 0; x < inside.size(); ++x) {
      for (std::size_t y = x; y < inside.size(); ++y) {
        const std::uint32_t a = inside[x], b = inside[y];
        const bool bulk = is_bulk(a) || is_bulk(b);
        if (!accesses_[a].conflicts(accesses_[b]) ||
            disjoint(a, b, bulk ? Pairs::Different : pairs) || found_.count({a, b}) != 0)
          continue;
        if (++comparisons_ > kMaxComparisons) result_.incomplete = true;
        if (result_.incomplete) return;
        if (bulk) {
          // The order within a warp does not wait for copies.
          if (pairs != Pairs::SameWarp && !waited(segments, starts, a, b))
            compare(segments, region, a, b, Pairs::Different);
          continue;
        }
        compare(segments, region, a, b, pairs);
      }
    }
  }

  /// The order of the iterations of a loop in which threads are at two accesses.
  Region::Order order(const Segments& segments, Region& region, std::uint32_t a, std::uint32_t b,
                      std::uint32_t loop) {
    // Threads that have left the loop may have done so after different numbers of iterations.
    if (divergent_exits_[loop] && !(inside(a, loop) && inside(b, loop)))
      return Region::Order::Unknown;
    const std::uint32_t header = loops_[loop].header;
    return region.order(segments.of_block(header), segments.of(accesses_[a].statement),
                        segments.of(accesses_[b].statement));
  }

  [[nodiscard]] bool inside(std::uint32_t access, std::uint32_t loop) {
    const analysis::Cfg& cfg = facts_.cfg();
    return cfg.loops().contains(loop, cfg.block_of(accesses_[access].statement));
  }

  /// The bytes of a variable that an access touches, in all threads and iterations.
  struct Bytes {
    std::int64_t begin = kMaxExtent;
    std::int64_t end = -kMaxExtent;
    [[nodiscard]] bool overlaps(const Bytes& other) const noexcept {
      return begin < other.end && other.begin < end;
    }
  };
  struct Extent {
    bool known = false;
    Bytes all;
    std::vector<Bytes> warps;
  };
  const Extent& extent(std::uint32_t access) {
    std::optional<Extent>& computed = extents_[access];
    if (computed) return *computed;
    computed.emplace();
    const ThreadForm& address = form(access).address;
    if (!address.known || address.elsewhere || address.values.empty()) return *computed;
    const analysis::AffineRange rest = ranges_.of(address.rest);
    if (!rest.known) return *computed;
    const auto bytes = static_cast<std::int64_t>(accesses_[access].bytes);
    computed->warps.resize((address.values.size() + 31) / 32);
    for (std::size_t t = 0; t < address.values.size(); ++t) {
      if (!form(access).may[t]) continue;
      for (Bytes* one : {&computed->all, &computed->warps[t / 32]}) {
        one->begin = std::min(one->begin, address.values[t] + rest.min);
        one->end = std::max(one->end, address.values[t] + rest.max + bytes);
      }
    }
    // Addresses are equal if they are modulo 2^32.
    computed->known = address.rest.empty() ||
                      (computed->all.begin >= -kMaxExtent && computed->all.end <= kMaxExtent);
    return *computed;
  }
  /// Whether the extents of two accesses are disjoint, in all threads or in those of each pair of
  /// warps: a quick test, since a ring buffer in shared memory has many slots.
  bool disjoint(std::uint32_t a, std::uint32_t b, Pairs pairs) {
    if (a == b) return false;
    if (++visits_ > kMaxVisits) result_.incomplete = true;
    const Extent& x = extent(a);
    const Extent& y = extent(b);
    if (!x.known || !y.known || form(a).address.variable != form(b).address.variable) return false;
    if (!x.all.overlaps(y.all)) return true;
    if (pairs != Pairs::OtherWarps && pairs != Pairs::SameWarp) return false;
    visits_ += x.warps.size();
    for (std::size_t s = 0; s < x.warps.size(); ++s) {
      for (std::size_t t = 0; t < y.warps.size(); ++t) {
        if ((s == t) == (pairs == Pairs::SameWarp) && x.warps[s].overlaps(y.warps[t])) return false;
      }
    }
    return true;
  }

  /// Whether threads in the same iteration of every loop agree on a symbol.
  bool agrees(std::uint32_t id, int depth) const {
    using Kind = analysis::AffineSymbol::Kind;
    const analysis::AffineSymbol& symbol = forms_.symbol(id);
    if (symbol.restless || depth > 16) return false;
    if (symbol.agreement >= analysis::Agreement::Block || symbol.kind == Kind::Iteration)
      return true;
    if (symbol.kind != Kind::Operation || symbol.left) return false;
    for (const std::uint32_t operand : symbol.operands) {
      if (operand == kNone) continue;
      for (const analysis::AffineTerm& term : affine_.form(operand).terms) {
        for (const std::uint32_t factor : term.symbols) {
          if (factor != kNone && !agrees(factor, depth + 1)) return false;
        }
      }
    }
    return true;
  }

  /// Whether two threads of the region have the same value of a product of symbols.
  bool same(const Segments& segments, Region& region, std::uint32_t a, std::uint32_t b,
            const SymbolKey& key) {
    for (const std::uint32_t id : key) {
      if (id == kNone) break;
      const analysis::AffineSymbol& symbol = forms_.symbol(id);
      if (!agrees(id, 0)) return false;
      // It changes with each iteration of its loop and of the enclosing loops.
      int depth = 0;
      for (std::uint32_t l = symbol.loop; l != kNoNode; l = loops_[l].parent) {
        if (++depth > 64) return false;
        if (order(segments, region, a, b, l) != Region::Order::Equal) return false;
      }
    }
    return true;
  }

  void compare(const Segments& segments, Region& region, std::uint32_t a, std::uint32_t b,
               Pairs pairs) {
    if (form(a).address.elsewhere || form(b).address.elsewhere) return;
    Comparison comparison{&form(a),
                          &form(b),
                          accesses_[a].bytes,
                          accesses_[b].bytes,
                          pairs,
                          [&](const SymbolKey& key) { return same(segments, region, a, b, key); },
                          &ranges_};
    const auto look = [&] {
      Overlap found = overlap(comparison, budget_);
      if (found.conflict == Conflict::Maybe)
        found = by_iteration(segments, region, a, b, comparison, found);
      return found;
    };
    Overlap found = look();
    if (found.conflict == Conflict::No) return;
    bool same_value = false;
    if (const Classes* classes = stored_once(segments, region, a, b)) {
      // Threads that store one value are harmless: prefers a pair of threads that is not.
      comparison.harmless = classes;
      const Overlap harm = look();
      same_value = harm.conflict == Conflict::No;
      if (!same_value) found = harm;
    }
    if (budget_ == 0) result_.incomplete = true;
    RacePair& pair = add(a, b, found);
    pair.in_warp = pairs == Pairs::SameWarp;
    pair.follows = leads(segments, region, accesses_[pair.first], accesses_[pair.second]);
    pair.copying = is_bulk(a) || is_bulk(b);
    if (pair.copying) return;
    pair.same_value = same_value || writes_one_constant(a, b);
    if (pair.same_value) return;
    pair.witness = witness(pair, found, pairs);
  }

  [[nodiscard]] bool only_stores(std::uint32_t access) const {
    const SharedAccess& x = accesses_[access];
    return x.writes && !x.reads && !x.anywhere && x.rows == 0 &&
           x.done == SharedAccess::Done::AtOnce &&
           facts_.function().body[x.statement].operand_count >= 2;
  }

  /// By thread, the value that an instruction stores which each thread executes once before the
  /// next barrier; null for other accesses.
  const Classes* stored_once(const Segments& segments, Region& region, std::uint32_t a,
                             std::uint32_t b) {
    if (a != b || !only_stores(a)) return nullptr;
    const std::uint32_t home = segments.of(accesses_[a].statement);
    if (!region.contains(home) || region.order(home, home, home) != Region::Order::Equal)
      return nullptr;
    return &values_.of(accesses_[a].statement, 1).of;
  }

  /// An access whose address has the `rest`: in each iteration of a loop, or in all.
  struct Expanded {
    const IterationForms* by_iteration = nullptr;
    std::vector<const AccessForm*> forms;
    Terms rest;
  };
  Expanded expanded(std::uint32_t access) {
    const AccessForm& all = form(access);
    Expanded computed;
    if (!all.address.rest.empty()) computed.by_iteration = iterations_.of(accesses_[access], all);
    if (computed.by_iteration == nullptr) {
      computed.forms.push_back(&all);
      computed.rest = all.address.rest;
      return computed;
    }
    for (const AccessForm& one : computed.by_iteration->iterations) computed.forms.push_back(&one);
    computed.rest = computed.by_iteration->rest;
    return computed;
  }
  static void add_addresses(const AccessForm& form, AddressList& list) {
    for (std::uint32_t t = 0; t < form.may.size(); ++t) {
      if (form.may[t]) list.emplace_back(form.address.values[t], t);
    }
  }

  /// The overlap with addresses computed for each iteration of one loop, if possible.
  Overlap by_iteration(const Segments& segments, Region& region, std::uint32_t a, std::uint32_t b,
                       const Comparison& comparison, const Overlap& before) {
    const AccessForm& x = form(a);
    const AccessForm& y = form(b);
    if (!x.address.known || !y.address.known || x.address.variable != y.address.variable)
      return before;
    const Expanded first = expanded(a), second = expanded(b);
    Region::Order how = Region::Order::Unknown;
    if (first.by_iteration != nullptr && second.by_iteration != nullptr && first.rest.empty() &&
        second.rest.empty() && first.by_iteration->loop == second.by_iteration->loop &&
        first.forms.size() == second.forms.size() &&
        first.by_iteration->periodic == second.by_iteration->periodic)
      how = iteration_order(segments, region, a, b, first.by_iteration->loop);
    if (how == Region::Order::Unknown)
      return in_any_iterations(first, second, comparison).value_or(before);
    const std::size_t iterations = first.forms.size();
    for (std::size_t i = 0; i < iterations; ++i) {
      std::size_t k = i;
      if (how == Region::Order::Before) k = i + 1;
      if (how == Region::Order::After) k = i + iterations - 1;
      const bool wraps = how == Region::Order::Before ? k >= iterations : i == 0 && k != i;
      if (wraps && !first.by_iteration->periodic) continue;
      AddressList list_a, list_b;
      add_addresses(*first.forms[i], list_a);
      add_addresses(*second.forms[k % iterations], list_b);
      const Overlap found =
          overlap(list_a, comparison.bytes_a, std::move(list_b), comparison.bytes_b,
                  comparison.pairs, budget_, i == k ? comparison.harmless : nullptr);
      if (found.conflict != Conflict::No) return found;
    }
    return {};
  }

  /// Each iteration of one access with each of the other; nothing if too many addresses are
  /// possible.
  std::optional<Overlap> in_any_iterations(const Expanded& first, const Expanded& second,
                                           const Comparison& comparison) {
    AddressList a, b;
    for (const AccessForm* form : first.forms) add_addresses(*form, a);
    for (const AccessForm* form : second.forms) add_addresses(*form, b);
    if (a.empty() || b.empty()) return Overlap{};
    const auto [low_a, high_a] = std::ranges::minmax_element(a);
    const auto [low_b, high_b] = std::ranges::minmax_element(b);
    const analysis::AffineRange reach{
        true, low_b->first - high_a->first - static_cast<std::int64_t>(comparison.bytes_a) + 1,
        high_b->first - low_a->first + static_cast<std::int64_t>(comparison.bytes_b) - 1};
    const auto apart = shifts(first.rest, second.rest, comparison, reach);
    if (!apart || (apart->size() > 1 && apart->size() * (a.size() + b.size()) > kMaxShifted))
      return std::nullopt;
    for (const std::int64_t shift : *apart) {
      AddressList moved = a;
      for (auto& [address, thread] : moved) address += shift;
      Overlap found =
          overlap(moved, comparison.bytes_a, b, comparison.bytes_b, comparison.pairs, budget_);
      // Whether the symbols have the values is not known.
      if (found.conflict != Conflict::No && !(first.rest.empty() && second.rest.empty()))
        return std::nullopt;
      if (found.conflict != Conflict::No) return found;
    }
    return Overlap{};
  }

  /// By how many iterations of the loop threads at the accesses differ, if it is a fixed number.
  Region::Order iteration_order(const Segments& segments, Region& region, std::uint32_t a,
                                std::uint32_t b, std::uint32_t loop) {
    int depth = 0;
    for (std::uint32_t l = loops_[loop].parent; l != kNoNode; l = loops_[l].parent) {
      if (++depth > 64 || order(segments, region, a, b, l) != Region::Order::Equal)
        return Region::Order::Unknown;
    }
    return order(segments, region, a, b, loop);
  }

  static bool leads(const Segments& segments, const Region& region, const SharedAccess& from,
                    const SharedAccess& to) {
    const std::uint32_t a = segments.of(from.statement), b = segments.of(to.statement);
    return (a == b && from.statement < to.statement) || region.leads(a, b);
  }

  RacePair& add(std::uint32_t a, std::uint32_t b, const Overlap& found) {
    found_.insert({a, b});
    RacePair& pair = pairs_.emplace_back();
    // The write comes first.
    const bool swap = !accesses_[a].writes;
    pair.first = swap ? b : a;
    pair.second = swap ? a : b;
    pair.shape = shape_;
    pair.variable = form(pair.first).address.variable;
    pair.not_known = unknown(found, a, b);
    return pair;
  }

  std::string unknown(const Overlap& found, std::uint32_t a, std::uint32_t b) const {
    if (found.conflict == Conflict::Possible) return {};
    const auto is_call = [&](std::uint32_t i) {
      return has(info(facts_.function().body[accesses_[i].statement].op).flags, Flag::Call);
    };
    if (is_call(a) || is_call(b)) return "the function that is called";
    if (found.unknown[0] == kNone) return "the bytes that are accessed";
    analysis::AffineForm form;
    form.terms.push_back({1, found.unknown});
    return affine_.to_text(form);
  }

  std::optional<Witness> witness(const RacePair& pair, const Overlap& found, Pairs pairs) {
    const bool swapped = pair.second < pair.first;
    const std::uint32_t last = forms_.threads() - 1;
    const std::pair<std::uint32_t, std::uint32_t> candidates[] = {
        {swapped ? found.second : found.first, swapped ? found.first : found.second},
        {0, 1},
        {1, 0},
        {0, 32},
        {32, 0},
        {0, last},
        {last, 0}};
    for (const auto& [first, second] : candidates) {
      if (first > last || second > last || first == second) continue;
      const bool same_warp = first / 32 == second / 32;
      if ((pairs == Pairs::OtherWarps && same_warp) || (pairs == Pairs::SameWarp && !same_warp))
        continue;
      if (auto witness = witnesses_.find(pair.first, first, pair.second, second)) return witness;
    }
    return {};
  }

  /// Whether both only write, and the same constant.
  bool writes_one_constant(std::uint32_t a, std::uint32_t b) const {
    if (!only_stores(a) || !only_stores(b)) return false;
    const Function& function = facts_.function();
    const Operand& value = function.operands_of(function.body[accesses_[a].statement])[1];
    const Operand& other = function.operands_of(function.body[accesses_[b].statement])[1];
    const bool constant = value.kind == OperandKind::Integer ||
                          value.kind == OperandKind::Float32 || value.kind == OperandKind::Float64;
    return constant && value == other && accesses_[a].bytes == accesses_[b].bytes;
  }

  // Copies in progress ---------------------------------------------------------------------

  /// Whether the statement waits for a copy after which the thread has committed `groups` groups,
  /// the copy's own included.
  static bool waits_for(const Function& function, const Instruction& s, std::uint64_t groups) {
    if (s.guard.present()) return false;
    if (s.is(Op::cp_async_wait_all)) return true;
    const auto operands = function.operands_of(s);
    if (!s.is(Op::cp_async_wait_group) || operands.empty()) return false;
    return operands[0].kind == OperandKind::Integer && operands[0].value < groups;
  }

  /// Compares a copy with all accesses that control may reach before a wait for the copy, across
  /// barriers and in the same thread too. Visits blocks with the fewest groups first: more groups
  /// reach no more blocks.
  void compare_copy(std::uint32_t copy) {
    const Function& function = facts_.function();
    const analysis::Cfg& cfg = facts_.cfg();
    std::vector<bool> seen(cfg.blocks().size());
    using Visit = std::pair<std::uint64_t, std::uint32_t>;  // groups, block
    std::priority_queue<Visit, std::vector<Visit>, std::greater<>> open;
    const auto scan = [&](std::uint32_t from, std::uint32_t block, std::uint64_t groups) {
      for (std::uint32_t i = from; i < cfg.blocks()[block].end; ++i) {
        const Instruction& s = function.body[i];
        if (is_bulk(copy) ? waits_.at(i, copy) : waits_for(function, s, groups)) return;
        if (s.is(Op::cp_async_commit_group) && !s.guard.present()) ++groups;
        const auto at = std::lower_bound(accesses_.begin(), accesses_.end(), i,
                                         [](const SharedAccess& access, std::uint32_t statement) {
                                           return access.statement < statement;
                                         });
        if (at == accesses_.end() || at->statement != i) continue;
        compare_with_copy(copy, static_cast<std::uint32_t>(at - accesses_.begin()));
      }
      const std::uint32_t only = only_successor(accesses_[copy].statement, block);
      for (const std::uint32_t to : cfg.successors(block)) {
        if (to < seen.size() && !seen[to] && (only == kNone || to == only))
          open.emplace(groups, to);
      }
    };
    scan(accesses_[copy].statement + 1, cfg.block_of(accesses_[copy].statement), 0);
    while (!open.empty() && !result_.incomplete) {
      const auto [groups, block] = open.top();
      open.pop();
      if (seen[block]) continue;
      seen[block] = true;
      visits_ += 1;
      if (visits_ > kMaxVisits) result_.incomplete = true;
      scan(cfg.blocks()[block].first, block, groups);
    }
  }

  /// The successor of a block in threads that have executed a guarded statement, if the block's
  /// branch has the same guard; else kNone.
  std::uint32_t only_successor(std::uint32_t statement, std::uint32_t block) {
    const Function& function = facts_.function();
    const analysis::Cfg& cfg = facts_.cfg();
    const std::uint32_t end = cfg.blocks()[block].terminator;
    const Guard& held = function.body[statement].guard;
    if (end == kNone || !held.present() || !function.body[end].is(Op::bra)) return kNone;
    const std::uint32_t reg = facts_.index().find(held.predicate);
    const std::uint32_t version = facts_.versions().read(statement, reg);
    // A branch reads only its guard, so this is the same predicate.
    if (version == kNone || version != facts_.versions().read(end, reg)) return kNone;
    const Guard& asked = function.body[end].guard;
    // In a loop the value may have changed.
    if (cfg.loops().innermost(facts_.versions()[version].block) != kNoNode) return kNone;
    return held.negated == asked.negated ? cfg.successors(block).front() : block + 1;
  }

  void compare_with_copy(std::uint32_t copy, std::uint32_t other) {
    const auto key = std::minmax(copy, other);
    if (!accesses_[copy].conflicts(accesses_[other]) || disjoint(copy, other, Pairs::All) ||
        found_.count(key) != 0 || (is_bulk(copy) && is_bulk(other)))
      return;
    if (++comparisons_ > kMaxComparisons) result_.incomplete = true;
    const Comparison comparison{&form(copy),
                                &form(other),
                                accesses_[copy].bytes,
                                accesses_[other].bytes,
                                Pairs::All,
                                [](const SymbolKey&) { return false; }};
    const Overlap found = overlap(comparison, budget_);
    if (found.conflict == Conflict::No) return;
    found_.insert(key);
    RacePair& pair = pairs_.emplace_back();
    pair.first = copy;
    pair.second = other;
    pair.shape = shape_;
    pair.copying = true;
    pair.not_known = unknown(found, copy, other);
  }

  // Copies that an mbarrier counts ------------------------------------------------------------

  [[nodiscard]] bool is_bulk(std::uint32_t access) const {
    return accesses_[access].done == SharedAccess::Done::Mbarrier;
  }

  /// Of a bulk copy and another access that no barrier separates: whether each path from the
  /// region's start to the other access waits at the copy's mbarrier, and each path from there to
  /// the copy waits at some mbarrier. Two copies are never compared: a wait for a free slot of one
  /// is not a wait for the other, which may fill another slot.
  bool waited(const Segments& segments, std::span<const std::uint32_t> starts, std::uint32_t a,
              std::uint32_t b) {
    if (is_bulk(a) && is_bulk(b)) return true;
    const std::uint32_t copy = is_bulk(a) ? a : b;
    const std::uint32_t other = is_bulk(a) ? b : a;
    const auto& from_start = reached(segments, copy, [&](std::vector<std::uint32_t>& from) {
      for (const std::uint32_t segment : starts) from.push_back(segments.first(segment));
    });
    if (from_start[accesses_[other].statement]) return false;
    const auto& from_other = reached(segments, other, [&](std::vector<std::uint32_t>& from) {
      from.push_back(accesses_[other].statement + 1);
    });
    return !from_other[accesses_[copy].statement];
  }

  /// The statements of the region that control may reach from its start points without a wait: at
  /// the copy's mbarrier for a copy, at any mbarrier for another access.
  const std::vector<bool>& reached(const Segments& segments, std::uint32_t access,
                                   const std::function<void(std::vector<std::uint32_t>&)>& start) {
    std::vector<bool>& found = reached_[access];
    if (!found.empty()) return found;
    const auto statements = static_cast<std::uint32_t>(facts_.function().body.size());
    found.assign(statements, false);
    std::vector<std::uint32_t> open;
    start(open);
    std::erase(open, statements);
    while (!open.empty()) {
      std::uint32_t i = open.back();
      open.pop_back();
      const std::uint32_t segment = segments.of(i);
      for (; i < segments.end(segment) && !found[i]; ++i) {
        found[i] = true;
        if (++visits_ > kMaxVisits) result_.incomplete = true;
        if (is_bulk(access) ? waits_.at(i, access) : waits_.at(i)) break;
      }
      if (i != segments.end(segment)) continue;
      for (const std::uint32_t to : segments.successors(segment)) {
        if (segments.first(to) < statements) open.push_back(segments.first(to));
      }
    }
    return found;
  }

  analysis::Facts& facts_;
  const analysis::Affine& affine_;
  std::span<const analysis::Loop> loops_;
  std::vector<bool> divergent_exits_;  ///< loops that threads may leave in different iterations
  Shape shape_;
  ThreadForms forms_;
  const std::vector<SharedAccess>& accesses_;
  std::vector<Orders> orders_;  ///< by statement
  ThreadValueClasses values_;
  Witnesses witnesses_;
  SymbolRanges ranges_;
  LoopIterations iterations_;
  MbarrierWaits waits_;
  std::map<std::uint32_t, std::vector<bool>> reached_;  ///< see `reached`, of the region
  std::vector<std::optional<AccessForm>> access_forms_;
  std::vector<std::optional<Extent>> extents_;
  RaceCheck& result_;
  std::vector<RacePair> pairs_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> found_;
  std::uint64_t comparisons_ = 0;
  std::uint64_t visits_ = 0;
  std::uint64_t budget_ = kMaxThreadPairs;
};

/// The first shape tried without the pair; a single thread never races.
Shape free_of(const std::vector<RacePair>& pairs, const std::vector<Shape>& shapes) {
  for (const Shape& shape : shapes) {
    const bool here = std::any_of(pairs.begin(), pairs.end(),
                                  [&](const RacePair& pair) { return pair.shape == shape; });
    if (!here) return shape;
  }
  return {1, 1, 1};
}

}  // namespace

RaceCheck check_races(analysis::Facts& facts, const SharedAccesses& accesses,
                      const GateOptions& options) {
  const Function& function = facts.function();
  RaceCheck result;
  result.accesses = accesses.of(function);
  const bool writes = std::any_of(result.accesses.begin(), result.accesses.end(),
                                  [](const SharedAccess& access) { return access.writes; });
  if (!writes) return result;
  std::vector<Shape> shapes{analysis::block_shape(function, {.block = options.block})};
  if (shapes[0][0] == 0) {
    result.shape_known = false;
    shapes = likely_shapes(function);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<RacePair>> found;
  for (const Shape& shape : shapes) {
    std::optional<analysis::Facts> of_shape;
    if (!result.shape_known)
      of_shape.emplace(facts.module(), function, analysis::UniformityOptions{.block = shape});
    for (RacePair& pair : ShapeCheck(of_shape ? *of_shape : facts, shape, result).run())
      found[{pair.first, pair.second}].push_back(std::move(pair));
  }
  for (auto& [key, pairs] : found) {
    // Prefers a pair with a witness as the example.
    const auto shown = std::find_if(pairs.begin(), pairs.end(),
                                    [](const RacePair& pair) { return pair.witness.has_value(); });
    RacePair pair = shown != pairs.end() ? *shown : pairs.front();
    pair.every_launch = result.shape_known && pair.witness && pair.witness->every_launch;
    pair.unlikely = !pair.witness && 2 * pairs.size() <= shapes.size();
    if (!result.shape_known) pair.harmless = free_of(pairs, shapes);
    result.pairs.push_back(std::move(pair));
  }
  return result;
}

}  // namespace ptxgen::inline v0::gates
