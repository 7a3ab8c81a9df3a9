// ptxgen/analysis/cfg.hpp - basic blocks and control flow of a function
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/analysis/graph.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::analysis {

/// A basic block. The blocks of a function cover its body without gaps, directives and
/// declarations included; block 0 begins with the first statement.
struct Block {
  std::uint32_t first = 0;  ///< number of its first statement
  std::uint32_t end = 0;    ///< one past its last statement
  /// The terminator (bra, brx.idx, ret, exit, guarded or not), or ptx::kNone if the block falls
  /// through.
  std::uint32_t terminator = ptx::kNone;
  ptx::LabelId label;  ///< the first label at its start, or none
};

/// Control flow of one function. Blocks begin at branch targets and after terminators. `trap` and
/// calls are not terminators, not even calls of `.noreturn` functions. Falling off the end of the
/// body returns. Every `ret` and `exit` leads to one virtual node, `exit()`.
///
/// A `brx.idx` may continue at any label of its `.branchtargets`. If that table is missing, it may
/// continue at any label of any table; if there is no table, at any label. A branch to an undefined
/// label leads to the exit.
///
/// Linear in the function. Accepts any body, also one that the verifier refuses. Keeps no reference
/// to the function.
class Cfg {
 public:
  Cfg() = default;
  explicit Cfg(const ptx::Function& function);

  /// At least one block, which is empty if the body is.
  [[nodiscard]] std::span<const Block> blocks() const noexcept { return blocks_; }
  /// The virtual exit: node blocks().size() of the graph.
  [[nodiscard]] std::uint32_t exit() const noexcept {
    return static_cast<std::uint32_t>(blocks_.size());
  }
  /// The block of a statement.
  [[nodiscard]] std::uint32_t block_of(std::uint32_t statement) const noexcept {
    return block_of_[statement];
  }

  /// Blocks and the exit. Successors: branch targets first (for brx.idx in the order of its table),
  /// then the next block if the terminator is guarded.
  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
  [[nodiscard]] std::span<const std::uint32_t> successors(std::uint32_t block) const noexcept {
    return graph_.successors(block);
  }
  [[nodiscard]] std::span<const std::uint32_t> predecessors(std::uint32_t block) const noexcept {
    return graph_.predecessors(block);
  }

  [[nodiscard]] const LoopForest& loops() const noexcept { return loops_; }
  /// All blocks in the order of `LoopForest::order()`, without the exit. If the lowest block runs
  /// first, diverged lanes reconverge as early as possible.
  [[nodiscard]] std::span<const std::uint32_t> order() const noexcept { return order_; }
  /// The position of a block in `order()`; for the exit, the number of blocks.
  [[nodiscard]] std::uint32_t position(std::uint32_t block) const noexcept {
    return position_[block];
  }

  /// Whether the block is reachable.
  [[nodiscard]] bool reachable(std::uint32_t block) const noexcept {
    return dominators_.reachable(block);
  }
  [[nodiscard]] const DominatorTree& dominators() const noexcept { return dominators_; }
  /// Of the reversed graph, root `exit()`. Infinite loops are treated as leaving after their last
  /// block.
  [[nodiscard]] const DominatorTree& post_dominators() const noexcept { return post_dominators_; }

  /// The blocks on which `block` is control dependent, directly or transitively. Sorted. Includes
  /// blocks that can leave the function early. Takes time proportional to the branches of the
  /// function for each block found.
  [[nodiscard]] std::vector<std::uint32_t> deciders(std::uint32_t block) const;

 private:
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> block_of_;
  Graph graph_;
  LoopForest loops_;
  std::vector<std::uint32_t> order_, position_;
  DominatorTree dominators_, post_dominators_;
};

/// One line per block in `order()`: statements, label, successors, dominators, loop.
[[nodiscard]] std::string to_text(const Cfg& cfg, const ptx::Module& module,
                                  const ptx::Function& function);

}  // namespace ptxgen::inline v0::analysis
