// src/optimize/tokens/barrier_search.hpp - the fewest barriers that order what all of them order
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "optimize/tokens/block_barriers.hpp"
#include "optimize/tokens/memory_uses.hpp"

namespace ptxgen::inline v0::optimize {

/// Two statements of different threads that a barrier keeps in order.
struct OrderedPair {
  std::uint32_t first = 0;   ///< the statement before the barrier
  std::uint32_t second = 0;  ///< the statement after it
  std::uint32_t first_segment = 0, second_segment = 0;
  Conflict conflict;
};

/// Chooses barriers to remove. A set may be removed if no path with one of its barriers, and with
/// no barrier that stays, leads from a statement to one that conflicts with it: all threads of a
/// block pass the same barriers, so that whatever two statements of two threads the barriers
/// ordered, a barrier that stays is between them.
///
/// Barriers are tried in the order of the code, and each is removed if the later ones suffice. On
/// code without branches and loops around its barriers that leaves the fewest possible (pairs are
/// intervals, and each barrier that stays is the last of one). Elsewhere up to `kMaxSearched`
/// barriers are searched for a smaller set. Refers to its arguments.
class BarrierSearch {
 public:
  static constexpr std::size_t kMaxSearched = 10;
  /// Pairs of statements around one barrier. If there are more, it stays.
  static constexpr std::size_t kMaxPairs = 100'000;

  BarrierSearch(analysis::Facts& facts, const BlockBarriers& barriers);

  /// Whether each barrier of `BlockBarriers::all` is removed.
  const std::vector<bool>& run();

  /// A pair that nothing orders if `removed` and barrier `barrier` are removed, on a path through
  /// that barrier.
  std::optional<OrderedPair> unordered(std::uint32_t barrier, std::vector<bool> removed);
  /// A barrier that stays and orders the pair, kNone if no path has one.
  std::uint32_t orderer(const OrderedPair& pair);

 private:
  /// Bits of each segment: reached without and with an edge to the header of the loop or of one
  /// around it.
  using Reached = std::vector<std::uint8_t>;
  struct Sides {
    std::uint32_t loop;
    Reached before, after;
  };

  Reached reach(std::uint32_t segment, bool forward, std::uint32_t loop,
                const std::vector<bool>& removed) const;
  std::vector<Sides> sides_of(std::uint32_t barrier, const std::vector<bool>& removed) const;
  [[nodiscard]] bool is_around(std::uint32_t loop, std::uint32_t inner) const;
  [[nodiscard]] std::uint32_t common_loop(std::uint32_t a, std::uint32_t b) const;
  std::optional<OrderedPair> unordered(const std::vector<Sides>& sides, std::uint32_t a,
                                       std::uint32_t b);
  [[nodiscard]] std::vector<std::uint32_t> used(const Reached& reached, std::size_t& uses) const;
  const std::optional<OrderedPair>& conflict(std::uint32_t a, std::uint32_t b, std::uint32_t loop);
  bool in_line(std::uint32_t barrier) const;
  void search();
  bool feasible(const std::vector<bool>& removed);

  analysis::Facts& facts_;
  const BlockBarriers& barriers_;
  Conflicts conflicts_;
  std::vector<std::vector<MemoryUse>> uses_;  // of each segment
  std::vector<bool> removed_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::optional<OrderedPair>>
      known_;
};

}  // namespace ptxgen::inline v0::optimize
