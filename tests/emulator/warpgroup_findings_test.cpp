// tests/emulator/warpgroup_findings_test.cpp - findings of wgmma: order, descriptors, warpgroups
#include <catch2/catch.hpp>

#include "ptxgen/emulator/emulator.hpp"
#include "warpgroup_kernels.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using Catch::Contains;
using test::descriptor;

namespace {

std::string number(std::uint64_t value) { return std::to_string(value) + "U"; }

/// A kernel of one warpgroup, or more: its threads fill 32 KB of shared memory with ones of f16.
std::string kernel_of(const std::string& body, const std::string& fill_end) {
  return ".version 8.4\n.target sm_90a\n.address_size 64\n"
         ".visible .entry k(.param .u64 out)\n{\n"
         ".shared .align 1024 .b8 tile[32768];\n.shared .align 8 .b64 full;\n"
         ".shared .align 8 .b64 empty;\n"
         ".reg .pred %p<8>;\n.reg .b32 %r<8>;\n.reg .f32 %f<8>;\n.reg .b32 %a<4>;\n"
         ".reg .b32 %t, %i, %w;\n.reg .b64 %rd<8>, %da, %db, %out;\n"
         "ld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nshr.u32 %w, %t, 5;\n"
         "mul.wide.u32 %rd1, %t, 4;\nadd.u64 %out, %out, %rd1;\n"
         "mov.u32 %r1, tile;\nshl.b32 %i, %t, 4;\nmov.u32 %r2, 0x3c003c00;\n"
         "setp.ge.u32 %p1, %t, 128;\n@%p1 bra filled;\n"
         "fill:\nadd.u32 %r3, %r1, %i;\nst.shared.v4.u32 [%r3], {%r2, %r2, %r2, %r2};\n"
         "add.u32 %i, %i, 2048;\nsetp.lt.u32 %p1, %i, 32768;\n@%p1 bra fill;\nfilled:\n" +
         fill_end +
         // a at 0, b at 8192, both with 128-byte swizzle.
         "mov.b64 %da, " + number(descriptor(0, 0, 1024, 128)) +
         ";\n"
         "mov.b64 %db, " +
         number(descriptor(8192, 0, 1024, 128)) +
         ";\n"
         "mov.f32 %f0, 0f00000000;\nmov.f32 %f1, %f0;\nmov.f32 %f2, %f0;\nmov.f32 %f3, %f0;\n" +
         body + "\nret;\n}\n";
}

const std::string kFenced = "fence.proxy.async;\nbar.sync 0;\n";
const std::string kFence = "wgmma.fence.sync.aligned;\n";
const std::string kCommit = "wgmma.commit_group.sync.aligned;\n";
const std::string kWait = "wgmma.wait_group.sync.aligned 0;\n";
const std::string kStore = "st.global.f32 [%out], %f0;\n";

std::string product(const std::string& a = "%da", const std::string& b = "%db") {
  return "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, " + a + ", " + b +
         ", 1, 1, 1, 0, 0;\n";
}

std::string run_kernel(const std::string& body, std::uint32_t threads = 128,
                       const std::string& fill_end = kFenced, std::uint64_t seed = 0,
                       float expected = 0) {
  Device device(default_gpu("sm_90a"));
  Program program = Program::load(device, kernel_of(body, fill_end));
  const std::uint64_t out = device.allocate(threads * 4, "out");
  std::vector<float> zeros(threads);
  device.write(out, std::as_bytes(std::span(zeros)));
  Launch launch;
  launch.kernel = "k";
  launch.grid = {1, 1, 1};
  launch.block = {threads, 1, 1};
  launch.parameters = std::as_bytes(std::span(&out, 1));
  Options options;
  options.seed = seed;
  const Result result = run(program, launch, options);
  std::string text;
  for (const auto& finding : result.findings) text += to_text(finding) + "\n";
  if (expected != 0) {
    std::vector<float> values(threads);
    device.read(out, std::as_writable_bytes(std::span(values)));
    for (const float value : values) CHECK(value == expected);
  }
  return text;
}

}  // namespace

TEST_CASE("wgmma: a correct sequence has no findings") {
  CHECK(run_kernel(kFence + product() + kCommit + kWait + kStore, 128, kFenced, 0, 16) == "");
  CHECK(run_kernel(kFence + product() + product() + kCommit + product() + kCommit + kWait + kStore,
                   128, kFenced, 3, 48) == "");
  CHECK(run_kernel(kFence + product() + kCommit + kWait + kStore, 256, kFenced, 1, 16) == "");
}

