// tests/emulator/memory_async_test.cpp - cp.async, mbarrier, ldmatrix, through whole kernels
#include <catch2/catch.hpp>

#include "emulator/memory_kernels.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using test::findings_of;
using test::MemoryKernel;

namespace {

std::vector<std::uint32_t> numbers(std::size_t count) {
  std::vector<std::uint32_t> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<std::uint32_t>(1000 + i);
  return result;
}

Options without_races() {
  Options options;
  options.checks.remove(Rule::SharedRace);
  return options;
}

constexpr const char* kTile = ".shared .align 16 .b8 tile[2048];";
constexpr const char* kBase =
    "mov.u32 %r1, tile; cvt.u32.u64 %r2, %t16; add.u32 %r3, %r1, %r2; add.u64 %rd1, %in, %t16;\n"
    "add.u64 %rd2, %out, %t16;\n";
constexpr const char* kStoreRow =
    "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r3];\n"
    "st.global.v4.u32 [%rd2], {%r10, %r11, %r12, %r13};\n";

}  // namespace

TEST_CASE("cp.async of 16 bytes arrives when it is waited for") {
  for (const char* wait : {"cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;"}) {
    MemoryKernel kernel(std::string(kBase) + "cp.async.cg.shared.global [%r3], [%rd1], 16;\n" +
                            wait + "\n" + kStoreRow,
                        kTile);
    kernel.input(numbers(128));
    kernel.output(512);
    const Result result = kernel.run();
    CHECK(findings_of(result).empty());
    CHECK(kernel.result<std::uint32_t>() == numbers(128));
    // It reads global memory and writes shared memory.
    CHECK(result.counters.global_load.bytes == 512);
    CHECK(result.counters.global_store.bytes == 512);
    CHECK(result.counters.shared_store.requests == 1);
    CHECK(result.counters.shared_load.requests == 1);
  }
}

TEST_CASE("cp.async fills with zeros what src-size leaves, and all of it under ignore-src") {
  MemoryKernel kernel(
      std::string(kBase) +
          "and.b32 %r5, %t, 3; shl.b32 %r5, %r5, 2;\n"
          "cp.async.ca.shared.global [%r3], [%rd1], 16, %r5;\ncp.async.wait_all;\n" +
          kStoreRow,
      kTile);
  kernel.input(numbers(128));
  kernel.output(512);
  REQUIRE(findings_of(kernel.run()).empty());
  auto values = kernel.result<std::uint32_t>();
  for (std::uint32_t t = 0; t < 32; ++t) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      CHECK(values[4 * t + i] == (i < t % 4 ? 1000 + 4 * t + i : 0));
    }
  }
  MemoryKernel ignore(std::string(kBase) +
                          "setp.lt.u32 %p1, %t, 8;\n"
                          "cp.async.cg.shared.global [%r3], [%rd1], 16, %p1;\n"
                          "cp.async.wait_all;\n" +
                          kStoreRow,
                      kTile);
  ignore.input(numbers(128));
  ignore.output(512);
  REQUIRE(findings_of(ignore.run()).empty());
  values = ignore.result<std::uint32_t>();
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(values[4 * t] == (t < 8 ? 0 : 1000 + 4 * t));
}

TEST_CASE("only the groups that are waited for have arrived") {
  // Two groups; with one allowed to be unfinished, the second tile still holds what was there.
  MemoryKernel kernel(
      std::string(kBase) +
          "st.shared.v4.u32 [%r3], {%t, %t, %t, %t}; st.shared.v4.u32 [%r3+512], {%t, %t, %t, "
          "%t};\n"
          "cp.async.cg.shared.global [%r3], [%rd1], 16; cp.async.commit_group;\n"
          "cp.async.cg.shared.global [%r3+512], [%rd1+512], 16; cp.async.commit_group;\n"
          "cp.async.wait_group 1;\n"
          "ld.shared.u32 %r10, [%r3]; ld.shared.u32 %r11, [%r3+512];\n"
          "cp.async.wait_group 0;\nld.shared.u32 %r12, [%r3+512]; mov.u32 %r13, 0;\n"
          "st.global.v4.u32 [%rd2], {%r10, %r11, %r12, %r13};\n",
      kTile);
  kernel.input(numbers(256));
  kernel.output(512);
  kernel.run(32, 1, without_races());
  const auto values = kernel.result<std::uint32_t>();
  for (std::uint32_t t = 0; t < 32; ++t) {
    CHECK(values[4 * t] == 1000 + 4 * t);
    CHECK(values[4 * t + 1] == t);
    CHECK(values[4 * t + 2] == 1128 + 4 * t);
  }
}

