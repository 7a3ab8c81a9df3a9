// tests/emulator/matrix_memory_test.cpp - ldmatrix, stmatrix and wmma between memory and registers
#include <catch2/catch.hpp>

#include "matrix_runner.hpp"
#include "support/harness.hpp"

using namespace ptxgen::test;

namespace {

using u64 = std::uint64_t;
using Bytes = std::vector<std::uint8_t>;

/// 16-bit element (row, column) of 8 x 8 matrix i.
u64 element(unsigned i, unsigned row, unsigned column) {
  return 0x1000 * (i + 1) + 16 * row + column;
}

/// The rows of four matrices, scattered: where each begins.
std::vector<u64> row_addresses() {
  std::vector<u64> addresses(32);
  for (unsigned i = 0; i < 32; ++i) addresses[i] = 16 * (i * 11 % 32 + i % 3 * 32);
  return addresses;
}

Bytes memory_of_matrices() {
  Bytes memory(16 * 96);
  const std::vector<u64> addresses = row_addresses();
  for (unsigned row = 0; row < 32; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      const u64 value = element(row / 8, row % 8, column);
      memory[addresses[row] + 2 * column] = static_cast<std::uint8_t>(value);
      memory[addresses[row] + 2 * column + 1] = static_cast<std::uint8_t>(value >> 8);
    }
  }
  return memory;
}

/// What lanes hold of so many matrices: lane l row l / 4, columns 2 (l % 4) and the next; the other
/// way round if transposed.
Registers fragments(unsigned matrices, bool transposed) {
  Registers registers(matrices, std::vector<u64>(32));
  for (unsigned i = 0; i < matrices; ++i) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned row = lane / 4;
        const unsigned column = lane % 4 * 2 + half;
        const u64 value = transposed ? element(i, column, row) : element(i, row, column);
        registers[i][lane] |= value << 16 * half;
      }
    }
  }
  return registers;
}

}  // namespace

TEST_CASE("ldmatrix and stmatrix move 8 x 8 matrices by rows or transposed") {
  for (const unsigned matrices : {1u, 2u, 4u}) {
    for (const bool transposed : {false, true}) {
      const std::string what = ".sync.aligned.m8n8.x" + std::to_string(matrices) +
                               (transposed ? ".trans" : "") + ".shared.b16 ";
      const std::string registers = braces("b32", matrices);
      INFO(what);
      std::vector<u64> addresses = row_addresses();
      // Lanes beyond those of the matrices give no address that counts.
      for (unsigned lane = 8 * matrices; lane < 32; ++lane) addresses[lane] = ~u64{0};
      const auto pieces = pieces_of("ldmatrix" + what + registers + ", [%r40];", addresses, 0);
      CHECK(load_pieces(pieces, matrices, 4, memory_of_matrices()) ==
            fragments(matrices, transposed));
      for (const auto& piece : pieces) {
        const u64 row = addresses[piece.address_lane];
        CHECK((piece.address >= row && piece.address + piece.bytes <= row + 16));
        CHECK(piece.address_lane / 8 == piece.word);
      }

      Bytes memory(16 * 96);
      Bytes want = memory_of_matrices();
      for (unsigned row = 8 * matrices; row < 32; ++row) {
        std::fill_n(want.begin() + static_cast<std::ptrdiff_t>(row_addresses()[row]), 16,
                    std::uint8_t{0});
      }
      store_pieces(pieces_of("stmatrix" + what + "[%r40], " + registers + ";", addresses, 0),
                   fragments(matrices, transposed), 4, memory);
      CHECK(memory == want);
    }
  }
}