TEST_CASE("wgmma: results are there after the wait, not before") {
  // The group of the second product is still pending.
  const std::string text = run_kernel(kFence + product() + kCommit + product() + kCommit +
                                      "wgmma.wait_group.sync.aligned 1;\n" + kStore + kWait);
  CHECK_THAT(text, Contains("reads %f0, an accumulator of the wgmma"));
  CHECK_THAT(text, Contains("which no wait has completed"));
  CHECK_THAT(text, Contains("put wgmma.commit_group after the wgmma and wgmma.wait_group before"));
  // A wait without a group waits for nothing.
  CHECK_THAT(run_kernel(kFence + product() + kWait + kStore), Contains("reads %f0"));
  CHECK_THAT(run_kernel(kFence + product() + kCommit + "mov.f32 %f1, 0f00000000;\n" + kWait),
             Contains("writes %f1, an accumulator of the wgmma"));
}

TEST_CASE("wgmma: registers need a wgmma.fence after ordinary accesses") {
  CHECK_THAT(run_kernel(product() + kCommit + kWait + kStore),
             Contains("no wgmma.fence comes before the first wgmma of the warp"));
  const std::string text =
      run_kernel(kFence + "mov.f32 %f2, 0f3f800000;\n" + product() + kCommit + kWait + kStore);
  CHECK_THAT(text, Contains("has a register as accumulator that the thread wrote"));
  CHECK_THAT(text, Contains("put wgmma.fence.sync.aligned between the access and the wgmma"));
  const std::string fragments =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%a0, %a1, %a2, "
      "%a3}, %db, 1, 1, 1, 0;\n";
  const std::string set =
      "mov.b32 %a0, %r2;\nmov.b32 %a1, %r2;\nmov.b32 %a2, %r2;\n"
      "mov.b32 %a3, %r2;\n";
  CHECK(run_kernel(set + kFence + fragments + kCommit + kWait + kStore, 128, kFenced, 0, 16) == "");
  CHECK_THAT(run_kernel(set + kFence + fragments + kCommit + set + kWait + kStore),
             Contains("writes %a0, a fragment of a of the wgmma"));
  CHECK_THAT(run_kernel(kFence + set + fragments + kCommit + kWait + kStore),
             Contains("has a register as fragment of a that the thread wrote"));
}

TEST_CASE("wgmma: shared memory in flight, and stores without a proxy fence") {
  const std::string store = "st.shared.u32 [%r1], %r2;\n";
  const std::string text =
      run_kernel(kFence + product() + kCommit + store + kWait + kStore + "bar.sync 0;\n");
  CHECK_THAT(text, Contains("by wgmma; the write is not ordered after a wait for its group"));
  CHECK_THAT(text, Contains("wait for its group (wgmma.wait_group) in the warpgroup"));
  // After the wait of its own warp a thread may write.
  CHECK(run_kernel(kFence + product() + kCommit + kWait + kStore +
                   "setp.eq.u32 %p1, %t, 0;\n@%p1 " + store) == "");
  // Another warpgroup must be ordered after it.
  const std::string other = "setp.ge.u32 %p1, %t, 128;\n@%p1 bra other;\n" + kFence + product() +
                            kCommit + kWait + kStore +
                            "ret;\nother:\nsetp.eq.u32 %p1, %t, 128;\n@%p1 " + store;
  CHECK_THAT(run_kernel(other, 160), Contains("wgmma"));
  const std::string fence =
      run_kernel(kFence + product() + kCommit + kWait + kStore, 128, "bar.sync 0;\n");
  CHECK_THAT(fence, Contains("wgmma reads shared memory that was stored to"));
  CHECK_THAT(fence, Contains("with no fence.proxy.async after the store"));
  CHECK_THAT(fence, Contains("in the threads that made them, before the barrier"));
  // The fence may also be made by the reading thread, after the barrier.
  CHECK(run_kernel("fence.proxy.async;\n" + kFence + product() + kCommit + kWait + kStore, 128,
                   "bar.sync 0;\n") == "");
  CHECK_THAT(run_kernel(kFence + product() + kCommit + kWait + kStore, 128, "fence.proxy.async;\n"),
             Contains("shared-race"));
}

