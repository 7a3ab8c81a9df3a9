// tests/emulator/matrix_test.cpp - mma and movmatrix against the fragments of the PTX ISA
#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "matrix_runner.hpp"
#include "support/harness.hpp"

using namespace ptxgen::test;

namespace {

using u64 = std::uint64_t;
using unsigneds = std::pair<unsigned, unsigned>;

/// Row and column of element i of a lane.
using Placing = std::function<unsigneds(unsigned lane, unsigned i)>;

/// The figures of the PTX ISA, shape by shape, written down as they are there: g is groupID, t is
/// threadID_in_group.
struct Figure {
  std::string shape;
  std::string element;  ///< f16 stands for bf16, s8 for u8, s4 for u4
  unsigned m, n, k;
  Placing a, b, c;
};

unsigned g(unsigned lane) { return lane >> 2; }
unsigned t(unsigned lane) { return lane % 4; }

const Placing kC4 = [](unsigned lane, unsigned i) -> unsigneds {
  return {i < 2 ? g(lane) : g(lane) + 8, t(lane) * 2 + (i & 1)};
};
const Placing kC2 = [](unsigned lane, unsigned i) -> unsigneds {
  return {g(lane), t(lane) * 2 + (i & 1)};
};

const std::vector<Figure> kFigures = {
    {"m16n8k8", "f16", 16, 8, 8,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i < 2 ? g(l) : g(l) + 8, t(l) * 2 + (i & 1)};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {t(l) * 2 + i, g(l)};
     },
     kC4},
    {"m16n8k16", "f16", 16, 8, 16,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i < 2 || (4 <= i && i < 6) ? g(l) : g(l) + 8,
               i < 4 ? t(l) * 2 + (i & 1) : t(l) * 2 + (i & 1) + 8};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {i < 2 ? t(l) * 2 + (i & 1) : t(l) * 2 + (i & 1) + 8, g(l)};
     },
     kC4},
    {"m16n8k4", "tf32", 16, 8, 4,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i == 0 ? g(l) : g(l) + 8, t(l)};
     },
     [](unsigned l, unsigned) -> unsigneds {
       return {t(l), g(l)};
     },
     kC4},
    {"m16n8k8", "tf32", 16, 8, 8,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i == 0 || i == 2 ? g(l) : g(l) + 8, i < 2 ? t(l) : t(l) + 4};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {i == 0 ? t(l) : t(l) + 4, g(l)};
     },
     kC4},
    {"m8n8k4", "f64", 8, 8, 4,
     [](unsigned l, unsigned) -> unsigneds {
       return {g(l), t(l)};
     },
     [](unsigned l, unsigned) -> unsigneds {
       return {t(l), g(l)};
     },
     kC2},
    {"m16n8k4", "f64", 16, 8, 4,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i == 0 ? g(l) : g(l) + 8, t(l)};
     },
     [](unsigned l, unsigned) -> unsigneds {
       return {t(l), g(l)};
     },
     kC4},
    {"m16n8k8", "f64", 16, 8, 8,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i == 0 || i == 2 ? g(l) : g(l) + 8, i < 2 ? t(l) : t(l) + 4};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {i == 0 ? t(l) : t(l) + 4, g(l)};
     },
     kC4},
    {"m16n8k16", "f64", 16, 8, 16,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i % 2 == 0 ? g(l) : g(l) + 8, i % 2 == 0 ? i * 2 + t(l) : i * 2 - 2 + t(l)};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {t(l) + i * 4, g(l)};
     },
     kC4},
    {"m8n8k16", "s8", 8, 8, 16,
     [](unsigned l, unsigned i) -> unsigneds {
       return {g(l), t(l) * 4 + i};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {t(l) * 4 + i, g(l)};
     },
     kC2},
    {"m16n8k16", "s8", 16, 8, 16,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i < 4 ? g(l) : g(l) + 8, t(l) * 4 + (i & 3)};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {t(l) * 4 + i, g(l)};
     },
     kC4},
    {"m16n8k32", "s8", 16, 8, 32,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i < 4 || (8 <= i && i < 12) ? g(l) : g(l) + 8,
               i < 8 ? t(l) * 4 + (i & 3) : t(l) * 4 + (i & 3) + 16};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {i < 4 ? t(l) * 4 + (i & 3) : t(l) * 4 + (i & 3) + 16, g(l)};
     },
     kC4},
    {"m8n8k32", "s4", 8, 8, 32,
     [](unsigned l, unsigned i) -> unsigneds {
       return {g(l), t(l) * 8 + i};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {t(l) * 8 + i, g(l)};
     },
     kC2},
    {"m16n8k32", "s4", 16, 8, 32,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i < 8 ? g(l) : g(l) + 8, t(l) * 8 + (i & 7)};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {t(l) * 8 + (i & 7), g(l)};
     },
     kC4},
    {"m16n8k64", "s4", 16, 8, 64,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i < 8 || (16 <= i && i < 24) ? g(l) : g(l) + 8,
               i < 16 ? t(l) * 8 + (i & 7) : t(l) * 8 + (i & 7) + 32};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {i < 8 ? t(l) * 8 + (i & 7) : t(l) * 8 + (i & 7) + 32, g(l)};
     },
     kC4},
    {"m8n8k128", "b1", 8, 8, 128,
     [](unsigned l, unsigned i) -> unsigneds {
       return {g(l), t(l) * 32 + i};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {t(l) * 32 + i, g(l)};
     },
     kC2},
    {"m16n8k128", "b1", 16, 8, 128,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i < 32 ? g(l) : g(l) + 8, t(l) * 32 + (i & 31)};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {t(l) * 32 + i, g(l)};
     },
     kC4},
    {"m16n8k256", "b1", 16, 8, 256,
     [](unsigned l, unsigned i) -> unsigneds {
       return {i < 32 || (64 <= i && i < 96) ? g(l) : g(l) + 8,
               i < 64 ? t(l) * 32 + (i & 31) : t(l) * 32 + (i & 31) + 128};
     },
     [](unsigned l, unsigned i) -> unsigneds {
       return {i < 32 ? t(l) * 32 + (i & 31) : t(l) * 32 + (i & 31) + 128, g(l)};
     },
     kC4},
};

