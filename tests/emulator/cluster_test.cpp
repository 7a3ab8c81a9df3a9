// tests/emulator/cluster_test.cpp - blocks of a cluster, their barrier, each other's memory
#include <catch2/catch.hpp>

#include "emulator/memory_kernels.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using test::findings_of;
using test::kClusterSync;
using test::MemoryKernel;
using test::of_seed;

namespace {

/// %r1: rank, %r2: its neighbour's; %r4: the thread's word in the own tile, %r5: in the
/// neighbour's.
constexpr const char* kNeighbour =
    "mov.u32 %r1, %cluster_ctarank; mov.u32 %r6, %cluster_nctarank; add.u32 %r2, %r1, 1;\n"
    "rem.u32 %r2, %r2, %r6; mov.u32 %r3, tile; shl.b32 %r4, %t, 2; add.u32 %r4, %r3, %r4;\n"
    "mapa.shared::cluster.u32 %r5, %r4, %r2;\n";
constexpr const char* kTile = ".shared .align 16 .b8 tile[256];\n";
/// What a thread stores in its word: 100 * block + thread.
constexpr const char* kFill =
    "mov.u32 %r7, %ctaid.x; mad.lo.u32 %r8, %r7, 100, %t; st.shared.u32 [%r4], %r8;\n";
/// out[64 * block + thread] = %r10
constexpr const char* kResult =
    "shl.b32 %r11, %r7, 6; add.u32 %r11, %r11, %t; mul.wide.u32 %rd1, %r11, 4;\n"
    "add.u64 %rd1, %out, %rd1; st.global.u32 [%rd1], %r10;\n";

std::string refusal(MemoryKernel& kernel, std::uint32_t blocks) {
  try {
    static_cast<void>(kernel.run(32, blocks));
  } catch (const Error& error) {
    return error.code + ": " + error.message;
  }
  return "no error";
}

}  // namespace

TEST_CASE("the special registers of clusters") {
  const std::string body =
      "mov.u32 %r1, %clusterid.x; mov.u32 %r2, %nclusterid.x; mov.u32 %r3, %cluster_ctaid.x;\n"
      "mov.u32 %r4, %cluster_nctaid.x; mov.u32 %r5, %cluster_ctarank;\n"
      "mov.u32 %r6, %cluster_nctarank; mov.pred %p1, %is_explicit_cluster;\n"
      "selp.u32 %r7, 1, 0, %p1; mov.u32 %r8, %ctaid.x; mul.wide.u32 %rd1, %r8, 32;\n"
      "add.u64 %rd1, %out, %rd1; st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};\n"
      "st.global.v4.u32 [%rd1+16], {%r5, %r6, %r7, %r8};\n";
  for (const std::uint32_t size : {1u, 2u, 4u, 16u}) {
    CAPTURE(size);
    MemoryKernel kernel(body);
    kernel.output(16 * 32);
    kernel.set_cluster({size, 1, 1});
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      REQUIRE(findings_of(kernel.run(1, 16, of_seed(seed))).empty());
      const auto values = kernel.result<std::uint32_t>();
      for (std::uint32_t b = 0; b < 16; ++b) {
        const std::vector<std::uint32_t> own(values.begin() + 8 * b, values.begin() + 8 * b + 8);
        CHECK(own == std::vector<std::uint32_t>{b / size, 16 / size, b % size, size, b % size, size,
                                                size > 1 ? 1u : 0u, b});
      }
    }
  }
}

