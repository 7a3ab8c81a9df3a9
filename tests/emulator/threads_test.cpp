// tests/emulator/threads_test.cpp - launches on several host threads, for ThreadSanitizer too
//
// Kernels may race; the emulator may not. Without ThreadSanitizer these cases still check that a
// launch ends as it should.
#include <catch2/catch.hpp>

#include <span>
#include <string>
#include <vector>

#include "kernel_runner.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

constexpr std::string_view kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";

emulator::Options on_threads(unsigned threads) {
  emulator::Options options;
  options.threads = threads;
  options.parallel = true;
  options.max_instructions = 1'000'000;
  return options;
}

/// One launch of `k(.param .u64 p)` on a buffer of zeros.
struct Ran {
  emulator::Result result;
  std::vector<std::uint32_t> words;
};
Ran run_on(std::string_view body, std::uint64_t bytes, emulator::Dim3 grid, emulator::Dim3 block,
           const emulator::Options& options, std::string_view declarations = {}) {
  emulator::Device device(emulator::gpu_named("sm_80"));
  const std::string text = std::string(kHead) + std::string(declarations) +
                           ".visible .entry k(.param .u64 p)\n{\n" + std::string(body) + "\n}\n";
  emulator::Program program = emulator::Program::load(device, text);
  const std::uint64_t buffer = device.allocate(bytes, "p");
  device.fill(buffer, std::byte{0}, bytes);
  emulator::Launch launch;
  launch.kernel = "k";
  launch.grid = grid;
  launch.block = block;
  launch.parameters = std::as_bytes(std::span(&buffer, 1));
  Ran built;
  built.result = emulator::run(program, launch, options);
  built.words.resize(static_cast<std::size_t>(bytes / 4));
  device.read(buffer, std::as_writable_bytes(std::span(built.words)));
  return built;
}

}  // namespace

TEST_CASE("random kernels on several threads, with races and without") {
  const int kernels = count(25, 300);
  for (int i = 0; i < kernels; ++i) {
    const std::uint64_t number = seed() + 900'000 + static_cast<std::uint64_t>(i);
    constexpr RaceKind kKinds[] = {RaceKind::None, RaceKind::Shared, RaceKind::Global};
    const RandomKernel kernel = random_kernel(number, kKinds[i % 3]);
    INFO("kernel " << number << "\n" << kernel.ptx);
    KernelRunner runner(kernel);
    const KernelOutcome got = runner.run(on_threads(4));
    INFO(got.findings);
    CHECK(got.status != emulator::Status::Fault);
  }
}

TEST_CASE("all blocks write the same words at once") {
  // Every width of access, to the same 64 bytes.
  const Ran ran = run_on(
      ".reg .b64 %p; .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .b16 %h; .reg .pred %q;\n"
      "ld.param.u64 %p, [p];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, 0;\n"
      "TOP:\nst.global.u32 [%p], %r1;\nld.global.u32 %r3, [%p];\n"
      "cvt.u16.u32 %h, %r3;\nst.global.u8 [%p+5], %h;\nld.global.s8 %h, [%p+4];\n"
      "cvt.u64.u32 %d1, %r3;\nst.global.v2.u64 [%p+16], {%d1, %d1};\n"
      "ld.global.v2.u64 {%d1, %d2}, [%p+16];\n"
      "st.global.v4.u32 [%p+32], {%r1, %r2, %r3, %r1};\n"
      "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%p+32];\n"
      "add.u32 %r2, %r2, 1;\n"
      "setp.lt.u32 %q, %r2, 20;\n@%q bra TOP;\nret;\n",
      64, {64, 1, 1}, {64, 1, 1}, on_threads(4), ".global .u32 unused;\n");
  CHECK(ran.result.status != emulator::Status::Fault);
}