unsigned word_bits(const std::string& type) { return type == "f64" ? 64 : 32; }

/// Registers that hold a matrix as a figure says.
Registers placed(const Matrix& matrix, const std::string& type, const Placing& place,
                 unsigned elements) {
  const unsigned bits = bits_of(type);
  Registers registers(elements * bits / word_bits(type), std::vector<u64>(32));
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < elements; ++i) {
      const auto [row, column] = place(lane, i);
      registers[i * bits / word_bits(type)][lane] |= encoded(type, matrix.at(row, column))
                                                     << i * bits % word_bits(type);
    }
  }
  return registers;
}

/// What a matrix of results holds; every element must be there.
Matrix gathered(const Registers& registers, const std::string& type, const Placing& place,
                unsigned elements, unsigned rows, unsigned columns) {
  const unsigned bits = bits_of(type);
  Matrix matrix(rows, columns);
  std::vector<int> times(matrix.values.size());
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < elements; ++i) {
      const auto [row, column] = place(lane, i);
      u64 word = registers.at(i * bits / word_bits(type))[lane] >> i * bits % word_bits(type);
      if (bits < 32) word &= (u64{1} << bits) - 1;
      matrix.at(row, column) = decoded(type, word);
      ++times[row * columns + column];
    }
  }
  REQUIRE(times == std::vector<int>(times.size(), 1));
  return matrix;
}

Registers joined(Registers a, const Registers& b, const Registers& c) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

struct Range {
  std::int64_t min, max;
};

Range range_of(const std::string& type) {
  if (type == "u8") return {0, 255};
  if (type == "s8") return {-128, 127};
  if (type == "u4") return {0, 15};
  if (type == "s4") return {-8, 7};
  if (type == "b1") return {0, 1};
  return {-5, 5};
}

std::string count_text(const std::string& type, unsigned elements, unsigned first) {
  return braces(type, elements * bits_of(type) / word_bits(type), first);
}

// Small integers are exact by every rule.
constexpr std::uint16_t kArchitectures[] = {0, 80, 90};

