// tests/emulator/bulk_copy_test.cpp - cp.async.bulk with mbarriers and groups
#include <catch2/catch.hpp>

#include "emulator/memory_kernels.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using test::findings_of;
using test::MemoryKernel;
using test::of_seed;

namespace {

std::vector<std::uint32_t> numbers(std::size_t count) {
  std::vector<std::uint32_t> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<std::uint32_t>(1000 + i);
  return result;
}

constexpr const char* kVariables =
    ".shared .align 16 .b8 tile[1024];\n.shared .align 8 .b64 bar;\n";
/// %r1: tile, %r2: bar, %p1: thread 0, which makes the mbarrier for one arrival.
constexpr const char* kInit =
    "mov.u32 %r1, tile; mov.u32 %r2, bar; setp.eq.u32 %p1, %t, 0;\n"
    "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
constexpr const char* kLoad =
    "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;\n"
    "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in], 512, "
    "[%r2];\n";
constexpr const char* kWait =
    "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;\n@!%p2 bra wait;\n";
/// Each thread reads its neighbour's word and stores it.
constexpr const char* kStore =
    "xor.b32 %r3, %t, 1; shl.b32 %r3, %r3, 2; add.u32 %r3, %r1, %r3;\nld.shared.u32 %r4, [%r3];\n"
    "add.u64 %rd1, %out, %t4; st.global.u32 [%rd1], %r4;\n";

std::string body(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

std::string run_text(std::string_view text, std::uint64_t seed = 0, std::uint32_t threads = 128) {
  MemoryKernel kernel(text, kVariables);
  kernel.input(numbers(256));
  kernel.output(4096);
  return findings_of(kernel.run(threads, 1, of_seed(seed)));
}

}  // namespace

TEST_CASE("a bulk copy into shared memory and its mbarrier") {
  MemoryKernel kernel(body({kInit, kLoad, kWait, kStore}), kVariables);
  kernel.input(numbers(128));
  kernel.output(512);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const Result result = kernel.run(128, 1, of_seed(seed));
    REQUIRE(findings_of(result) == "");
    const auto values = kernel.result<std::uint32_t>();
    for (std::uint32_t t = 0; t < 128; ++t) REQUIRE(values[t] == 1000 + (t ^ 1u));
    // The copy is in no group of requests.
    CHECK(result.counters.bulk_load == BulkCounters{1, 512, 16});
    CHECK(result.counters.bulk_store == BulkCounters{});
    CHECK(result.counters.global_load.requests == 0);
    CHECK(result.counters.global_store.bytes == 512);
    CHECK(result.counters.shared_store.requests == 0);
  }
}

TEST_CASE("a copy of the .shared::cta form at an odd sector") {
  MemoryKernel kernel(
      body({kInit,
            "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;\n"
            "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%in+16], "
            "512, [%r2];\n",
            kWait, kStore}),
      kVariables);
  kernel.input(numbers(132));
  kernel.output(512);
  const Result result = kernel.run(128);
  REQUIRE(findings_of(result) == "");
  CHECK(kernel.result<std::uint32_t>()[0] == 1005);
  CHECK(result.counters.bulk_load == BulkCounters{1, 512, 17});
}