TEST_CASE("reading the destination of cp.async without waiting is found") {
  MemoryKernel kernel(std::string(kBase) + "cp.async.cg.shared.global [%r3], [%rd1], 16;\n" +
                          "cp.async.commit_group;\n" + kStoreRow,
                      kTile);
  kernel.input(numbers(128));
  kernel.output(512);
  const Result result = kernel.run(32, 1, without_races());
  CHECK_THAT(findings_of(result), Catch::Contains("uninitialized-read"));
}

TEST_CASE("cp.async checks both its addresses") {
  MemoryKernel kernel(std::string(kBase) +
                          "cp.async.cg.shared.global [%r3+1552], [%rd1], 16;\n"
                          "cp.async.cg.shared.global [%r3], [%rd1+256], 16;\ncp.async.wait_all;\n",
                      kTile);
  kernel.input(numbers(128), "argument 1 'x'");
  const Result result = kernel.run();
  REQUIRE(result.findings.size() == 2);
  CHECK_THAT(result.findings[0].finding.message,
             Catch::StartsWith("thread writes 16 bytes at offset 0x800 of shared memory, right at "
                               "its end (2048 bytes)"));
  CHECK(result.findings[0].count == 1);
  CHECK_THAT(result.findings[1].finding.message,
             Catch::EndsWith("right at the end of argument 1 'x' (512 bytes)"));
  CHECK(result.findings[1].count == 16);
}

TEST_CASE("an mbarrier counts arrivals, phase after phase") {
  // 64 threads in two warps; thread 0 makes the object. Each phase: arrive, spin, read what the
  // neighbour of the other warp wrote before it arrived.
  MemoryKernel kernel(
      "mov.u32 %r1, bar; mov.u32 %r2, tile; setp.eq.u32 %p1, %t, 0;\n"
      "@%p1 mbarrier.init.shared.b64 [%r1], 64;\nbar.sync 0;\n"
      "shl.b32 %r3, %t, 2; add.u32 %r3, %r2, %r3; xor.b32 %r4, %t, 63; shl.b32 %r4, %r4, 2;\n"
      "add.u32 %r4, %r2, %r4; mov.u32 %r5, 0; mov.u32 %r6, 0;\n"
      "again:\nadd.u32 %r7, %t, %r5; st.shared.u32 [%r3], %r7;\n"
      "mbarrier.arrive.shared.b64 %rd3, [%r1];\n"
      "spin:\nmbarrier.test_wait.shared.b64 %p2, [%r1], %rd3; @!%p2 bra spin;\n"
      "ld.shared.u32 %r8, [%r4]; add.u32 %r6, %r6, %r8;\n"
      "mbarrier.arrive.shared.b64 _, [%r1]; and.b32 %r9, %r5, 0; add.u32 %r9, %r9, 1;\n"
      "spin2:\nmbarrier.try_wait.parity.shared.b64 %p2, [%r1], %r9; @!%p2 bra spin2;\n"
      "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 4; @%p3 bra again;\n"
      "add.u64 %rd4, %out, %t4; st.global.u32 [%rd4], %r6;\n",
      ".shared .align 8 .b64 bar;\n.shared .align 16 .b8 tile[256];\n");
  kernel.output(256);
  const Result result = kernel.run(64);
  CHECK(findings_of(result).empty());
  const auto values = kernel.result<std::uint32_t>();
  for (std::uint32_t t = 0; t < 64; ++t) CHECK(values[t] == 4 * (63 - t) + 6);
}