/// One instruction on random matrices. `suffix` is after the layouts, `end` after the types.
void check_mma(const Figure& f, const std::string& a_type, const std::string& b_type,
               const std::string& c_type, const std::string& d_type, const std::string& suffix = "",
               const std::string& end = "") {
  const unsigned in_a = f.m * f.k / 32;
  const unsigned in_b = f.k * f.n / 32;
  const unsigned in_c = f.m * f.n / 32;
  const std::string text = "mma.sync.aligned." + f.shape + ".row.col" + suffix + "." + d_type +
                           "." + a_type + "." + b_type + "." + c_type + end + " " +
                           count_text(d_type, in_c, 0) + ", " + count_text(a_type, in_a, 8) + ", " +
                           count_text(b_type, in_b, 16) + ", " + count_text(c_type, in_c, 24) + ";";
  INFO(text);
  for (int round = 0; round < count(10, 100); ++round) {
    const Range ra = range_of(a_type);
    const Range rb = range_of(b_type);
    const Matrix a = random_matrix(f.m, f.k, ra.min, ra.max);
    const Matrix b = random_matrix(f.k, f.n, rb.min, rb.max);
    const Matrix c = random_matrix(f.m, f.n, -100, 100);
    const std::uint16_t sm = kArchitectures[round % 3];
    const Registers results =
        run_matrix(text,
                   joined(placed(a, a_type, f.a, in_a), placed(b, b_type, f.b, in_b),
                          placed(c, c_type, f.c, in_c)),
                   in_c * bits_of(d_type) / word_bits(d_type), sm);
    Matrix want = product(a, b, c);
    if (a_type == "b1") {
      want = c;
      for (unsigned row = 0; row < f.m; ++row) {
        for (unsigned column = 0; column < f.n; ++column) {
          for (unsigned i = 0; i < f.k; ++i) {
            const std::int64_t sum = a.at(row, i) + b.at(i, column);
            want.at(row, column) += end == ".and.popc" ? sum == 2 : sum == 1;
          }
        }
      }
    }
    const Matrix got = gathered(results, d_type, f.c, in_c, f.m, f.n);
    REQUIRE(got.values == want.values);
  }
}

const Figure& figure(const std::string& shape, const std::string& element) {
  for (const Figure& f : kFigures) {
    if (f.shape == shape && f.element == element) return f;
  }
  throw std::logic_error("no figure");
}

}  // namespace

TEST_CASE("mma of f16, bf16, tf32 and f64 fragments as the PTX ISA places them") {
  for (const std::string shape : {"m16n8k8", "m16n8k16"}) {
    check_mma(figure(shape, "f16"), "f16", "f16", "f16", "f16");
    check_mma(figure(shape, "f16"), "f16", "f16", "f32", "f32");
    check_mma(figure(shape, "f16"), "bf16", "bf16", "f32", "f32");
  }
  for (const std::string shape : {"m16n8k4", "m16n8k8"}) {
    check_mma(figure(shape, "tf32"), "tf32", "tf32", "f32", "f32");
  }
  for (const std::string shape : {"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"}) {
    check_mma(figure(shape, "f64"), "f64", "f64", "f64", "f64");
    check_mma(figure(shape, "f64"), "f64", "f64", "f64", "f64", ".rn");
  }
}

TEST_CASE("mma of e4m3 and e5m2, in any combination") {
  for (const std::string a : {"e4m3", "e5m2"}) {
    for (const std::string b : {"e4m3", "e5m2"}) {
      for (const std::string shape : {"m16n8k16", "m16n8k32"}) {
        check_mma(figure(shape, "s8"), a, b, "f32", "f32");
        check_mma(figure(shape, "s8"), a, b, "f16", "f16");
      }
    }
  }
}

TEST_CASE("mma of 8- and 4-bit integers and of bits") {
  for (const std::string sat : {"", ".satfinite"}) {
    for (const std::string a : {"u", "s"}) {
      for (const std::string b : {"u", "s"}) {
        for (const std::string shape : {"m8n8k16", "m16n8k16", "m16n8k32"}) {
          check_mma(figure(shape, "s8"), a + "8", b + "8", "s32", "s32", sat);
        }
        for (const std::string shape : {"m8n8k32", "m16n8k32", "m16n8k64"}) {
          check_mma(figure(shape, "s4"), a + "4", b + "4", "s32", "s32", sat);
        }
      }
    }
  }
  for (const std::string end : {".and.popc", ".xor.popc"}) {
    for (const std::string shape : {"m8n8k128", "m16n8k128", "m16n8k256"}) {
      check_mma(figure(shape, "b1"), "b1", "b1", "s32", "s32", "", end);
    }
  }
}