TEST_CASE("a ring of two stages: phases by parity, stages reused after a barrier") {
  const std::string text = body(
      {"mov.u32 %r1, tile; mov.u32 %r2, bar; setp.eq.u32 %p1, %t, 0;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;\n"
       "@%p1 mbarrier.init.shared::cta.b64 [%r2+8], 1;\nfence.proxy.async.shared::cta;\n"
       "bar.sync 0;\nmov.u32 %r10, 0; mov.u32 %r11, 0;\n"
       "@!%p1 bra steps;\n"
       "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;\n"
       "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%in], 128, "
       "[%r2];\n"
       "steps:\n"
       // The next stage is asked for before this one is waited for.
       "add.u32 %r12, %r10, 1; setp.ge.u32 %p2, %r12, 8; @%p2 bra now;\n@!%p1 bra now;\n"
       "and.b32 %r13, %r12, 1; shl.b32 %r14, %r13, 3; add.u32 %r14, %r2, %r14;\n"
       "shl.b32 %r15, %r13, 7; add.u32 %r15, %r1, %r15; mul.wide.u32 %rd2, %r12, 128;\n"
       "add.u64 %rd2, %in, %rd2;\n"
       "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r14], 128;\n"
       "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r15], [%rd2], 128, "
       "[%r14];\n"
       "now:\nand.b32 %r16, %r10, 1; shl.b32 %r17, %r16, 3; add.u32 %r17, %r2, %r17;\n"
       "shr.u32 %r18, %r10, 1; and.b32 %r18, %r18, 1;\n"
       "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [%r17], %r18;\n@!%p3 bra wait;\n"
       "shl.b32 %r19, %r16, 7; add.u32 %r19, %r1, %r19; and.b32 %r20, %t, 31;\n"
       "shl.b32 %r20, %r20, 2; add.u32 %r19, %r19, %r20; ld.shared.u32 %r21, [%r19];\n"
       "add.u32 %r11, %r11, %r21;\n",
       "bar.sync 0;\n",
       "add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 8; @%p2 bra steps;\n"
       "add.u64 %rd1, %out, %t4; st.global.u32 [%rd1], %r11;\n"});
  const char* variables = ".shared .align 16 .b8 tile[1024];\n.shared .align 8 .b64 bar[2];\n";
  MemoryKernel kernel(text, variables);
  kernel.input(numbers(256));
  kernel.output(256);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const Result result = kernel.run(64, 1, of_seed(seed));
    REQUIRE(findings_of(result) == "");
    const auto values = kernel.result<std::uint32_t>();
    for (std::uint32_t t = 0; t < 64; ++t) {
      REQUIRE(values[t] == 8 * 1000 + 8 * (t % 32) + 32 * 28);
    }
    CHECK(result.counters.bulk_load == BulkCounters{8, 1024, 32});
  }
  // Without the barrier a stage is filled while the other warp still reads it.
  std::string racy = text;
  const std::size_t at = racy.rfind("bar.sync 0;\n");
  racy.erase(at, 12);
  MemoryKernel without(racy, variables);
  without.input(numbers(256));
  without.output(256);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    CHECK_THAT(findings_of(without.run(64, 1, of_seed(seed))), Catch::Contains("[shared-race]"));
  }
}

TEST_CASE("who reads the destination without waiting is found") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    // No thread waits before the read; thread 0 does at the end, so that the copy is seen to end.
    CHECK_THAT(
        run_text(body({kInit, kLoad, kStore, kWait}), seed),
        Catch::Contains(
            "one of the two is an asynchronous copy that no thread has waited for [shared-race]"));
    // Only warp 0 waits.
    const std::string text = run_text(
        body({kInit, kLoad, "setp.ge.u32 %p3, %t, 32; @%p3 bra read;\n", kWait, "read:\n", kStore}),
        seed);
    CHECK_THAT(text, Catch::Contains("[shared-race]"));
  }
}

TEST_CASE("a barrier of the block after one thread's wait is enough") {
  const std::string text =
      body({kInit, kLoad, "@!%p1 bra meet;\n", kWait, "meet:\nbar.sync 0;\n", kStore});
  for (std::uint64_t seed = 0; seed < 20; ++seed) CHECK(run_text(text, seed) == "");
  // Not in front of it.
  const std::string before =
      body({kInit, kLoad, "bar.sync 0;\n@!%p1 bra meet;\n", kWait, "meet:\n", kStore});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    CHECK_THAT(run_text(before, seed), Catch::Contains("[shared-race]"));
  }
}

TEST_CASE("a block of 32 warps has races of bulk copies too") {
  CHECK(run_text(body({kInit, kLoad, "@!%p1 bra meet;\n", kWait, "meet:\nbar.sync 0;\n",
                       "and.b32 %r5, %t, 127; shl.b32 %r5, %r5, 2; add.u32 %r5, %r1, %r5;\n"
                       "ld.shared.u32 %r4, [%r5];\n"}),
                 3, 1024) == "");
  CHECK_THAT(run_text(body({kInit, kLoad, "setp.ge.u32 %p3, %t, 32; @%p3 bra read;\n", kWait,
                            "read:\nand.b32 %r5, %t, 127; shl.b32 %r5, %r5, 2;\n"
                            "add.u32 %r5, %r1, %r5;\nld.shared.u32 %r4, [%r5];\n"}),
                      3, 1024),
             Catch::Contains("[shared-race]"));
}

