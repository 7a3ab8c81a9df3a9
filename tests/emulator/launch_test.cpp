// tests/emulator/launch_test.cpp - launches as a whole: budget, progress, cooperative ones
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"

namespace ptxgen::test {
namespace {

constexpr std::string_view kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";

struct Ran {
  emulator::Result result;
  std::vector<std::uint32_t> words;
};

/// `body` as kernel `k(.param .u64 p)`, where %p is the address of 256 zeros.
Ran run_body(std::string_view body, emulator::Launch launch, const emulator::Options& options) {
  emulator::Device device(emulator::gpu_named("sm_80"));
  const std::string text = std::string(kHead) +
                           ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %p;\n"
                           "ld.param.u64 %p, [p];\n" +
                           std::string(body) + "\n}\n";
  emulator::Program program = emulator::Program::load(device, text, "k.ptx");
  const std::uint64_t buffer = device.allocate(1024, "p");
  device.fill(buffer, std::byte{0}, 1024);
  launch.kernel = "k";
  launch.parameters = std::as_bytes(std::span(&buffer, 1));
  Ran built;
  built.result = emulator::run(program, launch, options);
  built.words.resize(256);
  device.read(buffer, std::as_writable_bytes(std::span(built.words)));
  return built;
}

emulator::Launch grid_of(std::uint32_t blocks, std::uint32_t threads = 32) {
  emulator::Launch launch;
  launch.grid = {blocks, 1, 1};
  launch.block = {threads, 1, 1};
  return launch;
}

/// What nvcc 13 prints for `this_grid().sync()` between two stores, here of one word a block.
constexpr std::string_view kGridSync = R"(
  .reg .pred %q<6>; .reg .b32 %r<48>; .reg .b64 %rd<48>;
  cvta.to.global.u64 %rd10, %p;
  // begin inline asm
  mov.u32 %r2, %envreg2;
  // end inline asm
  cvt.u64.u32 %rd11, %r2;
  // begin inline asm
  mov.u32 %r3, %envreg1;
  // end inline asm
  cvt.u64.u32 %rd12, %r3;
  bfi.b64 %rd1, %rd12, %rd11, 32, 32;
  mov.u32 %r4, %ctaid.z;
  mov.u32 %r5, %nctaid.y;
  mov.u32 %r6, %nctaid.x;
  mov.u32 %r7, %ctaid.y;
  mov.u32 %r8, %ctaid.x;
  mov.u32 %r14, %tid.z;
  mov.u32 %r15, %tid.y;
  mov.u32 %r17, %tid.x;
  setp.ne.u32 %q5, %r17, 0;
  mul.wide.u32 %rd23, %r8, 4;
  add.s64 %rd24, %rd10, %rd23;
  mov.u32 %r19, 5;
  @%q5 bra $L__BB0_1;
  st.global.u32 [%rd24], %r19;
$L__BB0_1:
  setp.ne.s64 %q1, %rd1, 0;
  @%q1 bra $L__BB0_2;

  // begin inline asm
  trap;
  // end inline asm

$L__BB0_2:
  barrier.sync 0;
  add.s32 %r22, %r17, %r15;
  neg.s32 %r24, %r14;
  setp.ne.s32 %q2, %r22, %r24;
  @%q2 bra $L__BB0_5;

  add.s64 %rd25, %rd1, 4;
  mul.lo.s32 %r29, %r6, %r5;
  mov.u32 %r30, %nctaid.z;
  mul.lo.s32 %r31, %r29, %r30;
  add.s32 %r34, %r8, %r7;
  neg.s32 %r36, %r4;
  setp.eq.s32 %q3, %r34, %r36;
  mov.u32 %r37, -2147483647;
  sub.s32 %r38, %r37, %r31;
  selp.b32 %r26, %r38, 1, %q3;
  // begin inline asm
  atom.add.release.gpu.u32 %r25,[%rd25],%r26;
  // end inline asm

$L__BB0_4:
  // begin inline asm
  ld.acquire.gpu.u32 %r39,[%rd25];
  // end inline asm
  xor.b32 %r40, %r39, %r25;
  setp.gt.s32 %q4, %r40, -1;
  @%q4 bra $L__BB0_4;

$L__BB0_5:
  barrier.sync 0;
  @%q5 bra $L__BB0_6;
  xor.b32 %r41, %r8, 1;
  mul.wide.u32 %rd30, %r41, 4;
  add.s64 %rd31, %rd10, %rd30;
  ld.global.u32 %r42, [%rd31];
  add.u32 %r42, %r42, %r8;
  st.global.u32 [%rd24+512], %r42;
$L__BB0_6:
  ret;
)";

}  // namespace