TEST_CASE("integer sums wrap, or are clamped by .satfinite") {
  const Figure& f = figure("m8n8k16", "s8");
  Matrix a(8, 16);
  Matrix b(16, 8);
  Matrix c(8, 8);
  a.at(0, 0) = 100;
  b.at(0, 0) = 100;
  b.at(0, 1) = -100;
  c.at(0, 0) = 0x7fffffff;
  c.at(0, 1) = -0x7fffffff - 1;
  const Registers sources =
      joined(placed(a, "s8", f.a, 4), placed(b, "s8", f.b, 4), placed(c, "s32", f.c, 2));
  const auto run = [&](const std::string& sat) {
    return run_matrix("mma.sync.aligned.m8n8k16.row.col" + sat +
                          ".s32.s8.s8.s32 {%r0, %r1}, {%r2}, {%r3}, {%r4, %r5};",
                      sources, 2);
  };
  CHECK(run("")[0][0] == 0x7fffffffu + 10000);
  CHECK(run("")[1][0] == 0x80000000u - 10000);
  CHECK(run(".satfinite")[0][0] == 0x7fffffff);
  CHECK(run(".satfinite")[1][0] == 0x80000000);
}

TEST_CASE("mma.m8n8k4 of f16 makes four products, each of eight lanes") {
  // As the PTX ISA says: rows and columns within the product of the lane's quad pair.
  const auto quad = [](unsigned lane) { return lane % 16 / 4; };
  const Placing a_row = [](unsigned l, unsigned i) -> unsigneds {
    return {l < 16 ? l % 4 : l % 4 + 4, i};
  };
  const Placing a_col = [](unsigned l, unsigned i) -> unsigneds {
    return {l < 16 ? i % 4 : i % 4 + 4, l % 4};
  };
  const Placing b_row = [](unsigned l, unsigned i) -> unsigneds {
    return {l % 4, l < 16 ? i : i + 4};
  };
  const Placing b_col = [](unsigned l, unsigned i) -> unsigneds {
    return {i, l < 16 ? l % 4 : l % 4 + 4};
  };
  const Placing c_f16 = [](unsigned l, unsigned i) -> unsigneds {
    return {l < 16 ? l % 4 : l % 4 + 4, i};
  };
  const Placing c_f32 = [](unsigned l, unsigned i) -> unsigneds {
    const unsigned x = (l & 1) + (i & 2);
    return {l < 16 ? x : x + 4, (i & 4) + (l & 2) + (i & 1)};
  };
  for (const std::string a_layout : {"row", "col"}) {
    for (const std::string b_layout : {"row", "col"}) {
      for (const auto& [d_type, c_type] : std::vector<std::pair<std::string, std::string>>{
               {"f16", "f16"}, {"f32", "f32"}, {"f32", "f16"}}) {
        const std::string text = "mma.sync.aligned.m8n8k4." + a_layout + "." + b_layout + "." +
                                 d_type + ".f16.f16." + c_type + " " + count_text(d_type, 8, 0) +
                                 ", {%r8, %r9}, {%r10, %r11}, " + count_text(c_type, 8, 16) + ";";
        INFO(text);
        const Placing& place_a = a_layout == "row" ? a_row : a_col;
        const Placing& place_b = b_layout == "row" ? b_row : b_col;
        const Placing& place_c = c_type == "f16" ? c_f16 : c_f32;
        const Placing& place_d = d_type == "f16" ? c_f16 : c_f32;
        std::vector<Matrix> want;
        Registers sources(c_type == "f16" ? 8 : 12, std::vector<u64>(32));
        for (unsigned q = 0; q < 4; ++q) {
          const Matrix a = random_matrix(8, 4, -9, 9);
          const Matrix b = random_matrix(4, 8, -9, 9);
          const Matrix c = random_matrix(8, 8, -99, 99);
          want.push_back(product(a, b, c));
          const Registers all = joined(placed(a, "f16", place_a, 4), placed(b, "f16", place_b, 4),
                                       placed(c, c_type, place_c, 8));
          REQUIRE(all.size() == sources.size());
          for (std::size_t word = 0; word < all.size(); ++word) {
            for (unsigned lane = 0; lane < 32; ++lane) {
              if (quad(lane) == q) sources[word][lane] = all[word][lane];
            }
          }
        }
        const unsigned words = d_type == "f16" ? 4 : 8;
        const Registers results = run_matrix(text, sources, words);
        int seen = 0;
        for (unsigned lane = 0; lane < 32; ++lane) {
          for (unsigned i = 0; i < 8; ++i) {
            const auto [row, column] = place_d(lane, i);
            const u64 bits =
                d_type == "f16" ? results[i / 2][lane] >> 16 * (i % 2) & 0xffff : results[i][lane];
            REQUIRE(decoded(d_type, bits) == want[quad(lane)].at(row, column));
            ++seen;
          }
        }
        CHECK(seen == 256);
      }
    }
  }
}

