// src/emulator/matrix/matrix.hpp - the elements of a matrix in the lanes
#pragma once

#include <cstdint>

#include "emulator/lane/lane.hpp"

namespace ptxgen::inline v0::emulator {

/// A row and a column.
struct Place {
  unsigned row;
  unsigned column;
};

/// The shape of a product, d (m x n) = a (m x k) * b (k x n) + c.
///
/// One rule places the elements of all shapes but m8n8k4 of f16. With lane = 4 * group + thread, a
/// register of a holds `per_register` elements of one row, side by side: row `group` of a block of
/// 8 rows, columns from `thread * per_register` of a block of 4 * per_register columns. Its
/// registers go through the blocks of 8 rows first, then through the blocks of columns. b is placed
/// as its transpose is in a, but goes through the blocks along k first. c and d hold two elements
/// of a row of a block of 8 x 8, and go through the blocks of rows first. This is what the PTX ISA
/// says for mma. The fragments of wmma are opaque; they follow the same rule, and a fragment that
/// has more registers than elements (a and b of f16) holds them several times.
struct MatrixShape {
  unsigned m = 0;
  unsigned n = 0;
  unsigned k = 0;

  [[nodiscard]] constexpr unsigned registers_of_a(unsigned per_register) const {
    return m / 8 * (k / (4 * per_register));
  }
  [[nodiscard]] constexpr unsigned registers_of_b(unsigned per_register) const {
    return n / 8 * (k / (4 * per_register));
  }
  /// Elements of c or d in each lane.
  [[nodiscard]] constexpr unsigned elements_of_c() const { return m * n / 32; }

  /// The first element of register `index` of a; the others follow in its row.
  [[nodiscard]] constexpr Place place_in_a(unsigned per_register, unsigned lane,
                                           unsigned index) const {
    return {index % (m / 8) * 8 + lane / 4, (index / (m / 8) * 4 + lane % 4) * per_register};
  }
  /// The first element of register `index` of b; the others follow in its column.
  [[nodiscard]] constexpr Place place_in_b(unsigned per_register, unsigned lane,
                                           unsigned index) const {
    const unsigned blocks = k / (4 * per_register);
    return {(index % blocks * 4 + lane % 4) * per_register, index / blocks * 8 + lane / 4};
  }
  /// Element `index` of c or d.
  [[nodiscard]] constexpr Place place_in_c(unsigned lane, unsigned index) const {
    const unsigned block = index / 2;
    return {block % (m / 8) * 8 + lane / 4, block / (m / 8) * 8 + lane % 4 * 2 + index % 2};
  }
};

/// The shape that the opcode names.
[[nodiscard]] MatrixShape matrix_shape(const ptx::Instruction& instruction);

/// How many elements of that type a register of a fragment holds.
[[nodiscard]] constexpr unsigned elements_per_register(unsigned element_bits) {
  return element_bits >= 32 ? 1 : 32 / element_bits;
}

/// Registers of a f16 fragment a or b of wmma, whatever its shape.
inline constexpr unsigned kHalfFragmentRegisters = 8;

}  // namespace ptxgen::inline v0::emulator
