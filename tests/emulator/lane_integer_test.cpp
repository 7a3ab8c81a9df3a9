// tests/emulator/lane_integer_test.cpp - integer rows against 128-bit integers and bit loops
#include <catch2/catch.hpp>

#include <functional>

#include "lane_runner.hpp"
#include "support/harness.hpp"

using namespace ptxgen::test;

namespace {

using u64 = std::uint64_t;
using Sources = std::vector<u64>;
__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

struct IntegerType {
  std::string name;
  unsigned width;
  bool is_signed;
};

const std::vector<IntegerType> kIntegers = {{"u16", 16, false}, {"u32", 32, false},
                                            {"u64", 64, false}, {"s16", 16, true},
                                            {"s32", 32, true},  {"s64", 64, true}};

/// `opcode d, a, b, c;` with so many operands, all as wide as the type, and `last` after them.
std::string line(const std::string& opcode, unsigned width, int operands,
                 const std::string& last = "") {
  std::string text = opcode;
  for (int i = 0; i < operands; ++i) {
    text += (i == 0 ? " " : ", ") + registers_of(width) + std::to_string(i);
  }
  return text + last + ";";
}

i128 value(u64 bits, const IntegerType& type) {
  i128 number = static_cast<i128>(bits);
  const i128 range = static_cast<i128>(1) << type.width;
  if (type.is_signed && number >= range / 2) number -= range;
  return number;
}

u64 wrapped(i128 number, unsigned width) {
  return static_cast<u64>(static_cast<u128>(number) & ((static_cast<u128>(1) << width) - 1));
}

u64 clamped(i128 number, i128 min, i128 max, unsigned width) {
  return wrapped(number < min ? min : number > max ? max : number, width);
}

/// Bits of the full product from `from` on.
u64 product_bits(i128 a, i128 b, unsigned from, unsigned width) {
  const u128 product = static_cast<u128>(a) * static_cast<u128>(b);
  return static_cast<u64>(product >> from & ((static_cast<u128>(1) << width) - 1));
}

using Expected = std::function<u64(const Sources&)>;

void check_line(const std::string& text, const Expected& expected, int random = 3000) {
  const LaneRunner lane(text);
  int wrong = 0;
  for_sources(lane, count(random, 10 * random), [&](const Sources& sources) {
    const u64 want = expected(sources);
    const u64 got = lane(sources);
    if (got == want || ++wrong > 3) return;
    std::string shown;
    for (const u64 bits : sources) shown += std::to_string(bits) + " ";
    INFO(text << " of " << shown);
    CHECK(got == want);
  });
  CHECK(wrong == 0);
}

void check_all(const std::string& opcode, int operands, const std::vector<IntegerType>& types,
               const std::function<u64(const IntegerType&, const Sources&)>& expected,
               const std::string& last = "") {
  for (const IntegerType& type : types) {
    check_line(line(opcode + "." + type.name, type.width, operands, last),
               [&](const Sources& s) { return expected(type, s); });
  }
}

std::vector<IntegerType> of_width(std::initializer_list<unsigned> widths) {
  std::vector<IntegerType> found;
  for (const IntegerType& type : kIntegers) {
    if (std::find(widths.begin(), widths.end(), type.width) != widths.end()) found.push_back(type);
  }
  return found;
}

std::vector<IntegerType> signed_types() { return {kIntegers[3], kIntegers[4], kIntegers[5]}; }

const i128 kMin32 = -(static_cast<i128>(1) << 31);
const i128 kMax32 = (static_cast<i128>(1) << 31) - 1;

}  // namespace

TEST_CASE("add and sub of every width wrap around") {
  check_all("add", 3, kIntegers, [](const IntegerType& t, const Sources& s) {
    return wrapped(value(s[0], t) + value(s[1], t), t.width);
  });
  check_all("sub", 3, kIntegers, [](const IntegerType& t, const Sources& s) {
    return wrapped(value(s[0], t) - value(s[1], t), t.width);
  });
}

