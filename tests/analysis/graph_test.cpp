// tests/analysis/graph_test.cpp - dominators, loops and order against slow definitions
#include <algorithm>
#include <catch2/catch.hpp>
#include <initializer_list>

#include "ptx/dice.hpp"
#include "ptxgen/analysis/graph.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::analysis;
using ptxgen::test::Dice;

namespace {

Graph graph(std::uint32_t nodes, std::initializer_list<Edge> edges) {
  return Graph(nodes, std::vector<Edge>(edges));
}
std::vector<std::uint32_t> order_of(const Graph& g) {
  const LoopForest forest(g, 0);
  return {forest.order().begin(), forest.order().end()};
}
using Order = std::vector<std::uint32_t>;

// What can be reached from `from` without going through `without`.
std::vector<bool> reach(const Graph& g, std::uint32_t from, std::uint32_t without = kNoNode) {
  std::vector<bool> met(g.size(), false);
  if (from == without) return met;
  std::vector<std::uint32_t> open{from};
  met[from] = true;
  while (!open.empty()) {
    const std::uint32_t node = open.back();
    open.pop_back();
    for (const std::uint32_t next : g.successors(node)) {
      if (met[next] || next == without) continue;
      met[next] = true;
      open.push_back(next);
    }
  }
  return met;
}

Graph random_graph(Dice& dice, std::uint32_t nodes) {
  std::vector<Edge> edges;
  // Mostly what code looks like (short jumps, a few back), now and then anything.
  const bool wild = dice.chance(30);
  for (std::uint32_t i = 0; i < nodes; ++i) {
    if (!dice.chance(15) && i + 1 < nodes) edges.push_back({i, i + 1});
    for (unsigned more = dice.below(3); more > 0; --more) {
      const std::uint32_t to =
          wild ? dice.below(nodes)
               : std::min(nodes - 1, (i + dice.below(6)) - std::min(i, dice.below(4)));
      edges.push_back({i, to});
    }
  }
  return Graph(nodes, edges);
}

// The loops of the definition in graph.hpp: strongly connected parts, header the node met first.
void check_forest(const Graph& g, const LoopForest& forest) {
  const auto order = forest.order();
  REQUIRE(order.size() == g.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) REQUIRE(forest.position(order[i]) == i);
  const std::vector<bool> met = reach(g, 0);
  const auto count = static_cast<std::uint32_t>(std::count(met.begin(), met.end(), true));
  REQUIRE(forest.reachable_count() == count);
  for (std::uint32_t i = 0; i < order.size(); ++i) REQUIRE(met[order[i]] == (i < count));
  REQUIRE(std::is_sorted(order.begin() + count, order.end()));
  for (std::uint32_t l = 0; l < forest.loops().size(); ++l) {
    const Loop& loop = forest.loops()[l];
    REQUIRE(order[loop.begin] == loop.header);
    REQUIRE(forest.innermost(loop.header) == l);
    if (loop.parent != kNoNode) {
      REQUIRE(loop.parent < l);
      REQUIRE(forest.loops()[loop.parent].begin < loop.begin);
      REQUIRE(loop.end <= forest.loops()[loop.parent].end);
      REQUIRE(loop.depth == forest.loops()[loop.parent].depth + 1);
    }
    bool other_entry = false;
    for (std::uint32_t node = 0; node < g.size(); ++node) {
      if (!met[node] || forest.contains(l, node)) continue;
      for (const std::uint32_t to : g.successors(node))
        other_entry = other_entry || (to != loop.header && forest.contains(l, to));
    }
    REQUIRE(loop.irreducible == other_entry);
  }
  // Every edge leads forward, or to the header of a loop from within it.
  for (std::uint32_t node = 0; node < g.size(); ++node) {
    if (!met[node]) continue;
    for (const std::uint32_t to : g.successors(node)) {
      if (forest.position(to) > forest.position(node)) continue;
      const std::uint32_t l = forest.innermost(to);
      REQUIRE(l != kNoNode);
      REQUIRE(forest.loops()[l].header == to);
      REQUIRE(forest.contains(l, node));
    }
  }
  // Nodes of a loop, and no others around them, reach each other inside it.
  for (std::uint32_t l = 0; l < forest.loops().size(); ++l) {
    std::vector<Edge> inside;
    for (const std::uint32_t node : forest.nodes(l)) {
      for (const std::uint32_t to : g.successors(node))
        if (forest.contains(l, to)) inside.push_back({node, to});
    }
    const Graph part(g.size(), inside);
    const auto down = reach(part, forest.loops()[l].header);
    const auto up = reach(part.reversed(), forest.loops()[l].header);
    for (const std::uint32_t node : forest.nodes(l)) REQUIRE((down[node] && up[node]));
  }
}

}  // namespace