namespace {

struct Wmma {
  std::string shape;
  unsigned m, n, k;
  std::string a_type;  ///< of a and b
  std::string c_type;
  std::string d_type;
  std::string end = "";  ///< after the types of wmma.mma
  std::string op = "";   ///< before .sync of wmma.mma
};

std::vector<Wmma> wmmas() {
  std::vector<Wmma> all;
  const std::vector<Wmma> shapes = {{"m16n16k16", 16, 16, 16, "", "", ""},
                                    {"m8n32k16", 8, 32, 16, "", "", ""},
                                    {"m32n8k16", 32, 8, 16, "", "", ""}};
  for (const Wmma& shape : shapes) {
    const auto add = [&](const std::string& a, const std::string& c, const std::string& d,
                         const std::string& end = "") {
      all.push_back({shape.shape, shape.m, shape.n, shape.k, a, c, d, end});
    };
    for (const std::string c : {"f16", "f32"}) {
      for (const std::string d : {"f16", "f32"}) add("f16", c, d);
    }
    add("bf16", "f32", "f32");
    for (const std::string end : {"", ".satfinite"}) {
      add("u8", "s32", "s32", end);
      add("s8", "s32", "s32", end);
    }
  }
  all.push_back({"m16n16k8", 16, 16, 8, "tf32", "f32", "f32"});
  all.push_back({"m8n8k4", 8, 8, 4, "f64", "f64", "f64"});
  for (const std::string end : {"", ".satfinite"}) {
    all.push_back({"m8n8k32", 8, 8, 32, "u4", "s32", "s32", end});
    all.push_back({"m8n8k32", 8, 8, 32, "s4", "s32", "s32", end});
  }
  for (const std::string op : {".xor.popc", ".and.popc"}) {
    all.push_back({"m8n8k128", 8, 8, 128, "b1", "s32", "s32", "", op});
  }
  return all;
}

/// Registers of a fragment: all elements of all lanes, f16 of a and b in 8 whatever the shape.
unsigned word_count(const std::string& type, unsigned elements, bool factor) {
  if (type == "f16" && factor) return 8;
  return elements * bits_of(type) / 32 / (type == "f64" ? 64 : 32);
}

unsigned word_bytes(const std::string& type) { return type == "f64" ? 8 : 4; }

/// Memory with the matrix at byte `base`, rows or columns `stride` elements apart.
Bytes stored(const Matrix& matrix, const std::string& type, bool columns, u64 stride, u64 base) {
  const unsigned bits = bits_of(type);
  Bytes memory(base + (columns ? matrix.columns : matrix.rows) * stride * bits / 8 + 8);
  for (unsigned row = 0; row < matrix.rows; ++row) {
    for (unsigned column = 0; column < matrix.columns; ++column) {
      const u64 at = columns ? column * stride + row : row * stride + column;
      const u64 value = encoded(type, matrix.at(row, column));
      for (unsigned bit = 0; bit < bits; ++bit) {
        const u64 place = base * 8 + at * bits + bit;
        memory.at(place / 8) |= static_cast<std::uint8_t>((value >> bit & 1) << place % 8);
      }
    }
  }
  return memory;
}

Registers loaded(const std::string& what, const std::string& layout, const Wmma& w,
                 const Matrix& matrix, const std::string& type, u64 padding) {
  const bool columns = layout == "col";
  const u64 natural = columns ? matrix.rows : matrix.columns;
  const unsigned words = word_count(type, matrix.rows * matrix.columns, what != "c");
  std::string text = "wmma.load." + what + ".sync.aligned." + layout + "." + w.shape + ".global." +
                     type + " " + braces(type, words) + ", [%rd31]";
  if (padding != 0) text += ", %r63";
  text += ";";
  INFO(text);
  const auto pieces =
      pieces_of(text, std::vector<u64>(32, 64), padding == 0 ? 0 : natural + padding);
  return load_pieces(pieces, words, word_bytes(type),
                     stored(matrix, type, columns, natural + padding, 64));
}

std::int64_t min_of(const std::string& type) {
  return type[0] == 'u' || type == "b1" ? 0 : type == "s8" ? -128 : type == "s4" ? -8 : -5;
}
std::int64_t max_of(const std::string& type) {
  return type == "u8"   ? 255
         : type == "s8" ? 127
         : type == "u4" ? 15
         : type == "s4" ? 7
         : type == "b1" ? 1
                        : 5;
}

}  // namespace

