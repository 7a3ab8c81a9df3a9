// tests/kernels/lane_analysis.hpp - what depends on the lane, for structure tests
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::test {

/// Control flow and lane dependence of one function, statement by statement. Small and plain:
/// quadratic in the number of statements.
class LaneAnalysis {
 public:
  explicit LaneAnalysis(const ptx::Function& function);

  /// Whether the value that the operand has may differ between threads of a block: it comes from
  /// %tid or %laneid, from memory, or was chosen by such a value.
  [[nodiscard]] bool varies(const ptx::Operand& operand) const;

  /// Bytes (or units) between consecutive lanes: the coefficient of %tid.x in the value, if it is a
  /// constant.
  [[nodiscard]] std::optional<std::int64_t> lane_stride(const ptx::Operand& operand) const;

  /// The branches (numbers of statements) that decide, directly or through other branches, whether
  /// the statement is executed.
  [[nodiscard]] std::set<std::size_t> deciders(std::size_t statement) const;
  /// Those among them, and the statement's own guard, that vary between threads.
  [[nodiscard]] bool decided_by_lane(std::size_t statement) const;

  /// The statements of every innermost loop: between a backward branch and its target.
  [[nodiscard]] std::vector<std::vector<std::size_t>> innermost_loops() const;

 private:
  struct Stride {
    enum Kind { Unset, Constant, Unknown } kind = Unset;
    std::int64_t value = 0;
  };
  using Key = std::pair<std::uint32_t, std::uint32_t>;

  void build_graph();
  void build_post_dominators();
  void spread_variation();
  void spread_strides();
  [[nodiscard]] Stride stride_of(const ptx::Operand& operand) const;
  [[nodiscard]] Stride result_of(const ptx::Instruction& instruction) const;
  [[nodiscard]] bool is_written(const ptx::Instruction& instruction, std::size_t operand) const;
  [[nodiscard]] bool post_dominates(std::size_t later, std::size_t earlier) const;

  const ptx::Function& function_;
  std::vector<std::vector<std::size_t>> successors_;  // of statements; the last node is the exit
  std::vector<std::vector<bool>> post_dominators_;
  std::set<Key> varying_;
  std::vector<std::pair<Key, Stride>> strides_;
};

}  // namespace ptxgen::test