TEST_CASE("blocks of a cluster read each other's shared memory") {
  for (const char* load :
       {"ld.shared::cluster.u32 %r10, [%r5];",
        "cvta.shared::cluster.u32 %r10, %r5;\nld.shared::cluster.u32 %r10, [%r5];",
        "cvt.u64.u32 %rd3, %r4; cvta.shared.u64 %rd4, %rd3; mapa.u64 %rd5, %rd4, %r2;\n"
        "ld.u32 %r10, [%rd5];"}) {
    if (std::string_view(load).starts_with("cvta.shared::cluster.u32")) continue;
    CAPTURE(load);
    MemoryKernel kernel(
        std::string(kNeighbour) + kFill + kClusterSync + load + "\n" + kClusterSync + kResult,
        kTile);
    kernel.output(8 * 256);
    kernel.set_cluster({4, 1, 1});
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(seed);
      const Result result = kernel.run(64, 8, of_seed(seed));
      REQUIRE(findings_of(result) == "");
      const auto values = kernel.result<std::uint32_t>();
      for (std::uint32_t b = 0; b < 8; ++b) {
        const std::uint32_t from = b / 4 * 4 + (b + 1) % 4;
        for (std::uint32_t t = 0; t < 64; ++t) REQUIRE(values[64 * b + t] == 100 * from + t);
      }
      CHECK(result.counters.peer_load == PeerCounters{16, 16 * 128});
      CHECK(result.counters.shared_load.requests == 0);
      CHECK(result.counters.shared_store.requests == 16);
    }
  }
}

TEST_CASE("stores, atomics and ranks of other blocks' shared memory") {
  MemoryKernel kernel(std::string(kNeighbour) + "mov.u32 %r9, 0; st.shared.u32 [%r4], %r9;\n" +
                          kClusterSync +
                          "red.relaxed.cluster.shared::cluster.add.u32 [%r5], %t;\n"
                          "mapa.shared::cluster.u32 %r12, %r3, 0;\n"
                          "red.relaxed.cluster.shared::cluster.add.u32 [%r12+64], 1000;\n"
                          "getctarank.shared::cluster.u32 %r13, %r5;\n" +
                          kClusterSync +
                          "mov.u32 %r7, %ctaid.x; ld.shared.u32 %r10, [%r4];\n"
                          "mad.lo.u32 %r10, %r13, 1000000, %r10;\n" +
                          kResult,
                      kTile);
  kernel.output(4 * 256);
  kernel.set_cluster({2, 1, 1});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    REQUIRE(findings_of(kernel.run(64, 4, of_seed(seed))) == "");
    const auto values = kernel.result<std::uint32_t>();
    for (std::uint32_t b = 0; b < 4; ++b) {
      for (std::uint32_t t = 0; t < 64; ++t) {
        const std::uint32_t sum = b % 2 == 0 && t == 16 ? 128 * 1000 : 0;
        REQUIRE(values[64 * b + t] == (1 - b % 2) * 1000000 + t + sum);
      }
    }
  }
}

TEST_CASE("a cluster size that the kernel asks for") {
  const std::string text = MemoryKernel::text_of("", {});
  const auto with = [&](std::string_view directives) {
    std::string changed = text;
    changed.insert(changed.find("\n{"), "\n" + std::string(directives));
    return changed;
  };
  Device device(default_gpu("sm_90"));
  const auto launch = [&](std::string_view directives, Dim3 grid, Dim3 cluster) {
    Program program = Program::load(device, with(directives));
    const std::byte parameters[16]{};
    Launch result;
    result.kernel = "k";
    result.grid = grid;
    result.block = {32, 1, 1};
    result.cluster = cluster;
    result.parameters = parameters;
    try {
      static_cast<void>(run(program, result));
    } catch (const Error& error) {
      return error.code + ": " + error.message;
    }
    return std::string("no error");
  };
  CHECK(launch(".reqnctapercluster 2, 2", {4, 2, 1}, {1, 1, 1}) == "no error");
  CHECK(launch(".reqnctapercluster 2, 2", {4, 2, 1}, {2, 2, 1}) == "no error");
  CHECK(launch(".reqnctapercluster 2, 2", {4, 2, 1}, {4, 1, 1}) ==
        "launch-limits: clusters of (4,1,1) blocks, but the kernel's .reqnctapercluster requires "
        "(2,2,1)");
  CHECK(launch(".reqnctapercluster 2, 2", {4, 3, 1}, {1, 1, 1}) ==
        "launch-limits: a grid of (4,3,1) blocks cannot be divided into clusters of (2,2,1)");
  CHECK(launch(".maxclusterrank 4", {8, 1, 1}, {8, 1, 1}) ==
        "launch-limits: clusters of (8,1,1) blocks; 1 to 4 are allowed by the kernel's "
        ".maxclusterrank");
  CHECK(launch("", {32, 1, 1}, {32, 1, 1}) ==
        "launch-limits: clusters of (32,1,1) blocks; 1 to 16 are allowed");
  Device old(default_gpu("sm_80"));
  Program program = Program::load(
      old, ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n");
  Launch result;
  result.kernel = "k";
  result.grid = result.cluster = {2, 1, 1};
  CHECK_THROWS_WITH(run(program, result), Catch::Contains("has no clusters, which need sm_90"));
}

TEST_CASE("the barrier of a cluster counts all its threads, and those that have left not") {
  MemoryKernel kernel(std::string(kNeighbour) +
                          "setp.ge.u32 %p1, %t, 32; @%p1 ret;\nmov.u32 %r9, 0;\n"
                          "again:\nbarrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n"
                          "add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 5; @%p2 bra again;\n"
                          "mov.u32 %r7, %ctaid.x; mov.u32 %r10, %r9;\n" +
                          kResult,
                      kTile);
  kernel.output(4 * 256);
  kernel.set_cluster({4, 1, 1});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    REQUIRE(findings_of(kernel.run(64, 4, of_seed(seed))) == "");
  }
}

