// tests/ptx/semantics_test.cpp - scalar rows and comparison operators against known answers
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "emulator/lane_runner.hpp"
#include "ptx/semantics/compare.hpp"
#include "ptx/semantics/scalar.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;

namespace {

using Answer = std::optional<ScalarRow::Results>;

// Evaluates one instruction on these sources.
Answer answer(const std::string& text, std::vector<std::uint64_t> sources) {
  const Module module = test::kernel_with(text);
  const Function& function = module.functions.back();
  const Instruction& s = *test::instructions_of(module)[0];
  const ScalarRow row(function, s, OperandSpecs(function, s));
  INFO(text);
  REQUIRE((!row.fits() || row.sources() == sources.size()));
  return row(sources);
}
std::uint64_t first(const std::string& text, std::vector<std::uint64_t> sources) {
  const Answer found = answer(text, std::move(sources));
  REQUIRE(found);
  return (*found)[0];
}

}  // namespace

TEST_CASE("results that PTX leaves undefined are not known") {
  for (const char* type : {"u16", "s16", "u32", "s32", "u64", "s64"}) {
    const std::string prefix = type[1] == '1' ? "%h" : type[1] == '3' ? "%r" : "%rd";
    const std::string operands = " " + prefix + "1, " + prefix + "2, " + prefix + "3;";
    CHECK_FALSE(answer("div." + std::string(type) + operands, {7, 0}));
    CHECK_FALSE(answer("rem." + std::string(type) + operands, {7, 0}));
    CHECK(first("div." + std::string(type) + operands, {7, 2}) == 3);
    CHECK(first("rem." + std::string(type) + operands, {7, 2}) == 1);
  }
  CHECK(first("div.s32 %r1, %r2, %r3;", {0x80000000, 0xffffffff}) == 0x80000000);
  CHECK(first("rem.s32 %r1, %r2, %r3;", {0x80000000, 0xffffffff}) == 0);
  CHECK_FALSE(answer("fns.b32 %r1, %r2, %r3, %r4;", {0xff, 32, 0}));
  CHECK(first("fns.b32 %r1, %r2, %r3, %r4;", {0xff, 3, 0}) == 3);
}

TEST_CASE("rows outside the scalar semantics are not evaluated") {
  CHECK_FALSE(answer("add.f32 %f1, %f2, %f3;", {1, 2}));
  CHECK_FALSE(answer("setp.lt.f32 %p1, %f2, %f3;", {1, 2}));
  CHECK_FALSE(answer("add.cc.u32 %r1, %r2, %r3;", {1, 2}));
  CHECK_FALSE(answer("ld.shared.u32 %r1, [%r2];", {0}));
  CHECK_FALSE(answer("mov.b128 %q1, %q2;", {0}));
  CHECK_FALSE(answer("mov.b64 {%r1, %r2}, %rd1;", {0}));
}