TEST_CASE("pending counts, drops, counts of several, transactions") {
  // One thread, an object for 5 arrivals.
  MemoryKernel kernel(
      "mov.u32 %r1, bar; mbarrier.init.shared.b64 [%r1], 5;\n"
      "mbarrier.arrive.shared.b64 %rd1, [%r1]; mbarrier.pending_count.b64 %r2, %rd1;\n"
      "mbarrier.arrive.shared.b64 %rd1, [%r1], 2; mbarrier.pending_count.b64 %r3, %rd1;\n"
      "mbarrier.arrive_drop.shared.b64 %rd1, [%r1]; mbarrier.pending_count.b64 %r4, %rd1;\n"
      "mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1; selp.u32 %r5, 1, 0, %p1;\n"
      "mbarrier.arrive.shared.b64 %rd2, [%r1];\n"
      "mbarrier.test_wait.shared.b64 %p1, [%r1], %rd2; selp.u32 %r6, 1, 0, %p1;\n"
      // The next phase has one arrival less, and waits for bytes.
      "mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1], 128;\n"
      "mbarrier.pending_count.b64 %r7, %rd1; mbarrier.arrive.shared.b64 %rd1, [%r1], 3;\n"
      "mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1; selp.u32 %r8, 1, 0, %p1;\n"
      "mbarrier.complete_tx.shared.b64 [%r1], 128;\n"
      "mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1; selp.u32 %r9, 1, 0, %p1;\n"
      "mbarrier.inval.shared.b64 [%r1];\n"
      "st.global.v4.u32 [%out], {%r2, %r3, %r4, %r5};\n"
      "st.global.v4.u32 [%out+16], {%r6, %r7, %r8, %r9};\n",
      ".shared .align 8 .b64 bar;\n");
  kernel.output(32);
  const Result result = kernel.run(1);
  CHECK(findings_of(result).empty());
  CHECK(kernel.result<std::uint32_t>() == std::vector<std::uint32_t>{5, 4, 2, 0, 1, 4, 0, 1});
}

TEST_CASE("cp.async arrives at an mbarrier") {
  for (const char* noinc : {"", ".noinc"}) {
    CAPTURE(noinc);
    const bool counted = noinc[0] != 0;
    MemoryKernel kernel(
        std::string(kBase) +
            "mov.u32 %r5, bar; setp.eq.u32 %p1, %t, 0;\n@%p1 mbarrier.init.shared.b64 "
            "[%r5], 32;\nbar.sync 0;\n"
            "cp.async.cg.shared.global [%r3], [%rd1], 16;\n"
            "cp.async.mbarrier.arrive" +
            noinc + ".shared.b64 [%r5];\n" +
            (counted ? "" : "mbarrier.arrive.shared.b64 _, [%r5];\n") +
            "spin: mbarrier.test_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra spin;\n"
            "xor.b32 %r3, %r3, 496;\n" +
            kStoreRow,
        std::string(kTile) + "\n.shared .align 8 .b64 bar;\n");
    kernel.input(numbers(128));
    kernel.output(512);
    const Result result = kernel.run();
    CHECK(findings_of(result).empty());
    const auto values = kernel.result<std::uint32_t>();
    for (std::uint32_t t = 0; t < 32; ++t) CHECK(values[4 * t] == 1000 + 4 * (31 - t));
  }
}

TEST_CASE("an mbarrier that no thread has initialised") {
  MemoryKernel kernel(
      "mov.u32 %r1, bar; st.shared.u64 [%r1], 7; mbarrier.arrive.shared.b64 _, [%r1];\n"
      "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0;\n",
      ".shared .align 8 .b64 bar;\n");
  const Result result = kernel.run(1);
  REQUIRE(result.findings.size() == 2);
  CHECK(result.findings[0].rule == Rule::UninitializedRead);
  CHECK(result.findings[0].finding.message ==
        "thread uses an mbarrier at offset 0x0 of shared memory, byte 0 of shared variable 'bar' "
        "(8 bytes), which was not initialised");
}