TEST_CASE("a cluster whose blocks wait for one that never comes") {
  // Rank 1 waits at a barrier of the block that only one of its warps reaches.
  MemoryKernel kernel(std::string(kNeighbour) +
                          "setp.eq.u32 %p1, %r1, 1; @!%p1 bra meet;\nsetp.lt.u32 %p2, %t, 32;\n"
                          "@!%p2 bra meet;\nbarrier.sync 1, 64;\nmeet:\n" +
                          kClusterSync,
                      kTile);
  kernel.set_cluster({2, 1, 1});
  const Result result = kernel.run(64, 2);
  CHECK(result.status == Status::Fault);
  const std::string text = findings_of(result);
  CHECK_THAT(text, Catch::Contains("no thread of cluster (0,0,0) can proceed; all remaining "
                                   "threads wait [barrier-deadlock]"));
  CHECK_THAT(text, Catch::Contains("block (0,0,0), warp 0, 32 threads from thread (0,0,0) on, at "
                                   "line "));
  CHECK_THAT(text, Catch::Contains(": the cluster barrier, 96 of 128 threads have arrived"));
  CHECK_THAT(text, Catch::Contains("block (1,0,0), warp 0, "));
  CHECK_THAT(text, Catch::Contains(": barrier 1, 32 of 64 threads have arrived"));
}

TEST_CASE("misuse of the barrier of a cluster") {
  MemoryKernel twice("barrier.cluster.arrive.aligned;\nbarrier.cluster.arrive.aligned;\n");
  CHECK_THAT(
      findings_of(twice.run()),
      Catch::Contains(
          "arrives at the cluster barrier again without a wait in between [barrier-divergence]"));
  MemoryKernel never("barrier.cluster.wait.aligned;\n");
  CHECK_THAT(
      findings_of(never.run()),
      Catch::Contains("waits at the cluster barrier without having arrived [barrier-divergence]"));
}

