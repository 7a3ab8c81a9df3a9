// tests/emulator/warpgroup_test.cpp - wgmma: layouts, products, groups
#include <catch2/catch.hpp>
#include <random>

#include "emulator/matrix/warpgroup.hpp"
#include "support/harness.hpp"
#include "warpgroup_kernels.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using emulator::MatrixDescriptor;
using emulator::MatrixView;

namespace {

/// Offset of an element by the emulator.
unsigned offset_of(std::uint64_t bits, const MatrixView& view, unsigned row, unsigned k) {
  const unsigned within = (view.transposed ? row : k) % (16 / view.element_bytes);
  return emulator::piece_of(MatrixDescriptor::unpacked(bits), view, row, k) +
         within * view.element_bytes;
}

struct Place {
  unsigned row, k, offset;
};

void check_places(std::uint64_t bits, const MatrixView& view, const std::vector<Place>& places) {
  for (const Place& at : places) {
    INFO("row " << at.row << ", k " << at.k);
    CHECK(offset_of(bits, view, at.row, at.k) == at.offset);
  }
}

void check_product(const WarpgroupCase& c, std::uint64_t seed = 0) {
  const bool bytes = c.element_bytes() == 1 && c.integer();
  const auto range = [&](const std::string& type) -> std::pair<int, int> {
    if (!bytes) return {-5, 5};
    return type == "u8" ? std::pair(0, 255) : std::pair(-128, 127);
  };
  const auto [low_a, high_a] = range(c.a);
  const auto [low_b, high_b] = range(c.b);
  const Matrix a = random_matrix(64, c.k(), low_a, high_a);
  const Matrix b = random_matrix(c.n, c.k(), low_b, high_b);
  const Matrix before = random_matrix(64, c.n, -100, 100);
  const Matrix got = run_warpgroup(c, a, b, before, seed);
  Matrix want(64, c.n);
  const int sign = c.negate_a == c.negate_b ? 1 : -1;
  for (unsigned row = 0; row < 64; ++row) {
    for (unsigned column = 0; column < c.n; ++column) {
      std::int64_t sum = c.accumulate ? before.at(row, column) : 0;
      for (unsigned i = 0; i < c.k(); ++i) sum += sign * a.at(row, i) * b.at(column, i);
      want.at(row, column) = sum;
    }
  }
  INFO(c.text());
  REQUIRE(got.values == want.values);
}

}  // namespace

// Written down from the figures of the PTX ISA (wgmma, "Shared Memory Matrix Layout").
TEST_CASE("wgmma: elements in shared memory, by hand") {
  SECTION("no swizzle: core matrices of 8 rows of 16 bytes") {
    const std::uint64_t bits = descriptor(0, 128, 256, 0);
    CHECK(bits == 0x0000001000080000);
    check_places(bits, {64, 16, 2, false},
                 {{0, 0, 0},
                  {0, 7, 14},
                  {1, 0, 16},
                  {7, 0, 112},
                  {0, 8, 128},
                  {7, 15, 254},
                  {8, 0, 256},
                  {9, 8, 400},
                  {63, 15, 2046}});
    check_places(bits, {64, 8, 4, false}, {{0, 3, 12}, {0, 4, 128}, {1, 5, 148}, {8, 0, 256}});
    check_places(bits, {64, 32, 1, false}, {{0, 15, 15}, {0, 16, 128}, {2, 17, 161}});
  }
  SECTION("128 bytes: 8 rows of 128 bytes, whose 16-byte pieces are xored with the row") {
    const std::uint64_t bits = descriptor(0x400, 0, 1024, 128);
    CHECK(bits == 0x4000004000000040);
    check_places(bits, {64, 16, 2, false},
                 {{0, 0, 0x400},
                  {0, 8, 0x410},
                  {1, 0, 0x490},
                  {1, 8, 0x480},
                  {2, 0, 0x520},
                  {2, 9, 0x532},
                  {7, 0, 0x7f0},
                  {7, 8, 0x7e0},
                  {8, 0, 0x800},
                  {9, 0, 0x890}});
    // The second step of k begins 32 bytes later.
    check_places(descriptor(0x420, 0, 1024, 128), {64, 16, 2, false},
                 {{0, 0, 0x420}, {1, 0, 0x4b0}, {1, 8, 0x4a0}, {6, 0, 0x740}});
  }
  SECTION("64 bytes: the pattern changes every two rows") {
    check_places(descriptor(0x200, 0, 512, 64), {64, 16, 2, false},
                 {{0, 0, 0x200},
                  {1, 0, 0x240},
                  {2, 0, 0x290},
                  {2, 8, 0x280},
                  {4, 0, 0x320},
                  {7, 8, 0x3e0},
                  {8, 0, 0x400}});
  }
  SECTION("32 bytes: the pattern changes every four rows") {
    check_places(
        descriptor(0x100, 0, 256, 32), {64, 16, 2, false},
        {{0, 0, 0x100}, {3, 8, 0x170}, {4, 0, 0x190}, {4, 8, 0x180}, {7, 0, 0x1f0}, {8, 0, 0x200}});
  }
  SECTION("transposed, no swizzle: core matrices of 8 k of 8 elements of m") {
    check_places(descriptor(0, 1024, 128, 0), {64, 16, 2, true},
                 {{0, 0, 0},
                  {7, 0, 14},
                  {0, 1, 16},
                  {0, 7, 112},
                  {8, 0, 128},
                  {0, 8, 1024},
                  {63, 15, 1024 + 7 * 128 + 112 + 14}});
  }
  SECTION("transposed, 128 bytes: 64 elements of m in a line of k") {
    check_places(descriptor(0, 2048, 1024, 128), {128, 16, 2, true},
                 {{0, 0, 0},
                  {8, 0, 16},
                  {0, 1, 0x90},
                  {8, 1, 0x80},
                  {63, 0, 126},
                  {64, 0, 2048},
                  {0, 8, 1024},
                  {65, 9, 2048 + 1024 + 0x92}});
  }
  SECTION("transposed, 64 and 32 bytes") {
    check_places(descriptor(0, 1024, 512, 64), {64, 16, 2, true},
                 {{31, 0, 62}, {32, 0, 1024}, {0, 2, 0x90}, {0, 8, 512}});
    check_places(descriptor(0, 512, 256, 32), {64, 16, 2, true},
                 {{15, 0, 30}, {16, 0, 512}, {0, 4, 0x90}, {0, 8, 256}});
  }
  SECTION("a base offset moves the start of the pattern") {
    check_places(descriptor(0x480, 0, 1024, 128, 1), {64, 16, 2, false},
                 {{0, 0, 0x480}, {1, 0, 0x510}, {7, 0, 0x870}});
  }
}