TEST_CASE("add, sub, mad.hi and mad24.hi clamp with .sat") {
  const IntegerType t = kIntegers[4];
  check_line("add.sat.s32 %r0, %r1, %r2;", [&](const Sources& s) {
    return clamped(value(s[0], t) + value(s[1], t), kMin32, kMax32, 32);
  });
  check_line("sub.sat.s32 %r0, %r1, %r2;", [&](const Sources& s) {
    return clamped(value(s[0], t) - value(s[1], t), kMin32, kMax32, 32);
  });
  check_line("mad.hi.sat.s32 %r0, %r1, %r2, %r3;", [&](const Sources& s) {
    const u64 high = product_bits(value(s[0], t), value(s[1], t), 32, 32);
    return clamped(value(high, t) + value(s[2], t), kMin32, kMax32, 32);
  });
  const IntegerType t24 = {"s24", 24, true};
  check_line("mad24.hi.sat.s32 %r0, %r1, %r2, %r3;", [&](const Sources& s) {
    const u64 high = product_bits(value(s[0] & 0xffffff, t24), value(s[1] & 0xffffff, t24), 16, 32);
    return clamped(value(high, t) + value(s[2], t), kMin32, kMax32, 32);
  });
  CHECK(LaneRunner("add.sat.s32 %r0, %r1, %r2;")({0x7fffffff, 1}) == 0x7fffffff);
  CHECK(LaneRunner("sub.sat.s32 %r0, %r1, %r2;")({0x80000000, 1}) == 0x80000000);
}

TEST_CASE("mul and mad give low, high and wide products") {
  for (const std::string part : {"lo", "hi"}) {
    check_all("mul." + part, 3, kIntegers, [&](const IntegerType& t, const Sources& s) {
      return product_bits(value(s[0], t), value(s[1], t), part == "hi" ? t.width : 0, t.width);
    });
    check_all("mad." + part, 4, kIntegers, [&](const IntegerType& t, const Sources& s) {
      const u64 product =
          product_bits(value(s[0], t), value(s[1], t), part == "hi" ? t.width : 0, t.width);
      return wrapped(static_cast<i128>(product) + static_cast<i128>(s[2]), t.width);
    });
  }
  for (const IntegerType& t : of_width({16, 32})) {
    const std::string wide = registers_of(2 * t.width);
    const std::string narrow = registers_of(t.width);
    check_line(
        "mul.wide." + t.name + " " + wide + "0, " + narrow + "1, " + narrow + "2;",
        [&](const Sources& s) { return wrapped(value(s[0], t) * value(s[1], t), 2 * t.width); });
    check_line(
        "mad.wide." + t.name + " " + wide + "0, " + narrow + "1, " + narrow + "2, " + wide + "3;",
        [&](const Sources& s) {
          return wrapped(value(s[0], t) * value(s[1], t) + static_cast<i128>(s[2]), 2 * t.width);
        });
  }
}

TEST_CASE("mul24 and mad24 use 24 bits of their sources") {
  for (const IntegerType& t : of_width({32})) {
    const IntegerType t24 = {"24", 24, t.is_signed};
    for (const std::string part : {"lo", "hi"}) {
      const auto product = [&](const Sources& s) {
        return product_bits(value(s[0] & 0xffffff, t24), value(s[1] & 0xffffff, t24),
                            part == "hi" ? 16 : 0, 32);
      };
      check_line(line("mul24." + part + "." + t.name, 32, 3), product);
      check_line(line("mad24." + part + "." + t.name, 32, 4), [&](const Sources& s) {
        return wrapped(static_cast<i128>(product(s)) + static_cast<i128>(s[2]), 32);
      });
    }
  }
  CHECK(LaneRunner("mul24.lo.u32 %r0, %r1, %r2;")({0xff000003, 0x01000005}) == 15);
  CHECK(LaneRunner("mul24.hi.s32 %r0, %r1, %r2;")({0x00ffffff, 1}) == 0xffffffff);
  CHECK(LaneRunner("mul24.lo.s32 %r0, %r1, %r2;")({0x00800000, 1}) == 0xff800000);
}

TEST_CASE("sad adds the distance") {
  check_all("sad", 4, kIntegers, [](const IntegerType& t, const Sources& s) {
    i128 distance = value(s[0], t) - value(s[1], t);
    if (distance < 0) distance = -distance;
    return wrapped(distance + value(s[2], t), t.width);
  });
}

TEST_CASE("div and rem round towards zero, and say what they do where PTX does not") {
  check_all("div", 3, kIntegers, [](const IntegerType& t, const Sources& s) {
    if (s[1] == 0) return wrapped(-1, t.width);
    return wrapped(value(s[0], t) / value(s[1], t), t.width);
  });
  check_all("rem", 3, kIntegers, [](const IntegerType& t, const Sources& s) {
    if (s[1] == 0) return s[0];
    return wrapped(value(s[0], t) % value(s[1], t), t.width);
  });
  CHECK(LaneRunner("div.s32 %r0, %r1, %r2;")({0x80000000, 0xffffffff}) == 0x80000000);
  CHECK(LaneRunner("rem.s64 %rd0, %rd1, %rd2;")({u64{1} << 63, ~u64{0}}) == 0);
  CHECK(LaneRunner("div.s32 %r0, %r1, %r2;")({0xfffffff9, 2}) == 0xfffffffd);
  CHECK(LaneRunner("rem.s32 %r0, %r1, %r2;")({0xfffffff9, 2}) == 0xffffffff);
  CHECK(LaneRunner("div.u16 %h0, %h1, %h2;")({5, 0}) == 0xffff);
}