TEST_CASE("scalar rows give the answers of the manual") {
  CHECK(first("mul.hi.s64 %rd1, %rd2, %rd3;", {~std::uint64_t{0}, 2}) == ~std::uint64_t{0});
  CHECK(first("mul.wide.s16 %r1, %h2, %h3;", {0xffff, 3}) == 0xfffffffd);
  CHECK(first("sad.s32 %r1, %r2, %r3, %r4;", {0xffffffff, 2, 10}) == 13);
  CHECK(first("add.sat.s32 %r1, %r2, %r3;", {0x7fffffff, 1}) == 0x7fffffff);
  CHECK(first("bfe.s32 %r1, %r2, %r3, %r4;", {0x80000000, 28, 8}) == 0xfffffff8);
  CHECK(first("bfe.u32 %r1, %r2, %r3, %r4;", {0x80000000, 28, 8}) == 8);
  CHECK(first("bfi.b32 %r1, %r2, %r3, %r4, %r5;", {0xf, 0, 30, 8}) == 0xc0000000);
  CHECK(first("bfind.s32 %r1, %r2;", {0xffffffff}) == 0xffffffff);
  CHECK(first("bfind.shiftamt.u32 %r1, %r2;", {1}) == 31);
  CHECK(first("shl.b32 %r1, %r2, %r3;", {1, 32}) == 0);
  CHECK(first("shr.s32 %r1, %r2, %r3;", {0x80000000, 40}) == 0xffffffff);
  CHECK(first("shr.u16 %h1, %h2, %r3;", {0x8000, 16}) == 0);
  CHECK(first("shf.l.clamp.b32 %r1, %r2, %r3, %r4;", {5, 9, 40}) == 5);
  CHECK(first("shf.l.wrap.b32 %r1, %r2, %r3, %r4;", {5, 9, 32}) == 9);
  CHECK(first("prmt.b32 %r1, %r2, %r3, %r4;", {0x80, 0x44332211, 0x7648}) == 0x443311ff);
  CHECK(first("lop3.b32 %r1, %r2, %r3, %r4, 0x80;", {0xc, 0xa, 0x9, 0x80}) == 0x8);
  CHECK(first("cvt.sat.s8.s32 %r1, %r2;", {0xffffff00}) == 0x80);
  CHECK(first("cvt.u32.s8 %r1, %r2;", {0x80}) == 0xffffff80);
  CHECK(first("set.lt.f32.s32 %f1, %r2, %r3;", {0xffffffff, 0}) == 0x3f800000);
  CHECK(first("slct.b32.s32 %r1, %r2, %r3, %r4;", {1, 2, 0x80000000}) == 2);
  CHECK(first("dp4a.s32.u32 %r1, %r2, %r3, %r4;", {0xff, 0x80, 0}) == 0xffffff80);
  CHECK(first("bmsk.clamp.b32 %r1, %r2, %r3;", {30, 8}) == 0xc0000000);
  CHECK(*answer("setp.lt.and.s32 %p1|%p2, %r2, %r3, %p3;", {0xffffffff, 0, 1}) ==
        ScalarRow::Results{1, 0});
  CHECK(*answer("setp.lo.and.u32 %p1|%p2, %r2, %r3, %p3;", {0xffffffff, 0, 1}) ==
        ScalarRow::Results{0, 1});
}

TEST_CASE("comparison operators follow the ordering of their sources") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double a : {-1.0, 0.0, 2.0, nan}) {
    for (const double b : {-1.0, 0.0, 2.0, nan}) {
      const bool unordered = std::isnan(a) || std::isnan(b);
      const Ordering r = unordered ? Ordering::Unordered
                         : a < b   ? Ordering::Less
                         : a > b   ? Ordering::Greater
                                   : Ordering::Equal;
      CHECK(holds(Modifier::eq, r) == (a == b));
      CHECK(holds(Modifier::ne, r) == (!unordered && a != b));
      CHECK(holds(Modifier::lt, r) == (a < b));
      CHECK(holds(Modifier::le, r) == (a <= b));
      CHECK(holds(Modifier::gt, r) == (a > b));
      CHECK(holds(Modifier::ge, r) == (a >= b));
      CHECK(holds(Modifier::lo, r) == (a < b));
      CHECK(holds(Modifier::ls, r) == (a <= b));
      CHECK(holds(Modifier::hi, r) == (a > b));
      CHECK(holds(Modifier::hs, r) == (a >= b));
      CHECK(holds(Modifier::equ, r) == (unordered || a == b));
      CHECK(holds(Modifier::neu, r) == (a != b));
      CHECK(holds(Modifier::ltu, r) == !(a >= b));
      CHECK(holds(Modifier::leu, r) == !(a > b));
      CHECK(holds(Modifier::gtu, r) == !(a <= b));
      CHECK(holds(Modifier::geu, r) == !(a < b));
      CHECK(holds(Modifier::num, r) == !unordered);
      CHECK(holds(Modifier::nan, r) == unordered);
    }
  }
  for (const Modifier comparison :
       {Modifier::eq, Modifier::ne, Modifier::lt, Modifier::le, Modifier::gt, Modifier::ge,
        Modifier::lo, Modifier::ls, Modifier::hi, Modifier::hs}) {
    CHECK(holds(mirrored(comparison), Ordering::Less) == holds(comparison, Ordering::Greater));
    CHECK(holds(mirrored(comparison), Ordering::Greater) == holds(comparison, Ordering::Less));
    CHECK(holds(mirrored(comparison), Ordering::Equal) == holds(comparison, Ordering::Equal));
  }
  CHECK(ordering(0xff, 1, Type::s8) == Ordering::Less);
  CHECK(ordering(0xff, 1, Type::u8) == Ordering::Greater);
  CHECK(ordering(0x1'0000'0000, 0, Type::b32) == Ordering::Equal);
}
