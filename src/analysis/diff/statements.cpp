// src/analysis/diff/statements.cpp - what the statements of two functions do differently
#include "analysis/diff/statements.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/diff/matching.hpp"
#include "ptx/vector_elements.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

namespace {

using Changes = std::vector<Change>;

bool is_barrier(const Instruction& s) noexcept {
  if (s.kind != StatementKind::Instruction) return false;
  return has(info(s.op).flags, Flag::Barrier) || has(info(s.op).flags, Flag::Fence);
}

bool touches_shared(const Instruction& s) noexcept {
  return space_of(s.get(Field::Space)) == Space::Shared;
}

// Of the register that holds the address; 0 if there is none.
unsigned address_bits(const Function& function, const Instruction& s) {
  for (const Operand& operand : function.operands_of(s)) {
    if (operand.kind == OperandKind::Memory && operand.base == OperandKind::Register) {
      return bits(function.type_of(operand.as_register()));
    }
  }
  return 0;
}

unsigned access_bytes(const Instruction& s) noexcept {
  return bytes(s.type()) * vector_elements(s);
}

// Whether they differ in how they round, and in nothing else of the opcode.
bool differ_in_rounding(const Instruction& x, const Instruction& y) {
  constexpr Field kRounding[] = {Field::Rounding, Field::IntegerRounding, Field::FlushToZero,
                                 Field::Saturate, Field::SaturateFinite,  Field::Approximation};
  for (std::size_t i = 0; i < kMaxTypes; ++i) {
    if (x.type(i) != y.type(i)) return false;
  }
  bool differs = false;
  for (const Instruction* const one : {&x, &y}) {
    for (const ModifierSlot& slot : info(one->op).modifier_slots()) {
      if (slot.field == Field::Literal || slot.field == Field::Type) continue;
      if (x.get(slot.field) == y.get(slot.field)) continue;
      if (std::find(std::begin(kRounding), std::end(kRounding), slot.field) ==
          std::end(kRounding)) {
        return false;
      }
      differs = true;
    }
  }
  return differs;
}

/// Compares the code of two functions.
class FunctionDiff {
 public:
  FunctionDiff(CodeGraph& a, CodeGraph& b, Changes& changes)
      : a_(a), b_(b), match_(a, b), changes_(changes) {}

  void run() {
    if (match_.equal()) return;
    pair_blocks();
    pair_changed();
    for (std::uint32_t i = 0; i < a_.nodes().size(); ++i) {
      if (a_.nodes()[i].kind != CodeNode::Kind::Statement) continue;
      const std::uint32_t j = match_.partner(i);
      j == kNone ? only(i, kNone) : compare(i, j);
    }
    for (std::uint32_t j = 0; j < b_.nodes().size(); ++j) {
      if (b_.nodes()[j].kind != CodeNode::Kind::Statement) continue;
      if (match_.partner_in_a(j) == kNone) only(kNone, j);
    }
    compare_branches();
    compare_values();
    compare_order();
  }

 private:
  [[nodiscard]] std::uint32_t block_of(CodeGraph& graph, std::uint32_t node) {
    return graph.cfg().block_of(graph.nodes()[node].id);
  }