TEST_CASE("wmma loads, multiplies and stores every shape, type and layout") {
  for (const Wmma& w : wmmas()) {
    const bool narrow = bits_of(w.a_type) < 8;
    for (const std::string a_layout : {"row", "col"}) {
      for (const std::string b_layout : {"row", "col"}) {
        if (narrow && (a_layout != "row" || b_layout != "col")) continue;
        for (const std::string c_layout : {"row", "col"}) {
          const u64 padding = c_layout == "row" ? 0 : 128;
          const std::string text =
              "wmma.mma" + w.op + ".sync.aligned." + a_layout + "." + b_layout + "." + w.shape +
              "." +
              (w.a_type == "f16" ? w.d_type + "." + w.c_type
                                 : w.d_type + "." + w.a_type + "." + w.a_type + "." + w.c_type) +
              w.end;
          INFO(text);
          const Matrix a = random_matrix(w.m, w.k, min_of(w.a_type), max_of(w.a_type));
          const Matrix b = random_matrix(w.k, w.n, min_of(w.a_type), max_of(w.a_type));
          const Matrix c = random_matrix(w.m, w.n, -100, 100);
          Registers sources = loaded("a", a_layout, w, a, w.a_type, padding);
          const Registers of_b = loaded("b", b_layout, w, b, w.a_type, padding);
          const Registers of_c = loaded("c", c_layout, w, c, w.c_type, padding);
          const auto a_words = static_cast<unsigned>(sources.size());
          const auto b_words = static_cast<unsigned>(of_b.size());
          const auto c_words = static_cast<unsigned>(of_c.size());
          sources.insert(sources.end(), of_b.begin(), of_b.end());
          sources.insert(sources.end(), of_c.begin(), of_c.end());
          const unsigned d_words = word_count(w.d_type, w.m * w.n, false);
          const Registers d = run_matrix(
              text + " " + braces(w.d_type, d_words) + ", " + braces(w.a_type, a_words, 8) + ", " +
                  braces(w.a_type, b_words, 16) + ", " + braces(w.c_type, c_words, 24) + ";",
              sources, d_words);

          Matrix want = product(a, b, c);
          if (!w.op.empty()) {
            want = c;
            for (unsigned row = 0; row < w.m; ++row) {
              for (unsigned column = 0; column < w.n; ++column) {
                for (unsigned i = 0; i < w.k; ++i) {
                  const std::int64_t sum = a.at(row, i) + b.at(i, column);
                  want.at(row, column) += w.op == ".and.popc" ? sum == 2 : sum == 1;
                }
              }
            }
          }
          const bool columns = c_layout == "col";
          const u64 stride = (columns ? w.m : w.n) + padding;
          const Bytes expected = stored(want, w.d_type, columns, stride, 32);
          Bytes memory(expected.size());
          std::string store = "wmma.store.d.sync.aligned." + c_layout + "." + w.shape + ".shared." +
                              w.d_type + " [%rd31], " + braces(w.d_type, d_words);
          if (padding != 0) store += ", %r63";
          store += ";";
          INFO(store);
          store_pieces(pieces_of(store, std::vector<u64>(32, 32), padding == 0 ? 0 : stride), d,
                       word_bytes(w.d_type), memory);
          REQUIRE(memory == expected);
        }
      }
    }
  }
}

TEST_CASE("c and d of wmma have their elements at the same places") {
  for (const std::string shape : {"m16n16k16", "m8n32k16", "m32n8k16"}) {
    for (const std::string type : {"f16", "f32"}) {
      const unsigned words = type == "f16" ? 4 : 8;
      const std::vector<u64> addresses(32, 0);
      const auto load = pieces_of("wmma.load.c.sync.aligned.row." + shape + "." + type + " " +
                                      braces(type, words) + ", [%rd31];",
                                  addresses, 0);
      const auto store = pieces_of("wmma.store.d.sync.aligned.row." + shape + "." + type +
                                       " [%rd31], " + braces(type, words) + ";",
                                   addresses, 0);
      REQUIRE(load.size() == store.size());
      for (std::size_t i = 0; i < load.size(); ++i) {
        CHECK(load[i].address == store[i].address);
        CHECK(load[i].lane == store[i].lane);
        CHECK(load[i].word == store[i].word);
        CHECK(load[i].offset == store[i].offset);
      }
    }
  }
}
