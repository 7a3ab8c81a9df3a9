// tests/emulator/matrix_runner.cpp - matrices of small integers, and instructions on them
#include "matrix_runner.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <random>

#include "lane_runner.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {

Matrix random_matrix(unsigned rows, unsigned columns, std::int64_t min, std::int64_t max) {
  static std::uint64_t result = 0;  // another matrix each time, the same ones in each run
  std::mt19937_64 random(seed() + ++result);
  Matrix matrix(rows, columns);
  const auto range = static_cast<std::uint64_t>(max - min) + 1;
  for (std::int64_t& value : matrix.values) {
    value = min + static_cast<std::int64_t>(random() % range);
  }
  return matrix;
}

Matrix product(const Matrix& a, const Matrix& b, const Matrix& c) {
  Matrix d = c;
  for (unsigned row = 0; row < d.rows; ++row) {
    for (unsigned column = 0; column < d.columns; ++column) {
      for (unsigned i = 0; i < a.columns; ++i) d.at(row, column) += a.at(row, i) * b.at(i, column);
    }
  }
  return d;
}

unsigned bits_of(const std::string& type) {
  if (type == "bf16") return 16;
  if (type == "tf32") return 32;
  if (type == "e4m3" || type == "e5m2") return 8;
  return static_cast<unsigned>(std::stoul(type.substr(1)));
}

std::uint64_t encoded(const std::string& type, std::int64_t value) {
  if (type == "f64") return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  const auto as_float = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (type == "f32" || type == "tf32") return as_float;
  if (type == "bf16") return as_float >> 16;
  if (type == "f16") {
    std::uint64_t magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
    if (magnitude == 0) return 0;
    std::uint64_t exponent = 25;
    for (; magnitude < 1024; magnitude *= 2) --exponent;
    REQUIRE(magnitude < 2048);
    return (value < 0 ? 0x8000u : 0u) + exponent * 1024 + magnitude - 1024;
  }
  // e5m2 is the upper half of an f16.
  if (type == "e5m2") {
    const std::uint64_t half = encoded("f16", value);
    REQUIRE(half % 256 == 0);
    return half >> 8;
  }
  if (type == "e4m3") {
    // As f16, but for three bits of fraction and a bias of 7.
    const std::uint64_t half = encoded("f16", value);
    REQUIRE(half % 128 == 0);
    return value == 0 ? 0 : (half >> 8 & 0x80) | (((half & 0x7fff) >> 7) - (8u << 3));
  }
  const unsigned bits = bits_of(type);
  return static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << bits) - 1);
}

double half_value(std::uint64_t bits) {
  const auto exponent = static_cast<int>(bits / 1024 % 32);
  const auto fraction = static_cast<double>(bits % 1024);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return bits >= 0x8000 ? -magnitude : magnitude;
}

