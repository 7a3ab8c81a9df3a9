// src/analysis/loops.cpp - loop nest and order of nodes
#include <algorithm>
#include <numeric>

#include "ptxgen/analysis/graph.hpp"
#include "support/scratch.hpp"

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
        // A finished node is below the lowest unfinished one, which is above `node`.
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
// nodes + l, and after the loops comes the whole graph.
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

// Havlak's nesting in Ramalingam's form. Headers are visited from the innermost outwards. An edge
// takes part from the moment both its ends are below the current header, so each is visited once.
// Inner loops come first in the result.
std::vector<Loop> nested_loops(const Walk& walk, std::vector<std::uint32_t>& innermost,
                               Scratch& scratch) {
  const auto nodes = static_cast<std::uint32_t>(innermost.size());
  std::vector<Loop> loops;
  Lists closing(nodes, walk.closing.size(), scratch), meeting(nodes, walk.edges.size(), scratch),
      before(nodes, walk.edges.size(), scratch);
  for (const Edge& edge : walk.closing) closing.add(edge.to, edge.from);
  for (std::uint32_t i = 0; i < walk.edges.size(); ++i) meeting.add(walk.meeting[i], i);
  Sets collapsed(nodes, scratch);
  ScratchVector<std::uint32_t> loop_of(nodes, kNoNode, &scratch);  // by header
  ScratchVector<std::uint32_t> seen_by(nodes, kNoNode, &scratch), open(&scratch);
  for (std::size_t i = walk.met.size(); i-- > 0;) {
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
    const auto loop = static_cast<std::uint32_t>(loops.size());
    loops.push_back({header, kNoNode, 1, false, 0, 0});
    loop_of[header] = loop;
    innermost[header] = loop;
    for (std::size_t k = 0; k < open.size(); ++k) {
      const std::uint32_t member = open[k];
      before.take(member, reach);
      collapsed.hang(member, header);
      if (loop_of[member] != kNoNode)
        loops[loop_of[member]].parent = loop;
      else
        innermost[member] = loop;
    }
  }
  return loops;
}

void put_outer_loops_first(std::vector<Loop>& loops, std::vector<std::uint32_t>& innermost) {
  const auto count = static_cast<std::uint32_t>(loops.size());
  std::reverse(loops.begin(), loops.end());
  for (Loop& loop : loops) {
    if (loop.parent != kNoNode) loop.parent = count - 1 - loop.parent;
    loop.depth = loop.parent == kNoNode ? 1 : loops[loop.parent].depth + 1;
  }
  for (std::uint32_t& loop : innermost) {
    if (loop != kNoNode) loop = count - 1 - loop;
  }
}

// The edges between items of one parent, without the edges to its header: a graph without cycles
// for each loop, and one for the nodes outside of loops.
Graph edges_between_items(const Walk& walk, const Items& items, std::uint32_t nodes,
                          const std::vector<Loop>& loops, Scratch& scratch) {
  ScratchVector<Edge> between(&scratch);
  between.reserve(walk.edges.size());
  const auto number_of = [&](std::uint32_t item) {
    return item < nodes ? item : loops[item - nodes].header;
  };
  const auto add_edge = [&](Edge edge) {
    const Edge beside = items.beside(edge);
    if (beside.from == beside.to) return;
    const std::uint32_t around = items.parent(beside.from);
    if (around != items.root() && loops[around - nodes].header == edge.to) return;
    between.push_back(beside);
  };
  for (const Edge& edge : walk.edges) add_edge(edge);
  for (const Edge& edge : walk.closing) add_edge(edge);
  // Visiting higher numbers first puts lower ones first in the reverse post-order.
  std::sort(between.begin(), between.end(), [&](const Edge& a, const Edge& b) {
    if (a.from != b.from) return a.from < b.from;
    return number_of(a.to) > number_of(b.to);
  });
  return Graph(items.root() + 1, between);
}