TEST_CASE("abs, neg, min, max") {
  check_all("abs", 2, signed_types(), [](const IntegerType& t, const Sources& s) {
    const i128 a = value(s[0], t);
    return wrapped(a < 0 ? -a : a, t.width);
  });
  check_all("neg", 2, signed_types(), [](const IntegerType& t, const Sources& s) {
    return wrapped(-value(s[0], t), t.width);
  });
  check_all("min", 3, kIntegers, [](const IntegerType& t, const Sources& s) {
    return value(s[0], t) < value(s[1], t) ? s[0] : s[1];
  });
  check_all("max", 3, kIntegers, [](const IntegerType& t, const Sources& s) {
    return value(s[0], t) > value(s[1], t) ? s[0] : s[1];
  });
  const IntegerType s32 = kIntegers[4];
  check_line("min.relu.s32 %r0, %r1, %r2;", [&](const Sources& s) {
    const i128 smallest = std::min(value(s[0], s32), value(s[1], s32));
    return smallest < 0 ? 0 : static_cast<u64>(smallest);
  });
  check_line("max.relu.s32 %r0, %r1, %r2;", [&](const Sources& s) {
    const i128 largest = std::max(value(s[0], s32), value(s[1], s32));
    return largest < 0 ? 0 : static_cast<u64>(largest);
  });
}

TEST_CASE("rows of two 16-bit lanes work on each half alone") {
  const auto check = [](const std::string& opcode, bool is_signed,
                        const std::function<i128(i128, i128)>& one) {
    const IntegerType half = {"16", 16, is_signed};
    check_line(opcode + (is_signed ? ".s16x2" : ".u16x2") + " %r0, %r1, %r2;",
               [&](const Sources& s) {
                 const i128 low = one(value(s[0] % 65536, half), value(s[1] % 65536, half));
                 const i128 high = one(value(s[0] / 65536, half), value(s[1] / 65536, half));
                 return wrapped(high, 16) * 65536 + wrapped(low, 16);
               });
  };
  for (const bool is_signed : {false, true}) {
    check("add", is_signed, [](i128 a, i128 b) { return a + b; });
    check("min", is_signed, [](i128 a, i128 b) { return std::min(a, b); });
    check("max", is_signed, [](i128 a, i128 b) { return std::max(a, b); });
  }
  check("min.relu", true, [](i128 a, i128 b) { return std::max<i128>(0, std::min(a, b)); });
  check("max.relu", true, [](i128 a, i128 b) { return std::max<i128>(0, std::max(a, b)); });
}

TEST_CASE("popc, clz, bfind and brev against bit loops") {
  for (const unsigned width : {32u, 64u}) {
    const std::string type = ".b" + std::to_string(width);
    const std::string r = registers_of(width);
    check_line("popc" + type + " %r0, " + r + "1;", [&](const Sources& s) {
      u64 ones = 0;
      for (unsigned i = 0; i < width; ++i) ones += s[0] >> i & 1;
      return ones;
    });
    check_line("clz" + type + " %r0, " + r + "1;", [&](const Sources& s) {
      u64 zeros = 0;
      while (zeros < width && (s[0] >> (width - 1 - zeros) & 1) == 0) ++zeros;
      return zeros;
    });
    check_line("brev" + type + " " + r + "0, " + r + "1;", [&](const Sources& s) {
      u64 reversed = 0;
      for (unsigned i = 0; i < width; ++i) reversed = reversed << 1 | (s[0] >> i & 1);
      return reversed;
    });
    for (const bool is_signed : {false, true}) {
      for (const bool amount : {false, true}) {
        check_line(std::string("bfind") + (amount ? ".shiftamt" : "") + (is_signed ? ".s" : ".u") +
                       std::to_string(width) + " %r0, " + r + "1;",
                   [&](const Sources& s) -> u64 {
                     const u64 sign = is_signed ? s[0] >> (width - 1) & 1 : 0;
                     for (unsigned i = width; i-- > 0;) {
                       if ((s[0] >> i & 1) != sign) return amount ? width - 1 - i : i;
                     }
                     return 0xffffffff;
                   });
      }
    }
  }
}

