// tests/builder/emit_memory_test.cpp - one line for each method on memory
#include "emit.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

TEST_CASE("loads") {
  EMIT("ld.global.f32 %f3, [%rd0];", k.ld(t.fp));
  EMIT("ld.global.f32 %f3, [%rd0+12];", k.ld(t.fp + 3));
  EMIT("ld.global.f32 %f3, [%rd0+-4];", k.ld(t.fp - 1));
  EMIT("ld.global.f32 %f3, [%rd0+2];", k.ld(t.fp.offset_bytes(2)));
  EMIT("ld.shared.f32 %f3, [%r0];", k.ld(t.sp));
  EMIT("ld.f32 %f3, [%rd0];", k.ld(t.gp));
  EMIT("ld.const.f32 %f3, [%rd0];", k.ld(t.cp));
  EMIT("ld.global.b16 %h6, [%rd0];", k.ld(t.hp));
  EMIT("ld.global.u8 %rs3, [%rd0];", k.ld(t.fp.cast<u8>()));
  EMIT("ld.global.nc.f32 %f3, [%rd0];", k.ld(t.fp, {.read_only = true}));
  EMIT("ld.global.cg.f32 %f3, [%rd0];", k.ld_global(t.fp, {.cache = Cache::cg}));
  EMIT("ld.global.L1::no_allocate.L2::128B.f32 %f3, [%rd0];",
       k.ld(t.fp, {.l1 = L1::no_allocate, .prefetch = Prefetch::L2_128B}));
  EMIT("ld.acquire.gpu.global.u32 %r10, [%rd0];",
       k.ld(t.up, {.order = Order::acquire, .scope = Scope::gpu}));
  EMIT("ld.volatile.shared.u32 %r10, [%r0];", k.ld_shared(t.su, {.order = Order::volatile_}));
  EMIT("ld.global.v4.f32 {%f3, %f4, %f5, %f6}, [%rd0+16];", k.ld<4>(t.fp + 4));
  EMIT("ld.shared.v2.u32 {%r10, %r11}, [%r0];", load<2>(t.su));
  EMIT("mov.f32 %f3, 0f00000000;\n@%p0 ld.global.f32 %f3, [%rd0];",
       k.ld_global_predicated(t.fp, t.p, 0.0f));
  EMIT("mov.f32 %f3, %f1;\n@!%p0 ld.shared.f32 %f3, [%r0];", k.ld_predicated(t.sp, !t.p, t.f1));
}

TEST_CASE("stores") {
  EMIT("st.global.f32 [%rd0], %f0;", k.st(t.fp, t.f));
  EMIT("st.global.f32 [%rd0+4], 0f3F800000;", k.st(t.fp + 1, 1.0f));
  EMIT("st.shared.u32 [%r0], 5;", k.st_shared(t.su, 5));
  EMIT("st.global.b16 [%rd0], %h0;", k.st_global(t.hp, t.h));
  EMIT("st.release.sys.global.u32 [%rd0], %r0;",
       k.st(t.up, t.r, {.order = Order::release, .scope = Scope::sys}));
  EMIT("st.global.cs.f32 [%rd0], %f0;", k.st(t.fp, t.f, {.cache = Cache::cs}));
  EMIT("st.global.v2.f32 [%rd0], {%f0, %f1};", k.st(t.fp, std::array<Value<f32>, 2>{t.f, t.f1}));
}

