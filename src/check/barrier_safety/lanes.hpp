// src/check/barrier_safety/lanes.hpp - integer arithmetic of one thread
#pragma once

#include <cstddef>
#include <cstdint>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::gates::barriers {

/// The most sources that an instruction computed here reads.
inline constexpr std::size_t kMaxSources = 4;

/// What a thread computes with an instruction, decoded once for many threads.
struct LaneOp {
  ptx::Op op{};
  bool known = false;  ///< computed here: integers, bits and predicates, no memory
  std::uint8_t sources = 0;
  std::uint8_t results = 1;  ///< 2 for `p|q` of setp
  ptx::Type type = ptx::Type::none;
  ptx::Type from = ptx::Type::none;  ///< type number 1 of a conversion
  ptx::Modifier comparison{};
  ptx::Modifier combine{};
  bool high = false;
};

[[nodiscard]] LaneOp lane_op(const ptx::Function& function, const ptx::Instruction& instruction);

struct LaneResult {
  bool known = false;  ///< false for a division by zero
  std::uint64_t value = 0;
  std::uint64_t second = 0;
};

/// Sources are bit patterns of registers, predicates 0 or 1 with `!` already applied.
[[nodiscard]] LaneResult compute(const LaneOp& op, const std::uint64_t* sources);

}  // namespace ptxgen::inline v0::gates::barriers
