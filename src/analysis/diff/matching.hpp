// src/analysis/diff/matching.hpp - which statements of two functions are the same
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/diff/code_graph.hpp"

namespace ptxgen::inline v0::analysis {

/// Pairs of nodes of two graphs.
///
/// Nodes have two colours: of all that they are computed from, and of all that is computed from
/// them. Both begin as the node's shape and are refined by the colours of the neighbours until no
/// class is divided any more. Statements of equal colours are pairs. If that is not all, the pairs
/// get a colour each, and what is left is paired by neighbourhoods that get smaller, at last by the
/// statement alone. So a change leaves only what it touches without a partner.
class Matching {
 public:
  Matching(CodeGraph& a, CodeGraph& b);

  /// Whether the graphs have the same number of nodes of each colour.
  [[nodiscard]] bool equal() const noexcept { return equal_; }
  /// The partner of a statement of `a` in `b`, by nodes; ptx::kNone if it has none.
  [[nodiscard]] std::uint32_t partner(std::uint32_t a) const noexcept { return partner_[a]; }
  /// The same, of a statement of `b`.
  [[nodiscard]] std::uint32_t partner_in_a(std::uint32_t b) const noexcept { return back_[b]; }
  /// Pairs statements without a partner that differ; what is left after that is in one graph only.
  void pair(std::uint32_t a, std::uint32_t b);
  /// Whether two nodes compute the same, from the same.
  [[nodiscard]] bool same_value(std::uint32_t a, std::uint32_t b) const noexcept {
    return values_[a] == values_[offset_ + b];
  }

 private:
  using Colours = std::vector<std::uint64_t>;
  using Levels = std::vector<Colours>;  // after 0, 1, 2, 4, .. steps and at the end
  // Which groups of nodes of one colour become pairs: all, those with as many nodes in both graphs,
  // those with one in each.
  enum class Groups { Any, AsMany, Single };
  struct Neighbour {
    std::uint32_t node, role;
  };
  void collect(CodeGraph& graph, std::uint32_t offset, std::vector<std::vector<Neighbour>>& inputs,
               std::vector<std::vector<Neighbour>>& users);
  [[nodiscard]] Levels refine(const std::vector<std::vector<Neighbour>>& neighbours) const;
  static Colours combined(const Colours& a, const Colours& b);
  bool pair_levels(const Levels& inputs, const Levels& users, Groups groups);
  bool pair_equal(std::span<const std::uint64_t> colours, Groups wanted);
  void pair_in_order(std::span<const std::uint64_t> colours);

  CodeGraph& a_;
  CodeGraph& b_;
  std::uint32_t offset_ = 0;  // of nodes of b
  Colours shapes_;
  Colours values_;  // of all that a node is computed from
  std::vector<std::uint32_t> partner_, back_;
  bool equal_ = false;
};

/// The longest common subsequence of two sequences by `same(i, j)`, as pairs. Takes time and memory
/// proportional to the product of the lengths.
template <class Same>
std::vector<std::pair<std::uint32_t, std::uint32_t>> common_subsequence(std::uint32_t a,
                                                                        std::uint32_t b,
                                                                        Same&& same) {
  std::vector<std::uint32_t> length((a + 1u) * (b + 1u));
  const auto at = [&](std::uint32_t i, std::uint32_t j) -> std::uint32_t& {
    return length[i * (b + 1u) + j];
  };
  for (std::uint32_t i = a; i-- != 0;) {
    for (std::uint32_t j = b; j-- != 0;) {
      at(i, j) = same(i, j) ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    }
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::uint32_t i = 0, j = 0; i < a && j < b;) {
    if (same(i, j)) {
      pairs.emplace_back(i++, j++);
    } else if (at(i + 1, j) >= at(i, j + 1)) {
      ++i;
    } else {
      ++j;
    }
  }
  return pairs;
}

}  // namespace ptxgen::inline v0::analysis
