// ptxgen/analysis/graph.hpp - directed graphs: dominators, loops, the order of nodes
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ptxgen::inline v0::analysis {

/// No node, no loop.
inline constexpr std::uint32_t kNoNode = 0xffffffffu;

struct Edge {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  friend constexpr bool operator==(const Edge&, const Edge&) = default;
};

/// A fixed directed graph of nodes 0 .. size()-1. Parallel edges are kept once; successors and
/// predecessors are in the order in which their edges were given.
class Graph {
 public:
  Graph() = default;
  /// Every edge must name nodes below `nodes`.
  Graph(std::uint32_t nodes, std::span<const Edge> edges);

  [[nodiscard]] std::uint32_t size() const noexcept { return nodes_; }
  [[nodiscard]] std::span<const std::uint32_t> successors(std::uint32_t node) const noexcept {
    return {successors_.data() + first_successor_[node],
            first_successor_[node + 1] - first_successor_[node]};
  }
  [[nodiscard]] std::span<const std::uint32_t> predecessors(std::uint32_t node) const noexcept {
    return {predecessors_.data() + first_predecessor_[node],
            first_predecessor_[node + 1] - first_predecessor_[node]};
  }
  /// Every edge turned round.
  [[nodiscard]] Graph reversed() const;

 private:
  std::uint32_t nodes_ = 0;
  std::vector<std::uint32_t> first_successor_, successors_;
  std::vector<std::uint32_t> first_predecessor_, predecessors_;
};

/// Dominators of a graph from a root. For post-dominators give the reversed graph and the exit.
/// Nearly linear in nodes and edges (semi-NCA); answers about two nodes take constant time.
class DominatorTree {
 public:
  DominatorTree() = default;
  DominatorTree(const Graph& graph, std::uint32_t root);

  [[nodiscard]] std::uint32_t root() const noexcept { return root_; }
  /// Whether a path leads from the root to the node.
  [[nodiscard]] bool reachable(std::uint32_t node) const noexcept { return begin_[node] != 0; }
  /// kNoNode for the root and for nodes that no path reaches.
  [[nodiscard]] std::uint32_t immediate(std::uint32_t node) const noexcept {
    return immediate_[node];
  }
  /// Every path from the root to `below` goes through `above`; so does the path to `above` itself.
  /// A node that no path reaches dominates only itself and is dominated only by itself.
  [[nodiscard]] bool dominates(std::uint32_t above, std::uint32_t below) const noexcept {
    if (above == below) return true;
    return reachable(above) && begin_[above] < begin_[below] && end_[below] <= end_[above];
  }
  [[nodiscard]] bool strictly_dominates(std::uint32_t above, std::uint32_t below) const noexcept {
    return above != below && dominates(above, below);
  }

 private:
  std::uint32_t root_ = kNoNode;
  std::vector<std::uint32_t> immediate_;
  std::vector<std::uint32_t> begin_, end_;  // intervals in the tree; begin is 0 where unreachable
};

/// A loop: nodes that can all reach each other, entered at `header` first.
struct Loop {
  std::uint32_t header = kNoNode;
  std::uint32_t parent = kNoNode;  ///< the loop around it
  std::uint32_t depth = 1;         ///< 1 for an outermost loop
  bool irreducible = false;        ///< entered at other nodes too
  std::uint32_t begin = 0;         ///< its nodes are order()[begin] .. order()[end-1], the
  std::uint32_t end = 0;           ///< header first
};

/// The nesting of loops, and an order of the nodes that follows it. Where control flow is
/// reducible these are the natural loops, those with a common header taken as one. Elsewhere a loop
/// is a strongly connected part, its header the node that a depth-first walk meets first, and the
/// inner loops are what remains connected without the header. Nearly linear.
class LoopForest {
 public:
  LoopForest() = default;
  LoopForest(const Graph& graph, std::uint32_t root);

  /// Outer loops come before those inside them.
  [[nodiscard]] std::span<const Loop> loops() const noexcept { return loops_; }
  /// The innermost loop around a node, or kNoNode.
  [[nodiscard]] std::uint32_t innermost(std::uint32_t node) const noexcept {
    return innermost_[node];
  }
  [[nodiscard]] bool contains(std::uint32_t loop, std::uint32_t node) const noexcept {
    const std::uint32_t at = position_[node];
    return at >= loops_[loop].begin && at < loops_[loop].end;
  }
  /// The nodes of a loop, in order.
  [[nodiscard]] std::span<const std::uint32_t> nodes(std::uint32_t loop) const noexcept {
    return {order_.data() + loops_[loop].begin, loops_[loop].end - loops_[loop].begin};
  }

  /// All nodes in a reverse post-order: every edge leads forward, except those to the header of a
  /// loop from within it. The nodes of each loop stand together, before everything that only
  /// follows the loop. Where that leaves a choice, lower numbers come first. Nodes that cannot be
  /// reached from the root come last, by number.
  [[nodiscard]] std::span<const std::uint32_t> order() const noexcept { return order_; }
  /// Where in `order()` a node stands.
  [[nodiscard]] std::uint32_t position(std::uint32_t node) const noexcept {
    return position_[node];
  }
  [[nodiscard]] std::uint32_t reachable_count() const noexcept { return reachable_; }

 private:
  std::vector<Loop> loops_;
  std::vector<std::uint32_t> innermost_, order_, position_;
  std::uint32_t reachable_ = 0;
};

/// The reversed graph for post-dominators: edges from `exit` are added for each part of the graph
/// that control never leaves (an endless loop), to that part's last node in `forest.order()`.
[[nodiscard]] Graph reversed_with_exits(const Graph& graph, const LoopForest& forest,
                                        std::uint32_t exit);

/// One line for each loop: header, nodes, nesting.
[[nodiscard]] std::string to_text(const LoopForest& forest);
/// One line for each node that has an immediate dominator.
[[nodiscard]] std::string to_text(const DominatorTree& tree, std::uint32_t nodes);

}  // namespace ptxgen::inline v0::analysis