TEST_CASE("elements are read and written like C++") {
  EMIT("mad.wide.u32 %rd3, %r0, 4, %rd0;\nld.global.f32 %f3, [%rd3];",
       [[maybe_unused]] Value<f32> v = t.fp[t.r]);
  EMIT("st.global.f32 [%rd0+8], %f0;", t.fp[2] = t.f);
  EMIT("ld.global.f32 %f3, [%rd0+4];\nst.global.f32 [%rd0], %f3;", t.fp[0] = t.fp[1]);
  EMIT("ld.global.f32 %f3, [%rd0];\nadd.rn.f32 %f4, %f3, %f0;\nst.global.f32 [%rd0], %f4;",
       t.fp[0] += t.f);
  EMIT("ld.global.f32 %f3, [%rd0];\nsub.rn.f32 %f4, %f3, %f0;\nst.global.f32 [%rd0], %f4;",
       t.fp[0] -= t.f);
  EMIT("ld.global.f32 %f3, [%rd0];\nmul.rn.f32 %f4, %f3, %f0;\nst.global.f32 [%rd0], %f4;",
       t.fp[0] *= t.f);
  EMIT("ld.global.f32 %f3, [%rd0];\ndiv.rn.f32 %f4, %f3, %f0;\nst.global.f32 [%rd0], %f4;",
       t.fp[0] /= t.f);
  // One for each operator of integers.
  const auto operation = [](auto&& update) {
    Bench t;
    const auto p = t.fp.cast<u32>();
    const std::size_t first = t.k.statement_count();
    update(t, p);
    const std::string text = emitted(t.k, first);
    const std::size_t begin = text.find('\n') + 1;
    return text.substr(begin, text.find(' ', begin) - begin);
  };
  CHECK(operation([](Bench& t, auto& p) { p[0] %= t.r; }) == "rem.u32");
  CHECK(operation([](Bench& t, auto& p) { p[0] &= t.r; }) == "and.b32");
  CHECK(operation([](Bench& t, auto& p) { p[0] |= t.r; }) == "or.b32");
  CHECK(operation([](Bench& t, auto& p) { p[0] ^= t.r; }) == "xor.b32");
  CHECK(operation([](Bench& t, auto& p) { p[0] <<= t.r; }) == "shl.b32");
  CHECK(operation([](Bench& t, auto& p) { p[0] >>= t.r; }) == "shr.u32");
  // Loads come from left to right whatever the compiler's order of evaluation.
  EMIT("ld.global.f32 %f3, [%rd0];\nld.global.f32 %f4, [%rd0+4];\nadd.rn.f32 %f5, %f3, %f4;",
       t.fp[0] + t.fp[1]);
  EMIT(
      "ld.global.f32 %f3, [%rd0];\nld.shared.f32 %f4, [%r0];\n"
      "fma.rn.f32 %f5, %f3, %f4, %f0;",
      fma(t.fp[0], t.sp[0], t.f));
}

TEST_CASE("pointer arithmetic is exact for every index") {
  EMIT("mad.wide.u32 %rd3, %r0, 4, %rd0;", (void)(t.fp + t.r));
  EMIT("mad.wide.s32 %rd3, %r3, 4, %rd0;", (void)(t.fp + t.s));
  EMIT("mad.lo.s64 %rd3, %rd1, 4, %rd0;", (void)(t.fp + t.rd1));
  EMIT("mad.wide.s32 %rd3, %r3, -4, %rd0;", (void)(t.fp - t.s));
  EMIT("mul.wide.u32 %rd3, %r0, 4;\nsub.u64 %rd4, %rd0, %rd3;", (void)(t.fp - t.r));
  EMIT("mad.lo.s32 %r10, %r1, 4, %r0;", (void)(t.sp + t.r1));
  EMIT("add.u64 %rd3, %rd0, %rd1;", (void)t.fp.offset_bytes(t.rd1));
  EMIT("", (void)(t.fp + 1000));
  // Beyond the 32-bit immediate the offset is added first.
  EMIT("add.s64 %rd3, %rd0, 8589934592;\nld.global.f32 %f3, [%rd3];", k.ld(t.fp + (1ll << 31)));
  EMIT("mad.wide.u32 %rd3, %r0, 4, %rd0;\nld.global.f32 %f3, [%rd3+4];", k.ld(t.fp + 1 + t.r));
}

TEST_CASE("a pointer variable moves in place") {
  Bench t;
  auto p = t.k.var(t.fp + 2);
  p += t.r;
  p += 4;
  p -= t.s;
  t.k.ld(p);
  const Ptr<f32> kept = p;
  p.set(t.fp);
  t.k.ld(kept + 1);
  CHECK(emitted(t.k, 0) ==
        "add.s64 %rd3, %rd0, 8;\nmad.wide.u32 %rd3, %r0, 4, %rd3;\nadd.s64 %rd3, %rd3, 16;\n"
        "mad.wide.s32 %rd3, %r3, -4, %rd3;\nld.global.f32 %f3, [%rd3];\nmov.u64 %rd4, %rd3;\n"
        "mov.u64 %rd3, %rd0;\nld.global.f32 %f4, [%rd4+4];");
}