TEST_CASE("ldmatrix and stmatrix move rows of 16 bytes to fragments and back") {
  // Row r of matrix m is at 128 m + 16 r; lane l gives the address of row l % 8 of matrix l / 8
  // and holds elements 2 (l % 4) and the next of row l / 4.
  MemoryKernel kernel(
      std::string(kBase) +
          "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd1];\n"
          "st.shared.v4.u32 [%r3], {%r10, %r11, %r12, %r13};\nbar.sync 0;\n"
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, [%r3];\n"
          "st.global.v4.u32 [%rd2], {%r20, %r21, %r22, %r23};\n"
          "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r3+512], {%r20, %r21, %r22, %r23};\n"
          "bar.sync 0;\nld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r3+512];\n"
          "st.global.v4.u32 [%rd2+512], {%r10, %r11, %r12, %r13};\n"
          "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r20}, [%r3];\n"
          "add.u64 %rd3, %out, %t4; st.global.u32 [%rd3+1024], %r20;\n",
      kTile);
  std::vector<std::uint16_t> in(256);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(3 * i + 1);
  kernel.input(in);
  kernel.output(1024 + 128);
  const Result result = kernel.run();
  CHECK(findings_of(result).empty());
  const auto values = kernel.result<std::uint16_t>();
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    for (std::uint32_t matrix = 0; matrix < 4; ++matrix) {
      for (std::uint32_t half = 0; half < 2; ++half) {
        CHECK(values[8 * lane + 2 * matrix + half] ==
              in[64 * matrix + 8 * (lane / 4) + 2 * (lane % 4) + half]);
      }
    }
    // Transposed: the element at row 2 (l % 4) and the next, column l / 4.
    for (std::uint32_t half = 0; half < 2; ++half) {
      CHECK(values[512 + 2 * lane + half] == in[8 * (2 * (lane % 4) + half) + lane / 4]);
    }
  }
  for (std::size_t i = 0; i < 256; ++i) CHECK(values[256 + i] == in[i]);
  // x4: four phases of eight rows, 128 bytes each.
  CHECK(result.counters.shared_load.bank_conflicts == 0);
}

TEST_CASE("a row of ldmatrix out of bounds is one lane's fault") {
  MemoryKernel kernel(std::string(kBase) +
                          "st.shared.v4.u32 [%r3], {%t, %t, %t, %t}; bar.sync 0;\n"
                          "setp.eq.u32 %p1, %t, 5; @%p1 add.u32 %r3, %r3, 4096;\n"
                          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, "
                          "[%r3];\nst.global.v4.u32 [%rd2], {%r20, %r21, %r22, %r23};\n",
                      kTile);
  kernel.output(512);
  const Result result = kernel.run();
  INFO(findings_of(result));
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].rule == Rule::OutOfBounds);
  CHECK(result.findings[0].count == 1);
  CHECK(result.findings[0].thread == Dim3{5, 0, 0});
  const auto values = kernel.result<std::uint32_t>();
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t row = lane / 4;
    // Elements of 16 bits: the low half of the row's number, then the high half, 0.
    CHECK(values[4 * lane] == (row == 5 ? 0 : row));
    CHECK(values[4 * lane + 1] == row + 8);
  }
}

TEST_CASE("what is not run is refused with a reason") {
  for (const char* line : {"alloca.u64 %rd1, 16;",
                           "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes."
                           "add.u32 [%in], 1, [%in];"}) {
    CAPTURE(line);
    bool refused = false;
    try {
      MemoryKernel kernel(line);
    } catch (const std::exception& error) {
      refused = true;
      CHECK_THAT(error.what(), Catch::Contains("unsupported") || Catch::Contains("the emulator"));
    }
    CHECK(refused);
  }
}