TEST_CASE("fns finds the n-th set bit up or down from a base") {
  check_line(
      "fns.b32 %r0, %r1, %r2, %r3;",
      [](const Sources& s) -> u64 {
        // The loop of the PTX ISA.
        const auto offset = static_cast<std::int64_t>(static_cast<std::int32_t>(s[2]));
        if (s[1] > 31) return 0xffffffff;
        auto position = static_cast<std::int64_t>(s[1]);
        if (offset == 0) return (s[0] >> position & 1) != 0 ? s[1] : 0xffffffff;
        std::int64_t left = (offset < 0 ? -offset : offset) - 1;
        for (; position >= 0 && position<32; position += offset> 0 ? 1 : -1) {
          if ((s[0] >> position & 1) == 0) continue;
          if (left-- == 0) return static_cast<u64>(position);
        }
        return 0xffffffff;
      },
      20000);
  const LaneRunner fns("fns.b32 %r0, %r1, %r2, %r3;");
  CHECK(fns({0xffff0000, 0, 1}) == 16);
  CHECK(fns({0x0000ffff, 31, 0xffffffff}) == 15);
  CHECK(fns({0x0000ffff, 4, 0}) == 4);
}

TEST_CASE("bfe and bfi follow the loops of the PTX ISA") {
  for (const IntegerType& t : of_width({32, 64})) {
    const std::string r = registers_of(t.width);
    check_line(
        "bfe." + t.name + " " + r + "0, " + r + "1, %r2, %r3;",
        [&](const Sources& s) {
          const unsigned msb = t.width - 1;
          const u64 position = s[1] & 255;
          const u64 length = s[2] & 255;
          u64 sign = 0;
          if (t.is_signed && length != 0) {
            sign = s[0] >> std::min<u64>(position + length - 1, msb) & 1;
          }
          u64 d = 0;
          for (unsigned i = 0; i <= msb; ++i) {
            const bool inside = i < length && position + i <= msb;
            d |= (inside ? s[0] >> (position + i) & 1 : sign) << i;
          }
          return d;
        },
        20000);
  }
  for (const unsigned width : {32u, 64u}) {
    const std::string r = registers_of(width);
    check_line(
        "bfi.b" + std::to_string(width) + " " + r + "0, " + r + "1, " + r + "2, %r3, %r4;",
        [&](const Sources& s) {
          u64 d = s[1];
          for (u64 i = 0; i < (s[3] & 255) && (s[2] & 255) + i < width; ++i) {
            const u64 bit = u64{1} << ((s[2] & 255) + i);
            d = (s[0] >> i & 1) != 0 ? d | bit : d & ~bit;
          }
          return d;
        },
        20000);
  }
}

TEST_CASE("bmsk and szext clamp or wrap") {
  for (const bool clamp : {false, true}) {
    const std::string mode = clamp ? "clamp" : "wrap";
    check_line(
        "bmsk." + mode + ".b32 %r0, %r1, %r2;",
        [&](const Sources& s) {
          const u64 first = clamp ? s[0] : s[0] % 32;
          const u64 length = clamp ? s[1] : s[1] % 32;
          u64 d = 0;
          for (u64 i = 0; i < 32; ++i) d |= u64{i >= first && i < first + length} << i;
          return d;
        },
        20000);
    for (const IntegerType& t : of_width({32})) {
      check_line(
          "szext." + mode + "." + t.name + " %r0, %r1, %r2;",
          [&](const Sources& s) {
            const u64 length = clamp ? std::min<u64>(s[1], 32) : s[1] % 32;
            u64 d = 0;
            for (unsigned i = 0; i < 32; ++i) {
              const u64 from = i < length ? i : length - 1;
              const bool fills = i >= length && (!t.is_signed || length == 0);
              d |= (fills ? 0 : s[0] >> from & 1) << i;
            }
            return d;
          },
          20000);
    }
  }
}

