// ptxgen/analysis/cfg.hpp - basic blocks of a function and how control flows
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/analysis/graph.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::analysis {

/// Statements that are executed one after another. The blocks of a function cover its body without
/// gaps, directives and declarations included; block 0 begins with the first statement.
struct Block {
  std::uint32_t first = 0;  ///< number of its first statement
  std::uint32_t end = 0;    ///< one behind its last statement
  /// The statement that ends it (bra, brx.idx, ret, exit, guarded or not), or ptx::kNone if it
  /// runs into the next block.
  std::uint32_t terminator = ptx::kNone;
  ptx::LabelId label;  ///< the first label that stands at its start, or none
};

/// Control flow of one function. Blocks begin at labels that are branched to and behind
/// terminators. `trap` and calls, of functions that do not return too, are none: what stands behind
/// them follows. Running off the end of the body returns. One virtual node, `exit()`, follows every
/// `ret` and `exit`.
///
/// A `brx.idx` may continue at any label of its `.branchtargets`; if that is not there, at any
/// label of any, and if there is none, at any label. A branch to a label that stands nowhere leads
/// to the exit.
///
/// Linear in the function, and takes nothing of it for true: bodies that the verifier would refuse
/// are fine. Keeps no reference to the function.
class Cfg {
 public:
  Cfg() = default;
  explicit Cfg(const ptx::Function& function);

  /// At least one block, empty if the body is.
  [[nodiscard]] std::span<const Block> blocks() const noexcept { return blocks_; }
  /// The virtual exit: node blocks().size() of the graph.
  [[nodiscard]] std::uint32_t exit() const noexcept {
    return static_cast<std::uint32_t>(blocks_.size());
  }
  /// The block that a statement of the body belongs to.
  [[nodiscard]] std::uint32_t block_of(std::uint32_t statement) const noexcept {
    return block_of_[statement];
  }

  /// Blocks and the exit. Successors: where a branch leads first, in the order of the table for
  /// brx.idx, then the next block if a guard may be false.
  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
  [[nodiscard]] std::span<const std::uint32_t> successors(std::uint32_t block) const noexcept {
    return graph_.successors(block);
  }
  [[nodiscard]] std::span<const std::uint32_t> predecessors(std::uint32_t block) const noexcept {
    return graph_.predecessors(block);
  }

  [[nodiscard]] const LoopForest& loops() const noexcept { return loops_; }
  /// All blocks in the order of `LoopForest::order()`, without the exit: running the lowest first
  /// lets the lanes of a warp meet as early as they can.
  [[nodiscard]] std::span<const std::uint32_t> order() const noexcept { return order_; }
  /// The place of a block in `order()`; of the exit, the number of blocks.
  [[nodiscard]] std::uint32_t position(std::uint32_t block) const noexcept {
    return position_[block];
  }

  /// Whether control may come to the block at all.
  [[nodiscard]] bool reachable(std::uint32_t block) const noexcept {
    return dominators_.reachable(block);
  }
  [[nodiscard]] const DominatorTree& dominators() const noexcept { return dominators_; }
  /// Of the reversed graph, root `exit()`. Endless loops count as leaving behind their last block.
  [[nodiscard]] const DominatorTree& post_dominators() const noexcept { return post_dominators_; }

  /// The blocks whose ends decide whether control comes to `block`: directly, or by deciding about
  /// one that does. Sorted. Blocks that can leave the function early are among them. Takes time
  /// proportional to the branches of the function for each one found.
  [[nodiscard]] std::vector<std::uint32_t> deciders(std::uint32_t block) const;

 private:
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> block_of_;
  Graph graph_;
  LoopForest loops_;
  std::vector<std::uint32_t> order_, position_;
  DominatorTree dominators_, post_dominators_;
};

/// One line for each block in `order()`: statements, label, successors, dominators, loop.
[[nodiscard]] std::string to_text(const Cfg& cfg, const ptx::Module& module,
                                  const ptx::Function& function);

}  // namespace ptxgen::inline v0::analysis