TEST_CASE("atomic operations") {
  EMIT("atom.global.add.u32 %r10, [%rd0], 1;", k.atom_add(t.up, 1));
  EMIT("atom.shared.add.f32 %f3, [%r0], %f0;", k.atom_add(t.sp, t.f));
  EMIT("atom.acq_rel.gpu.global.add.u32 %r10, [%rd0], %r0;",
       k.atom_add(t.up, t.r, {.order = Order::acq_rel, .scope = Scope::gpu}));
  EMIT("atom.global.min.u32 %r10, [%rd0], %r0;", k.atom_min(t.up, t.r));
  EMIT("atom.global.max.u32 %r10, [%rd0], %r0;", k.atom_max(t.up, t.r));
  EMIT("atom.global.and.b32 %r10, [%rd0], %r0;", k.atom_and(t.up, t.r));
  EMIT("atom.global.or.b32 %r10, [%rd0], %r0;", k.atom_or(t.up, t.r));
  EMIT("atom.global.xor.b32 %r10, [%rd0], %r0;", k.atom_xor(t.up, t.r));
  EMIT("atom.global.exch.b32 %f3, [%rd0], %f0;", k.atom_exch(t.fp, t.f));
  EMIT("atom.global.inc.u32 %r10, [%rd0], 7;", k.atom_inc(t.up, 7));
  EMIT("atom.global.dec.u32 %r10, [%rd0], 7;", k.atom_dec(t.up, 7));
  EMIT("atom.shared.cas.b32 %r10, [%r0], %r1, %r2;", k.atom_cas(t.su, t.r1, t.r2));
  EMIT("atom.global.add.noftz.f16 %h6, [%rd0], %h0;", k.atom_add(t.hp, t.h));
  EMIT("red.global.add.f32 [%rd0], %f0;", k.red_add(t.fp, t.f));
  EMIT("red.shared.max.u32 [%r0], %r1;", k.red_max(t.su, t.r1));
  EMIT("red.global.min.u32 [%rd0], %r1;", k.red_min(t.up, t.r1));
  EMIT("red.global.and.b32 [%rd0], %r1;", k.red_and(t.up, t.r1));
  EMIT("red.global.or.b32 [%rd0], %r1;", k.red_or(t.up, t.r1));
  EMIT("red.global.xor.b32 [%rd0], %r1;", k.red_xor(t.up, t.r1));
}

TEST_CASE("copies and addresses") {
  EMIT("cp.async.ca.shared.global [%r0], [%rd0], 4;", k.cp_async(t.sp, t.fp, 4));
  EMIT("cp.async.cg.shared.global [%r0+16], [%rd0], 16;", k.cp_async(t.sp + 4, t.fp, 16, true));
  EMIT("cp.async.commit_group;", k.cp_async_commit_group());
  EMIT("cp.async.wait_group 2;", k.cp_async_wait_group(2));
  EMIT("cp.async.wait_all;", k.cp_async_wait_all());
  EMIT("cvta.to.global.u64 %rd3, %rd0;", k.cvta_to<Global>(t.gp));
  EMIT("cvta.to.shared.u64 %rd3, %rd0;\ncvt.u32.u64 %r10, %rd3;", k.cvta_to<Shared>(t.gp));
  EMIT("cvta.global.u64 %rd3, %rd0;", k.cvta(t.fp));
  EMIT("cvt.u64.u32 %rd3, %r0;\ncvta.shared.u64 %rd4, %rd3;", k.cvta(t.sp));
  EMIT("add.s64 %rd3, %rd0, 8;", k.address_of(t.fp + 2));
  EMIT("", k.address_of(t.sp));
  EMIT("mov.u32 %r10, tile;\nmov.u32 %r11, tile;",
       (void)k.shared_base_addr(k.shared<f32>(64, "tile")));
}
