// tests/analysis/affine_test.cpp - affine forms as text, and against what threads compute
#include "ptxgen/analysis/affine.hpp"

#include <catch2/catch.hpp>

#include "analysis/facts.hpp"
#include "snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::analysis;

namespace {

// The forms of what each memory access of the body addresses, a line each.
std::string addresses(std::string_view body, std::string_view head = ".reqntid 64, 2, 1") {
  const ptx::Module module = test::kernel(body, head);
  const ptx::Function& function = module.functions[0];
  Facts facts(module, function);
  std::string text;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const ptx::Instruction& s = function.body[i];
    if (ptx::space_of(s.get(ptx::Field::Space)) == ptx::Space::Param) continue;
    for (const ptx::Operand& o : function.operands_of(s)) {
      if (o.kind != ptx::OperandKind::Memory) continue;
      const AffineForm form = facts.affine().of(i, o);
      text += facts.affine().address_text(form);
      for (const std::uint32_t a : form.assumptions)
        text += "; " + facts.affine().to_text(facts.affine().assumption(a));
      text += '\n';
    }
  }
  return text;
}

// What `st.shared [%r0]` addresses after a few instructions.
std::string form(std::string_view instructions, std::string_view head = ".reqntid 64, 2, 1") {
  std::string text = addresses(std::string(instructions) + "st.shared.u32 [%r0], 0;\nret;\n", head);
  text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("affine: sums and products of indices, parameters and constants") {
  CHECK(form("mov.u32 %r1, %tid.x; mul.lo.u32 %r0, %r1, 12; add.s32 %r0, %r0, -4;") ==
        "12*tid.x - 4");
  CHECK(form("mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mad.lo.s32 %r3, %r2, 64, %r1;"
             "shl.b32 %r4, %r3, 2; mov.u32 %r5, tile; add.s32 %r0, %r5, %r4;") ==
        "tile[4*tid.x + 256*tid.y]");
  CHECK(form("ld.param.u32 %r1, [n]; mov.u32 %r2, %ctaid.x; mul.lo.s32 %r3, %r1, %r2;"
             "mov.u32 %r4, %tid.x; sub.s32 %r5, %r3, %r4; neg.s32 %r0, %r5;") ==
        "tid.x - n*ctaid.x");
  CHECK(form("mov.u32 %r1, %ntid.x; mov.u32 %r2, %ctaid.x; mad.lo.s32 %r0, %r1, %r2, 3;") ==
        "64*ctaid.x + 3");
  CHECK(form("mov.u32 %r1, %ntid.x; mov.u32 %r2, %ctaid.x; mad.lo.s32 %r0, %r1, %r2, 3;", "") ==
        "ntid.x*ctaid.x + 3");
  CHECK(form("mov.u32 %r1, %nctaid.y; mov.u32 %r2, %laneid; add.u32 %r0, %r1, %r2;") ==
        "laneid + nctaid.y");
  // The fourth component reads as 0, so does an index in a direction of one.
  CHECK(form("mov.u32 %r1, %tid.z; mov.u32 %r2, %tid.w; add.u32 %r0, %r1, %r2;") == "0");
  CHECK(form("mov.u32 %r1, %tid.x; not.b32 %r0, %r1;") == "-tid.x - 1");
  // Four factors are one too many.
  CHECK(form("ld.param.u32 %r1, [n]; mov.u32 %r2, %ctaid.x; mul.lo.u32 %r3, %r1, %r2;"
             "mul.lo.u32 %r0, %r3, %r3;") == "%r0");
  CHECK(form("mul.hi.u32 %r0, %r1, %r1;") == "%r0");
}

TEST_CASE("affine: widening does not assume that nothing wrapped without saying so") {
  const char* wide = "cvta.to.global.u64 %rd1, %rd0; ld.global.u32 %r9, [%rd1]; ret;";
  const auto global = [&](std::string_view instructions) {
    std::string text =
        addresses(std::string("ld.param.u64 %rd9, [a];") + std::string(instructions) + wide);
    text.pop_back();
    return text;
  };
  // Of an index alone it is known.
  CHECK(global("mov.u32 %r1, %tid.x; mad.wide.u32 %rd0, %r1, 4, %rd9;") == "a[4*tid.x]");
  CHECK(global("mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; cvt.u64.u32 %rd2, %r2;"
               "add.s64 %rd0, %rd9, %rd2;") == "a[4*tid.x]");
  CHECK(global("mov.u32 %r1, %tid.x; add.u32 %r2, %r1, -1; mad.wide.s32 %rd0, %r2, 4, %rd9;") ==
        "a[4*tid.x - 4]");
  CHECK(global("mov.u32 %r1, %tid.x; add.u32 %r2, %r1, -1; mad.wide.u32 %rd0, %r2, 4, %rd9;") ==
        "a[4*tid.x - 4]; tid.x - 1 as u32");
  CHECK(global("mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 256, %r1;"
               "mad.wide.u32 %rd0, %r3, 4, %rd9;") ==
        "a[4*tid.x + 1024*ctaid.x]; tid.x + 256*ctaid.x as u32");
  CHECK(global("mov.u32 %r1, %ctaid.y; mul.wide.s32 %rd2, %r1, 40; add.u64 %rd0, %rd2, %rd9;") ==
        "a[40*ctaid.y]");
  CHECK(global("ld.param.u32 %r1, [n]; mad.wide.u32 %rd0, %r1, 8, %rd9;") == "a[8*n]");
  CHECK(global("ld.param.u32 %r1, [n]; mad.wide.s32 %rd0, %r1, 8, %rd9;") == "a[8*n]; n as s32");
  // Narrower types cut off.
  CHECK(global("mov.u32 %r1, %tid.x; cvt.u16.u32 %h1, %r1; cvt.u64.u16 %rd2, %h1;"
               "add.u64 %rd0, %rd2, %rd9;") == "a[tid.x]");
  CHECK(global("ld.param.u32 %r1, [n]; cvt.u16.u32 %h1, %r1; cvt.u64.u16 %rd2, %h1;"
               "add.u64 %rd0, %rd2, %rd9;") == "a[n]; n as u16");
  CHECK(global("ld.param.u32 %r1, [n]; cvt.s8.s32 %r2, %r1; cvt.s64.s32 %rd2, %r2;"
               "add.u64 %rd0, %rd2, %rd9;") == "a[n]; n as s8; n as s32");
}

TEST_CASE("affine: quotients and remainders") {
  CHECK(form("mov.u32 %r1, %tid.x; and.b32 %r0, %r1, 31;") == "(tid.x mod 32)");
  CHECK(form("mov.u32 %r1, %tid.x; and.b32 %r0, %r1, 63;") == "tid.x");
  CHECK(form("mov.u32 %r1, %tid.x; shr.u32 %r0, %r1, 5;") == "(tid.x/32)");
  CHECK(form("mov.u32 %r1, %tid.x; shr.u32 %r0, %r1, 6;") == "0");
  CHECK(form("mov.u32 %r1, %tid.x; shr.s32 %r0, %r1, 31;") == "0");
  CHECK(form("mov.u32 %r1, %tid.x; mad.lo.u32 %r2, %r1, 8, 35; shr.u32 %r0, %r2, 3;") ==
        "tid.x + 4");
  CHECK(form("mov.u32 %r1, %tid.x; mad.lo.u32 %r2, %r1, 8, 35; and.b32 %r0, %r2, 7;") == "3");
  CHECK(form("mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mad.lo.u32 %r3, %r2, 64, %r1;"
             "shr.u32 %r0, %r3, 6;") == "tid.y");
  CHECK(form("mov.u32 %r1, %tid.x; and.b32 %r0, %r1, -32;") == "tid.x - (tid.x mod 32)");
  CHECK(form("mov.u32 %r1, %tid.x; bfe.u32 %r0, %r1, 2, 3;") == "((tid.x/4) mod 8)");
  CHECK(form("mov.u32 %r1, %tid.x; div.u32 %r2, %r1, 6; rem.u32 %r3, %r1, 6;"
             "mad.lo.u32 %r0, %r2, 100, %r3;") == "100*(tid.x/6) + (tid.x mod 6)");
  CHECK(form("ld.param.u32 %r1, [n]; shr.s32 %r0, %r1, 2;") == "(n >> 2)");
  CHECK(form("ld.param.u32 %r1, [n]; mul.lo.u32 %r2, %r1, 8; shr.u32 %r0, %r2, 3;") == "((8*n)/8)");
  CHECK(form("ld.param.u32 %r1, [n]; mul.lo.u32 %r2, %r1, 8; and.b32 %r0, %r2, 7;") == "0");
}

TEST_CASE("affine: bits that are not set in both are a sum") {
  CHECK(form("mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; mov.u32 %r3, %laneid; and.b32 %r4, %r3, 15;"
             "or.b32 %r0, %r2, %r4;") == "16*tid.x + (laneid mod 16)");
  CHECK(form("mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 1; xor.b32 %r0, %r2, 1;") == "2*tid.x + 1");
  CHECK(form("mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 1; or.b32 %r0, %r2, 2;") == "((2*tid.x) | 2)");
  CHECK(form("mov.u32 %r1, %tid.x; xor.b32 %r0, %r1, 5;") == "(tid.x ^ 5)");
}

TEST_CASE("affine: choices") {
  const std::string both = "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; setp.lt.u32 %p1, %r1, %r2;";
  CHECK(form(both + "selp.b32 %r0, %r1, %r2, %p1;") == "((tid.x < ctaid.x) ? tid.x : ctaid.x)");
  CHECK(form(both + "selp.b32 %r0, %r1, %r1, %p1;") == "tid.x");
  CHECK(form(both + "mov.u32 %r0, 8; @%p1 mov.u32 %r0, 12;") == "((tid.x < ctaid.x) ? 12 : 8)");
  CHECK(form(both + "mov.u32 %r0, 8; @!%p1 mov.u32 %r0, 8;") == "8");
  // What is advanced or not is a sum.
  CHECK(form(both + "mov.u32 %r0, %r1; @%p1 add.u32 %r0, %r1, 4;") ==
        "tid.x + 4*(tid.x < ctaid.x)");
  CHECK(form(both + "sub.u32 %r3, %r1, %r2; selp.b32 %r0, %r3, %r1, %p1;") ==
        "tid.x - ctaid.x*(tid.x < ctaid.x)");
  CHECK(form(both + "setp.lt.u32 %p2, %r1, 5; @%p2 mov.pred %p1, 0; mov.u32 %r3, %r2;"
                    "@%p1 add.u32 %r3, %r2, 4; mov.u32 %r0, %r3;") ==
        "4*((tid.x < 5) ? 0 : (tid.x < ctaid.x)) + ctaid.x");
  CHECK(form("mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 64; selp.b32 %r0, 1, 2, %p1;") == "2");
  CHECK(form("mov.u32 %r1, %tid.x; setp.gt.s32 %p1, 64, %r1; selp.b32 %r0, 1, 2, %p1;") == "1");
  CHECK(form("mov.u32 %r1, %tid.x; min.u32 %r2, %r1, 63; max.s32 %r3, %r2, 0;"
             "min.u32 %r0, %r3, 9;") == "min(tid.x, 9)");
}

TEST_CASE("affine: a register that a loop advances") {
  CHECK(addresses("ld.param.u32 %r1, [n]; ld.param.u64 %rd1, [a]; mov.u32 %r2, 0;\n"
                  "L: ld.global.u32 %r3, [%rd1]; st.shared.u32 [%r2+8], %r3;\n"
                  "mad.wide.u32 %rd1, %r1, 4, %rd1; add.u32 %r2, %r2, 16;\n"
                  "setp.lt.u32 %p1, %r2, %r1; @%p1 bra L;\n"
                  "st.shared.u32 [%r2], 0; ret;\n") ==
        "a[4*n*i]\n16*i + 8\n16*iterations(i) + 16\n");
  // A step that changes is no step.
  CHECK(addresses("mov.u32 %r2, 4;\nL: st.shared.u32 [%r2], 0; shl.b32 %r2, %r2, 1;\n"
                  "setp.lt.u32 %p1, %r2, 256; @%p1 bra L; ret;\n") == "%r2\n");
  // Loops in loops.
  CHECK(
      addresses("ld.param.u32 %r9, [n]; mov.u32 %r1, 0;\nL: mov.u32 %r2, %r1;\n"
                "M: st.shared.u32 [%r2], 0; add.u32 %r2, %r2, 4; setp.lt.u32 %p1, %r2, %r9;\n"
                "@%p1 bra M; add.u32 %r1, %r1, 64; setp.lt.u32 %p2, %r1, %r9; @%p2 bra L; ret;") ==
      "64*i + 4*j\n");
  // Two ways round with different steps, and with the same.
  const auto two_ways = [](std::string_view step) {
    return addresses(
        "ld.param.u32 %r9, [n]; mov.u32 %r1, 0;\nL: st.shared.u32 [%r1], 0;\n"
        "setp.lt.u32 %p1, %r9, %r1; add.u32 %r2, %r1, 4; add.u32 %r3, %r1, " +
        std::string(step) +
        ";\nmov.u32 %r1, %r2; @%p1 bra L; mov.u32 %r1, %r3;\n"
        "setp.lt.u32 %p2, %r1, %r9; @%p2 bra L; ret;");
  };
  CHECK(two_ways("8") == "%r1\n");
  CHECK(two_ways("4") == "4*i\n");
  // Both halves of a round advance it by the same.
  CHECK(addresses("ld.param.u32 %r9, [n]; mov.u32 %r1, 0;\nL: st.shared.u32 [%r1], 0;\n"
                  "setp.lt.u32 %p1, %r9, 5; @%p1 bra A; add.u32 %r1, %r1, 4; bra B;\n"
                  "A: add.u32 %r1, %r1, 4;\nB: setp.lt.u32 %p2, %r1, %r9; @%p2 bra L; ret;") ==
        "4*i\n");
}

TEST_CASE("affine: where paths join, what all bring along stays in words") {
  const std::string paths =
      "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, 4, %rd1;"
      "@%p1 bra L; add.u64 %rd2, %rd2, 128;\n"
      "L: ld.global.u32 %r3, [%rd2]; ret;";
  const auto lanes_agree = [](std::string_view body) {
    const ptx::Module module = test::kernel(body, ".reqntid 64, 2, 1");
    const ptx::Function& function = module.functions[0];
    Facts facts(module, function);
    for (std::uint32_t i = 0; i < function.body.size(); ++i) {
      if (!function.body[i].is(ptx::Op::ld)) continue;
      const AffineForm form = facts.affine().of(i, function.operands_of(function.body[i])[1]);
      const auto parts = facts.affine().split(form);
      if (facts.affine().address_text(form) == "a[4*tid.x + rest(%rd2)]")
        return facts.affine().to_text(parts.differing) == "4*tid.x";
    }
    FAIL("no such access");
    return false;
  };
  CHECK(lanes_agree("ld.param.u32 %r2, [n]; setp.lt.u32 %p1, %r2, 5;" + paths));
  CHECK_FALSE(
      lanes_agree("mov.u32 %r2, %tid.y; setp.lt.u32 %p1, %r2, 1;"
                  "mov.u32 %r4, %laneid; setp.lt.u32 %p1, %r4, 5;" +
                  paths));
}

TEST_CASE("affine: queries") {
  const ptx::Module module = test::kernel(
      "ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x;"
      "mul.lo.u32 %r4, %r1, %r3; and.b32 %r5, %r2, 7; mad.lo.u32 %r6, %r2, 4, %r4;"
      "add.u32 %r6, %r6, %r5; st.shared.u32 [%r6+4], 0; mad.lo.u32 %r7, %r2, 4, %r5;"
      "st.shared.u32 [%r7], 0; ret;",
      ".maxntid 64, 1, 1");
  const ptx::Function& function = module.functions[0];
  Facts facts(module, function);
  const Affine& affine = facts.affine();
  std::vector<AffineForm> forms;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    if (function.body[i].is(ptx::Op::st))
      forms.push_back(affine.of(i, function.operands_of(function.body[i])[0]));
  }
  REQUIRE(forms.size() == 2);
  CHECK(affine.to_text(forms[0]) == "4*tid.x + (tid.x mod 8) + n*ctaid.x + 4");
  using Kind = AffineSymbol::Kind;
  const std::uint32_t tid = affine.find(Kind::Thread, 0);
  CHECK(affine.find(Kind::Thread, 1) == ptx::kNone);
  CHECK_FALSE(affine.coefficient(forms[0], tid).has_value());  // in the remainder too
  CHECK_FALSE(affine.coefficient(forms[0], affine.find(Kind::Parameter, 0)).has_value());
  CHECK(affine.to_text(Affine::difference(forms[0], forms[1])) == "n*ctaid.x + 4");
  CHECK(affine.block().kind == BlockBounds::Kind::Bounded);
  const AffineRange range = affine.range(forms[1], affine.block());
  CHECK((range.known && range.min == 0 && range.max == 4 * 63 + 7));
  const AffineRange small = affine.range(forms[1], {BlockBounds::Kind::Exact, {4, 1, 1}});
  CHECK((small.known && small.min == 0 && small.max == 4 * 3 + 7));
  CHECK(affine.to_text(affine.split(forms[0]).agreeing) == "n*ctaid.x + 4");
  CHECK(affine.coefficient(affine.split(forms[0]).differing, affine.find(Kind::Block, 0)) == 0);
}

TEST_CASE("affine: as a listing") {
  const ptx::Module module = test::kernel(
      "ld.param.u32 %r1, [n]; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r1, %r2, 4;"
      "cvt.u64.u32 %rd1, %r3; st.global.u32 [%rd1], 0; ret;");
  Facts facts(module, module.functions[0]);
  CHECK(to_text(facts.affine()) ==
        "%r1 by statement 0: n\n"
        "%r2 by statement 1: ctaid.x\n"
        "%r3 by statement 2: n*ctaid.x + 4\n"
        "%rd1 by statement 3: n*ctaid.x + 4; assuming n*ctaid.x + 4 as u32\n");
}