TEST_CASE("a graph keeps the order of edges and drops parallel ones") {
  const Graph g = graph(3, {{0, 2}, {0, 1}, {0, 2}, {1, 2}, {2, 2}});
  CHECK(Order(g.successors(0).begin(), g.successors(0).end()) == Order{2, 1});
  CHECK(Order(g.predecessors(2).begin(), g.predecessors(2).end()) == Order{0, 1, 2});
  const Graph backward = g.reversed();
  CHECK(Order(backward.successors(2).begin(), backward.successors(2).end()) == Order{0, 1, 2});
  CHECK(Graph().size() == 0);
}

TEST_CASE("both sides of a diamond come before where they meet") {
  const Graph g = graph(4, {{0, 2}, {0, 1}, {1, 3}, {2, 3}});
  CHECK(order_of(g) == Order{0, 1, 2, 3});
  const DominatorTree tree(g, 0);
  CHECK(to_text(tree, 4) == "1 below 0\n2 below 0\n3 below 0\n");
  CHECK(tree.dominates(0, 3));
  CHECK(tree.dominates(3, 3));
  CHECK_FALSE(tree.strictly_dominates(3, 3));
  CHECK_FALSE(tree.dominates(1, 3));
  CHECK(tree.immediate(0) == kNoNode);
}

TEST_CASE("a loop comes before what follows it, however its test is written") {
  // The exit is the first successor, and is before the body.
  const Graph g = graph(5, {{0, 1}, {1, 2}, {1, 3}, {3, 4}, {4, 1}});
  CHECK(order_of(g) == Order{0, 1, 3, 4, 2});
  CHECK(to_text(LoopForest(g, 0)) == "loop at 1: 1 3 4\n");
}