  // The block of b that has most partners of its statements.
  void pair_blocks() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> shared;
    for (std::uint32_t i = 0; i < a_.nodes().size(); ++i) {
      const std::uint32_t j = match_.partner(i);
      if (j != kNone) ++shared[{block_of(a_, i), block_of(b_, j)}];
    }
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> ranked;
    for (const auto& [blocks, count] : shared)
      ranked.emplace_back(count, blocks.first, blocks.second);
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const auto& x, const auto& y) { return std::get<0>(x) > std::get<0>(y); });
    for (const auto& [count, from, to] : ranked) {
      if (blocks_.contains(from) || taken_.contains(to)) continue;
      blocks_[from] = to;
      taken_.insert(to);
    }
  }
  [[nodiscard]] bool same_block(std::uint32_t a, std::uint32_t b) const {
    const auto found = blocks_.find(a);
    return found != blocks_.end() && found->second == b;
  }

  // What has no partner and the same mnemonic, in the same block and order, was changed.
  void pair_changed() {
    for (const auto& [in_a, in_b] : blocks_) {
      const std::vector<std::uint32_t> a =
          left(a_, in_a, [&](auto i) { return match_.partner(i); });
      const std::vector<std::uint32_t> b =
          left(b_, in_b, [&](auto j) { return match_.partner_in_a(j); });
      const auto same = [&](std::uint32_t i, std::uint32_t j) {
        const Instruction& x = a_.statement(a[i]);
        const Instruction& y = b_.statement(b[j]);
        return x.kind == y.kind &&
               (x.kind != StatementKind::Instruction || info(x.op).mnemonic == info(y.op).mnemonic);
      };
      for (const auto& [i, j] : common_subsequence(static_cast<std::uint32_t>(a.size()),
                                                   static_cast<std::uint32_t>(b.size()), same)) {
        match_.pair(a[i], b[j]);
      }
    }
  }
  template <class Partner>
  std::vector<std::uint32_t> left(CodeGraph& graph, std::uint32_t block, Partner&& partner) {
    std::vector<std::uint32_t> nodes;
    const Block& of = graph.cfg().blocks()[block];
    for (std::uint32_t s = of.first; s < of.end; ++s) {
      const std::uint32_t node = graph.node_of(s);
      if (node != kNone && partner(node) == kNone) nodes.push_back(node);
    }
    return nodes;
  }

  void add(ChangeKind kind, std::uint32_t a, std::uint32_t b, std::string what) {
    Change change;
    change.kind = kind;
    change.kernel = a_.module().text(a_.function().name);
    if (a != kNone) {
      change.a = print(a_.module(), a_.function(), a_.statement(a));
      change.line_a = a_.statement(a).line;
    }
    if (b != kNone) {
      change.b = print(b_.module(), b_.function(), b_.statement(b));
      change.line_b = b_.statement(b).line;
    }
    change.what = std::move(what);
    changes_.push_back(std::move(change));
  }

  void only(std::uint32_t a, std::uint32_t b) {
    const Instruction& s = a != kNone ? a_.statement(a) : b_.statement(b);
    const bool barrier = is_barrier(s);
    add(barrier ? ChangeKind::Barrier : ChangeKind::Instruction, a, b,
        format_text("{} {}", barrier ? "barrier" : "instruction",
                    a != kNone ? "removed" : "added"));
  }

  void compare(std::uint32_t a, std::uint32_t b) {
    const Instruction& x = a_.statement(a);
    const Instruction& y = b_.statement(b);
    if (a_.nodes()[a].shape != b_.nodes()[b].shape) {
      return add_changed(a, b, x, y);
    }
    if (!same_block(block_of(a_, a), block_of(b_, b))) {
      add(ChangeKind::ControlFlow, a, b, "in another block");
    }
  }

  void add_changed(std::uint32_t a, std::uint32_t b, const Instruction& x, const Instruction& y) {
    if (is_barrier(x) || is_barrier(y)) return add(ChangeKind::Barrier, a, b, "barrier changed");
    const unsigned bits_a = address_bits(a_.function(), x), bits_b = address_bits(b_.function(), y);
    if (touches_shared(x) && touches_shared(y) && bits_a != bits_b && bits_a * bits_b != 0) {
      return add(ChangeKind::AddressWidth, a, b,
                 format_text("address of shared memory has {} instead of {} bits", bits_b, bits_a));
    }
    const bool memory = info(x.op).mnemonic == "ld" || info(x.op).mnemonic == "st";
    if (memory && access_bytes(x) != access_bytes(y)) {
      return add(ChangeKind::AccessWidth, a, b,
                 format_text("accesses {} instead of {} bytes", access_bytes(y), access_bytes(x)));
    }
    if (differ_in_rounding(x, y)) return add(ChangeKind::Rounding, a, b, "rounded otherwise");
    add(ChangeKind::Instruction, a, b, "instruction changed");
  }

  // Blocks without statements, and those of one function alone, lead to the next one.
  template <class Known>
  static std::uint32_t past_unpaired(CodeGraph& graph, std::uint32_t block, const Known& known) {
    for (std::uint32_t steps = 0; steps < graph.cfg().blocks().size(); ++steps) {
      if (block == graph.cfg().exit()) return block;
      const auto successors = graph.cfg().successors(block);
      if (known.contains(block)) return block;
      if (successors.size() != 1) return block;
      block = successors[0];
    }
    return block;
  }

  void compare_branches() {
    for (std::uint32_t i = 0; i < a_.nodes().size(); ++i) {
      const std::uint32_t j = match_.partner(i);
      if (a_.nodes()[i].kind != CodeNode::Kind::Statement || j == kNone) continue;
      if (!has(info(a_.statement(i).op).flags, Flag::Branch) ||
          a_.statement(i).kind != StatementKind::Instruction) {
        continue;
      }
      const auto to_a = a_.cfg().successors(block_of(a_, i));
      const auto to_b = b_.cfg().successors(block_of(b_, j));
      const bool same =
          std::equal(to_a.begin(), to_a.end(), to_b.begin(), to_b.end(),
                     [&](std::uint32_t x, std::uint32_t y) {
                       x = past_unpaired(a_, x, blocks_), y = past_unpaired(b_, y, taken_);
                       const bool leaves_a = x == a_.cfg().exit(), leaves_b = y == b_.cfg().exit();
                       return leaves_a || leaves_b ? leaves_a == leaves_b : same_block(x, y);
                     });
      if (same) continue;
      flow_changed_ = true;
      add(ChangeKind::ControlFlow, i, j, "leads to another place");
    }
  }

  // Whether the nodes stand for the same value. Phis of a loop do if they do under the assumption
  // that they do; what was found to differ stays so.
  using Verdicts = std::map<std::pair<std::uint32_t, std::uint32_t>, bool>;
  bool corresponds(std::uint32_t a, std::uint32_t b, Verdicts& verdicts) {
    if (match_.partner(a) == b || match_.same_value(a, b)) return true;
    const auto [known, first] = verdicts.emplace(std::pair(a, b), true);
    if (!first) return known->second;
    return known->second = phis_correspond(a, b, verdicts);
  }
  bool phis_correspond(std::uint32_t a, std::uint32_t b, Verdicts& verdicts) {
    const CodeNode& x = a_.nodes()[a];
    const CodeNode& y = b_.nodes()[b];
    const bool phi_a = x.kind == CodeNode::Kind::Phi, phi_b = y.kind == CodeNode::Kind::Phi;
    const auto any_of_a = [&](std::uint32_t to) {
      return any_input(a_, x, [&](std::uint32_t from) { return corresponds(from, to, verdicts); });
    };
    const auto any_of_b = [&](std::uint32_t from) {
      return any_input(b_, y, [&](std::uint32_t to) { return corresponds(from, to, verdicts); });
    };
    if (phi_a && phi_b) return all_inputs(a_, x, any_of_b) && all_inputs(b_, y, any_of_a);
    // Where control flow has changed, values that meet in one function do not in the other.
    if (phi_a && flow_changed_) return any_of_a(b);
    if (phi_b && flow_changed_) return any_of_b(a);
    return false;
  }
  template <class Test>
  static bool any_input(const CodeGraph& graph, const CodeNode& phi, Test&& test) {
    return std::any_of(phi.inputs.begin(), phi.inputs.end(), [&](const CodeEdge& edge) {
      if (edge.kind != Dependence::PhiValue) return false;
      for (const CodeEdge& value : graph.nodes()[edge.node].inputs) {
        if (value.kind == Dependence::PhiValue) return static_cast<bool>(test(value.node));
      }
      return false;
    });
  }
  template <class Test>
  static bool all_inputs(const CodeGraph& graph, const CodeNode& phi, Test&& test) {
    return !any_input(graph, phi, [&](std::uint32_t node) { return !test(node); });
  }

  void compare_values() {
    for (std::uint32_t i = 0; i < a_.nodes().size(); ++i) {
      const std::uint32_t j = match_.partner(i);
      if (a_.nodes()[i].kind != CodeNode::Kind::Statement || j == kNone) continue;
      if (a_.nodes()[i].shape != b_.nodes()[j].shape) continue;
      const auto x = values(a_, i), y = values(b_, j);
      for (const auto& [position, from] : x) {
        const auto to = y.find(position);
        Verdicts verdicts;
        if (to == y.end() || reported(from, to->second) ||
            corresponds(from.node, to->second.node, verdicts)) {
          continue;
        }
        add(ChangeKind::Operand, i, j,
            format_text("reads {} instead of {}", source(b_, to->second), source(a_, from)));
      }
    }
  }
  static std::map<std::uint32_t, CodeEdge> values(const CodeGraph& graph, std::uint32_t node) {
    std::map<std::uint32_t, CodeEdge> all;
    for (const CodeEdge& edge : graph.nodes()[node].inputs) {
      if (edge.kind == Dependence::Value) all.emplace(edge.position, edge);
    }
    return all;
  }
  // What was added or removed is a change of its own, but not that a value is read elsewhere.
  [[nodiscard]] bool reported(const CodeEdge& from, const CodeEdge& to) const {
    const bool removed = a_.nodes()[from.node].kind == CodeNode::Kind::Statement &&
                         match_.partner(from.node) == kNone;
    const bool added = b_.nodes()[to.node].kind == CodeNode::Kind::Statement &&
                       match_.partner_in_a(to.node) == kNone;
    return removed && added;
  }
  static std::string source(const CodeGraph& graph, const CodeEdge& edge) {
    const CodeNode& node = graph.nodes()[edge.node];
    if (node.kind == CodeNode::Kind::Entry) return "what nothing wrote";
    if (node.kind != CodeNode::Kind::Statement) return "a value of several paths";
    const Instruction& s = graph.statement(edge.node);
    const std::string text = print(graph.module(), graph.function(), s);
    return s.line != 0 ? format_text("line {} ({})", s.line, text) : text;
  }

  void compare_order() {
    for (std::uint32_t i = 0; i < a_.nodes().size(); ++i) {
      const std::uint32_t later = match_.partner(i);
      if (a_.nodes()[i].kind != CodeNode::Kind::Statement || later == kNone) continue;
      for (const CodeEdge& edge : a_.nodes()[i].inputs) {
        if (edge.kind != Dependence::Order) continue;
        const std::uint32_t earlier = match_.partner(edge.node);
        if (earlier == kNone || !takes_order(earlier, later)) continue;
        add(ChangeKind::Order, i, later,
            format_text("comes before what it followed: {}",
                        print(a_.module(), a_.function(), a_.statement(edge.node))));
      }
    }
  }
  [[nodiscard]] bool takes_order(std::uint32_t node, std::uint32_t from) const {
    const auto& inputs = b_.nodes()[node].inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](const CodeEdge& edge) {
      return edge.kind == Dependence::Order && edge.node == from;
    });
  }

  CodeGraph& a_;
  CodeGraph& b_;
  Matching match_;
  std::map<std::uint32_t, std::uint32_t> blocks_;  // of a, and their partners
  std::set<std::uint32_t> taken_;                  // the partners
  bool flow_changed_ = false;
  Changes& changes_;
};

}  // namespace

void compare_statements(const Module& module_a, const Function& a, const Module& module_b,
                        const Function& b, std::vector<Change>& changes) {
  CodeGraph graph_a(module_a, a), graph_b(module_b, b);
  FunctionDiff(graph_a, graph_b, changes).run();
}

}  // namespace ptxgen::inline v0::analysis
