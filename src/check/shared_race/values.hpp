// src/check/shared_race/values.hpp - which threads of a block store the same value
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "check/shared_race/forms.hpp"

namespace ptxgen::inline v0::gates {

/// Classes of threads with equal values.
struct ThreadClasses {
  /// By thread: equal numbers mean equal values in threads that are in the same iteration of all
  /// loops. Different numbers mean nothing.
  std::vector<std::uint64_t> of;
  /// Depends on shuffles, votes or reductions of a warp: different classes may have equal values.
  bool crosses_lanes = false;
};

/// Follows values through arithmetic from the thread's index, parameters and loads from equal
/// addresses, and through exchanges of a warp's lanes (`redux.sync`, and butterflies of `shfl.sync`
/// with commutative operations). Assumes that loads from one address between the same two barriers
/// give one value. Refers to its arguments.
class ThreadValueClasses {
 public:
  ThreadValueClasses(analysis::Facts& facts, const analysis::Affine& affine,
                     std::array<std::uint32_t, 3> shape);

  /// Of an operand that a statement reads. Beyond a fixed amount of work every thread has its own
  /// class.
  [[nodiscard]] const ThreadClasses& of(std::uint32_t statement, std::uint32_t operand);

 private:
  using Column = std::vector<std::uint64_t>;
  void add_inputs(std::uint32_t version, std::vector<std::uint32_t>& inputs);
  [[nodiscard]] bool follow(std::uint32_t version);
  void solve(const std::vector<std::uint32_t>& order);
  [[nodiscard]] bool known_at_once(std::uint32_t version);
  [[nodiscard]] Column evaluated(std::uint32_t version);
  [[nodiscard]] Column of_phi(std::uint32_t version);
  [[nodiscard]] Column of_write(std::uint32_t version);
  void of_sources(const ptx::Instruction& s, std::uint32_t statement, Column& result);
  void exchange(const ptx::Instruction& s, std::uint32_t statement, std::uint32_t version,
                Column& result);
  void shuffle(const ptx::Instruction& s, std::uint32_t statement, std::uint32_t version,
               Column& result);
  [[nodiscard]] Column of_operand(std::uint32_t statement, const ptx::Operand& operand);
  [[nodiscard]] std::optional<std::uint32_t> constant_of(std::uint32_t statement,
                                                         const ptx::Operand& operand);
  /// Gives different numbers to threads that do not agree to that degree.
  void separate(Column& column, analysis::Agreement agreed) const;
  [[nodiscard]] Column constant(std::uint64_t value) const { return Column(threads_, value); }

  analysis::Facts& facts_;
  const analysis::Affine& affine_;
  std::array<std::uint32_t, 3> shape_;
  ThreadForms forms_;
  std::uint32_t threads_;
  std::map<std::uint32_t, Column> columns_;  ///< by version
  std::map<std::uint32_t, bool> crosses_;    ///< by version that was followed
  std::map<std::pair<std::uint32_t, std::uint32_t>, ThreadClasses> classes_;  ///< by operand
  std::uint64_t work_ = 8'000'000;  ///< values of threads that may still be computed
};

}  // namespace ptxgen::inline v0::gates
