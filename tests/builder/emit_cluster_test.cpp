// tests/builder/emit_cluster_test.cpp - one line for each function on clusters and copies
#include "emit.hpp"
#include "ptxgen/builder/cluster.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {
Mbarrier bar_of(Bench& t) { return t.k.pointer<u64, Shared>(t.r); }
}  // namespace

TEST_CASE("clusters and other blocks' memory") {
  EMIT("mov.u32 %r10, %cluster_ctarank;", cluster_rank(k));
  EMIT("mov.u32 %r10, %cluster_nctarank;", cluster_blocks(k));
  EMIT("mov.u32 %r10, %clusterid.y;", cluster_id(k, 1));
  EMIT("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;", cluster_sync(k));
  EMIT("mapa.shared::cluster.u32 %r10, %r0, %r1;\nld.shared::cluster.f32 %f3, [%r10+8];",
       k.ld(map_rank(k, t.sp, t.r1) + 2));
  EMIT(
      "add.s32 %r10, %r0, 4;\nmapa.shared::cluster.u32 %r11, %r10, 0;\n"
      "st.shared::cluster.f32 [%r11], %f0;",
      k.st(map_rank(k, t.sp + 1, 0), t.f));
  EMIT(
      "mapa.shared::cluster.u32 %r10, %r0, 0;\n"
      "red.relaxed.cluster.shared::cluster.add.u32 [%r10], %r1;",
      k.red_add(map_rank(k, t.su, 0), t.r1, {.order = Order::relaxed, .scope = Scope::cluster}));
}

TEST_CASE("mbarriers") {
  EMIT("mbarrier.init.shared.b64 [%r0], 4;", mbarrier_init(k, bar_of(t), 4));
  EMIT("fence.mbarrier_init.release.cluster;", fence_mbarrier_init(k));
  EMIT("fence.proxy.async.shared::cta;", fence_proxy_async(k));
  EMIT("mbarrier.arrive.shared.b64 _, [%r0+8];", mbarrier_arrive(k, bar_of(t) + 1));
  EMIT(
      "mapa.shared::cluster.u32 %r10, %r0, 1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];",
      mbarrier_arrive(k, map_rank(k, bar_of(t), 1)));
  EMIT("mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 512;",
       mbarrier_arrive_expect_tx(k, bar_of(t), 512));
  EMIT("mbarrier.try_wait.parity.shared.b64 %p2, [%r0], %r1;",
       mbarrier_try_wait(k, bar_of(t), t.r1));
  EMIT("mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p2, [%r0], 0;",
       mbarrier_try_wait(k, bar_of(t), 0, Scope::cluster));
  EMIT("$L0:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r0], 1;\n@!%p2 bra $L0;",
       mbarrier_wait(k, bar_of(t), 1));
}

TEST_CASE("bulk copies, policies, programmatic launches") {
  EMIT(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%rd0+16], %r1, "
      "[%r0];",
      copy_bulk(k, t.sp, t.fp + 4, t.r1, bar_of(t)));
  EMIT(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r0], "
      "[%rd0], 512, [%r0], %rd1;",
      copy_bulk(k, t.sp, t.fp, 512, bar_of(t), t.rd1));
  EMIT(
      "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r0], 512;\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 1;\n"
      "cp.async.bulk.wait_group 0;",
      copy_bulk(k, t.fp, t.sp, 512), copy_bulk_commit(k), copy_bulk_wait(k, 1, true),
      copy_bulk_wait(k, 0));
  EMIT("cp.async.bulk.prefetch.L2.global [%rd0], 1024;", prefetch_bulk(k, t.fp, 1024));
  EMIT("createpolicy.fractional.L2::evict_first.b64 %rd3, 0f3F800000;", policy_evict_first(k));
  EMIT("createpolicy.fractional.L2::evict_last.b64 %rd3, 0f3F800000;", policy_evict_last(k));
  EMIT("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;", grid_wait(k),
       grid_launch_dependents(k));
}
