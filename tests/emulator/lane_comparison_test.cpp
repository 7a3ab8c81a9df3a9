// tests/emulator/lane_comparison_test.cpp - setp, set, selp, slct rows on one lane
#include <catch2/catch.hpp>
#include <cmath>

#include "float_forms.hpp"
#include "lane_runner.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

const char* const kFloatWords[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                   "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

/// What a comparison says of two numbers; a u after the modifier holds for NaNs too.
bool compare(std::string word, double a, double b) {
  const bool unordered = std::isnan(a) || std::isnan(b);
  if (word == "num") return !unordered;
  if (word == "nan") return unordered;
  if (word.size() == 3) {
    if (unordered) return true;
    word.pop_back();
  }
  if (unordered) return false;
  if (word == "eq") return a == b;
  if (word == "ne") return a != b;
  if (word == "lt") return a < b;
  if (word == "le") return a <= b;
  return word == "gt" ? a > b : a >= b;
}
template <class T>
bool compare_integers(const std::string& word, T a, T b) {
  if (word == "eq") return a == b;
  if (word == "ne") return a != b;
  if (word == "lt" || word == "lo") return a < b;
  if (word == "le" || word == "ls") return a <= b;
  return word == "gt" || word == "hi" ? a > b : a >= b;
}
bool combine(const std::string& word, bool a, bool b) {
  return word == "and" ? a && b : word == "or" ? a || b : word == "xor" ? a != b : a;
}
const char* const kBooleans[] = {"", "and", "or", "xor"};

std::string dotted(const std::string& word) { return word.empty() ? "" : "." + word; }
std::string registers(int width) { return width == 16 ? "%h" : width == 32 ? "%r" : "%rd"; }

/// The comparison of two bit patterns that a row with this source type makes.
using Compare = std::function<bool(std::uint64_t, std::uint64_t)>;

/// setp with one and two destinations, and set into each of these types.
void check_rows(const std::string& word, const std::string& ftz, const std::string& type, int width,
                const std::vector<std::uint64_t>& values, bool one_destination,
                const std::vector<std::string>& set_types, const Compare& holds) {
  const std::string r = registers(width);
  for (const std::string boolean : kBooleans) {
    const std::string with = boolean.empty() ? ";" : ", %p3;";
    const std::string opcode = "setp." + word + dotted(boolean) + ftz + "." + type;
    const std::string sources = r + "1, " + r + "2" + with;
    const LaneRunner one(opcode + " %p1, " + sources);
    std::vector<LaneRunner> two;
    if (!one_destination) two.emplace_back(opcode + " %p1|%p2, " + sources);
    std::vector<LaneRunner> sets;
    for (const std::string& to : set_types) {
      const char* d = to == "f32" || to == "u32" || to == "s32" ? " %r1, " : " %h1, ";
      sets.emplace_back("set." + word + dotted(boolean) + ftz + "." + to + "." + type + d + r +
                        "2, " + r + "3" + with);
    }
    int failures = 0;
    for (const std::uint64_t a : values) {
      for (const std::uint64_t b : values) {
        for (const std::uint64_t c : {std::uint64_t{0}, std::uint64_t{1}}) {
          std::vector<std::uint64_t> in{a, b};
          if (!boolean.empty()) {
            in.push_back(c);
          } else if (c == 1) {
            continue;
          }
          const bool raw = holds(a, b);
          const std::uint64_t p = combine(boolean, raw, c != 0) ? 1 : 0;
          const std::uint64_t q = combine(boolean, !raw, c != 0) ? 1 : 0;
          if (one(in) != p) ++failures;
          if (!two.empty() && two[0].run(in) != std::vector<std::uint64_t>{p, q}) ++failures;
          for (std::size_t i = 0; i < sets.size(); ++i) {
            const std::string& to = set_types[i];
            const std::uint64_t truth = to == "f32"                  ? 0x3f800000
                                        : to == "f16"                ? 0x3c00
                                        : to == "bf16"               ? 0x3f80
                                        : to == "u16" || to == "s16" ? 0xffff
                                                                     : 0xffffffff;
            if (sets[i](in) != (p != 0 ? truth : 0)) ++failures;
          }
        }
      }
    }
    INFO(opcode);
    CHECK(failures == 0);
  }
}

}  // namespace

