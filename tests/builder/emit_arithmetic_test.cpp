// tests/builder/emit_arithmetic_test.cpp - one line for each arithmetic method
#include "emit.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

TEST_CASE("arithmetic methods emit their instruction") {
  EMIT("mov.u32 %r10, 7;", k.constant<u32>(7));
  EMIT("mov.f32 %f3, 0f3F800000;", k.constant<f32>(1.0f));
  EMIT("mov.f64 %fd3, 0d3FF0000000000000;", k.constant<f64>(1.0));
  EMIT("mov.pred %p2, -1;", k.constant<pred>(true));
  EMIT("mov.u32 %r10, %r0;", k.mov(t.r));
  EMIT("mov.b16 %h6, %h0;", k.mov(t.h));
  EMIT("mov.b32 %r10, %r5;", k.mov(t.x2));
  EMIT("mov.pred %p2, %p0;", k.mov(t.p));

  EMIT("add.u32 %r10, %r0, %r1;", k.add(t.r, t.r1));
  EMIT("add.u32 %r10, %r0, 4294967295;", k.add(t.r, 0xffffffffu));
  EMIT("add.s32 %r10, %r3, -1;", k.add(t.s, -1));
  EMIT("add.u64 %rd3, %rd0, 8;", k.add(t.rd, 8));
  EMIT("add.u16 %rs3, %rs0, %rs1;", k.add(t.w, t.w1));
  EMIT("add.sat.s32 %r10, %r3, %r4;", k.add(t.s, t.s1, {.sat = true}));
  EMIT("add.rn.f32 %f3, %f0, %f1;", k.add(t.f, t.f1));
  EMIT("add.rz.ftz.sat.f32 %f3, %f0, 0f40000000;",
       k.add(t.f, 2.0f, {.rounding = Rounding::rz, .ftz = true, .sat = true}));
  EMIT("add.rp.f64 %fd3, %fd0, %fd1;", k.add(t.d, t.d1, {.rounding = Rounding::rp}));
  EMIT("add.rn.f16 %h6, %h0, %h1;", k.add(t.h, t.h1));
  EMIT("add.rn.f16x2 %r10, %r5, %r6;", k.add(t.x2, t.x21));
  EMIT("add.rn.bf16 %h6, %h3, %h4;", k.add(t.g, t.g1));
  EMIT("sub.s64 %rd3, %rd2, 1;", k.sub(t.sd, 1));
  EMIT("sub.u32 %r10, 5, %r0;", k.sub(5, t.r));
  EMIT("sub.rm.f32 %f3, %f0, %f1;", k.sub(t.f, t.f1, {.rounding = Rounding::rm}));
  EMIT("mul.lo.u32 %r10, %r0, %r1;", k.mul(t.r, t.r1));
  EMIT("mul.rn.f32 %f3, %f0, %f1;", k.mul(t.f, t.f1));
  EMIT("mul.rn.f64 %fd3, %fd0, 0d4000000000000000;", k.mul(t.d, 2.0));
  EMIT("div.u32 %r10, %r0, 3;", k.div(t.r, 3));
  EMIT("div.rn.f32 %f3, %f0, %f1;", k.div(t.f, t.f1));
  EMIT("div.approx.ftz.f32 %f3, %f0, %f1;", k.div(t.f, t.f1, {.ftz = true, .approx = true}));
  EMIT("rem.s32 %r10, %r3, %r4;", k.rem(t.s, t.s1));
  EMIT("min.u32 %r10, %r0, %r1;", k.min(t.r, t.r1));
  EMIT("min.ftz.NaN.f32 %f3, %f0, %f1;", k.min(t.f, t.f1, {.ftz = true, .nan = true}));
  EMIT("max.s32 %r10, %r3, 0;", k.max(t.s, 0));
  EMIT("max.f16x2 %r10, %r5, %r6;", k.max(t.x2, t.x21));
  EMIT("abs.s32 %r10, %r3;", k.abs(t.s));
  EMIT("abs.ftz.f32 %f3, %f0;", k.abs(t.f, true));
  EMIT("neg.s32 %r10, %r3;", k.neg(t.s));
  EMIT("neg.f64 %fd3, %fd0;", k.neg(t.d));
  EMIT("neg.bf16 %h6, %h3;", k.neg(t.g));

  EMIT("mul.lo.s32 %r10, %r3, %r4;", k.mul_lo(t.s, t.s1));
  EMIT("mul.hi.u32 %r10, %r0, %r1;", k.mul_hi(t.r, t.r1));
  EMIT("mul.wide.u32 %rd3, %r0, 4;", k.mul_wide(t.r, 4));
  EMIT("mul.wide.u16 %r10, %rs0, %rs1;", k.mul_wide(t.w, t.w1));
  EMIT("mad.lo.u32 %r10, %r0, %r1, %r2;", k.mad_lo(t.r, t.r1, t.r2));
  EMIT("mad.hi.s32 %r10, %r3, %r4, 1;", k.mad_hi(t.s, t.s1, 1));
  EMIT("mad.wide.u32 %rd3, %r0, %r1, %rd0;", k.mad_wide(t.r, t.r1, t.rd));
  EMIT("fma.rn.f32 %f3, %f0, %f1, %f2;", k.fma(t.f, t.f1, t.f2));
  EMIT("fma.rz.ftz.f32 %f3, %f0, 0f40000000, %f2;",
       k.fma(t.f, 2.0f, t.f2, {.rounding = Rounding::rz, .ftz = true}));
  EMIT("fma.rn.f64 %fd3, %fd0, %fd1, %fd2;", k.fma(t.d, t.d1, t.d2));
  EMIT("fma.rn.relu.f16 %h6, %h0, %h1, %h2;", k.fma(t.h, t.h1, t.h2, {.relu = true}));
  EMIT("fma.rn.f16x2 %r10, %r5, %r6, %r7;", k.fma(t.x2, t.x21, t.x22));
  EMIT("fma.rn.bf16 %h6, %h3, %h4, %h5;", k.fma(t.g, t.g1, t.g2));

  EMIT("rcp.rn.f32 %f3, %f0;", k.rcp(t.f));
  EMIT("rcp.approx.ftz.f32 %f3, %f0;", k.rcp(t.f, {.ftz = true, .approx = true}));
  EMIT("sqrt.rn.f64 %fd3, %fd0;", k.sqrt(t.d));
  EMIT("sqrt.approx.f32 %f3, %f0;", k.sqrt(t.f, {.approx = true}));
  EMIT("rsqrt.approx.f32 %f3, %f0;", k.rsqrt(t.f));
  EMIT("ex2.approx.ftz.f32 %f3, %f0;", k.ex2(t.f, true));
  EMIT("ex2.approx.f16 %h6, %h0;", k.ex2(t.h));
  EMIT("lg2.approx.f32 %f3, %f0;", k.lg2(t.f));
  EMIT("sin.approx.f32 %f3, %f0;", k.sin(t.f));
  EMIT("cos.approx.f32 %f3, %f0;", k.cos(t.f));
  EMIT("tanh.approx.f32 %f3, %f0;", k.tanh(t.f));
  EMIT("copysign.f32 %f3, %f0, %f1;", k.copysign(t.f, t.f1));
}

