// src/analysis/diff/code_graph.hpp - a function as a graph without names and order
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/facts.hpp"

namespace ptxgen::inline v0::analysis {

/// What a node takes from another one. Values come first: `Value + n` is the n-th register that the
/// statement reads.
enum class Dependence : std::uint32_t { Block, Edge, Order, Previous, PhiValue, PhiEdge, Value };

struct CodeEdge {
  std::uint32_t node = 0;
  std::uint32_t role = 0;  ///< a Dependence, mixed with which result or edge it is
  Dependence kind{};
  std::uint32_t position = 0;  ///< Value: which read of the statement
};

struct CodeNode {
  enum class Kind : std::uint8_t { Statement, Block, Phi, PhiInput, Entry };
  Kind kind{};
  std::uint32_t id = 0;     ///< statement, block or version
  std::uint64_t shape = 0;  ///< a hash of all that is not an edge
  std::vector<CodeEdge> inputs;
};

/// The reachable code of a function. Two functions compute the same in the same way if their graphs
/// are isomorphic.
class CodeGraph {
 public:
  CodeGraph(const ptx::Module& module, const ptx::Function& function);

  [[nodiscard]] const ptx::Module& module() const noexcept { return facts_.module(); }
  [[nodiscard]] const ptx::Function& function() const noexcept { return facts_.function(); }
  [[nodiscard]] const Cfg& cfg() { return facts_.cfg(); }
  [[nodiscard]] std::span<const CodeNode> nodes() const noexcept { return nodes_; }
  /// ptx::kNone for statements that are not in the graph: labels, declarations, unreachable ones.
  [[nodiscard]] std::uint32_t node_of(std::uint32_t statement) const noexcept {
    return statements_[statement];
  }
  [[nodiscard]] const ptx::Instruction& statement(std::uint32_t node) const noexcept {
    return function().body[nodes_[node].id];
  }

 private:
  std::uint32_t add(CodeNode::Kind kind, std::uint32_t id, std::uint64_t shape);
  void add_nodes();
  void connect_blocks();
  void connect_values(std::uint32_t node);
  void connect_phi(std::uint32_t version);
  void connect_order(const Block& block);
  void connect_to_version(std::uint32_t node, std::uint32_t version, Dependence kind,
                          std::uint32_t position);
  [[nodiscard]] std::uint32_t entry_of(std::uint32_t version);
  /// The node that stands for an edge of the control flow: the branch, or the block that falls
  /// through.
  [[nodiscard]] CodeEdge edge_from(std::uint32_t block, std::uint32_t to, Dependence kind);
  [[nodiscard]] bool must_keep_order(std::uint32_t first, std::uint32_t second);

  Facts facts_;
  std::vector<CodeNode> nodes_;
  std::vector<std::uint32_t> statements_, blocks_, versions_;  // their nodes
};

[[nodiscard]] std::uint64_t mix(std::uint64_t seed, std::uint64_t value) noexcept;

/// Everything of a statement but registers, labels and lines.
[[nodiscard]] std::uint64_t shape_of(const ptx::Module& module, const ptx::Function& function,
                                     const ptx::Instruction& statement);

}  // namespace ptxgen::inline v0::analysis
