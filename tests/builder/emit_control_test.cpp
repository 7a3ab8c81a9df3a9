// tests/builder/emit_control_test.cpp - one line for each control and warp method
#include "emit.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

TEST_CASE("special registers") {
  EMIT("mov.u32 %r10, %tid.x;", k.tid_x());
  EMIT("mov.u32 %r10, %ctaid.z;", k.ctaid_z());
  EMIT("mov.u32 %r10, %laneid;", k.laneid());
  EMIT("mov.u32 %r10, %nctaid.y;", k.special_reg(ptx::SpecialRegister::nctaid, 1));
  EMIT("mov.u64 %rd3, %globaltimer;", k.special_reg<u64>(ptx::SpecialRegister::globaltimer));
  EMIT(
      "mov.u32 %r10, %ctaid.x;\nmov.u32 %r11, %ntid.x;\nmov.u32 %r12, %tid.x;\n"
      "mad.lo.u32 %r13, %r10, %r11, %r12;",
      k.global_thread_x());
}

TEST_CASE("branches and barriers") {
  EMIT("bra done;\n@%p0 bra done;\n@!%p0 bra done;\ndone:", k.branch("done");
       k.branch_if(t.p, "done"); k.branch_unless(t.p, "done"); k.label("done"));
  EMIT("ret;", k.ret());
  EMIT("exit;", k.exit());
  EMIT("trap;", k.trap());
  EMIT("bar.sync 0;", k.bar_sync());
  EMIT("bar.sync 3, 64;", k.bar_sync(3, 64));
  EMIT("bar.arrive 3, 64;", k.bar_arrive(3, 64));
  EMIT("bar.warp.sync 4294967295;", k.bar_warp_sync());
  EMIT("membar.gl;", k.membar(Scope::gpu));
  EMIT("membar.cta;", k.membar(Scope::cta));
  EMIT("fence.acq_rel.gpu;", k.fence(Order::acq_rel, Scope::gpu));
}

TEST_CASE("warp operations") {
  EMIT("shfl.sync.up.b32 %f3, %f0, 1, 0, 4294967295;", k.shfl_up(t.f, 1));
  EMIT("shfl.sync.down.b32 %r10, %r0, %r1, 31, 15;", k.shfl_down(t.r, t.r1, 15));
  EMIT("shfl.sync.bfly.b32 %r10, %r5, 16, 31, 4294967295;", k.shfl_bfly(t.x2, 16));
  EMIT("shfl.sync.idx.b32 %f3, %f0, 0, 31, 4294967295;", k.shfl_idx(t.f, 0));
  EMIT("mov.pred %p2, 0;\nshfl.sync.up.b32 %f3|%p2, %f0, 1, 0, 15;",
       auto in_range = k.var<pred>(false);
       k.shfl_sync(ptx::Modifier::up, t.f, 1, 0, 15, in_range));
  EMIT("vote.sync.all.pred %p2, %p0, 4294967295;", k.vote_all(t.p));
  EMIT("vote.sync.any.pred %p2, !%p0, 4294967295;", k.vote_any(!t.p));
  EMIT("vote.sync.uni.pred %p2, %p0, %r0;", k.vote_uni(t.p, t.r));
  EMIT("vote.sync.ballot.b32 %r10, %p0, 4294967295;", k.vote_ballot(t.p));
  EMIT("match.any.sync.b64 %r10, %rd0, 4294967295;", k.match_any(t.rd));
  EMIT("activemask.b32 %r10;", k.activemask());
  EMIT("redux.sync.add.s32 %r10, %r3, 4294967295;", k.redux_add(t.s));
  EMIT("redux.sync.min.u32 %r10, %r0, 4294967295;", k.redux_min(t.r));
  EMIT("redux.sync.max.u32 %r10, %r0, 4294967295;", k.redux_max(t.r));
  EMIT("redux.sync.and.b32 %r10, %r0, 4294967295;", k.redux_and(t.r));
  EMIT("redux.sync.or.b32 %r10, %r0, 4294967295;", k.redux_or(t.r));
  EMIT("redux.sync.xor.b32 %r10, %r0, 4294967295;", k.redux_xor(t.r));
}

TEST_CASE("emit reaches every row") {
  EMIT(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f0}, "
      "{%r8, %r9, %r8, %r9}, {%r8, %r9}, {%f0, %f1, %f2, %f0};",
      k.emit(ptx::Op::mma_m16n8k16_f16_f32, {},
             {Vec{t.f, t.f1, t.f2, t.f}, Vec{t.b, t.b1, t.b, t.b1}, Vec{t.b, t.b1},
              Vec{t.f, t.f1, t.f2, t.f}}));
  EMIT("nanosleep.u32 100;", k.emit(ptx::Op::nanosleep, {}, {100}));
  EMIT("prefetch.global.L2 [%rd0+4];",
       k.emit(ptx::Op::prefetch, {ptx::Modifier::global, ptx::Modifier::L2}, {t.fp + 1}));
  EMIT("bra end;", k.emit(ptx::Op::bra, {}, {"end"}));
  EMIT("setp.lt.u32 %p0|%p1, %r0, 5;",
       k.emit(ptx::Op::setp_unsigned, {ptx::Modifier::type_u32, ptx::Modifier::lt},
              {t.p, Operand(t.p1).joined(), t.r, 5}));
}

TEST_CASE("raw PTX takes part with declared inputs and outputs") {
  Bench t;
  Var<u32> lo = t.k.var<u32>(0);
  const std::size_t first = t.k.statement_count();
  t.k.raw("mul.lo.u32 $0, $1, $2;\nadd.u32 $0, $0, $1;", {lo}, {t.r, 7});
  const Value<f32> root = t.k.raw<f32>("sqrt.rn.f32 $0, $1;", {t.f});
  CHECK(emitted(t.k, first) ==
        "mul.lo.u32 %r10, %r0, 7;\nadd.u32 %r10, %r10, %r0;\nsqrt.rn.f32 %f3, %f0;");
  CHECK(root.reg().index == 3);
  // What the text declares stays in braces of its own.
  t.k.raw("{ .reg .b32 t; add.u32 t, $1, 1; mov.b32 $0, t; }", {lo}, {t.r});
  t.k.raw("{ .reg .b32 t; add.u32 t, $1, 1; mov.b32 $0, t; }", {lo}, {t.r});
  t.k.st(t.up, lo);
}