namespace {

/// d[0][0] of m16n8k8 with a single product: a * b + c, as bits.
u64 one_product(u64 a, u64 b, const std::string& c_type, u64 c) {
  Registers sources(c_type == "f16" ? 5 : 7, std::vector<u64>(32));
  sources[0][0] = a;
  sources[2][0] = b;
  sources[3][0] = c;
  const std::string text = "mma.sync.aligned.m16n8k8.row.col." + c_type + ".f16.f16." + c_type +
                           " " + count_text(c_type, 4, 0) + ", {%r8, %r9}, {%r10}, " +
                           count_text(c_type, 4, 16) + ";";
  return run_matrix(text, sources, c_type == "f16" ? 2 : 4)[0][0];
}

}  // namespace

TEST_CASE("sums of f16 are rounded once, to the nearest even f16") {
  // All finite f16 in order, for a search.
  std::vector<double> values;
  for (u64 bits = 0; bits < 0x7c00; ++bits) values.push_back(half_value(bits));
  u64 state = seed();
  const auto random_half = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const u64 bits = state >> 48;
    return (bits & 0x7c00) == 0x7c00 ? bits & 0x83ff : bits;
  };
  for (int i = 0; i < count(3000, 100000); ++i) {
    const u64 a = random_half();
    const u64 b = random_half();
    const u64 c = random_half();
    const double sum = half_value(a) * half_value(b) + half_value(c);
    const double magnitude = std::fabs(sum);
    u64 want = 0x7c00;
    if (magnitude < 65520) {
      const auto above = std::upper_bound(values.begin(), values.end(), magnitude);
      want = static_cast<u64>(above - values.begin()) - 1;
      const double low = magnitude - values[want];
      const double high = (above == values.end() ? 65536 : *above) - magnitude;
      if (low > high || (low == high && want % 2 == 1)) ++want;
    }
    if (std::signbit(sum)) want |= 0x8000;
    INFO(a << " * " << b << " + " << c);
    REQUIRE((one_product(a, b, "f16", c) & 0xffff) == want);
  }
}

TEST_CASE("ties of f16 sums go to even") {
  const u64 one = 0x3c00;
  const u64 three = 0x4200;
  CHECK((one_product(one, one, "f16", 0x6800) & 0xffff) == 0x6800);     // 2048 + 1
  CHECK((one_product(three, one, "f16", 0x6800) & 0xffff) == 0x6802);   // 2048 + 3
  CHECK((one_product(0xbc00, one, "f16", 0xe801) & 0xffff) == 0xe802);  // -2050 - 1
  CHECK((one_product(0x4c00, one, "f16", 0x7bff) & 0xffff) == 0x7c00);  // 65504 + 16
  CHECK((one_product(0x4b80, one, "f16", 0x7bff) & 0xffff) == 0x7bff);  // 65504 + 15
  CHECK((one_product(0x0001, 0x3800, "f16", 0) & 0xffff) == 0);         // half the smallest one
  CHECK((one_product(0x0003, 0x3800, "f16", 0) & 0xffff) == 2);
}