TEST_CASE("bytes that are not what was expected leave the phase open") {
  const auto with = [](const char* expected) {
    return run_text(
        body({kInit, "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], ", expected,
              ";\n@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
              "[%r1], [%in], 512, [%r2];\n",
              kWait}),
        5);
  };
  const std::string more = with("1024");
  CHECK_THAT(more, Catch::Contains("no thread of block (0,0,0) can proceed; the mbarrier that is "
                                   "waited for is never completed [barrier-deadlock]"));
  CHECK_THAT(more,
             Catch::Contains(
                 ": waits for the phase of parity 0 of the mbarrier at shared offset 0x400 (shared "
                 "variable 'bar'); its current phase has parity 0, 512 bytes are missing"));
  CHECK_THAT(with("256"),
             Catch::Contains("256 bytes are missing: more bytes arrived than were expected"));
  // No thread arrives.
  CHECK_THAT(
      run_text(body({kInit, "@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 512;\n",
                     "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%r1], [%in], 512, [%r2];\n",
                     kWait})),
      Catch::Contains("1 of 1 arrival is missing"));
}

TEST_CASE("a bulk copy checks its addresses and its size") {
  const auto copy = [](std::string_view operands) {
    return run_text(body({kInit, "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;\n",
                          "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes ",
                          operands, ", [%r2];\n", kWait}));
  };
  CHECK(copy("[%r1], [%in], 64") == "");
  CHECK_THAT(
      copy("[%r1], [%in+8], 64"),
      Catch::Contains("thread reads 64 bytes at 0x10000000108, which is not a multiple of 16"));
  CHECK_THAT(copy("[%r1+4], [%in], 64"),
             Catch::Contains("thread writes 64 bytes at offset 0x4 of shared memory, which is not "
                             "a multiple of 16"));
  CHECK_THAT(copy("[%r1], [%in+1008], 64"),
             Catch::Contains("the last 48 bytes of them past the end of argument 1 'in' (1024 "
                             "bytes) [out-of-bounds]"));
  CHECK_THAT(copy("[%r1+1008], [%in], 64"), Catch::Contains("[out-of-bounds]"));
  // The size is not what is expected, which is found too.
  CHECK_THAT(copy("[%r1], [%in], 72"),
             Catch::Contains(
                 "thread copies 72 bytes in bulk, which is not a multiple of 16 [misaligned]"));
}

TEST_CASE("a copy that no thread waits for before its block ends") {
  const std::string text = run_text(body({kInit, kLoad}));
  CHECK_THAT(text,
             Catch::Contains("no thread waits for this bulk copy before its block exits; the copy "
                             "may then write memory of another block [unfinished-copy]"));
}

TEST_CASE("bulk stores and their groups") {
  const std::string fill =
      "mov.u32 %r1, tile; shl.b32 %r3, %t, 2; add.u32 %r3, %r1, %r3; st.shared.u32 [%r3], %t;\n"
      "fence.proxy.async.shared::cta;\nbar.sync 0;\nsetp.eq.u32 %p1, %t, 0;\n";
  const std::string store =
      "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%out], [%r1], 512;\n"
      "@%p1 cp.async.bulk.commit_group;\n";
  MemoryKernel kernel(
      fill + store +
          "@%p1 cp.async.bulk.wait_group.read 0;\nbar.sync 0;\nst.shared.u32 [%r3], 7;\n",
      kVariables);
  kernel.output(512);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const Result result = kernel.run(128, 1, of_seed(seed));
    REQUIRE(findings_of(result) == "");
    const auto values = kernel.result<std::uint32_t>();
    for (std::uint32_t t = 0; t < 128; ++t) REQUIRE(values[t] == t);
    CHECK(result.counters.bulk_store == BulkCounters{1, 512, 16});
    CHECK(result.counters.global_store.requests == 0);
    // Overwritten before the copy has read it.
    CHECK_THAT(run_text(fill + store +
                            "bar.sync 0;\nst.shared.u32 [%r3], 7;\n"
                            "@%p1 cp.async.bulk.wait_group.read 0;\n",
                        seed),
               Catch::Contains("[shared-race]"));
  }
  CHECK_THAT(run_text(fill + store), Catch::Contains("[unfinished-copy]"));
}

