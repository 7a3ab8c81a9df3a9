// tests/emulator/lane_logic_test.cpp - logic, shift, move and permute rows against bit loops
#include <catch2/catch.hpp>

#include <functional>

#include "lane_runner.hpp"
#include "support/harness.hpp"

using namespace ptxgen::test;

namespace {

using u64 = std::uint64_t;
using Sources = std::vector<u64>;

void check_line(const std::string& text, const std::function<Sources(const Sources&)>& expected) {
  const LaneRunner lane(text);
  int wrong = 0;
  for_sources(lane, count(3000, 30000), [&](const Sources& sources) {
    const Sources want = expected(sources);
    const Sources got = lane.run(sources);
    if (got == want || ++wrong > 3) return;
    std::string shown;
    for (const u64 bits : sources) shown += std::to_string(bits) + " ";
    INFO(text << " of " << shown);
    CHECK(got == want);
  });
  CHECK(wrong == 0);
}

/// A result whose bit number i is `bit(i)`.
u64 from_bits(unsigned width, const std::function<bool(unsigned)>& bit) {
  u64 result = 0;
  for (unsigned i = 0; i < width; ++i) {
    if (bit(i)) result |= u64{1} << i;
  }
  return result;
}

bool bit_of(u64 bits, u64 i) { return (bits >> i & 1) != 0; }

}  // namespace

TEST_CASE("and, or, xor, not and cnot of predicates and bits") {
  for (const unsigned width : {1u, 16u, 32u, 64u}) {
    const std::string type = width == 1 ? ".pred " : ".b" + std::to_string(width) + " ";
    const std::string r = registers_of(width);
    const std::string three = type + r + "0, " + r + "1, " + r + "2;";
    const std::string two = type + r + "0, " + r + "1;";
    const auto each = [&](const std::function<bool(bool, bool)>& f) {
      return [&, f](const Sources& s) {
        return Sources{
            from_bits(width, [&](unsigned i) { return f(bit_of(s[0], i), bit_of(s.back(), i)); })};
      };
    };
    check_line("and" + three, each([](bool a, bool b) { return a && b; }));
    check_line("or" + three, each([](bool a, bool b) { return a || b; }));
    check_line("xor" + three, each([](bool a, bool b) { return a != b; }));
    check_line("not" + two, each([](bool a, bool) { return !a; }));
    if (width > 1)
      check_line("cnot" + two, [](const Sources& s) { return Sources{s[0] ? 0u : 1u}; });
  }
}