TEST_CASE("products keep subnormals, infinities and NaN, and f32 sums are rounded once") {
  const u64 one = 0x3c00;
  for (const u64 bits : {0x0001u, 0x8001u, 0x03ffu, 0x0400u, 0x7bffu, 0x7c00u, 0xfc00u}) {
    CHECK((one_product(bits, one, "f16", 0) & 0xffff) == bits);
  }
  CHECK((one_product(0x7c00, 0, "f16", 0) & 0xffff) == 0x7fff);
  CHECK((one_product(0x7d23, one, "f16", 0) & 0xffff) == 0x7fff);
  CHECK(one_product(0x7d23, one, "f32", 0) == 0x7fffffff);
  CHECK(one_product(0x0001, one, "f32", 0) == 0x33800000);           // 2^-24
  CHECK(one_product(one, one, "f32", 0x4b800000) == 0x4b800000);     // 2^24 + 1: tie to even
  CHECK(one_product(0x4200, one, "f32", 0x4b800000) == 0x4b800002);  // 2^24 + 3
}

TEST_CASE("tf32 sources lose the 13 low bits") {
  Registers sources(7, std::vector<u64>(32));
  sources[0][0] = 0x3f801fff;
  sources[2][0] = 0x40001fff;
  const Registers results = run_matrix(
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, "
      "{%f4, %f5, %f6, %f7};",
      sources, 4);
  CHECK(results[0][0] == 0x40000000);
}

TEST_CASE("f64 products are fused and rounded as the opcode says, one after the other") {
  const std::vector<std::string> roundings = {"", ".rn", ".rz", ".rm", ".rp"};
  // c + 2^-60 + 2^-60: each step alone is lost, or moves the sum by an ulp.
  const auto bits = [](double value) { return std::bit_cast<u64>(value); };
  const double ulp = 0x1p-52;
  for (const std::string& rounding : roundings) {
    for (const double sign : {1.0, -1.0}) {
      INFO(rounding << " " << sign);
      const Figure& f = figure("m8n8k4", "f64");
      Registers sources(4, std::vector<u64>(32));
      // Row 0 of a: 2^-30, 2^-30, 0, 0 in lanes 0 to 3; column 0 of b the same with the sign.
      sources[0][0] = sources[0][1] = bits(0x1p-30);
      sources[1][0] = sources[1][1] = bits(sign * 0x1p-30);
      sources[2][0] = bits(sign);
      const Registers results =
          run_matrix("mma.sync.aligned.m8n8k4.row.col" + rounding +
                         ".f64.f64.f64.f64 {%fd0, %fd1}, {%fd2}, {%fd3}, {%fd4, %fd5};",
                     sources, 2);
      const bool away = rounding == (sign > 0 ? ".rp" : ".rm");
      CHECK(f.c(0, 0) == unsigneds{0, 0});
      CHECK(results[0][0] == bits(away ? sign * (1 + 2 * ulp) : sign));
    }
  }
  // Fused: 1 - (1 + ulp) * (1 - ulp) is ulp^2, not 0.
  Registers sources(4, std::vector<u64>(32));
  sources[0][0] = bits(1 + ulp);
  sources[1][0] = bits(-(1 - ulp));
  sources[2][0] = bits(1.0);
  CHECK(run_matrix("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd0, %fd1}, {%fd2}, {%fd3}, "
                   "{%fd4, %fd5};",
                   sources, 2)[0][0] == bits(ulp * ulp));
}

TEST_CASE("movmatrix transposes") {
  Registers source(1, std::vector<u64>(32));
  for (unsigned lane = 0; lane < 32; ++lane) {
    // Element (row, column) is 16 * row + column.
    source[0][lane] = (16 * g(lane) + 2 * t(lane)) | u64{16 * g(lane) + 2 * t(lane) + 1} << 16;
  }
  const Registers result = run_matrix("movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r1;", source, 1);
  for (unsigned lane = 0; lane < 32; ++lane) {
    const u64 want = (16 * (2 * t(lane)) + g(lane)) | u64{16 * (2 * t(lane) + 1) + g(lane)} << 16;
    CHECK(result[0][lane] == want);
  }
}
