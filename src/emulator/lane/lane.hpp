// src/emulator/lane/lane.hpp - what one lane computes, without memory or other lanes
#pragma once

#include <cstdint>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::emulator {

/// The modifiers of one instruction, as semantics ask for them. Read once, when a program is
/// loaded; what a row does not have is zero.
struct LaneOp {
  ptx::Op op{};
  ptx::Type type = ptx::Type::none;   ///< the opcode's first type
  ptx::Type type2 = ptx::Type::none;  ///< its second one (cvt: of the source)
  ptx::Type type3 = ptx::Type::none;
  ptx::Modifier rounding = ptx::Modifier::none;  ///< rn rz rm rp, rni rzi rmi rpi
  ptx::Modifier comparison = ptx::Modifier::none;
  ptx::Modifier boolean = ptx::Modifier::none;  ///< and or xor popc
  ptx::Modifier mode =
      ptx::Modifier::none;  ///< lo hi wide, l r, clamp wrap, f4e .., float class, approx full
  bool ftz = false;
  bool sat = false;  ///< .sat
  bool satfinite = false;
  bool relu = false;
  bool nan = false;  ///< .NaN
  bool xorsign = false;
  bool abs = false;
  bool approx = false;
  bool carry_out = false;  ///< .cc
  bool shiftamt = false;
  bool clamp = false;
  std::uint8_t source_count = 0;  ///< 64-bit words of `sources`, carry apart
  std::uint8_t result_count = 0;
  std::uint32_t extra = 0;  ///< free for the semantics of a row
};

/// Computes one lane. `sources`: the source operands in the order in which they are written,
/// braces flattened, each as the zero-extended bits of its operand type (a predicate is 0 or 1,
/// `!p` already applied; 128 bits take two words, the low one first). A missing optional source is
/// left out, and `source_count` tells. `results` likewise for the destinations, where `_` and a
/// missing second destination have their place all the same. Rows that read the carry flag find
/// it (0 or 1) behind the last source, rows that write it (`carry_out`) put it behind the last
/// result. Never fails, whatever the bits.
using LaneFunction = void (*)(const LaneOp& op, const std::uint64_t* sources,
                              std::uint64_t* results);

/// The semantics of an instruction, or nullptr if its row touches memory, other lanes or the
/// control flow. Fills `op` but for the counts.
[[nodiscard]] LaneFunction lane_function(const ptx::Instruction& instruction, LaneOp& op);

/// Fills `op` but for the counts, for any instruction of the table.
void fill_lane_op(const ptx::Instruction& instruction, LaneOp& op);

/// Parts of lane_function, each for its rows (nullptr for others); `op` is filled already.
[[nodiscard]] LaneFunction integer_function(const LaneOp& op);     ///< lane_integer.cpp
[[nodiscard]] LaneFunction logic_function(const LaneOp& op);       ///< lane_logic.cpp: logic, moves
[[nodiscard]] LaneFunction comparison_function(const LaneOp& op);  ///< lane_comparison.cpp
[[nodiscard]] LaneFunction float_function(const LaneOp& op);       ///< lane_float.cpp
[[nodiscard]] LaneFunction conversion_function(const LaneOp& op);  ///< lane_conversion.cpp

/// Matrix instructions on registers alone (mma, wmma.mma, movmatrix): all lanes at once.
/// `sources[word][lane]` and `results[word][lane]`, words as above. Called with all 32 lanes.
using MatrixFunction = void (*)(const LaneOp& op, const std::uint64_t (*sources)[32],
                                std::uint64_t (*results)[32]);
[[nodiscard]] MatrixFunction matrix_function(const ptx::Instruction& instruction, LaneOp& op);

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