TEST_CASE("atomics of all blocks on several threads lose nothing") {
  const Ran ran = run_on(
      ".reg .b64 %p; .reg .b32 %r<9>; .reg .f32 %f; .reg .b64 %d;\n"
      "ld.param.u64 %p, [p];\n"
      "red.global.add.u32 [%p], 1;\n"
      "atom.global.add.u32 %r1, [%p+4], 3;\n"
      "atom.global.add.u64 %d, [%p+8], 5;\n"
      "atom.global.add.f32 %f, [%p+16], 0f3f800000;\n"
      "mov.u32 %r2, %ctaid.x;\n"
      "atom.global.max.u32 %r1, [%p+20], %r2;\n"
      "atom.global.exch.b32 %r1, [%p+24], %r2;\n"
      "ld.relaxed.gpu.global.u32 %r3, [%p];\n"
      "st.volatile.global.u32 [%p+28], %r3;\n"
      "ret;\n",
      64, {64, 1, 1}, {96, 1, 1}, on_threads(4));
  CHECK(ran.result.status == emulator::Status::Ok);
  CHECK(ran.words[0] == 64 * 96);
  CHECK(ran.words[1] == 3 * 64 * 96);
  CHECK(ran.words[2] == 5 * 64 * 96);
  CHECK(ran.words[4] == 0x45c00000u);  // 6144 as f32
  CHECK(ran.words[5] == 63);
}

TEST_CASE("malloc, free and printf on several threads") {
  const Ran ran = run_on(
      ".reg .b64 %p, %a, %b; .reg .b32 %r<9>; .reg .pred %q;\n.local .align 8 .b8 args[8];\n"
      "ld.param.u64 %p, [p];\nmov.u32 %r1, %ctaid.x;\n"
      "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 64; call (r), malloc, (n);\n"
      "ld.param.b64 %a, [r]; }\n"
      "st.u32 [%a], %r1;\nld.u32 %r2, [%a];\n"
      "{ .param .b64 n; st.param.b64 [n], %a; call free, (n); }\n"
      "red.global.add.u32 [%p], %r2;\n"
      "mov.u32 %r3, %tid.x;\nsetp.ne.u32 %q, %r3, 0;\n@%q bra END;\n"
      "st.local.u32 [args], %r1;\nmov.u64 %a, args;\ncvta.local.u64 %a, %a;\n"
      "mov.u64 %b, text;\ncvta.global.u64 %b, %b;\n"
      "{ .param .b64 f; .param .b64 v; .param .b32 r; st.param.b64 [f], %b;\n"
      "st.param.b64 [v], %a; call (r), vprintf, (f, v); }\n"
      "END: ret;\n",
      64, {32, 1, 1}, {64, 1, 1}, on_threads(4),
      ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 n);\n"
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
      ".global .align 1 .b8 text[4] = {37, 117, 10, 0};\n");
  CHECK(ran.result.findings.empty());
  CHECK(ran.words[0] == 64 * (31 * 32 / 2));
  std::string expected;
  for (int block = 0; block < 32; ++block) expected += std::to_string(block) + "\n";
  CHECK(ran.result.printed == expected);
}

TEST_CASE("findings of many blocks at once, and a block that faults") {
  const Ran many = run_on(
      ".reg .b64 %p; .reg .b32 %r<4>;\nld.param.u64 %p, [p];\n"
      "ld.global.u32 %r1, [%p+4096];\nst.global.u32 [%p+8192], %r1;\nret;\n",
      64, {64, 1, 1}, {64, 1, 1}, on_threads(4));
  CHECK(many.result.status == emulator::Status::Findings);
  CHECK(many.result.findings.size() == 2);
  const Ran fault = run_on(
      ".reg .b64 %p; .reg .b32 %r<4>; .reg .pred %q;\nld.param.u64 %p, [p];\n"
      "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %q, %r1, 17;\n@%q trap;\n"
      "red.global.add.u32 [%p], 1;\nret;\n",
      64, {64, 1, 1}, {32, 1, 1}, on_threads(4));
  CHECK(fault.result.status == emulator::Status::Fault);
  REQUIRE(fault.result.findings.size() == 1);
  CHECK(fault.result.findings[0].rule == emulator::Rule::Trap);
}

TEST_CASE("blocks that wait for each other on several threads") {
  // A grid barrier made of an atomic and polling; more blocks than threads.
  const Ran ran = run_on(
      ".reg .b64 %p; .reg .b32 %r<4>; .reg .pred %q;\nld.param.u64 %p, [p];\n"
      "atom.add.release.gpu.global.u32 %r1, [%p], 1;\n"
      "WAIT:\nld.acquire.gpu.global.u32 %r2, [%p];\nsetp.lt.u32 %q, %r2, 16;\n@%q bra WAIT;\n"
      "red.global.add.u32 [%p+4], %r2;\nret;\n",
      64, {16, 1, 1}, {1, 1, 1}, on_threads(3));
  CHECK(ran.result.status == emulator::Status::Ok);
  CHECK(ran.words[1] == 16 * 16);
}

}  // namespace ptxgen::test
