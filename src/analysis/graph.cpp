// src/analysis/graph.cpp - graphs and their dominators
#include "ptxgen/analysis/graph.hpp"

#include <algorithm>

#include "support/scratch.hpp"

namespace ptxgen::inline v0::analysis {

namespace {

struct Step {
  std::uint32_t node;
  std::size_t next;  // which successor comes next
};

}  // namespace

Graph::Graph(std::uint32_t nodes, std::span<const Edge> edges)
    : nodes_(nodes), first_successor_(nodes + 1, 0), first_predecessor_(nodes + 1, 0) {
  Scratch scratch;
  // By source, stable; then parallel edges are found by the last source that named a target.
  for (const Edge& edge : edges) ++first_successor_[edge.from + 1];
  for (std::uint32_t i = 0; i < nodes; ++i) first_successor_[i + 1] += first_successor_[i];
  ScratchVector<std::uint32_t> place(first_successor_.begin(), first_successor_.end() - 1,
                                     &scratch);
  ScratchVector<std::uint32_t> targets(edges.size(), &scratch);
  for (const Edge& edge : edges) targets[place[edge.from]++] = edge.to;

  ScratchVector<std::uint32_t> seen_from(nodes, kNoNode, &scratch);
  successors_.reserve(edges.size());
  for (std::uint32_t from = 0, i = 0; from < nodes; ++from) {
    const std::uint32_t last = first_successor_[from + 1];
    first_successor_[from] = static_cast<std::uint32_t>(successors_.size());
    for (; i < last; ++i) {
      if (seen_from[targets[i]] == from) continue;
      seen_from[targets[i]] = from;
      successors_.push_back(targets[i]);
      ++first_predecessor_[targets[i] + 1];
    }
  }
  first_successor_[nodes] = static_cast<std::uint32_t>(successors_.size());

  for (std::uint32_t i = 0; i < nodes; ++i) first_predecessor_[i + 1] += first_predecessor_[i];
  place.assign(first_predecessor_.begin(), first_predecessor_.end() - 1);
  predecessors_.resize(successors_.size());
  for (std::uint32_t from = 0; from < nodes; ++from) {
    for (const std::uint32_t to : successors(from)) predecessors_[place[to]++] = from;
  }
}

Graph Graph::reversed() const {
  Graph result = *this;
  result.first_successor_.swap(result.first_predecessor_);
  result.successors_.swap(result.predecessors_);
  return result;
}

// long because the three steps of semi-NCA share their arrays
DominatorTree::DominatorTree(const Graph& graph, std::uint32_t root) : root_(root) {
  const std::uint32_t nodes = graph.size();
  immediate_.assign(nodes, kNoNode);
  begin_.assign(nodes, 0);
  end_.assign(nodes, 0);
  if (root >= nodes) return;

  // Numbers in the order of a depth-first walk; `parent` and all below are such numbers.
  Scratch scratch;
  ScratchVector<std::uint32_t> number(nodes, kNoNode, &scratch), node_of(&scratch),
      parent(&scratch);
  node_of.reserve(nodes);
  parent.reserve(nodes);
  {
    ScratchVector<Step> path(&scratch);
    path.reserve(nodes);
    path.push_back({root, 0});
    number[root] = 0;
    node_of.push_back(root);
    parent.push_back(0);
    while (!path.empty()) {
      Step& step = path.back();
      const auto successors = graph.successors(step.node);
      if (step.next == successors.size()) {
        path.pop_back();
        continue;
      }
      const std::uint32_t next = successors[step.next++];
      if (number[next] != kNoNode) continue;
      parent.push_back(number[step.node]);
      number[next] = static_cast<std::uint32_t>(node_of.size());
      node_of.push_back(next);
      path.push_back({next, 0});
    }
  }
  const std::uint32_t reached = static_cast<std::uint32_t>(node_of.size());

  // Semi-dominators, with path compression over those that are done.
  ScratchVector<std::uint32_t> semi(reached, &scratch), label(reached, &scratch),
      ancestor(parent, &scratch), path(&scratch);
  path.reserve(reached);
  for (std::uint32_t i = 0; i < reached; ++i) semi[i] = label[i] = i;
  const auto min_above = [&](std::uint32_t v, std::uint32_t done_from) {
    if (v < done_from) return v;
    path.clear();
    for (std::uint32_t u = v; ancestor[u] >= done_from; u = ancestor[u]) path.push_back(u);
    while (!path.empty()) {
      const std::uint32_t u = path.back();
      path.pop_back();
      const std::uint32_t above = ancestor[u];
      if (semi[label[above]] < semi[label[u]]) label[u] = label[above];
      ancestor[u] = ancestor[above];
    }
    return label[v];
  };
  for (std::uint32_t w = reached; w-- > 1;) {
    std::uint32_t min = parent[w];
    for (const std::uint32_t before : graph.predecessors(node_of[w])) {
      if (number[before] == kNoNode) continue;
      const std::uint32_t candidate = semi[min_above(number[before], w + 1)];
      min = std::min(min, candidate);
    }
    semi[w] = min;
  }
  // The immediate dominator is the nearest ancestor that is not below the semi-dominator.
  ScratchVector<std::uint32_t>& above = parent;
  for (std::uint32_t w = 1; w < reached; ++w) {
    std::uint32_t candidate = above[w];
    while (candidate > semi[w]) candidate = above[candidate];
    above[w] = candidate;
    immediate_[node_of[w]] = node_of[candidate];
  }

  // Intervals: sizes of subtrees from the bottom, places from the top.
  ScratchVector<std::uint32_t> size(reached, 1, &scratch), used(reached, 0, &scratch);
  for (std::uint32_t w = reached; w-- > 1;) size[above[w]] += size[w];
  for (std::uint32_t w = 0; w < reached; ++w) {
    const std::uint32_t node = node_of[w];
    begin_[node] = w == 0 ? 1 : begin_[node_of[above[w]]] + 1 + used[above[w]];
    if (w != 0) used[above[w]] += size[w];
    end_[node] = begin_[node] + size[w];
  }
}

std::string to_text(const DominatorTree& tree, std::uint32_t nodes) {
  std::string text;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    if (tree.immediate(i) == kNoNode) continue;
    text += std::to_string(i) + " below " + std::to_string(tree.immediate(i)) + "\n";
  }
  return text;
}

}  // namespace ptxgen::inline v0::analysis