TEST_CASE("multicast writes every block that it names, and counts the bytes once") {
  const char* sync = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  MemoryKernel kernel(
      body({kInit, "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;\n", sync,
            "mov.u32 %r7, %cluster_ctarank; setp.eq.and.u32 %p3, %r7, 0, %p1; mov.u16 %rs1, 3;\n"
            "@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
            ".multicast::cluster [%r1], [%in], 512, [%r2], %rs1;\n",
            kWait,
            "mov.u32 %r8, %ctaid.x; mul.wide.u32 %rd3, %r8, 512; add.u64 %out, %out, %rd3;\n",
            kStore, sync}),
      kVariables);
  kernel.input(numbers(128));
  kernel.output(1024);
  kernel.set_cluster({2, 1, 1});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const Result result = kernel.run(128, 2, of_seed(seed));
    REQUIRE(findings_of(result) == "");
    const auto values = kernel.result<std::uint32_t>();
    for (std::uint32_t t = 0; t < 256; ++t) REQUIRE(values[t] == 1000 + (t % 128 ^ 1u));
    CHECK(result.counters.bulk_load == BulkCounters{1, 512, 16});
  }
}

TEST_CASE("copies and asynchronous stores into another block") {
  const char* sync = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  const std::string head = body(
      {kInit, "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;\n",
       "mov.u32 %r7, %cluster_ctarank; xor.b32 %r8, %r7, 1; mapa.shared::cluster.u32 %r10, %r1, "
       "%r8;\nmapa.shared::cluster.u32 %r11, %r2, %r8; shl.b32 %r12, %t, 2;\n"
       "mad.lo.u32 %r13, %r7, 1000, %t; add.u32 %r14, %r1, %r12; add.u32 %r15, %r10, %r12;\n"});
  const std::string tail =
      body({kWait, "mul.wide.u32 %rd3, %r7, 512; add.u64 %out, %out, %rd3;\n", kStore, sync});
  const auto check = [&](const std::string& middle, const BulkCounters& counted) {
    MemoryKernel kernel(head + middle + tail, kVariables);
    kernel.output(1024);
    kernel.set_cluster({2, 1, 1});
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CAPTURE(seed);
      const Result result = kernel.run(128, 2, of_seed(seed));
      REQUIRE(findings_of(result) == "");
      const auto values = kernel.result<std::uint32_t>();
      for (std::uint32_t t = 0; t < 256; ++t) {
        REQUIRE(values[t] == (t < 128 ? 1000 : 0) + (t % 128 ^ 1u));
      }
      CHECK(result.counters.bulk_peer == counted);
    }
  };
  check("st.shared.u32 [%r14+512], %r13;\nfence.proxy.async.shared::cta;\n" + std::string(sync) +
            "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r10], "
            "[%r1+512], 512, [%r11];\n",
        {2, 1024, 0});
  check(std::string(sync) +
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r15], %r13, [%r11];\n",
        {256, 1024, 0});
}

TEST_CASE("the mbarrier of a copy is where it writes") {
  MemoryKernel kernel(
      body({kInit, "mov.u32 %r8, 1; mapa.shared::cluster.u32 %r10, %r1, %r8;\n",
            "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%in], "
            "512, [%r2];\n"}),
      kVariables);
  kernel.input(numbers(128));
  kernel.set_cluster({2, 1, 1});
  CHECK_THAT(findings_of(kernel.run(32, 2)),
             Catch::Contains("the copy writes shared memory of rank 1 of the cluster, but its "
                             "mbarrier is in that of rank 0 [invalid-address]"));
}