TEST_CASE("dp4a and dp2a take each side's sign from its own type") {
  const auto element = [](u64 bits, unsigned width, unsigned i, bool is_signed) {
    return value(bits / (u64{1} << width * i) % (u64{1} << width), {"", width, is_signed});
  };
  for (const bool a_signed : {false, true}) {
    for (const bool b_signed : {false, true}) {
      const std::string types =
          std::string(a_signed ? ".s32" : ".u32") + (b_signed ? ".s32" : ".u32");
      check_line("dp4a" + types + " %r0, %r1, %r2, %r3;", [&](const Sources& s) {
        i128 sum = static_cast<i128>(s[2]);
        for (unsigned i = 0; i < 4; ++i) {
          sum += element(s[0], 8, i, a_signed) * element(s[1], 8, i, b_signed);
        }
        return wrapped(sum, 32);
      });
      for (const std::string part : {"lo", "hi"}) {
        check_line("dp2a." + part + types + " %r0, %r1, %r2, %r3;", [&](const Sources& s) {
          i128 sum = static_cast<i128>(s[2]);
          for (unsigned i = 0; i < 2; ++i) {
            sum += element(s[0], 16, i, a_signed) *
                   element(s[1], 8, part == "hi" ? i + 2 : i, b_signed);
          }
          return wrapped(sum, 32);
        });
      }
    }
  }
}

namespace {

/// Both results of a row with carry, as one number: the flag above the result.
void check_carry(const std::string& opcode, const IntegerType& t, int operands, bool writes,
                 const std::function<u128(const Sources&)>& expected) {
  const LaneRunner lane(line(opcode + (writes ? ".cc." : ".") + t.name, t.width, operands));
  INFO(lane.text());
  int wrong = 0;
  for_sources(lane, count(3000, 30000), [&](const Sources& sources) {
    const u128 want = expected(sources);
    const std::vector<u64> got = lane.run(sources);
    const bool right = got[0] == wrapped(static_cast<i128>(want), t.width) &&
                       (!writes || got[1] == static_cast<u64>(want >> t.width & 1));
    if (!right) ++wrong;
  });
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("the carry flag goes in and out of add, sub and mad") {
  for (const IntegerType& t : of_width({32, 64})) {
    check_carry("add", t, 3, true, [](const Sources& s) { return static_cast<u128>(s[0]) + s[1]; });
    // A difference is a sum with the complement, so its flag is 1 where nothing is borrowed.
    const u128 all = (u128{1} << t.width) - 1;
    check_carry("sub", t, 3, true,
                [=](const Sources& s) { return static_cast<u128>(s[0]) + (all - s[1]) + 1; });
    for (const bool writes : {false, true}) {
      check_carry("addc", t, 3, writes,
                  [](const Sources& s) { return static_cast<u128>(s[0]) + s[1] + s[2]; });
      check_carry("subc", t, 3, writes,
                  [=](const Sources& s) { return static_cast<u128>(s[0]) + (all - s[1]) + s[2]; });
      for (const unsigned from : {0u, t.width}) {
        const std::string part = from == 0 ? ".lo" : ".hi";
        const auto product = [&, from](const Sources& s) {
          return static_cast<u128>(product_bits(value(s[0], t), value(s[1], t), from, t.width));
        };
        check_carry("madc" + part, t, 4, writes,
                    [&](const Sources& s) { return product(s) + s[2] + s[3]; });
        if (writes) {
          check_carry("mad" + part, t, 4, true,
                      [&](const Sources& s) { return product(s) + s[2]; });
        }
      }
    }
  }
}

TEST_CASE("a chain of carries adds and multiplies long numbers") {
  const LaneRunner first("add.cc.u32 %r0, %r1, %r2;");
  const LaneRunner last("addc.u32 %r0, %r1, %r2;");
  const u64 a = 0xffff'fffe'ffff'ffff;
  const u64 b = 0x0000'0000'0000'0003;
  const std::vector<u64> low = first.run({a & 0xffffffff, b & 0xffffffff});
  CHECK(low == std::vector<u64>{2, 1});
  CHECK(last({a >> 32, b >> 32, low[1]}) == 0xffffffff);

  const LaneRunner sub_first("sub.cc.u64 %rd0, %rd1, %rd2;");
  CHECK(sub_first.run({0, 1}) == std::vector<u64>{~u64{0}, 0});
  CHECK(sub_first.run({1, 1}) == std::vector<u64>{0, 1});
}

// What ptxas 13.0 folds these constants to.
TEST_CASE("sums and differences pass their flag on to each other as ptxas folds them") {
  const LaneRunner add("add.cc.u32 %r0, %r1, %r2;"), sub("sub.cc.u32 %r0, %r1, %r2;");
  const LaneRunner addc("addc.u32 %r0, %r1, %r2;"), subc("subc.u32 %r0, %r1, %r2;");
  CHECK(addc({0, 0, sub.run({1, 2})[1]}) == 0);
  CHECK(addc({0, 0, sub.run({2, 1})[1]}) == 1);
  CHECK(subc({0, 0, add.run({1, 2})[1]}) == 0xffffffff);
  CHECK(subc({0, 0, add.run({0xffffffff, 2})[1]}) == 0);
}
