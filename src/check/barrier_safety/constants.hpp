// src/check/barrier_safety/constants.hpp - constant operands of barriers
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "check/barrier_safety/barrier_safety.hpp"

namespace ptxgen::inline v0::gates::barriers {

inline constexpr std::uint64_t kBlockBarriers = 16;

/// Constants, and registers whose only write is a move of a constant. Refers to `index`.
class Constants {
 public:
  Constants(const ptx::Function& function, const analysis::RegisterIndex& index);
  [[nodiscard]] std::optional<std::uint64_t> of(const ptx::Operand& operand) const;

 private:
  const analysis::RegisterIndex& index_;
  std::vector<std::optional<std::uint64_t>> values_;
  std::vector<std::uint32_t> writes_;
};

/// An aligned barrier for 32 threads: each warp that arrives completes it, unless the number has
/// other uses. At a barrier that is not aligned, lanes of two warps may complete it.
[[nodiscard]] bool counts_a_warp(const Constants& constants, const Use& use);

}  // namespace ptxgen::inline v0::gates::barriers
