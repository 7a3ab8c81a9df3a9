// tests/emulator/cluster_race_test.cpp - races between blocks of a cluster, and who leaves early
#include <algorithm>
#include <catch2/catch.hpp>

#include "emulator/memory_kernels.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using test::findings_of;
using test::kClusterSync;
using test::MemoryKernel;

namespace {

constexpr const char* kRaceTile =
    ".shared .align 16 .b8 tile[512];\n.shared .align 8 .b64 bar;\n"
    ".shared .align 4 .b32 flag;\n";
/// %r1: rank, %r2: the other's; %r4: the thread's word in the own tile, %r5: in the other's.
constexpr const char* kPair =
    "mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1; mov.u32 %r3, tile;\n"
    "shl.b32 %r4, %t, 2; add.u32 %r4, %r3, %r4; mapa.shared::cluster.u32 %r5, %r4, %r2;\n"
    "setp.eq.u32 %p1, %t, 0; mov.u32 %r20, bar;\n";
constexpr const char* kRead = "ld.shared::cluster.u32 %r10, [%r5];\n";
constexpr const char* kWrite = "st.shared::cluster.u32 [%r5], %t;\n";
constexpr const char* kOwnRead = "ld.shared.u32 %r11, [%r4];\n";
constexpr const char* kOwnWrite = "st.shared.u32 [%r4], %t;\n";

std::string text_of(std::initializer_list<std::string_view> parts) {
  std::string text = kPair;
  for (const std::string_view part : parts) text += part;
  return text;
}

/// All findings of 20 schedules of one cluster of two blocks of 64 threads; each must have the
/// words, or none there must be any.
void check(const std::string& text, const char* words, bool global = false) {
  INFO(text);
  MemoryKernel kernel(text, kRaceTile);
  kernel.output(1024);
  kernel.set_cluster({2, 1, 1});
  Options options;
  if (global) options.checks.add(Rule::GlobalRace);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    options.seed = seed;
    const std::string found = findings_of(kernel.run(64, 2, options));
    if (words == nullptr) {
      REQUIRE(found == "");
    } else {
      CHECK_THAT(found, Catch::Contains(words));
    }
  }
}

}  // namespace

TEST_CASE("what a block reads of another, a barrier of the cluster is before and after") {
  check(text_of({kOwnWrite, kClusterSync, kRead, kClusterSync}), nullptr);
  check(text_of({kOwnWrite, kClusterSync, kRead, kClusterSync, kOwnWrite, kClusterSync, kRead,
                 kClusterSync}),
        nullptr);
  // Not in front.
  check(text_of({kOwnWrite, kRead, kClusterSync}), "[shared-race]");
  check(text_of({kOwnWrite, "bar.sync 0;\n", kRead, kClusterSync}), "[shared-race]");
  // Not after: the owner overwrites what the other reads.
  check(text_of({kOwnWrite, kClusterSync, kRead, kOwnWrite, kClusterSync}), "[shared-race]");
  check(text_of({kOwnWrite, kClusterSync, kRead, "bar.sync 0;\n", kOwnWrite, kClusterSync}),
        "[shared-race]");
}

TEST_CASE("what a block writes into another's memory") {
  check(text_of({kClusterSync, kWrite, kClusterSync, kOwnRead}), nullptr);
  check(text_of({kClusterSync, kWrite, "bar.sync 0;\n", kOwnRead, kClusterSync}), "[shared-race]");
  // Both blocks write rank 0's words.
  const char* both = "mapa.shared::cluster.u32 %r6, %r4, 0;\nst.shared::cluster.u32 [%r6], %r1;\n";
  check(text_of({kClusterSync, both, kClusterSync}), "[shared-race]");
  check(text_of({kOwnWrite, kClusterSync,
                 "mapa.shared::cluster.u32 %r6, %r4, 0;\n"
                 "red.relaxed.cluster.shared::cluster.or.b32 [%r6], %r1;\n",
                 kClusterSync}),
        nullptr);
}

TEST_CASE("arrivals that do not release") {
  const char* relaxed = "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;\n";
  check(text_of({kOwnWrite, relaxed, kRead, kClusterSync}), "[shared-race]");
  check(text_of({kOwnWrite, "fence.acq_rel.cluster;\n", kClusterSync, kRead, kClusterSync}),
        nullptr);
}

TEST_CASE("an mbarrier of the other block orders what was written before") {
  const std::string init =
      "@%p1 mbarrier.init.shared::cta.b64 [%r20], 64;\nfence.mbarrier_init.release.cluster;\n";
  const char* arrive =
      "mapa.shared::cluster.u32 %r21, %r20, %r2;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r21];\n";
  const char* wait =
      "wait:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r20], 0;\n"
      "@!%p2 bra wait;\n";
  check(text_of({init, kClusterSync, kWrite, arrive, wait, kOwnRead, kClusterSync}), nullptr);
  // Arrives first and writes then.
  check(text_of({init, kClusterSync, arrive, kWrite, wait, kOwnRead, kClusterSync}),
        "[shared-race]");
}