TEST_CASE("in-place methods write the variable's register") {
  const auto line = [](auto&& call) {
    Bench t;
    auto v = t.k.var(t.f);
    const std::size_t first = t.k.statement_count();
    call(t, v);
    return emitted(t.k, first);
  };
  CHECK(line([](Bench& t, auto& v) { t.k.fma_inplace(v, t.f, t.f1); }) ==
        "fma.rn.f32 %f3, %f0, %f1, %f3;");
  CHECK(line([](Bench& t, auto& v) { t.k.add_inplace(v, t.f1); }) == "add.rn.f32 %f3, %f3, %f1;");
  CHECK(line([](Bench&, auto& v) { v += 1.0f; }) == "add.rn.f32 %f3, %f3, 0f3F800000;");
  CHECK(line([](Bench& t, auto& v) { v -= t.f; }) == "sub.rn.f32 %f3, %f3, %f0;");
  CHECK(line([](Bench& t, auto& v) { v *= t.f; }) == "mul.rn.f32 %f3, %f3, %f0;");
  CHECK(line([](Bench& t, auto& v) { v /= t.f; }) == "div.rn.f32 %f3, %f3, %f0;");
  CHECK(line([](Bench& t, auto& v) { v = t.f2; }) == "mov.f32 %f3, %f2;");
  CHECK(line([](Bench& t, auto& v) { v.set(t.f2); }) == "mov.f32 %f3, %f2;");
  CHECK(line([](Bench& t, auto& v) { t.k.max_inplace(v, t.f); }) == "max.f32 %f3, %f3, %f0;");
  CHECK(line([](Bench& t, auto& v) { t.k.min_inplace(v, t.f); }) == "min.f32 %f3, %f3, %f0;");

  Bench t;
  auto i = t.k.var<u32>(0);
  const std::size_t first = t.k.statement_count();
  i += 1;
  i &= t.r;
  i |= 2;
  i ^= t.r;
  i <<= 3;
  i >>= t.r1;
  i /= 3;
  i %= t.r;
  CHECK(emitted(t.k, first) ==
        "add.u32 %r10, %r10, 1;\nand.b32 %r10, %r10, %r0;\nor.b32 %r10, %r10, 2;\n"
        "xor.b32 %r10, %r10, %r0;\nshl.b32 %r10, %r10, 3;\nshr.u32 %r10, %r10, %r1;\n"
        "div.u32 %r10, %r10, 3;\nrem.u32 %r10, %r10, %r0;");
}

