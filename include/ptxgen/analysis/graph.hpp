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

/// An immutable directed graph of nodes 0 .. size()-1. Parallel edges are stored once; successors
/// and predecessors keep the order of the given edges.
class Graph {
 public:
  Graph() = default;
  /// The nodes of every edge must be below `nodes`.
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
  /// The graph with every edge reversed.
  [[nodiscard]] Graph reversed() const;

 private:
  std::uint32_t nodes_ = 0;
  std::vector<std::uint32_t> first_successor_, successors_;
  std::vector<std::uint32_t> first_predecessor_, predecessors_;
};

/// Dominators of a graph from a root. For post-dominators pass the reversed graph and the exit.
/// Near-linear in nodes and edges (semi-NCA); `dominates` takes constant time.
class DominatorTree {
 public:
  DominatorTree() = default;
  DominatorTree(const Graph& graph, std::uint32_t root);

  [[nodiscard]] std::uint32_t root() const noexcept { return root_; }
  /// Whether the node is reachable from the root.
  [[nodiscard]] bool reachable(std::uint32_t node) const noexcept { return begin_[node] != 0; }
  /// kNoNode for the root and for unreachable nodes.
  [[nodiscard]] std::uint32_t immediate(std::uint32_t node) const noexcept {
    return immediate_[node];
  }
  /// Whether every path from the root to `below` passes `above`. A node dominates itself. An
  /// unreachable node dominates only itself and is dominated only by itself.
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
  std::vector<std::uint32_t> begin_, end_;  // intervals in the tree; begin is 0 if unreachable
};

/// A loop: a strongly connected set of nodes with a header.
struct Loop {
  std::uint32_t header = kNoNode;
  std::uint32_t parent = kNoNode;  ///< the loop around it
  std::uint32_t depth = 1;         ///< 1 for an outermost loop
  bool irreducible = false;        ///< entered at other nodes too
  std::uint32_t begin = 0;         ///< its nodes are order()[begin] .. order()[end-1],
  std::uint32_t end = 0;           ///< header first
};

/// The loop nest, and an order of the nodes that respects it. If control flow is reducible, these
/// are the natural loops; loops with a common header are merged. Otherwise a loop is a strongly
/// connected component, its header is the first node of a depth-first walk, and its inner loops are
/// the components that remain without the header. Near-linear.
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

  /// All nodes in a reverse post-order: every edge leads forward, except back edges to a loop's
  /// header. The nodes of each loop are contiguous and precede everything that follows the loop.
  /// Among several valid orders, lower numbers come first. Unreachable nodes come last, by number.
  [[nodiscard]] std::span<const std::uint32_t> order() const noexcept { return order_; }
  /// The position of a node in `order()`.
  [[nodiscard]] std::uint32_t position(std::uint32_t node) const noexcept {
    return position_[node];
  }
  [[nodiscard]] std::uint32_t reachable_count() const noexcept { return reachable_; }

 private:
  std::vector<Loop> loops_;
  std::vector<std::uint32_t> innermost_, order_, position_;
  std::uint32_t reachable_ = 0;
};

/// The reversed graph for post-dominators. For each infinite loop an edge is added from `exit` to
/// the loop's last node in `forest.order()`.
[[nodiscard]] Graph reversed_with_exits(const Graph& graph, const LoopForest& forest,
                                        std::uint32_t exit);

/// One line per loop: header, nodes, nesting.
[[nodiscard]] std::string to_text(const LoopForest& forest);
/// One line per node that has an immediate dominator.
[[nodiscard]] std::string to_text(const DominatorTree& tree, std::uint32_t nodes);

}  // namespace ptxgen::inline v0::analysis