// The items of each loop, and those outside of loops, as linked lists in reverse post-order.
struct ItemLists {
  ItemLists(const Graph& between, const Items& items, std::uint32_t nodes,
            const std::vector<Loop>& loops, std::uint32_t root, Scratch& scratch)
      : next(items.root() + 1, kNoNode, &scratch), first(items.root() + 1, kNoNode, &scratch) {
    ScratchVector<bool> met(items.root() + 1, false, &scratch);
    ScratchVector<Step> path(&scratch);
    const auto order_region = [&](std::uint32_t region, std::uint32_t start) {
      met[start] = true;
      path.push_back({start, 0});
      while (!path.empty()) {
        Step& step = path.back();
        const auto successors = between.successors(step.node);
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
    for (std::uint32_t l = 0; l < loops.size(); ++l) order_region(nodes + l, loops[l].header);
    if (root < nodes) {
      std::uint32_t start = root;
      while (items.parent(start) != items.root()) start = items.parent(start);
      order_region(items.root(), start);
    }
  }

  ScratchVector<std::uint32_t> next;   // by item
  ScratchVector<std::uint32_t> first;  // by loop
};

// Appends the reachable nodes to `order` and sets the ranges of the loops in it.
void flatten(const ItemLists& lists, std::uint32_t root, std::uint32_t nodes,
             std::vector<Loop>& loops, std::vector<std::uint32_t>& order, Scratch& scratch) {
  order.reserve(nodes);
  ScratchVector<std::uint32_t> around(&scratch);  // the loops that are open
  for (std::uint32_t item = lists.first[root]; item != kNoNode || !around.empty();) {
    if (item == kNoNode) {
      const std::uint32_t done = around.back();
      around.pop_back();
      loops[done - nodes].end = static_cast<std::uint32_t>(order.size());
      item = lists.next[done];
    } else if (item < nodes) {
      order.push_back(item);
      item = lists.next[item];
    } else {
      loops[item - nodes].begin = static_cast<std::uint32_t>(order.size());
      around.push_back(item);
      item = lists.first[item];
    }
  }
}

// A loop is irreducible if an edge enters it elsewhere than at the header. From the edge's end
// outwards, the loops already marked are skipped together.
void mark_irreducible(const Walk& walk, const std::vector<std::uint32_t>& innermost,
                      const std::vector<std::uint32_t>& position, std::vector<Loop>& loops,
                      Scratch& scratch) {
  Sets marked(static_cast<std::uint32_t>(loops.size()) + 1, scratch);
  const auto unmarked = [&](std::uint32_t loop) {
    while (loop != kNoNode) {
      const std::uint32_t top = marked.find(loop);
      if (top == loop) return loop;
      loop = top;
    }
    return loop;
  };
  const auto contains = [&](std::uint32_t loop, std::uint32_t node) {
    return position[node] >= loops[loop].begin && position[node] < loops[loop].end;
  };
  for (const Edge& edge : walk.edges) {
    std::uint32_t loop = innermost[edge.to];
    if (loop != kNoNode && loops[loop].header == edge.to) loop = loops[loop].parent;
    if (loop == kNoNode || contains(loop, edge.from)) continue;
    for (loop = unmarked(loop); loop != kNoNode && !contains(loop, edge.from);
         loop = unmarked(loop)) {
      loops[loop].irreducible = true;
      const std::uint32_t parent = loops[loop].parent;
      if (parent == kNoNode) break;
      marked.hang(loop, parent);
    }
  }
}

}  // namespace

LoopForest::LoopForest(const Graph& graph, std::uint32_t root)
    : innermost_(graph.size(), kNoNode), position_(graph.size(), 0) {
  const std::uint32_t nodes = graph.size();
  Scratch scratch;
  const Walk walk(graph, root, scratch);
  reachable_ = static_cast<std::uint32_t>(walk.met.size());
  loops_ = nested_loops(walk, innermost_, scratch);
  put_outer_loops_first(loops_, innermost_);

  const Items items(nodes, loops_, innermost_, scratch);
  const Graph between = edges_between_items(walk, items, nodes, loops_, scratch);
  const ItemLists lists(between, items, nodes, loops_, root, scratch);
  flatten(lists, items.root(), nodes, loops_, order_, scratch);
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (walk.number[node] == kNoNode) order_.push_back(node);
  }
  for (std::uint32_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
  mark_irreducible(walk, innermost_, position_, loops_, scratch);
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