TEST_CASE("lop3 looks every bit up in its table") {
  const LaneRunner lane("lop3.b32 %r0, %r1, %r2, %r3, 0;");
  const LaneRunner with_or("lop3.or.b32 %r0|%p0, %r1, %r2, %r3, 0, %p1;");
  const LaneRunner with_and("lop3.and.b32 %r0|%p0, %r1, %r2, %r3, 0, %p1;");
  const std::vector<u64>& corners = corner_bits(32);
  int wrong = 0;
  for (u64 table = 0; table < 256; ++table) {
    for (std::size_t i = 0; i + 2 < corners.size(); ++i) {
      const u64 a = corners[i];
      const u64 b = corners[i + 1];
      const u64 c = corners[i + 2];
      const u64 want = from_bits(32, [&](unsigned bit) {
        return bit_of(table, 4u * bit_of(a, bit) + 2u * bit_of(b, bit) + bit_of(c, bit));
      });
      if (lane({a, b, c, table}) != want) ++wrong;
      for (const u64 q : {0u, 1u}) {
        if (with_or.run({a, b, c, table, q}) != Sources{want, want != 0 || q != 0}) ++wrong;
        if (with_and.run({a, b, c, table, q}) != Sources{want, want != 0 && q != 0}) ++wrong;
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(lane({0xf0, 0xcc, 0xaa, 0x96}) == (0xf0 ^ 0xcc ^ 0xaa));
}

TEST_CASE("shf shifts two registers as one, clamped or wrapped") {
  for (const bool left : {false, true}) {
    for (const bool clamp : {false, true}) {
      check_line(std::string("shf.") + (left ? "l." : "r.") + (clamp ? "clamp" : "wrap") +
                     ".b32 %r0, %r1, %r2, %r3;",
                 [&](const Sources& s) {
                   const u64 n = clamp ? std::min<u64>(s[2], 32) : s[2] % 32;
                   // Bit i of b:a, a the lower half.
                   const auto both = [&](u64 i) {
                     return i < 32 ? bit_of(s[0], i) : i < 64 && bit_of(s[1], i - 32);
                   };
                   return Sources{from_bits(
                       32, [&](unsigned i) { return both(left ? u64{i} + 32 - n : i + n); })};
                 });
    }
  }
}

TEST_CASE("shl and shr give zeros or signs for counts past the width") {
  for (const unsigned width : {16u, 32u, 64u}) {
    const std::string r = registers_of(width);
    const std::string operands = std::to_string(width) + " " + r + "0, " + r + "1, %r2;";
    check_line("shl.b" + operands, [&](const Sources& s) {
      return Sources{
          from_bits(width, [&](unsigned i) { return i >= s[1] && bit_of(s[0], i - s[1]); })};
    });
    for (const char kind : {'b', 'u', 's'}) {
      check_line(std::string("shr.") + kind + operands, [&](const Sources& s) {
        return Sources{from_bits(width, [&](unsigned i) {
          if (i + s[1] < width) return bit_of(s[0], i + s[1]);
          return kind == 's' && bit_of(s[0], width - 1);
        })};
      });
    }
  }
  CHECK(LaneRunner("shr.s32 %r0, %r1, %r2;")({0x80000000, 0xffffffff}) == 0xffffffff);
  CHECK(LaneRunner("shl.b64 %rd0, %rd1, %r2;")({1, 64}) == 0);
}

TEST_CASE("mov copies every type") {
  for (const std::string type : {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"}) {
    const std::string r = registers_of(static_cast<unsigned>(std::stoul(type.substr(1))));
    check_line("mov." + type + " " + r + "0, " + r + "1;", [](const Sources& s) { return s; });
  }
  check_line("mov.pred %p0, %p1;", [](const Sources& s) { return s; });
  check_line("mov.f32 %f0, %f1;", [](const Sources& s) { return s; });
  check_line("mov.f64 %fd0, %fd1;", [](const Sources& s) { return s; });
  check_line("mov.b128 %q0, %q1;", [](const Sources& s) { return s; });
}

TEST_CASE("mov packs and unpacks, the first part lowest") {
  for (const auto& [whole_width, parts] : std::vector<std::pair<unsigned, unsigned>>{
           {16, 2}, {32, 2}, {32, 4}, {64, 2}, {64, 4}, {128, 2}, {128, 4}}) {
    const unsigned width = whole_width;
    const unsigned part = width / parts;
    std::string braces = "{";
    for (unsigned i = 0; i < parts; ++i) {
      braces += (i == 0 ? "" : ", ") + registers_of(part) + std::to_string(i + 1);
    }
    braces += "}";
    const std::string type = "mov.b" + std::to_string(width) + " ";
    const std::string full = registers_of(width) + "0";
    const auto bytes_of = [](const Sources& words, unsigned bits) {
      std::vector<std::uint8_t> bytes;
      for (const u64 word : words) {
        for (unsigned i = 0; i < bits / 8; ++i)
          bytes.push_back(static_cast<std::uint8_t>(word >> 8 * i));
      }
      return bytes;
    };
    const auto to_words = [](const std::vector<std::uint8_t>& bytes, unsigned bits) {
      Sources words(bytes.size() * 8 / bits);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        words[i * 8 / bits] |= static_cast<u64>(bytes[i]) << i * 8 % bits;
      }
      return words;
    };
    check_line(type + full + ", " + braces + ";",
               [&](const Sources& s) { return to_words(bytes_of(s, part), std::min(width, 64u)); });
    check_line(type + braces + ", " + full + ";",
               [&](const Sources& s) { return to_words(bytes_of(s, std::min(width, 64u)), part); });
  }
  CHECK(LaneRunner("mov.b32 %r0, {%h1, %h2};")({0x1111, 0x2222}) == 0x22221111);
  // A part that is thrown away has its place all the same.
  CHECK(LaneRunner("mov.b32 {_, %h2}, %r0;").run({0x22221111}) == Sources{0x1111, 0x2222});
}

TEST_CASE("prmt picks bytes by selectors or by a mode") {
  check_line("prmt.b32 %r0, %r1, %r2, %r3;", [](const Sources& s) {
    std::uint8_t bytes[8];
    for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(s[i / 4] >> i % 4 * 8);
    u64 result = 0;
    for (unsigned i = 4; i-- > 0;) {
      const u64 selector = s[2] >> 4 * i & 15;
      const std::uint8_t byte = bytes[selector % 8];
      result = result * 256 + (selector < 8 ? byte : byte >= 128 ? 255 : 0);
    }
    return Sources{result};
  });
  // The tables of the PTX ISA: for each mode and value of c the bytes of d, the highest first.
  const std::vector<std::pair<std::string, std::vector<std::string>>> kModes = {
      {"f4e", {"3210", "4321", "5432", "6543"}}, {"b4e", {"5670", "6701", "7012", "0123"}},
      {"rc8", {"0000", "1111", "2222", "3333"}}, {"ecl", {"3210", "3211", "3222", "3333"}},
      {"ecr", {"0000", "1110", "2210", "3210"}}, {"rc16", {"1010", "3232", "1010", "3232"}}};
  for (const auto& [mode, rows] : kModes) {
    const LaneRunner lane("prmt.b32." + mode + " %r0, %r1, %r2, %r3;");
    for (u64 c = 0; c < 4; ++c) {
      INFO(mode << " " << c);
      u64 want = 0;
      for (const char digit : rows[c]) want = want << 8 | (0xa0u + static_cast<u64>(digit - '0'));
      // Bytes a0 a1 .. a7 from the lowest; only the two low bits of c count.
      CHECK(lane({0xa3a2a1a0, 0xa7a6a5a4, c}) == want);
      CHECK(lane({0xa3a2a1a0, 0xa7a6a5a4, c + 0xfffffff0}) == want);
    }
  }
}
