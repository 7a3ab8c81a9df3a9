// tests/emulator/matrix_runner.hpp - matrices of small integers, and instructions on them
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/lane/lane.hpp"

namespace ptxgen::test {

/// One value for each of 32 lanes, for each register word.
using Registers = std::vector<std::vector<std::uint64_t>>;

/// Rows and columns of integers.
struct Matrix {
  unsigned rows = 0;
  unsigned columns = 0;
  std::vector<std::int64_t> values;

  Matrix(unsigned rows_, unsigned columns_)
      : rows(rows_), columns(columns_), values(std::size_t{rows_} * columns_) {}
  [[nodiscard]] std::int64_t& at(unsigned row, unsigned column) {
    return values.at(std::size_t{row} * columns + column);
  }
  [[nodiscard]] std::int64_t at(unsigned row, unsigned column) const {
    return values.at(std::size_t{row} * columns + column);
  }
};

/// Numbers of the seed between `min` and `max`.
[[nodiscard]] Matrix random_matrix(unsigned rows, unsigned columns, std::int64_t min,
                                   std::int64_t max);

/// The plain triple loop: a * b + c.
[[nodiscard]] Matrix product(const Matrix& a, const Matrix& b, const Matrix& c);

/// Bits of an element type, and of an integer in it; the integer must be representable.
[[nodiscard]] unsigned bits_of(const std::string& type);
[[nodiscard]] std::uint64_t encoded(const std::string& type, std::int64_t value);
[[nodiscard]] std::int64_t decoded(const std::string& type, std::uint64_t bits);
/// The value of f16 bits, infinities and NaN apart.
[[nodiscard]] double half_value(std::uint64_t bits);

/// `{%r0, %r1}`: so many registers of the pool that a type's fragment is in, from `first` on.
[[nodiscard]] std::string braces(const std::string& type, unsigned count, unsigned first = 0);

/// Runs a product or movmatrix, parsed from its text. `sources` are its source words; returns
/// `results` words. `sm`: the architecture whose rounding it follows, 0 for exact sums.
[[nodiscard]] Registers run_matrix(const std::string& text, const Registers& sources,
                                   unsigned results, std::uint16_t sm = 0);

/// The pieces that a load or store moves, parsed from its text.
[[nodiscard]] std::vector<emulator::MatrixPiece> pieces_of(
    const std::string& text, const std::vector<std::uint64_t>& addresses, std::uint64_t stride);

/// What a load leaves in registers, what a store leaves in memory; address 0 is memory[0]. Checks
/// that all bytes of all `words` registers, of so many bytes, are moved exactly once.
[[nodiscard]] Registers load_pieces(const std::vector<emulator::MatrixPiece>& pieces,
                                    unsigned words, unsigned word_bytes,
                                    const std::vector<std::uint8_t>& memory);
void store_pieces(const std::vector<emulator::MatrixPiece>& pieces, const Registers& registers,
                  unsigned word_bytes, std::vector<std::uint8_t>& memory);

}  // namespace ptxgen::test