TEST_CASE("bit methods emit their instruction") {
  EMIT("and.b32 %r10, %r0, 255;", k.and_(t.r, 255));
  EMIT("or.b64 %rd3, %rd0, %rd1;", k.or_(t.rd, t.rd1));
  EMIT("xor.b16 %rs3, %rs0, %rs1;", k.xor_(t.w, t.w1));
  EMIT("and.b32 %r10, %r8, %r9;", k.and_(t.b, t.b1));
  EMIT("and.pred %p2, %p0, %p1;", k.and_(t.p, t.p1));
  EMIT("not.b32 %r10, %r0;", k.not_(t.r));
  EMIT("not.pred %p2, %p0;", k.not_(t.p));
  EMIT("shl.b32 %r10, %r0, 2;", k.shl(t.r, 2));
  EMIT("shr.u32 %r10, %r0, %r1;", k.shr(t.r, t.r1));
  EMIT("shr.s64 %rd3, %rd2, 5;", k.shr(t.sd, 5));
  EMIT("shr.b32 %r10, %r8, 5;", k.shr(t.b, 5));
  EMIT("bfe.u32 %r10, %r0, 4, 8;", k.bfe(t.r, 4, 8));
  EMIT("bfi.b32 %r10, %r0, %r1, 4, 8;", k.bfi(t.r, t.r1, 4, 8));
  EMIT("popc.b32 %r10, %r0;", k.popc(t.r));
  EMIT("popc.b64 %r10, %rd0;", k.popc(t.rd));
  EMIT("clz.b32 %r10, %r0;", k.clz(t.r));
  EMIT("bfind.u32 %r10, %r0;", k.bfind(t.r));
  EMIT("brev.b32 %r10, %r0;", k.brev(t.r));
  EMIT("prmt.b32 %r10, %r0, %r1, 12816;", k.prmt(t.r, t.r1, 0x3210));
  EMIT("lop3.b32 %r10, %r0, %r1, %r2, 232;", k.lop3(t.r, t.r1, t.r2, 0xe8));
  EMIT("shf.l.wrap.b32 %r10, %r0, %r1, 7;", k.shf_l(t.r, t.r1, 7));
  EMIT("shf.r.wrap.b32 %r10, %r0, %r1, %r2;", k.shf_r(t.r, t.r1, t.r2));
  EMIT("dp4a.u32.s32 %r10, %r0, %r3, %r4;", k.dp4a(t.r, t.s, t.s1));
}

TEST_CASE("comparison, choice and conversion emit their instruction") {
  EMIT("setp.lt.u32 %p2, %r0, %r1;", k.setp(Comparison::lt, t.r, t.r1));
  EMIT("setp.ge.s32 %p2, %r3, -5;", k.setp(Comparison::ge, t.s, -5));
  EMIT("setp.eq.b32 %p2, %r8, %r9;", k.setp(Comparison::eq, t.b, t.b1));
  EMIT("setp.geu.ftz.f32 %p2, %f0, %f1;", k.setp(Comparison::geu, t.f, t.f1, true));
  EMIT("setp.lt.f16 %p2, %h0, %h1;", k.setp(Comparison::lt, t.h, t.h1));
  EMIT("setp.lt.and.u32 %p2, %r0, %r1, !%p0;",
       k.setp(Comparison::lt, ptx::Modifier::and_, t.r, t.r1, !t.p));
  EMIT("selp.u32 %r10, %r0, 0, %p0;", k.selp(t.r, 0, t.p));
  EMIT("selp.f32 %f3, %f0, %f1, !%p0;", k.selp(t.f, t.f1, !t.p));
  EMIT("selp.b16 %h6, %h0, %h1, %p0;", k.selp(t.h, t.h1, t.p));

  EMIT("cvt.u64.u32 %rd3, %r0;", k.cvt<u64>(t.r));
  EMIT("cvt.u32.u8 %r10, %rs2;", k.cvt<u32>(t.byte));
  EMIT("cvt.rn.f32.s32 %f3, %r3;", k.cvt<f32>(t.s, Rounding::rn));
  EMIT("cvt.rzi.ftz.sat.u8.f32 %rs3, %f0;",
       k.cvt<u8>(t.f, {.rounding = Rounding::rzi, .ftz = true, .sat = true}));
  EMIT("cvt.rn.f16.f32 %h6, %f0;", k.cvt<f16>(t.f, Rounding::rn));
  EMIT("cvt.rn.relu.bf16.f32 %h6, %f0;",
       k.cvt<bf16>(t.f, {.rounding = Rounding::rn, .relu = true}));
  EMIT("cvt.f32.f16 %f3, %h0;", k.cvt<f32>(t.h));
  EMIT("cvt.rni.f32.f32 %f3, %f0;", k.cvt<f32>(t.f, Rounding::rni));
  EMIT("cvt.rn.f16x2.f32 %r10, %f0, %f1;", k.cvt2<f16x2>(t.f, t.f1));
  EMIT("cvt.rzi.s32.f32 %r10, %f0;", k.convert<s32>(t.f));
  EMIT("cvt.f64.f32 %fd3, %f0;", k.convert<f64>(t.f));
  EMIT("cvt.rn.f32.f64 %f3, %fd0;", k.convert<f32>(t.d));
  EMIT("cvt.rn.bf16.f32 %h6, %f0;", k.convert<bf16>(t.f));
  EMIT("cvt.u16.u32 %rs3, %r0;", convert<u16>(t.r));
  EMIT("mov.b32 %r10, %f0;", k.bitcast<u32>(t.f));
  EMIT("", k.bitcast<s32>(t.r));
  EMIT("mov.b32 %r10, {%h0, %h1};", k.pack<f16x2>(t.h, t.h1));
  EMIT("mov.b64 %rd3, {%r0, %r1};", k.pack<u64>(t.r, t.r1));
  EMIT("mov.b64 {%r10, %r11}, %rd0;", k.unpack<u32>(t.rd));
}