TEST_CASE("accesses to other blocks' memory that go wrong") {
  SECTION("a rank that there is not") {
    MemoryKernel kernel("mov.u32 %r1, tile; mapa.shared::cluster.u32 %r2, %r1, 5;\n", kTile);
    kernel.set_cluster({2, 1, 1});
    CHECK_THAT(findings_of(kernel.run(1, 2)),
               Catch::Contains("maps an address to rank 5 of a cluster of 2 blocks"));
  }
  SECTION("an instruction for the own memory") {
    MemoryKernel kernel(std::string(kNeighbour) + kFill + kClusterSync +
                            "ld.shared.u32 %r10, [%r5];\n" + kClusterSync,
                        kTile);
    kernel.set_cluster({2, 1, 1});
    CHECK_THAT(findings_of(kernel.run(1, 2)),
               Catch::Contains("thread reads 4 bytes at offset 0x0 of shared memory of block "
                               "(1,0,0), rank 1 of the cluster; the instruction accesses only "
                               "the block's own shared memory [invalid-address]"));
  }
  SECTION("beyond the end") {
    MemoryKernel kernel(std::string(kNeighbour) + kFill + kClusterSync +
                            "ld.shared::cluster.u32 %r10, [%r5+256];\n" + kClusterSync,
                        kTile);
    kernel.set_cluster({2, 1, 1});
    CHECK_THAT(findings_of(kernel.run(1, 2)),
               Catch::Contains("thread reads 4 bytes at offset 0x100 of shared memory of block "
                               "(1,0,0), rank 1 of the cluster, right at its end (256 bytes)"));
  }
  SECTION("never written") {
    MemoryKernel kernel(std::string(kNeighbour) + "mov.u32 %r7, %ctaid.x;\n" + kClusterSync +
                            "ld.shared::cluster.u32 %r10, [%r5];\n" + kClusterSync + kResult,
                        kTile);
    kernel.output(512);
    kernel.set_cluster({2, 1, 1});
    CHECK_THAT(findings_of(kernel.run(1, 2)),
               Catch::Contains("of shared memory of block (1,0,0), rank 1 of the cluster, byte 0 "
                               "of shared variable 'tile' (256 bytes), which was never written"));
  }
}

TEST_CASE("a block that leaves while others still read its memory is found") {
  MemoryKernel kernel(std::string(kNeighbour) + kFill + kClusterSync +
                          "ld.shared::cluster.u32 %r10, [%r5];\n" + kResult,
                      kTile);
  kernel.output(4 * 256);
  kernel.set_cluster({2, 1, 1});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const std::string text = findings_of(kernel.run(64, 4, of_seed(seed)));
    CHECK_THAT(text, Catch::Contains("[exited-block]"));
  }
}

TEST_CASE("an mbarrier of another block counts arrivals from here") {
  // Rank 0 waits until every thread of the other blocks has arrived, then reads what they wrote
  // into its memory.
  MemoryKernel kernel(
      std::string(kNeighbour) +
          "mov.u32 %r20, bar; setp.eq.u32 %p1, %t, 0;\n"
          "@%p1 mbarrier.init.shared::cta.b64 [%r20], 64;\nfence.mbarrier_init.release.cluster;\n" +
          kClusterSync +
          "setp.eq.u32 %p2, %r1, 0; @%p2 bra wait;\n"
          "mapa.shared::cluster.u32 %r21, %r20, 0; mapa.shared::cluster.u32 %r22, %r4, 0;\n"
          "mov.u32 %r9, %t; st.shared::cluster.u32 [%r22], %r9;\n"
          "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r21];\nbra done;\n"
          "wait:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r20], 0;\n"
          "@!%p3 bra wait;\nld.shared.u32 %r10, [%r4];\nmov.u32 %r7, %ctaid.x;\n" +
          kResult + "done:\n" + kClusterSync,
      std::string(kTile) + ".shared .align 8 .b64 bar;\n");
  kernel.output(4 * 256);
  kernel.set_cluster({2, 1, 1});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    REQUIRE(findings_of(kernel.run(64, 2, of_seed(seed))) == "");
    const auto values = kernel.result<std::uint32_t>();
    for (std::uint32_t t = 0; t < 64; ++t) REQUIRE(values[t] == t);
  }
}

TEST_CASE("clusters that a launch may not have") {
  MemoryKernel kernel("", kTile);
  kernel.set_cluster({2, 1, 1});
  CHECK(refusal(kernel, 3) ==
        "launch-limits: a grid of (3,1,1) blocks cannot be divided into clusters of (2,1,1)");
}
