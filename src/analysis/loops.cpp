// src/analysis/loops.cpp - nesting of loops, and the order of nodes
#include <algorithm>
#include <numeric>

#include "support/scratch.hpp"
#include "ptxgen/analysis/graph.hpp"

namespace ptxgen::inline v0::analysis {

namespace {

class Sets {
 public:
  Sets(std::uint32_t count, Scratch& scratch) : parent_(count, &scratch) {
    std::iota(parent_.begin(), parent_.end(), 0u);
  }
  std::uint32_t find(std::uint32_t x) noexcept {
    while (parent_[x] != x) {
      parent_[x] = parent_[parent_[x]];
      x = parent_[x];
    }
    return x;
  }
  void hang(std::uint32_t below, std::uint32_t above) noexcept { parent_[below] = above; }

 private:
  ScratchVector<std::uint32_t> parent_;
};

struct Step {
  std::uint32_t node;
  std::size_t next;
};

// A depth-first walk: the order in which nodes are met, and for each edge that does not close a
// cycle the lowest node of the tree above both its ends.
struct Walk {
  ScratchVector<std::uint32_t> met;      // nodes in the order in which they were met
  ScratchVector<std::uint32_t> number;   // the inverse, kNoNode where nothing leads
  ScratchVector<Edge> closing;           // edges to a node that the walk was still inside
  ScratchVector<std::uint32_t> meeting;  // of edges[i], where its two ends meet in the tree
  ScratchVector<Edge> edges;             // all others

  Walk(const Graph& graph, std::uint32_t root, Scratch& scratch)
      : met(&scratch),
        number(graph.size(), kNoNode, &scratch),
        closing(&scratch),
        meeting(&scratch),
        edges(&scratch) {
    Sets finished(graph.size(), scratch);
    ScratchVector<bool> inside(graph.size(), false, &scratch);
    ScratchVector<Step> path(&scratch);
    met.reserve(graph.size());
    path.reserve(graph.size());
    const auto enter = [&](std::uint32_t node) {
      number[node] = static_cast<std::uint32_t>(met.size());
      met.push_back(node);
      inside[node] = true;
      path.push_back({node, 0});
    };
    if (root < graph.size()) enter(root);
    while (!path.empty()) {
      Step& step = path.back();
      const std::uint32_t node = step.node;
      const auto successors = graph.successors(node);
      if (step.next == successors.size()) {
        inside[node] = false;
        path.pop_back();
        if (!path.empty()) finished.hang(node, path.back().node);
        continue;
      }
      const std::uint32_t next = successors[step.next++];
      if (number[next] == kNoNode) {
        edges.push_back({node, next});
        meeting.push_back(node);
        enter(next);
      } else if (inside[next]) {
        closing.push_back({node, next});
      } else {
        edges.push_back({node, next});
        // What is finished hangs below the lowest node that is not, and that is above `node`.
        meeting.push_back(finished.find(next));
      }
    }
  }
};

// Lists of numbers for each of several owners, built once.
class Lists {
 public:
  Lists(std::uint32_t owners, std::size_t entries, Scratch& scratch)
      : head_(owners, kNoNode, &scratch), next_(&scratch), value_(&scratch) {
    next_.reserve(entries);
    value_.reserve(entries);
  }
  void add(std::uint32_t owner, std::uint32_t value) {
    next_.push_back(head_[owner]);
    value_.push_back(value);
    head_[owner] = static_cast<std::uint32_t>(next_.size() - 1);
  }
  template <class Fn>
  void take(std::uint32_t owner, Fn&& fn) {
    for (std::uint32_t i = head_[owner]; i != kNoNode; i = next_[i]) fn(value_[i]);
    head_[owner] = kNoNode;
  }

 private:
  ScratchVector<std::uint32_t> head_, next_, value_;
};

// Blocks and loops as one tree, with jumps that make ancestors quick to find. Loop l is the item
// nodes + l, and behind the loops comes the whole graph.
class Items {
 public:
  Items(std::uint32_t nodes, const std::vector<Loop>& loops,
        const std::vector<std::uint32_t>& innermost, Scratch& scratch)
      : nodes_(nodes),
        root_(nodes + static_cast<std::uint32_t>(loops.size())),
        parent_(root_ + 1, root_, &scratch),
        jump_(root_ + 1, root_, &scratch),
        depth_(root_ + 1, 0, &scratch) {
    for (std::uint32_t l = 0; l < loops.size(); ++l)  // outer loops first
      hang(nodes_ + l, loops[l].parent == kNoNode ? root_ : nodes_ + loops[l].parent);
    for (std::uint32_t n = 0; n < nodes; ++n)
      hang(n, innermost[n] == kNoNode ? root_ : nodes_ + innermost[n]);
  }
  [[nodiscard]] std::uint32_t root() const noexcept { return root_; }
  [[nodiscard]] std::uint32_t parent(std::uint32_t item) const noexcept { return parent_[item]; }