std::int64_t decoded(const std::string& type, std::uint64_t bits) {
  if (type == "f64") return static_cast<std::int64_t>(std::bit_cast<double>(bits));
  if (type == "f32") {
    return static_cast<std::int64_t>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  if (type == "f16") return static_cast<std::int64_t>(half_value(bits));
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
}

std::string braces(const std::string& type, unsigned count, unsigned first) {
  const std::string pool = type == "f64" ? "%fd" : type == "f32" ? "%f" : "%r";
  std::string text = "{";
  for (unsigned i = 0; i < count; ++i) {
    text += (i == 0 ? "" : ", ") + pool + std::to_string(first + i);
  }
  return text + "}";
}

Registers run_matrix(const std::string& text, const Registers& sources, unsigned results,
                     std::uint16_t sm) {
  INFO(text);
  const ptx::Module module = kernel_with(text);
  const auto instructions = instructions_of(module);
  REQUIRE(instructions.size() == 1);
  emulator::LaneOp op;
  const emulator::MatrixFunction function = emulator::matrix_function(*instructions[0], op, sm);
  REQUIRE(function != nullptr);
  std::vector<std::uint64_t> in(sources.size() * 32);
  std::vector<std::uint64_t> out(std::size_t{results + 4} * 32, kUnwritten);
  for (std::size_t word = 0; word < sources.size(); ++word) {
    for (std::size_t lane = 0; lane < 32; ++lane) in[word * 32 + lane] = sources[word].at(lane);
  }
  function(op, reinterpret_cast<const std::uint64_t(*)[32]>(in.data()),
           reinterpret_cast<std::uint64_t(*)[32]>(out.data()));
  for (std::size_t i = std::size_t{results} * 32; i < out.size(); ++i) {
    REQUIRE(out[i] == kUnwritten);
  }
  Registers result(results, std::vector<std::uint64_t>(32));
  for (std::size_t word = 0; word < results; ++word) {
    for (std::size_t lane = 0; lane < 32; ++lane) result[word][lane] = out[word * 32 + lane];
  }
  return result;
}

std::vector<emulator::MatrixPiece> pieces_of(const std::string& text,
                                             const std::vector<std::uint64_t>& addresses,
                                             std::uint64_t stride) {
  INFO(text);
  const ptx::Module module = kernel_with(text);
  const auto instructions = instructions_of(module);
  REQUIRE(instructions.size() == 1);
  emulator::LaneOp op;
  const emulator::MatrixLayout layout = emulator::matrix_layout(*instructions[0], op);
  REQUIRE(layout != nullptr);
  const std::vector<std::uint64_t> strides(32, stride);
  std::vector<emulator::MatrixPiece> pieces(emulator::kMaxMatrixPieces);
  const unsigned count = layout(op, addresses.data(), strides.data(), pieces.data());
  REQUIRE(count <= pieces.size());
  pieces.resize(count);
  return pieces;
}

namespace {

void check_covers(const std::vector<emulator::MatrixPiece>& pieces, std::size_t words,
                  unsigned word_bytes) {
  std::vector<int> times(words * 32 * word_bytes);
  for (const emulator::MatrixPiece& piece : pieces) {
    REQUIRE(piece.lane < 32);
    REQUIRE(piece.address_lane < 32);
    REQUIRE(piece.word < words);
    REQUIRE((piece.bytes == 1 || piece.bytes == 2 || piece.bytes == 4 || piece.bytes == 8));
    REQUIRE(piece.offset + piece.bytes <= word_bytes);
    for (unsigned i = 0; i < piece.bytes; ++i) {
      ++times[(std::size_t{piece.word} * 32 + piece.lane) * word_bytes + piece.offset + i];
    }
  }
  REQUIRE(times == std::vector<int>(times.size(), 1));
}

}  // namespace

Registers load_pieces(const std::vector<emulator::MatrixPiece>& pieces, unsigned words,
                      unsigned word_bytes, const std::vector<std::uint8_t>& memory) {
  check_covers(pieces, words, word_bytes);
  Registers registers(words, std::vector<std::uint64_t>(32));
  for (const emulator::MatrixPiece& piece : pieces) {
    for (unsigned i = 0; i < piece.bytes; ++i) {
      registers[piece.word][piece.lane] |= std::uint64_t{memory.at(piece.address + i)}
                                           << 8 * (piece.offset + i);
    }
  }
  return registers;
}

void store_pieces(const std::vector<emulator::MatrixPiece>& pieces, const Registers& registers,
                  unsigned word_bytes, std::vector<std::uint8_t>& memory) {
  check_covers(pieces, registers.size(), word_bytes);
  for (const emulator::MatrixPiece& piece : pieces) {
    for (unsigned i = 0; i < piece.bytes; ++i) {
      memory.at(piece.address + i) =
          static_cast<std::uint8_t>(registers[piece.word][piece.lane] >> 8 * (piece.offset + i));
    }
  }
}

}  // namespace ptxgen::test
