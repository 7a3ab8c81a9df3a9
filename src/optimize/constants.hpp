// src/optimize/constants.hpp - sparse conditional constant propagation
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/evaluate.hpp"
#include "ptxgen/analysis/versions.hpp"

namespace ptxgen::inline v0::optimize {

/// Whether a statement's guard holds.
enum class GuardState : std::uint8_t { Always, Never, Unknown };

/// Sparse conditional constant propagation: constants flow through versions and phis, only
/// along executable edges. A register that was never written is unknown. Linear in
/// statements and uses of versions. Keeps references to its arguments.
///
/// Without `names`, the analysis ignores that two operands name one register; then copy propagation
/// does not improve the result.
class Constants {
 public:
  Constants(const ptx::Function& function, const analysis::Cfg& cfg,
            const analysis::RegisterIndex& index, const analysis::Versions& versions,
            bool names = true);

  /// The bits of a version, zero-extended from the width of its register; nothing if unknown.
  [[nodiscard]] std::optional<std::uint64_t> of(std::uint32_t version) const noexcept {
    const Cell cell = cells_[version];
    return cell.state == State::Constant ? std::optional(cell.bits) : std::nullopt;
  }
  /// Whether a block may execute.
  [[nodiscard]] bool executable(std::uint32_t block) const noexcept { return ways_[block] != 0; }
  /// Whether an edge may execute.
  [[nodiscard]] bool executable(std::uint32_t from, std::uint32_t to) const {
    return ways_[from] != 0 && leads(from, to);
  }
  [[nodiscard]] GuardState guard(std::uint32_t statement) const;
  /// What an instruction computes where it is executed.
  [[nodiscard]] analysis::Outcome outcome(std::uint32_t statement, bool names = true) const;
  /// The bits of a source operand in its type, `!` applied.
  [[nodiscard]] std::optional<std::uint64_t> source(std::uint32_t statement,
                                                    std::size_t operand) const;
  /// The same with the operand's specification already looked up.
  [[nodiscard]] std::optional<std::uint64_t> source(std::uint32_t statement, std::size_t operand,
                                                    const ptx::OperandSpec& spec) const;

  /// Whether the result depends on two operands naming one register.
  [[nodiscard]] bool rests_on_names() const noexcept { return rests_on_names_; }
  /// Whether the result of another analysis of the same function is equal.
  [[nodiscard]] bool same_as(const Constants& other) const noexcept {
    return cells_ == other.cells_ && ways_ == other.ways_ && one_target_ == other.one_target_;
  }

 private:
  enum class State : std::uint8_t { Undecided, Constant, Varies };
  struct Cell {
    State state = State::Undecided;
    std::uint64_t bits = 0;
    friend bool operator==(const Cell&, const Cell&) = default;
  };
  // The executable out-edges of a block as bits, since a guard may be unknown. A queued block is
  // evaluated entirely.
  static constexpr std::uint8_t kExecuted = 1, kTaken = 2, kFallsThrough = 4, kOneTarget = 8,
                                kWaits = 16;

  void solve();
  void number_edges();
  void find_tables();
  [[nodiscard]] std::uint32_t only_target(std::uint32_t statement, std::uint64_t index) const;
  void visit_statement(std::uint32_t statement);
  void visit_end(std::uint32_t block);
  void open(std::uint32_t block, std::uint8_t way);
  void enter(std::uint32_t block, std::uint32_t predecessor);
  [[nodiscard]] bool leads(std::uint32_t from, std::uint32_t to) const;
  void lower(std::uint32_t version, Cell to);
  [[nodiscard]] Cell cell(std::uint32_t statement, ptx::Register reg) const;
  [[nodiscard]] Cell guard_cell(std::uint32_t statement) const;
  [[nodiscard]] Cell operand(std::uint32_t statement, std::size_t i,
                             const ptx::OperandSpec* spec) const;
  [[nodiscard]] unsigned width(ptx::Register reg) const;

  const ptx::Function& function_;
  const analysis::Cfg& cfg_;
  const analysis::RegisterIndex& index_;
  const analysis::Versions& versions_;
  std::vector<Cell> cells_;
  std::vector<std::uint8_t> ways_;   // of each block
  std::vector<bool> settled_;        // of each statement: whether all it writes varies
  std::vector<bool> nothing_known_;  // of each statement: nothing follows from its operands
  std::vector<std::uint32_t> first_edge_, edge_;  // of a block's successors: number among theirs
  // Of each label: its block, and the table that it names. Empty without brx.idx.
  std::vector<std::uint32_t> label_block_, table_;
  std::vector<std::uint32_t> one_target_;  // of each block, where that is the only way it takes
  bool names_, rests_on_names_ = false;
  std::vector<std::uint32_t> open_versions_, open_blocks_;
  mutable std::vector<std::optional<std::uint64_t>> known_;
};

}  // namespace ptxgen::inline v0::optimize