TEST_CASE("integers compare by their type") {
  for (const int width : {16, 32, 64}) {
    const auto& values = corner_bits(static_cast<unsigned>(width));
    const std::vector<std::string> to{"u32", "s32", "f32", "f16", "bf16"};
    const std::string bits = std::to_string(width);
    for (const char* word : {"eq", "ne"}) {
      check_rows(word, "", "b" + bits, width, values, false, to,
                 [&](auto a, auto b) { return compare_integers(word, a, b); });
    }
    for (const char* word : {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"}) {
      check_rows(word, "", "u" + bits, width, values, false, to,
                 [&](auto a, auto b) { return compare_integers(word, a, b); });
    }
    for (const char* word : {"eq", "ne", "lt", "le", "gt", "ge"}) {
      check_rows(word, "", "s" + bits, width, values, false, to, [&](auto a, auto b) {
        // The sign bit turned over puts them in the order of unsigned numbers.
        const std::uint64_t sign = std::uint64_t{1} << (width - 1);
        return compare_integers(word, a ^ sign, b ^ sign);
      });
    }
  }
}

TEST_CASE("floats compare ordered and unordered, -0 equal to +0") {
  for (const FloatFormat& f : {kSingle, kDouble, kHalf, kBrain}) {
    const bool has_ftz = f.width() == 32 || std::string_view(f.name) == "f16";
    const auto values = corners(f);
    for (const char* word : kFloatWords) {
      for (const bool ftz : {false, true}) {
        if (ftz && !has_ftz) continue;
        std::vector<std::string> to{"u32", "s32"};
        if (f.width() == 16) {
          to.insert(to.end(), {"u16", "s16", f.name});
        } else {
          to.insert(to.end(), {"f32", "f16"});
          if (!ftz) to.push_back("bf16");
        }
        check_rows(word, ftz ? ".ftz" : "", f.name, f.width(), values, f.width() == 16, to,
                   [&](auto a, auto b) {
                     return compare(word, value_of(f, flush(f, a, ftz)),
                                    value_of(f, flush(f, b, ftz)));
                   });
      }
    }
  }
}

TEST_CASE("packed halves compare each for itself") {
  FloatDice dice(seed());
  for (const FloatFormat& f : {kHalf, kBrain}) {
    const std::string type = type_name(f, 2);
    const auto values = corners(f);
    for (const std::string word : kFloatWords) {
      for (const std::string boolean : kBooleans) {
        for (const bool ftz : {false, true}) {
          if (ftz && std::string_view(f.name) == "bf16") continue;
          const std::string middle = word + dotted(boolean) + (ftz ? ".ftz." : ".");
          const std::string with = boolean.empty() ? ";" : ", %p3;";
          const LaneRunner both("setp." + middle + type + " %p1|%p2, %r1, %r2" + with);
          const LaneRunner one("setp." + middle + type + " %p1, %r1, %r2" + with);
          const LaneRunner bits("set." + middle + "u32." + type + " %r1, %r2, %r3" + with);
          const LaneRunner bits2("set." + middle + "s32." + type + " %r1, %r2, %r3" + with);
          const LaneRunner ones("set." + middle + type + "." + type + " %r1, %r2, %r3" + with);
          int failures = 0;
          for (int i = 0; i < 500; ++i) {
            const auto draw = [&] { return values[dice.below(values.size())]; };
            const std::uint64_t a[2] = {draw(), draw()};
            const std::uint64_t b[2] = {dice.below(3) == 0 ? a[0] : draw(), draw()};
            const std::uint64_t c = dice.below(2);
            std::uint64_t p[2];
            for (int k = 0; k < 2; ++k) {
              const bool raw =
                  compare(word, value_of(f, flush(f, a[k], ftz)), value_of(f, flush(f, b[k], ftz)));
              p[k] = combine(boolean, raw, c != 0) ? 1 : 0;
            }
            std::vector<std::uint64_t> in{a[1] << 16 | a[0], b[1] << 16 | b[0]};
            if (!boolean.empty()) in.push_back(c);
            if (both.run(in) != std::vector<std::uint64_t>{p[0], p[1]}) ++failures;
            if (one(in) != p[0]) ++failures;
            const std::uint64_t mask = p[1] * 0xffff0000 + p[0] * 0xffff;
            if (bits(in) != mask || bits2(in) != mask) ++failures;
            if (ones(in) != ((p[1] * f.one()) << 16 | p[0] * f.one())) ++failures;
          }
          INFO(both.text());
          CHECK(failures == 0);
        }
      }
    }
  }
}

TEST_CASE("selp and slct pick bits") {
  for (const std::string type :
       {"b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"}) {
    const int width = std::stoi(type.substr(1));
    const std::string r = registers(width);
    const LaneRunner selp("selp." + type + " " + r + "1, " + r + "2, " + r + "3, %p1;");
    const LaneRunner slct("slct." + type + ".s32 " + r + "1, " + r + "2, " + r + "3, %r9;");
    const LaneRunner by_float("slct." + type + ".f32 " + r + "1, " + r + "2, " + r + "3, %f9;");
    const LaneRunner flushing("slct.ftz." + type + ".f32 " + r + "1, " + r + "2, " + r + "3, %f9;");
    const std::uint64_t a = corner_bits(static_cast<unsigned>(width))[2];
    const std::uint64_t b = corner_bits(static_cast<unsigned>(width))[12];
    CHECK(selp({a, b, 1}) == a);
    CHECK(selp({a, b, 0}) == b);
    for (const std::uint64_t c : {0u, 1u, 0x7fffffffu}) CHECK(slct({a, b, c}) == a);
    for (const std::uint64_t c : {0x80000000u, 0xffffffffu}) CHECK(slct({a, b, c}) == b);
    for (const std::uint64_t c : corners(kSingle)) {
      CHECK(by_float({a, b, c}) == (value_of(kSingle, c) >= 0 ? a : b));
      CHECK(flushing({a, b, c}) == (value_of(kSingle, flush(kSingle, c)) >= 0 ? a : b));
    }
  }
}

}  // namespace ptxgen::test