TEST_CASE("a barrier of the grid works in a cooperative launch") {
  emulator::Launch launch = grid_of(4, 64);
  launch.cooperative = true;
  const Ran ran = run_body(kGridSync, launch, {});
  CHECK(ran.result.status == emulator::Status::Ok);
  CHECK(ran.result.findings.empty());
  for (std::uint32_t block = 0; block < 4; ++block) {
    CHECK(ran.words[block] == 5);
    CHECK(ran.words[128 + block] == 5 + block);
  }
}

TEST_CASE("a barrier of the grid in a launch that is not cooperative") {
  const Ran ran = run_body(kGridSync, grid_of(4, 64), {});
  CHECK(ran.result.status == emulator::Status::Fault);
  REQUIRE(ran.result.findings.size() == 1);
  const emulator::RunFinding& found = ran.result.findings[0];
  CHECK(found.rule == emulator::Rule::Trap);
  CHECK(found.finding.message ==
        "the kernel traps here: its grid barrier (grid.sync) has no workspace because the launch "
        "is not cooperative");
  REQUIRE(found.finding.details.size() == 1);
  CHECK(found.finding.details[0] ==
        "launch it as a cooperative kernel (Launch::cooperative, cuLaunchCooperativeKernel, "
        "cudaLaunchCooperativeKernel), or split it into one launch for each part between the "
        "barriers");
}

TEST_CASE("a trap for another reason says nothing about grids") {
  // It reads the workspace, and traps for the sake of a thread's number.
  const Ran ran = run_body(
      ".reg .b32 %r<4>; .reg .pred %q;\nmov.u32 %r1, %envreg1;\nst.global.u32 [%p], %r1;\n"
      "mov.u32 %r2, %ctaid.x;\nsetp.ne.u32 %q, %r2, 0;\n@%q bra DONE;\ntrap;\nDONE:\nret;",
      grid_of(1, 1), {});
  REQUIRE(ran.result.findings.size() == 1);
  CHECK(ran.result.findings[0].finding.message == "the kernel traps here");
  CHECK(ran.words[0] == 0);
}

TEST_CASE("threads that call different functions through a register execute only the call apart") {
  emulator::Device device(emulator::gpu_named("sm_80"));
  const std::string text = std::string(kHead) + R"(
.func (.param .b32 result) plus(.param .b32 x)
{ .reg .b32 %r1; ld.param.b32 %r1, [x]; add.u32 %r1, %r1, 7; st.param.b32 [result], %r1; ret; }
.func (.param .b32 result) times(.param .b32 x)
{ .reg .b32 %r1; ld.param.b32 %r1, [x]; mul.lo.u32 %r1, %r1, 2; st.param.b32 [result], %r1; ret; }
.visible .entry k(.param .u64 p)
{
  .reg .b64 %p<3>; .reg .b32 %r<4>; .reg .pred %q;
  ld.param.u64 %p1, [p];
  mov.u32 %r1, %tid.x;
  mad.wide.u32 %p1, %r1, 4, %p1;
  bra BLOCK;
BLOCK:
  add.u32 %r1, %r1, 1000;
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %q, %r2, 0;
  mov.u64 %p2, plus;
  @!%q mov.u64 %p2, times;
  {
    proto: .callprototype (.param .b32 result) _ (.param .b32 x);
    .param .b32 in;
    .param .b32 out;
    st.param.b32 [in], %r1;
    call (out), %p2, (in), proto;
    ld.param.b32 %r3, [out];
  }
  st.global.u32 [%p1], %r3;
  ret;
}
)";
  emulator::Program program = emulator::Program::load(device, text, "k.ptx");
  const std::uint64_t buffer = device.allocate(128, "p");
  emulator::Launch launch = grid_of(1);
  launch.kernel = "k";
  launch.parameters = std::as_bytes(std::span(&buffer, 1));
  const emulator::Result result = emulator::run(program, launch, {});
  CHECK(result.findings.empty());
  std::vector<std::uint32_t> words(32);
  device.read(buffer, std::as_writable_bytes(std::span(words)));
  for (std::uint32_t i = 0; i < 32; ++i) {
    CHECK(words[i] == (i % 2 == 0 ? 1007 + i : 2 * (1000 + i)));
  }
}

