// src/emulator/lane/lane.hpp - what one lane computes, without memory or other lanes
#pragma once

#include <cstdint>

#include "ptx/semantics/scalar.hpp"

namespace ptxgen::inline v0::emulator {

using LaneOp = ptx::ScalarOp;
/// Computes one lane; `ptx::ScalarFunction` says how operands are laid out.
using LaneFunction = ptx::ScalarFunction;

/// The semantics of an instruction, or nullptr if its row touches memory, other lanes or the
/// control flow. Fills `op` but for the counts.
[[nodiscard]] LaneFunction lane_function(const ptx::Instruction& instruction, LaneOp& op);

/// Parts of lane_function for floating-point rows; nullptr for other rows. `op` is filled already.
/// `ptx::scalar_function` has the other rows.
[[nodiscard]] LaneFunction float_comparison_function(const LaneOp& op);  ///< comparison.cpp
[[nodiscard]] LaneFunction float_function(const LaneOp& op);             ///< float.cpp
[[nodiscard]] LaneFunction conversion_function(const LaneOp& op);        ///< conversion.cpp

/// Matrix instructions on registers alone (mma, wmma.mma, movmatrix): all lanes at once.
/// `sources[word][lane]` and `results[word][lane]`, words as above. Called with all 32 lanes.
using MatrixFunction = void (*)(const LaneOp& op, const std::uint64_t (*sources)[32],
                                std::uint64_t (*results)[32]);
/// `sm`: the architecture whose rounding mma follows; 0: exact sums, rounded once.
[[nodiscard]] MatrixFunction matrix_function(const ptx::Instruction& instruction, LaneOp& op,
                                             std::uint16_t sm = 0);

/// One piece of a matrix that ldmatrix, stmatrix, wmma.load or wmma.store moves between memory and
/// a register of a lane.
struct MatrixPiece {
  std::uint64_t address = 0;      ///< in the instruction's state space
  std::uint8_t address_lane = 0;  ///< the lane that gave the address, for findings
  std::uint8_t lane = 0;          ///< whose register
  std::uint8_t word = 0;          ///< which of its data registers, braces flattened
  std::uint8_t offset = 0;        ///< byte within the register
  std::uint8_t bytes = 0;         ///< 1, 2, 4 or 8; for 4-bit and 1-bit elements whole bytes
};
inline constexpr unsigned kMaxMatrixPieces = 512;
/// Which pieces such an instruction moves. `addresses[lane]`: the address operand, offset added;
/// `strides[lane]`: the stride operand in elements, 0 if none is written. Returns how many pieces.
using MatrixLayout = unsigned (*)(const LaneOp& op, const std::uint64_t addresses[32],
                                  const std::uint64_t strides[32], MatrixPiece* pieces);
[[nodiscard]] MatrixLayout matrix_layout(const ptx::Instruction& instruction, LaneOp& op);

}  // namespace ptxgen::inline v0::emulator