TEST_CASE("operators emit their instruction") {
  EMIT("add.u32 %r10, %r0, 1;", t.r + 1);
  EMIT("sub.u32 %r10, 1, %r0;", 1 - t.r);
  EMIT("mul.lo.s32 %r10, %r3, %r4;", t.s * t.s1);
  EMIT("mul.rn.f32 %f3, 0f3F000000, %f0;", 0.5f * t.f);
  EMIT("div.rn.f32 %f3, %f0, %f1;", t.f / t.f1);
  EMIT("div.s32 %r10, %r3, %r4;", t.s / t.s1);
  EMIT("rem.u32 %r10, %r0, 32;", t.r % 32);
  EMIT("and.b32 %r10, %r0, 31;", t.r & 31);
  EMIT("or.b32 %r10, %r0, %r1;", t.r | t.r1);
  EMIT("xor.b32 %r10, %r0, %r1;", t.r ^ t.r1);
  EMIT("not.b32 %r10, %r0;", ~t.r);
  EMIT("neg.f32 %f3, %f0;", -t.f);
  EMIT("shl.b64 %rd3, %rd0, 3;", t.rd << 3);
  EMIT("shr.s32 %r10, %r3, %r0;", t.s >> t.r);
  EMIT("setp.lt.u32 %p2, %r0, %r1;", (void)(t.r < t.r1));
  EMIT("setp.le.s32 %p2, %r3, 0;", (void)(t.s <= 0));
  EMIT("setp.gt.f32 %p2, %f0, 0f00000000;", (void)(t.f > 0.0f));
  EMIT("setp.ge.u64 %p2, %rd0, %rd1;", (void)(t.rd >= t.rd1));
  EMIT("setp.eq.u32 %p2, %r0, 0;", (void)(t.r == 0));
  EMIT("setp.ne.s32 %p2, %r3, %r4;", (void)(t.s != t.s1));
  EMIT("setp.neu.f32 %p2, %f0, %f1;", (void)(t.f != t.f1));
  EMIT("and.pred %p2, %p0, %p1;", t.p && t.p1);
  EMIT("or.pred %p2, %p0, %p1;", t.p || t.p1);
  EMIT("xor.pred %p2, %p0, %p1;", t.p ^ t.p1);
  EMIT("not.pred %p2, %p1;\nand.pred %p3, %p0, %p2;", t.p & !t.p1);
  EMIT("", (void)!t.p);
  EMIT("min.u32 %r10, %r0, 5;", min(t.r, 5));
  EMIT("max.f32 %f3, %f0, %f1;", max(t.f, t.f1));
  EMIT("fma.rn.f32 %f3, %f0, %f1, 0f00000000;", fma(t.f, t.f1, 0.0f));
  EMIT("selp.f32 %f3, %f0, 0f00000000, %p0;", select(t.p, t.f, 0.0f));
  EMIT("sqrt.rn.f32 %f3, %f0;", sqrt(t.f));
  EMIT("rsqrt.approx.f32 %f3, %f0;", rsqrt(t.f));
}