TEST_CASE("a launch has a budget") {
  // Three instructions and a return in each of two warps; block 5 executes 400 more in each.
  constexpr std::string_view kBody = R"(
    .reg .b32 %r<4>; .reg .pred %q;
    mov.u32 %r1, %ctaid.x;
    setp.ne.u32 %q, %r1, 5;
    @%q bra DONE;
    mov.u32 %r2, 0;
  TOP:
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %q, %r2, 133;
    @%q bra TOP;
  DONE:
    ret;)";
  emulator::Options options;
  options.max_launch_instructions = 1000;
  for (const unsigned threads : {1u, 4u}) {
    options.threads = threads;
    const Ran ran = run_body(kBody, grid_of(1u << 31 >> 1, 64), options);
    CHECK(ran.result.status == emulator::Status::Fault);
    REQUIRE(ran.result.findings.size() == 1);
    const emulator::RunFinding& found = ran.result.findings[0];
    CHECK(found.rule == emulator::Rule::InstructionBudget);
    // Five blocks of 100, one of 2 * 405, and then it is over.
    CHECK(to_text(found) ==
          "k.ptx: error: the launch was stopped after 6 of 1073741824 blocks: they have executed "
          "1310 warp instructions (a block counts as at least 100), more than the budget of 1000 "
          "for a launch [instruction-budget]\n"
          "    all blocks would need about 234433631573\n"
          "    launch a smaller grid, or raise the budget (Options::max_launch_instructions, 0 for "
          "none)");
  }
  // Enough for all of them, and no limit at all.
  options.max_launch_instructions = 1310;
  CHECK(run_body(kBody, grid_of(6, 64), options).result.findings.empty());
  options.max_launch_instructions = 0;
  CHECK(run_body(kBody, grid_of(5000, 64), options).result.findings.empty());
  CHECK(emulator::Options().max_launch_instructions == 20'000'000'000);
}

TEST_CASE("progress is told while one block runs on") {
  struct Seen {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> calls;
  } seen;
  emulator::Options options;
  options.threads = 1;
  options.progress.user = &seen;
  options.progress.report = [](void* user, std::uint64_t done, std::uint64_t total) {
    static_cast<Seen*>(user)->calls.emplace_back(done, total);
  };
  CHECK(run_body("ret;", grid_of(1000), options).result.findings.empty());
  REQUIRE(seen.calls.size() >= 250);
  CHECK(std::ranges::is_sorted(seen.calls));
  CHECK(seen.calls.back() == std::pair<std::uint64_t, std::uint64_t>{1000, 1000});
  // A launch of one block is reported by time alone while that block runs.
  seen.calls.clear();
  options.max_instructions = 150'000'000;
  const Ran ran = run_body(
      ".reg .b32 %r<3>; .reg .pred %q;\nmov.u32 %r1, 0;\nTOP:\nadd.u32 %r1, %r1, 1;\n"
      "setp.lt.u32 %q, %r1, 40000000;\n@%q bra TOP;\nret;",
      grid_of(1), options);
  CHECK(ran.result.findings.empty());
  REQUIRE_FALSE(seen.calls.empty());
  CHECK(seen.calls.front() == std::pair<std::uint64_t, std::uint64_t>{0, 1});
  CHECK(seen.calls.back() == std::pair<std::uint64_t, std::uint64_t>{1, 1});
}

}  // namespace ptxgen::test