TEST_CASE("wgmma: descriptors that describe no matrix") {
  const auto with = [](std::uint64_t bits) {
    return run_kernel("mov.b64 %da, " + number(bits) + ";\n" + kFence + product() + kCommit +
                      kWait + kStore);
  };
  CHECK_THAT(with(descriptor(0, 0, 0, 128)),
             Contains("row 0, k 0 and row 8, k 0 of the matrix are the same memory") &&
                 Contains("with the 128-byte swizzle, the stride offset of packed rows is 8 * 128 "
                          "= 1024 bytes (encoded 64)"));
  CHECK_THAT(with(descriptor(0, 0, 256, 0)),
             Contains("a leading offset of 128 and a stride offset of 256 (encoded 8 and 16)"));
  CHECK_THAT(with(descriptor(0x80, 0, 1024, 128)),
             Contains("which is row 1 of the pattern of the 128-byte swizzle") &&
                 Contains("align the shared array to 1024 bytes (.align 1024)"));
  CHECK_THAT(with(descriptor(0x70, 0, 1024, 128)),
             Contains("starts 112 bytes into a row of 128 bytes") &&
                 Contains("advance the start address by 32 bytes (encoded 2)"));
  // The address in bytes, not shifted.
  CHECK_THAT(with(descriptor(0, 0, 1024, 128) | 0x1000),
             Contains("but the block has") && Contains("encode it as (bytes & 0x3ffff) >> 4"));
  CHECK_THAT(with(descriptor(0, 0, 1024, 128) | 1u << 15),
             Contains("bits 0x8000 are set, which belong to no field"));
  CHECK_THAT(with(descriptor(0, 128, 256, 0, 3)), Contains("the base offset is 3"));
  CHECK_THAT(with(descriptor(30720, 0, 1024, 128)), Contains("but the block has"));
  const std::string lanes = run_kernel("cvt.u64.u32 %rd2, %t;\nadd.u64 %da, %da, %rd2;\n" + kFence +
                                       product() + kCommit + kWait + kStore);
  CHECK_THAT(lanes, Contains("give different values as descriptor of a"));
}

TEST_CASE("wgmma: the warps of a warpgroup execute the same") {
  // Warp 3 leaves the wgmma out.
  const std::string without = run_kernel("setp.eq.u32 %p1, %w, 3;\n@%p1 bra out;\n" + kFence +
                                         product() + kCommit + kWait + "out:\nbar.sync 0;\n");
  CHECK_THAT(without, Contains("waits for a wgmma that these warps of its warpgroup do not "
                               "execute: 3"));
  const std::string other = run_kernel("setp.eq.u32 %p1, %w, 2;\n@%p1 mov.b64 %db, " +
                                       number(descriptor(16384, 0, 1024, 128)) + ";\n" + kFence +
                                       product() + kCommit + kWait + kStore);
  CHECK_THAT(other, Contains("warp 2 gives the descriptor 0x4000004000000400 of b for this wgmma"));
  CHECK_THAT(run_kernel(kFence + product() + kCommit + kWait + kStore, 96),
             Contains("its last warpgroup has 3 of 4"));
}

TEST_CASE("wgmma: one warp of the warpgroup may release the memory for all") {
  // A producer warp refills the tile when one thread of the warpgroup has arrived.
  const auto kernel = [](const std::string& arrive_early, const std::string& arrive_late) {
    return "mov.u32 %r4, empty;\nsetp.eq.u32 %p2, %t, 0;\n"
           "@%p2 mbarrier.init.shared::cta.b64 [%r4], 1;\nbar.sync 0;\n"
           "setp.ge.u32 %p1, %t, 128;\n@%p1 bra producer;\n" +
           kFence + product() + kCommit + arrive_early + kWait + arrive_late + kStore +
           "ret;\nproducer:\n"
           "wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], 0;\n@!%p3 bra wait;\n"
           "sub.u32 %r5, %t, 128;\nshl.b32 %r5, %r5, 2;\nadd.u32 %r5, %r1, %r5;\n"
           "st.shared.u32 [%r5], %r2;\n";
  };
  const std::string arrive =
      "setp.eq.u32 %p2, %t, 64;\n"
      "@%p2 mbarrier.arrive.shared::cta.b64 _, [%r4];\n";
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    CHECK(run_kernel(kernel("", arrive), 160, kFenced, seed) == "");
    CHECK_THAT(run_kernel(kernel(arrive, ""), 160, kFenced, seed),
               Contains("by wgmma; the write is not ordered after a wait for its group"));
  }
}