  // The two items beside each other, in the innermost loop around both, that hold the two nodes.
  [[nodiscard]] Edge beside(Edge edge) const noexcept {
    std::uint32_t a = climb(edge.from, std::min(depth_[edge.from], depth_[edge.to]));
    std::uint32_t b = climb(edge.to, depth_[a]);
    while (parent_[a] != parent_[b]) {
      const bool far = jump_[a] != jump_[b];
      a = far ? jump_[a] : parent_[a];
      b = far ? jump_[b] : parent_[b];
    }
    return {a, b};
  }

 private:
  void hang(std::uint32_t item, std::uint32_t above) noexcept {
    parent_[item] = above;
    depth_[item] = depth_[above] + 1;
    const std::uint32_t far = jump_[above];
    jump_[item] =
        depth_[above] - depth_[far] == depth_[far] - depth_[jump_[far]] ? jump_[far] : above;
  }
  [[nodiscard]] std::uint32_t climb(std::uint32_t item, std::uint32_t depth) const noexcept {
    while (depth_[item] > depth) item = depth_[jump_[item]] >= depth ? jump_[item] : parent_[item];
    return item;
  }

  std::uint32_t nodes_, root_;
  ScratchVector<std::uint32_t> parent_, jump_, depth_;
};

}  // namespace

LoopForest::LoopForest(const Graph& graph, std::uint32_t root)
    : innermost_(graph.size(), kNoNode), position_(graph.size(), 0) {
  const std::uint32_t nodes = graph.size();
  Scratch scratch;
  const Walk walk(graph, root, scratch);
  reachable_ = static_cast<std::uint32_t>(walk.met.size());

  // Havlak's nesting in Ramalingam's form: headers from the innermost outwards; an edge counts
  // from the moment both its ends lie below the header at hand, so each is looked at once.
  {
    Lists closing(nodes, walk.closing.size(), scratch), meeting(nodes, walk.edges.size(), scratch),
        before(nodes, walk.edges.size(), scratch);
    for (const Edge& edge : walk.closing) closing.add(edge.to, edge.from);
    for (std::uint32_t i = 0; i < walk.edges.size(); ++i) meeting.add(walk.meeting[i], i);
    Sets collapsed(nodes, scratch);
    ScratchVector<std::uint32_t> loop_of(nodes, kNoNode, &scratch);  // headers', inside out
    ScratchVector<std::uint32_t> seen_by(nodes, kNoNode, &scratch), open(&scratch);
    for (std::uint32_t i = reachable_; i-- > 0;) {
      const std::uint32_t header = walk.met[i];
      meeting.take(header, [&](std::uint32_t e) {
        const std::uint32_t to = collapsed.find(walk.edges[e].to);
        if (to != header) before.add(to, walk.edges[e].from);
      });
      bool is_loop = false;
      open.clear();
      seen_by[header] = header;
      const auto reach = [&](std::uint32_t node) {
        const std::uint32_t found = collapsed.find(node);
        if (seen_by[found] == header) return;
        seen_by[found] = header;
        open.push_back(found);
      };
      closing.take(header, [&](std::uint32_t from) {
        is_loop = true;
        reach(from);
      });
      if (!is_loop) continue;
      const std::uint32_t loop = static_cast<std::uint32_t>(loops_.size());
      loops_.push_back({header, kNoNode, 1, false, 0, 0});
      loop_of[header] = loop;
      innermost_[header] = loop;
      for (std::size_t k = 0; k < open.size(); ++k) {
        const std::uint32_t member = open[k];
        before.take(member, reach);
        collapsed.hang(member, header);
        if (loop_of[member] != kNoNode)
          loops_[loop_of[member]].parent = loop;
        else
          innermost_[member] = loop;
      }
    }
    // Outer loops first.
    const std::uint32_t count = static_cast<std::uint32_t>(loops_.size());
    std::reverse(loops_.begin(), loops_.end());
    for (Loop& loop : loops_) {
      if (loop.parent != kNoNode) loop.parent = count - 1 - loop.parent;
      loop.depth = loop.parent == kNoNode ? 1 : loops_[loop.parent].depth + 1;
    }
    for (std::uint32_t& loop : innermost_) {
      if (loop != kNoNode) loop = count - 1 - loop;
    }
  }

  // In each loop, and around all, the nodes and inner loops form a graph without cycles once the
  // edges to the header are left out. All these graphs are walked together.
  const Items items(nodes, loops_, innermost_, scratch);
  ScratchVector<Edge> between(&scratch);
  between.reserve(walk.edges.size());
  const auto number_of = [&](std::uint32_t item) {
    return item < nodes ? item : loops_[item - nodes].header;
  };
  const auto add_edge = [&](Edge edge) {
    const Edge beside = items.beside(edge);
    if (beside.from == beside.to) return;
    const std::uint32_t around = items.parent(beside.from);
    if (around != items.root() && loops_[around - nodes].header == edge.to) return;
    between.push_back(beside);
  };
  for (const Edge& edge : walk.edges) add_edge(edge);
  for (const Edge& edge : walk.closing) add_edge(edge);
  // Walking higher numbers first makes lower ones come first in the result.
  std::sort(between.begin(), between.end(), [&](const Edge& a, const Edge& b) {
    if (a.from != b.from) return a.from < b.from;
    return number_of(a.to) > number_of(b.to);
  });
  const Graph beside(items.root() + 1, between);
  ScratchVector<std::uint32_t> next(items.root() + 1, kNoNode, &scratch);   // the item behind it
  ScratchVector<std::uint32_t> first(items.root() + 1, kNoNode, &scratch);  // of a loop
  {
    ScratchVector<bool> met(items.root() + 1, false, &scratch);
    ScratchVector<Step> path(&scratch);
    const auto order_region = [&](std::uint32_t region, std::uint32_t start) {
      met[start] = true;
      path.push_back({start, 0});
      while (!path.empty()) {
        Step& step = path.back();
        const auto successors = beside.successors(step.node);
        if (step.next == successors.size()) {
          next[step.node] = first[region];
          first[region] = step.node;
          path.pop_back();
          continue;
        }
        const std::uint32_t to = successors[step.next++];
        if (met[to]) continue;
        met[to] = true;
        path.push_back({to, 0});
      }
    };
    for (std::uint32_t l = 0; l < loops_.size(); ++l) order_region(nodes + l, loops_[l].header);
    if (root < nodes) {
      std::uint32_t start = root;
      while (items.parent(start) != items.root()) start = items.parent(start);
      order_region(items.root(), start);
    }
  }
  order_.reserve(nodes);
  // Items to go on with behind the loops that we are in.
  ScratchVector<std::uint32_t> around(&scratch);
  for (std::uint32_t item = first[items.root()]; item != kNoNode || !around.empty();) {
    if (item == kNoNode) {
      const std::uint32_t done = around.back();
      around.pop_back();
      loops_[done - nodes].end = static_cast<std::uint32_t>(order_.size());
      item = next[done];
    } else if (item < nodes) {
      order_.push_back(item);
      item = next[item];
    } else {
      loops_[item - nodes].begin = static_cast<std::uint32_t>(order_.size());
      around.push_back(item);
      item = first[item];
    }
  }
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (walk.number[node] == kNoNode) order_.push_back(node);
  }
  for (std::uint32_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;

  // A loop that an edge enters elsewhere than at the header is irreducible. Going outwards from
  // the edge's end, loops that are marked already are passed over together.
  Sets marked(static_cast<std::uint32_t>(loops_.size()) + 1, scratch);
  const auto outwards = [&](std::uint32_t loop) {
    while (loop != kNoNode) {
      const std::uint32_t top = marked.find(loop);
      if (top == loop) return loop;
      loop = top;
    }
    return loop;
  };
  for (const Edge& edge : walk.edges) {
    std::uint32_t loop = innermost_[edge.to];
    if (loop != kNoNode && loops_[loop].header == edge.to) loop = loops_[loop].parent;
    if (loop == kNoNode || contains(loop, edge.from)) continue;
    for (loop = outwards(loop); loop != kNoNode && !contains(loop, edge.from);
         loop = outwards(loop)) {
      loops_[loop].irreducible = true;
      const std::uint32_t parent = loops_[loop].parent;
      if (parent == kNoNode) break;
      marked.hang(loop, parent);
    }
  }
}

Graph reversed_with_exits(const Graph& graph, const LoopForest& forest, std::uint32_t exit) {
  Scratch scratch;
  ScratchVector<Edge> edges(&scratch);
  ScratchVector<bool> leaves(graph.size(), false, &scratch);
  ScratchVector<std::uint32_t> open(&scratch);
  edges.reserve(graph.size() * std::size_t{2});
  const auto spread = [&](std::uint32_t from) {
    leaves[from] = true;
    open.push_back(from);
    while (!open.empty()) {
      const std::uint32_t node = open.back();
      open.pop_back();
      for (const std::uint32_t before : graph.predecessors(node)) {
        if (leaves[before]) continue;
        leaves[before] = true;
        open.push_back(before);
      }
    }
  };
  for (std::uint32_t node = 0; node < graph.size(); ++node) {
    for (const std::uint32_t to : graph.successors(node)) edges.push_back({to, node});
  }
  spread(exit);
  // From the end of the order: what is found not to leave can reach no other such part.
  const auto order = forest.order();
  for (std::size_t i = order.size(); i-- > 0;) {
    if (leaves[order[i]]) continue;
    edges.push_back({exit, order[i]});
    spread(order[i]);
  }
  return Graph(graph.size(), edges);
}

std::string to_text(const LoopForest& forest) {
  std::string text;
  for (std::uint32_t l = 0; l < forest.loops().size(); ++l) {
    const Loop& loop = forest.loops()[l];
    text += std::string(2 * (loop.depth - 1), ' ') + "loop at " + std::to_string(loop.header) + ":";
    for (const std::uint32_t node : forest.nodes(l)) text += " " + std::to_string(node);
    text += loop.irreducible ? " (irreducible)\n" : "\n";
  }
  return text;
}

}  // namespace ptxgen::inline v0::analysis
