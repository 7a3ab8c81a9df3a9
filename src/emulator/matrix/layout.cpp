// src/emulator/matrix/layout.cpp - pieces that ldmatrix, stmatrix and wmma move
#include "emulator/matrix/matrix.hpp"
#include "emulator/state/support_table.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Modifier;
using ptx::Op;
using ptx::Type;
using u64 = std::uint64_t;
using u32 = std::uint32_t;

constexpr unsigned kLanes = 32;

enum class Part : u32 { A, B, C };

// LaneOp::extra of wmma: m, n, k, which matrix, whether it is column-major.
// Of ldmatrix and stmatrix: how many matrices, whether they are transposed.
constexpr unsigned kPartAt = 24;
constexpr unsigned kColumnAt = 26;
constexpr unsigned kTransposedAt = 8;

MatrixPiece piece(unsigned lane, unsigned word, unsigned address_lane, u64 address, unsigned offset,
                  unsigned bytes) {
  MatrixPiece result;
  result.address = address;
  result.address_lane = static_cast<std::uint8_t>(address_lane);
  result.lane = static_cast<std::uint8_t>(lane);
  result.word = static_cast<std::uint8_t>(word);
  result.offset = static_cast<std::uint8_t>(offset);
  result.bytes = static_cast<std::uint8_t>(bytes);
  return result;
}

/// 8 x 8 matrices of 16-bit elements: lanes 8 i to 8 i + 7 give the addresses of the rows of matrix
/// i, register i of a lane holds two elements of it.
unsigned eight_by_eight(const LaneOp& op, const u64 addresses[32], const u64*,
                        MatrixPiece* pieces) {
  const unsigned matrices = op.extra & 0xff;
  const bool transposed = (op.extra >> kTransposedAt & 1) != 0;
  unsigned count = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < matrices; ++i) {
      if (!transposed) {
        const unsigned giver = i * 8 + lane / 4;
        pieces[count++] = piece(lane, i, giver, addresses[giver] + lane % 4 * 4, 0, 4);
        continue;
      }
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned giver = i * 8 + lane % 4 * 2 + half;
        pieces[count++] = piece(lane, i, giver, addresses[giver] + lane / 4 * 2, half * 2, 2);
      }
    }
  }
  return count;
}

unsigned wmma(const LaneOp& op, const u64 addresses[32], const u64 strides[32],
              MatrixPiece* pieces) {
  const MatrixShape shape{op.extra & 63, op.extra >> 6 & 63, op.extra >> 12 & 1023};
  const auto part = static_cast<Part>(op.extra >> kPartAt & 3);
  const bool columns = (op.extra >> kColumnAt & 1) != 0;
  const unsigned bits = ptx::bits(op.type);
  const unsigned per_register = elements_per_register(bits);
  const unsigned rows = part == Part::B ? shape.k : shape.m;
  const unsigned width = part == Part::A ? shape.k : shape.n;
  unsigned registers = part == Part::A   ? shape.registers_of_a(per_register)
                       : part == Part::B ? shape.registers_of_b(per_register)
                                         : shape.elements_of_c() / per_register;
  const unsigned distinct = registers;
  if (part != Part::C && op.type == Type::f16) registers = kHalfFragmentRegisters;
  // The elements of a register are in a row of a, c and d, and in a column of b.
  const bool along_memory = columns == (part == Part::B);
  const unsigned elements = along_memory ? per_register : 1;
  const unsigned bytes = elements * bits / 8;

  unsigned count = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const u64 stride = strides[lane] != 0 ? strides[lane] : columns ? rows : width;
    for (unsigned word = 0; word < registers; ++word) {
      const unsigned index = word % distinct;
      for (unsigned e = 0; e < per_register; e += elements) {
        Place at = part == Part::A   ? shape.place_in_a(per_register, lane, index)
                   : part == Part::B ? shape.place_in_b(per_register, lane, index)
                                     : shape.place_in_c(lane, index * per_register);
        (part == Part::B ? at.row : at.column) += e;
        const u64 element = columns ? at.column * stride + at.row : at.row * stride + at.column;
        pieces[count++] =
            piece(lane, word, lane, addresses[lane] + element * bits / 8, e * bits / 8, bytes);
      }
    }
  }
  return count;
}

}  // namespace

MatrixLayout matrix_layout(const ptx::Instruction& instruction, LaneOp& op) {
  if (instruction.kind != ptx::StatementKind::Instruction ||
      execution_of(instruction.op) != Execution::MatrixMemory) {
    return nullptr;
  }
  op = ptx::scalar_op(instruction);
  const Modifier matrices = instruction.get(ptx::Field::MatrixCount);
  if (matrices != Modifier::none) {
    op.extra = matrices == Modifier::x4 ? 4 : matrices == Modifier::x2 ? 2 : 1;
    if (instruction.has(ptx::Field::Transpose)) op.extra |= u32{1} << kTransposedAt;
    return &eight_by_eight;
  }

  const MatrixShape shape = matrix_shape(instruction);
  op.extra = shape.m | shape.n << 6 | shape.k << 12;
  Part part = Part::C;
  for (const Modifier word : instruction.modifiers) {
    if (word == Modifier::a) part = Part::A;
    if (word == Modifier::b) part = Part::B;
  }
  op.extra |= static_cast<u32>(part) << kPartAt;
  for (const ptx::Field field : {ptx::Field::LayoutA, ptx::Field::LayoutB, ptx::Field::Layout}) {
    if (instruction.get(field) == Modifier::col) op.extra |= u32{1} << kColumnAt;
  }
  return &wmma;
}

}  // namespace ptxgen::inline v0::emulator