TEST_CASE("wgmma: matrices of every type, layout and form") {
  struct Types {
    const char *a, *b, *d;
  };
  constexpr Types kTypes[] = {
      {"f16", "f16", "f32"},   {"f16", "f16", "f16"},   {"bf16", "bf16", "f32"},
      {"tf32", "tf32", "f32"}, {"e4m3", "e5m2", "f32"}, {"e5m2", "e4m3", "f16"},
      {"e4m3", "e4m3", "f32"}, {"e5m2", "e5m2", "f32"}, {"s8", "s8", "s32"},
      {"u8", "s8", "s32"},     {"s8", "u8", "s32"},     {"u8", "u8", "s32"}};
  constexpr unsigned kSwizzles[] = {0, 32, 64, 128};
  unsigned i = 0;
  for (const Types& types : kTypes) {
    for (const unsigned swizzle : kSwizzles) {
      WarpgroupCase c{types.a, types.b, types.d};
      c.swizzle = swizzle;
      // All combinations in a full run; else each value of each with some others.
      ++i;
      c.n = i % 2 == 0 ? 16 : 8;
      c.a_in_registers = i % 3 == 0;
      c.accumulate = i % 5 != 0;
      if (!c.integer()) {
        c.negate_a = i % 4 == 1;
        c.negate_b = i % 6 < 2;
      }
      check_product(c);
      if (c.element_bytes() != 2) continue;
      for (unsigned trans = 1; trans < 4; ++trans) {
        // Rows of a swizzle's width along n.
        c.n = std::max(8u, swizzle / 2);
        c.transpose_a = (trans & 1) != 0;
        c.transpose_b = (trans & 2) != 0;
        c.a_in_registers = false;
        check_product(c);
      }
    }
  }
}

TEST_CASE("wgmma: all n") {
  for (unsigned n = 8; n <= 256; n += 8) {
    const bool edge = n <= 24 || n == 136 || n == 256;
    if (!edge && test::count(0, 1) == 0) continue;
    WarpgroupCase c;
    c.n = n;
    c.swizzle = 128;
    check_product(c);
    c.d = "f16";
    check_product(c);
    if (n > 24 && n % 16 != 0) continue;
    c = {"s8", "s8", "s32"};
    c.n = n;
    c.swizzle = 64;
    check_product(c);
  }
}

TEST_CASE("wgmma: integers wrap, or are clamped with .satfinite") {
  Matrix a(64, 32), b(8, 32), before(64, 8);
  for (std::int64_t& one : a.values) one = 127;
  for (std::int64_t& one : b.values) one = 127;
  for (std::int64_t& one : before.values) one = 0x7fffff00;
  WarpgroupCase c{"s8", "s8", "s32"};
  CHECK(run_warpgroup(c, a, b, before).at(5, 3) ==
        static_cast<std::int32_t>(0x7fffff00u + 32u * 127u * 127u));
  c.saturate = true;
  CHECK(run_warpgroup(c, a, b, before).at(5, 3) == 0x7fffffff);
}
