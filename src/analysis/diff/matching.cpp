// src/analysis/diff/matching.cpp - which statements of two functions are the same
#include "analysis/diff/matching.hpp"

#include <algorithm>
#include <bit>
#include <map>

namespace ptxgen::inline v0::analysis {

namespace {

std::size_t classes(std::vector<std::uint64_t> colours) {
  std::sort(colours.begin(), colours.end());
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

// Of pairs that are found from other pairs. Without an end a chain would be followed step by step.
constexpr unsigned kMaxRounds = 64;

// Sequences whose product is above this are paired from the front.
constexpr std::uint64_t kMaxCommonCells = 1u << 22;

}  // namespace

Matching::Matching(CodeGraph& a, CodeGraph& b)
    : a_(a),
      b_(b),
      offset_(static_cast<std::uint32_t>(a.nodes().size())),
      partner_(a.nodes().size(), ptx::kNone),
      back_(b.nodes().size(), ptx::kNone) {
  std::vector<std::vector<Neighbour>> inputs, users;
  collect(a, 0, inputs, users);
  collect(b, offset_, inputs, users);
  Levels from = refine(inputs), to = refine(users);
  values_ = from.back();
  Colours both = combined(from.back(), to.back());
  Colours in_a(both.begin(), both.begin() + offset_), in_b(both.begin() + offset_, both.end());
  std::sort(in_a.begin(), in_a.end());
  std::sort(in_b.begin(), in_b.end());
  equal_ = in_a == in_b;
  pair_equal(both, Groups::Any);
  // A pair has one colour of its own, so what is around it differs from what is around others.
  for (unsigned round = 0; round < kMaxRounds && !equal_; ++round) {
    from = refine(inputs), to = refine(users);
    if (!pair_levels(from, to, Groups::Single)) break;
  }
  pair_levels(from, to, Groups::AsMany);
  pair_in_order(shapes_);
}

Matching::Colours Matching::combined(const Colours& a, const Colours& b) {
  Colours both(a.size());
  for (std::size_t i = 0; i < both.size(); ++i) both[i] = mix(a[i], b[i]);
  return both;
}

// Largest neighbourhoods first; with Single no smaller ones once there are new pairs.
bool Matching::pair_levels(const Levels& inputs, const Levels& users, Groups groups) {
  bool paired = false;
  for (std::size_t level = std::max(inputs.size(), users.size()); level-- != 0;) {
    const Colours& from = inputs[std::min(level, inputs.size() - 1)];
    const Colours& to = users[std::min(level, users.size() - 1)];
    paired |= pair_equal(combined(from, to), groups);
    paired |= pair_equal(from, groups);
    paired |= pair_equal(to, groups);
    if (paired && groups == Groups::Single) return true;
  }
  return paired;
}

void Matching::collect(CodeGraph& graph, std::uint32_t offset,
                       std::vector<std::vector<Neighbour>>& inputs,
                       std::vector<std::vector<Neighbour>>& users) {
  const std::size_t size = offset + graph.nodes().size();
  inputs.resize(size), users.resize(size);
  for (std::uint32_t i = 0; i < graph.nodes().size(); ++i) {
    const CodeNode& node = graph.nodes()[i];
    shapes_.push_back(node.shape);
    for (const CodeEdge& edge : node.inputs) {
      inputs[offset + i].push_back({offset + edge.node, edge.role});
      users[offset + edge.node].push_back({offset + i, edge.role});
    }
  }
}

Matching::Levels Matching::refine(const std::vector<std::vector<Neighbour>>& neighbours) const {
  Colours colours = shapes_;
  std::vector<bool> fixed(colours.size());
  for (std::uint32_t i = 0; i < partner_.size(); ++i) {
    if (partner_[i] == ptx::kNone) continue;
    colours[i] = colours[offset_ + partner_[i]] = mix(colours[i], i);
    fixed[i] = fixed[offset_ + partner_[i]] = true;
  }
  Levels kept{colours};
  Colours next = colours;
  std::size_t before = classes(colours);
  for (std::size_t step = 1;; ++step) {
    for (std::size_t i = 0; i < colours.size(); ++i) {
      if (fixed[i]) continue;
      std::uint64_t sum = 0;  // neighbours have no order but by their roles
      for (const Neighbour& one : neighbours[i]) sum += mix(colours[one.node], one.role);
      next[i] = mix(colours[i], sum);
    }
    colours.swap(next);
    const std::size_t now = classes(colours);
    if (std::has_single_bit(step) || now == before) kept.push_back(colours);
    if (now == before) return kept;
    before = now;
  }
}

void Matching::pair(std::uint32_t a, std::uint32_t b) {
  partner_[a] = b;
  back_[b] = a;
}

bool Matching::pair_equal(std::span<const std::uint64_t> colours, Groups wanted) {
  bool paired = false;
  struct Group {
    std::vector<std::uint32_t> a, b;
  };
  std::map<std::uint64_t, Group> groups;
  for (std::uint32_t i = 0; i < partner_.size(); ++i) {
    if (a_.nodes()[i].kind == CodeNode::Kind::Statement && partner_[i] == ptx::kNone) {
      groups[colours[i]].a.push_back(i);
    }
  }
  for (std::uint32_t i = 0; i < back_.size(); ++i) {
    if (b_.nodes()[i].kind != CodeNode::Kind::Statement || back_[i] != ptx::kNone) continue;
    if (const auto found = groups.find(colours[offset_ + i]); found != groups.end()) {
      found->second.b.push_back(i);
    }
  }
  for (const auto& [colour, group] : groups) {
    if (wanted != Groups::Any && group.a.size() != group.b.size()) continue;
    if (wanted == Groups::Single && group.a.size() != 1) continue;
    const std::size_t pairs = std::min(group.a.size(), group.b.size());
    for (std::size_t i = 0; i < pairs; ++i) pair(group.a[i], group.b[i]);
    paired |= pairs != 0;
  }
  return paired;
}

void Matching::pair_in_order(std::span<const std::uint64_t> colours) {
  const auto left = [](const CodeGraph& graph, const std::vector<std::uint32_t>& partners) {
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t i = 0; i < partners.size(); ++i) {
      if (graph.nodes()[i].kind == CodeNode::Kind::Statement && partners[i] == ptx::kNone) {
        nodes.push_back(i);
      }
    }
    return nodes;
  };
  const std::vector<std::uint32_t> in_a = left(a_, partner_), in_b = left(b_, back_);
  if (std::uint64_t{in_a.size()} * in_b.size() > kMaxCommonCells) {
    pair_equal(colours, Groups::Any);
    return;
  }
  const auto pairs = common_subsequence(static_cast<std::uint32_t>(in_a.size()),
                                        static_cast<std::uint32_t>(in_b.size()),
                                        [&](std::uint32_t i, std::uint32_t j) {
                                          return colours[in_a[i]] == colours[offset_ + in_b[j]];
                                        });
  for (const auto& [i, j] : pairs) pair(in_a[i], in_b[j]);
}

}  // namespace ptxgen::inline v0::analysis