TEST_CASE("release and acquire through a word of the other block") {
  const auto with = [](const char* scope) {
    return text_of({"mov.u32 %r22, flag;\n@%p1 st.shared.u32 [%r22], 0;\n", kClusterSync, kWrite,
                    "bar.sync 0;\nmapa.shared::cluster.u32 %r21, %r22, %r2;\n"
                    "@%p1 st.release.",
                    scope, ".shared::cluster.u32 [%r21], 1;\n", "wait:\nld.acquire.", scope,
                    ".shared.u32 %r23, [%r22];\nsetp.eq.u32 %p2, %r23, 0;\n@%p2 bra wait;\n",
                    kOwnRead, kClusterSync});
  };
  check(with("cluster"), nullptr);
  check(with("gpu"), nullptr);
  check(with("cta"), "[shared-race]");
}

TEST_CASE("the barrier of a cluster orders global memory too") {
  const std::string write =
      "mul.wide.u32 %rd1, %r1, 256; add.u64 %rd2, %out, %rd1; add.u64 %rd2, %rd2, %t4;\n"
      "st.global.u32 [%rd2], %t;\n";
  const std::string read =
      "mul.wide.u32 %rd3, %r2, 256; add.u64 %rd4, %out, %rd3; add.u64 %rd4, %rd4, %t4;\n"
      "ld.global.u32 %r10, [%rd4]; st.shared.u32 [%r4], %r10;\n";
  check(text_of({write, kClusterSync, read}), nullptr, true);
  check(text_of({write, "bar.sync 0;\n", read}), "[global-race]", true);
}

TEST_CASE("a block may leave only when others do not reach its memory any more") {
  check(text_of({kOwnWrite, kClusterSync, kRead}), "[exited-block]");
  check(text_of({kClusterSync, kWrite}), "[exited-block]");
  // Rank 1 reads rank 0's memory and arrives; rank 0 need not be waited for.
  const char* ranks =
      "setp.eq.u32 %p2, %r1, 1; @%p2 ld.shared::cluster.u32 %r10, [%r5];\n"
      "barrier.cluster.arrive;\n@%p2 bra done;\nbarrier.cluster.wait;\ndone:\n";
  check(text_of({kOwnWrite, kClusterSync, ranks}), nullptr);
  // The last word of it.
  MemoryKernel kernel(text_of({kOwnWrite, kClusterSync, "setp.ne.u32 %p2, %r1, 0; @%p2 ret;\n",
                               kRead, "bar.sync 0;\n"}),
                      kRaceTile);
  kernel.set_cluster({2, 1, 1});
  CHECK_THAT(findings_of(kernel.run(64, 2)), Catch::Contains("[exited-block]"));
}

TEST_CASE("the words about races in a cluster") {
  MemoryKernel kernel(text_of({kOwnWrite, kRead, kClusterSync}), kRaceTile);
  kernel.set_cluster({2, 1, 1});
  const Result result = kernel.run(64, 2);
  const auto at = std::ranges::find(result.findings, Rule::SharedRace, &RunFinding::rule);
  REQUIRE(at != result.findings.end());
  const RunFinding& found = *at;
  const std::string& message = found.finding.message;
  INFO(message);
  CHECK(message ==
        "thread (0,0,0) of block (1,0,0) writes 4 bytes at shared offset 0x0 (shared variable "
        "'tile'), which thread (0,0,0) of block (0,0,0) read at line 29; nothing orders the two");
  CHECK(found.finding.details.at(0) ==
        "put a cluster barrier (barrier.cluster.arrive and .wait) between them, or an mbarrier at "
        "which the first arrives and for which the second waits");
}

TEST_CASE("bulk copies between blocks have races too") {
  const std::string init =
      "@%p1 mbarrier.init.shared::cta.b64 [%r20], 1;\nfence.mbarrier_init.release.cluster;\n"
      "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r20], 256;\n"
      "mapa.shared::cluster.u32 %r21, %r20, %r2; mapa.shared::cluster.u32 %r22, %r3, %r2;\n";
  const char* copy =
      "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r22], "
      "[%r3+256], 256, [%r21];\n";
  const char* wait =
      "wait:\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r20], 0;\n"
      "@!%p2 bra wait;\n";
  const char* fill = "st.shared.u32 [%r4+256], %t;\n";
  check(text_of({init, fill, kClusterSync, copy, wait, kOwnRead, kClusterSync}), nullptr);
  check(text_of({init, fill, kClusterSync, copy, kOwnRead, wait, kClusterSync}), "[shared-race]");
  check(text_of({init, fill, kOwnWrite, kClusterSync, kOwnRead, copy, wait, kClusterSync}),
        "[shared-race]");
}