TEST_CASE("a loop with break and continue is contiguous") {
  // 1 header, 2 continue to 1, 3 break through 5 (which is no part of the loop), 4 latch.
  const Graph g =
      graph(8, {{0, 1}, {1, 2}, {1, 6}, {2, 1}, {2, 3}, {3, 5}, {3, 4}, {4, 1}, {5, 6}, {6, 7}});
  const LoopForest forest(g, 0);
  CHECK(to_text(forest) == "loop at 1: 1 2 3 4\n");
  CHECK(order_of(g) == Order{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK_FALSE(forest.contains(0, 5));
}

TEST_CASE("loops inside loops") {
  // for { for { if break outer; } } with exits of both.
  const Graph g =
      graph(7, {{0, 1}, {1, 6}, {1, 2}, {2, 5}, {2, 3}, {3, 6}, {3, 4}, {4, 2}, {5, 1}});
  const LoopForest forest(g, 0);
  CHECK(to_text(forest) == "loop at 1: 1 2 3 4 5\n  loop at 2: 2 3 4\n");
  CHECK(order_of(g) == Order{0, 1, 2, 3, 4, 5, 6});
  CHECK(forest.loops()[1].parent == 0);
  CHECK(forest.loops()[1].depth == 2);
  CHECK(forest.innermost(5) == 0);
  CHECK(forest.innermost(3) == 1);
}

TEST_CASE("two back edges to one header are one loop, a node alone may be a loop") {
  const Graph g = graph(4, {{0, 1}, {1, 1}, {1, 2}, {2, 0}, {0, 3}});
  CHECK(to_text(LoopForest(g, 0)) == "loop at 0: 0 1 2\n  loop at 1: 1\n");
  const Graph two = graph(4, {{0, 1}, {0, 2}, {1, 0}, {2, 0}, {2, 3}});
  CHECK(to_text(LoopForest(two, 0)) == "loop at 0: 0 1 2\n");
}

TEST_CASE("a loop with two entries is marked and still ordered") {
  const Graph g = graph(4, {{0, 1}, {0, 2}, {1, 2}, {2, 1}, {2, 3}});
  const LoopForest forest(g, 0);
  REQUIRE(forest.loops().size() == 1);
  CHECK(forest.loops()[0].irreducible);
  CHECK(to_text(forest) == "loop at 1: 1 2 (irreducible)\n");
  check_forest(g, forest);
}

TEST_CASE("nodes that nothing leads to come last and do not disturb") {
  const Graph g = graph(5, {{0, 4}, {1, 2}, {2, 1}, {3, 4}});
  CHECK(order_of(g) == Order{0, 4, 1, 2, 3});
  const DominatorTree tree(g, 0);
  CHECK_FALSE(tree.reachable(3));
  CHECK_FALSE(tree.dominates(0, 3));
  CHECK_FALSE(tree.dominates(3, 4));
  CHECK(tree.dominates(3, 3));
  CHECK(tree.immediate(4) == 0);
}

TEST_CASE("endless loops leave after their last node") {
  // 1 <-> 2 for ever, 0 -> 3 -> exit 4.
  const Graph g = graph(5, {{0, 1}, {0, 3}, {1, 2}, {2, 1}, {3, 4}});
  const Graph backward = reversed_with_exits(g, LoopForest(g, 0), 4);
  const DominatorTree tree(backward, 4);
  CHECK(tree.dominates(2, 1));
  CHECK(tree.immediate(0) == 4);
  CHECK(tree.immediate(2) == 4);
  for (std::uint32_t i = 0; i < 5; ++i) CHECK(tree.reachable(i));
}

TEST_CASE("dominators of random graphs are those of the definition") {
  Dice dice(test::seed());
  std::size_t checked = 0;
  for (int i = 0; i < test::count(400, 20000); ++i) {
    const std::uint32_t nodes = 1 + dice.below(40);
    const Graph g = random_graph(dice, nodes);
    for (const bool backward : {false, true}) {
      const std::uint32_t root = backward ? nodes - 1 : 0;
      const Graph way = backward ? reversed_with_exits(g, LoopForest(g, 0), root) : g;
      const DominatorTree tree(way, root);
      const std::vector<bool> met = reach(way, root);
      for (std::uint32_t a = 0; a < nodes; ++a) {
        REQUIRE(tree.reachable(a) == met[a]);
        if (backward) REQUIRE(met[a]);
        const std::vector<bool> without = reach(way, root, a);
        std::uint32_t immediate = kNoNode;
        for (std::uint32_t b = 0; b < nodes; ++b) {
          const bool expected = a == b || (met[a] && met[b] && !without[b]);
          REQUIRE(tree.dominates(a, b) == expected);
          checked += expected && a != b;
          if (b != a && tree.dominates(b, a) &&
              (immediate == kNoNode || tree.dominates(immediate, b)))
            immediate = b;
        }
        REQUIRE(tree.immediate(a) == immediate);
      }
    }
  }
  CHECK(checked > 1000);
}

TEST_CASE("loops and order of random graphs are those of the definition") {
  Dice dice(test::seed() + 1);
  std::size_t loops = 0, irreducible = 0, nested = 0;
  for (int i = 0; i < test::count(1000, 50000); ++i) {
    const Graph g = random_graph(dice, 1 + dice.below(40));
    const LoopForest forest(g, 0);
    check_forest(g, forest);
    for (const Loop& loop : forest.loops()) {
      ++loops;
      irreducible += loop.irreducible;
      nested += loop.depth > 2;
    }
  }
  CHECK(loops > 500);
  CHECK(irreducible > 50);
  CHECK(nested > 50);
}

TEST_CASE("large graphs take neither stack nor long") {
  constexpr std::uint32_t kNodes = 60000;
  std::vector<Edge> deep, ladder, wild;
  Dice dice(test::seed() + 2);
  for (std::uint32_t i = 0; i + 1 < kNodes; ++i) {
    deep.push_back({i, i + 1});  // loops in loops: i .. kNodes-1-i
    ladder.push_back({i, i + 1});
    if (i >= kNodes / 2) deep.push_back({i, kNodes - 1 - i});
    if (i + 2 < kNodes) ladder.push_back({i, i + 2});
    wild.push_back({i, dice.below(kNodes)});
    wild.push_back({i, i + 1});
  }
  for (const auto* edges : {&deep, &ladder, &wild}) {
    const Graph g(kNodes, *edges);
    const LoopForest forest(g, 0);
    const DominatorTree tree(g, 0);
    CHECK(forest.reachable_count() == kNodes);
    CHECK(tree.dominates(0, kNodes - 1));
    if (edges == &deep) {
      CHECK(forest.loops().size() == kNodes / 2 - 1);
      CHECK(forest.loops().back().depth == kNodes / 2 - 1);
    }
  }
}
