// tests/emulator/race_launch_test.cpp - races in global memory as launches find them, unasked
//
// A launch on several workers, or one that watches what its kernel's text shows it to write, is
// undone and run again where that does not do. What it leaves is what one worker leaves that
// watches everything.
#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel_runner.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

using emulator::Rule;

constexpr std::string_view kRaceHead = ".version 8.0\n.target sm_80\n.address_size 64\n";
constexpr std::size_t kWords = 4096;

struct RacedLaunch {
  emulator::Result result;
  std::string findings;
  std::vector<std::uint32_t> a, b;
};

/// Kernel `k(a, b)` on two buffers of words 0, 1, 2, ..., a number of times one after another.
RacedLaunch run_body(std::string_view body, std::uint32_t blocks, const emulator::Options& options,
                     int launches = 1, std::uint32_t threads = 64) {
  emulator::Device device(emulator::gpu_named("sm_80"));
  const std::string text =
      std::string(kRaceHead) +
      ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b64 %a, %b, %x<9>;\n"
      ".reg .b32 %r<9>; .reg .pred %q<4>;\nld.param.u64 %a, [a];\nld.param.u64 %b, [b];\n"
      "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
      "mad.lo.u32 %r4, %r1, %r2, %r3;\nmul.wide.u32 %x1, %r4, 4;\n" +
      std::string(body) + "\nret;\n}\n";
  emulator::Program program = emulator::Program::load(device, text, "k.ptx");
  std::vector<std::uint32_t> words(kWords);
  for (std::size_t i = 0; i < kWords; ++i) words[i] = static_cast<std::uint32_t>(i);
  const std::uint64_t buffers[2] = {device.allocate(4 * kWords, "a"),
                                    device.allocate(4 * kWords, "b")};
  for (const std::uint64_t buffer : buffers) device.write(buffer, std::as_bytes(std::span(words)));
  emulator::Launch launch;
  launch.kernel = "k";
  launch.grid = {blocks, 1, 1};
  launch.block = {threads, 1, 1};
  launch.parameters = std::as_bytes(std::span(buffers));
  RacedLaunch built;
  for (int i = 0; i < launches; ++i) {
    built.result = emulator::run(program, launch, options);
    for (const auto& finding : built.result.findings) built.findings += to_text(finding) + "\n";
  }
  built.a = built.b = words;
  device.read(buffers[0], std::as_writable_bytes(std::span(built.a)));
  device.read(buffers[1], std::as_writable_bytes(std::span(built.b)));
  return built;
}

emulator::Options on(unsigned threads) {
  emulator::Options options;
  options.threads = threads;
  return options;
}

/// The same on one worker and on four, several times, in all that can be seen.
RacedLaunch run_alike(std::string_view body, std::uint32_t blocks, std::uint32_t threads = 64) {
  const RacedLaunch one = run_body(body, blocks, on(1), 2, threads);
  for (int i = 0; i < 3; ++i) {
    const RacedLaunch four = run_body(body, blocks, on(4), 2, threads);
    CHECK(four.findings == one.findings);
    CHECK(four.a == one.a);
    CHECK(four.b == one.b);
    CHECK(four.result.status == one.result.status);
  }
  return one;
}

/// All threads: b[0] += a[i].
constexpr std::string_view kSumIntoOne =
    "add.u64 %x2, %a, %x1;\nld.global.u32 %r5, [%x2];\nld.global.u32 %r6, [%b];\n"
    "add.u32 %r6, %r6, %r5;\nst.global.u32 [%b], %r6;";

}  // namespace

TEST_CASE("out[0] += in[i] by all threads is found unasked") {
  const RacedLaunch ran = run_alike(kSumIntoOne, 8);
  CHECK(ran.result.status == emulator::Status::Findings);
  CHECK(ran.result.unchecked.empty());
  INFO(ran.findings);
  CHECK(ran.findings.find("k.ptx:19: error: thread (1,0,0) of block (0,0,0) writes 4 bytes at ") !=
        std::string::npos);
  CHECK(ran.findings.find("(byte 0 of b), which thread (0,0,0) writes with the same instruction, "
                          "another value [global-race]") != std::string::npos);
  CHECK(ran.findings.find("let one thread write it, or use an atomic") != std::string::npos);
}

TEST_CASE("what is right is not run twice and not slowed by what it reads only") {
  // In place, and from one buffer to the other.
  const RacedLaunch ran = run_alike(
      "add.u64 %x2, %a, %x1;\nadd.u64 %x3, %b, %x1;\nld.global.u32 %r5, [%x2];\n"
      "ld.global.u32 %r6, [%x3];\nadd.u32 %r6, %r6, %r5;\nst.global.u32 [%x3], %r6;",
      64);
  CHECK(ran.findings.empty());
  CHECK(ran.b[100] == 300);
}

TEST_CASE("what a race has changed is undone before the launch is run again") {
  // Each thread doubles its own word; the last block reads and writes those of the first as well.
  const RacedLaunch ran = run_alike(
      "add.u64 %x2, %a, %x1;\nld.global.u32 %r5, [%x2];\nadd.u32 %r5, %r5, %r5;\n"
      "st.global.u32 [%x2], %r5;\nsetp.ne.u32 %q1, %r1, 63;\n@%q1 bra DONE;\n"
      "mul.wide.u32 %x1, %r3, 4;\nadd.u64 %x2, %a, %x1;\nld.global.u32 %r5, [%x2];\n"
      "add.u32 %r5, %r5, 1;\nst.global.u32 [%x2], %r5;\nDONE:",
      64);
  INFO(ran.findings);
  CHECK(ran.result.status == emulator::Status::Findings);
  CHECK(ran.a[5] == (5 * 2 + 1) * 2 + 1);
  CHECK(ran.a[100] == 400);
  CHECK(ran.findings.find("global-race") != std::string::npos);
}

TEST_CASE("memory that is written where the text does not show it is watched after all") {
  // The address of `a` goes through two halves in shared memory: no analysis sees that the words
  // that every block reads from it are also written.
  const std::string body =
      ".shared .align 8 .b32 halves[2];\n"
      "setp.ne.u32 %q1, %r3, 0;\nadd.u64 %x2, %a, %x1;\n"
      "ld.global.u32 %r5, [%a+16000];\nadd.u64 %x3, %b, %x1;\nst.global.u32 [%x3], %r5;\n"
      "mov.b64 {%r6, %r7}, %a;\n@%q1 bra JOIN;\n"
      "st.shared.u32 [halves], %r6;\nst.shared.u32 [halves+4], %r7;\nJOIN:\nbar.sync 0;\n"
      "ld.shared.u32 %r6, [halves];\nld.shared.u32 %r7, [halves+4];\nmov.b64 %x4, {%r6, %r7};\n"
      "setp.ne.u32 %q2, %r4, 0;\n@%q2 bra DONE;\nst.global.u32 [%x4+16000], %r1;\nDONE:";
  const RacedLaunch ran = run_alike(body, 16);
  INFO(ran.findings);
  CHECK(ran.findings.find("(byte 16000 of a)") != std::string::npos);
  CHECK(ran.findings.find("global-race") != std::string::npos);
  CHECK(ran.a[4000] == 0);
  CHECK(ran.a[1] == 1);
}

TEST_CASE("addresses from memory, from the stack and from variables") {
  // A table of addresses in global memory: whatever it points to is watched.
  const std::string through_memory =
      "st.global.u64 [%b], %a;\nmembar.gl;\nbar.sync 0;\nld.global.u64 %x4, [%b];\n"
      "ld.global.u32 %r5, [%x4+8];\nst.global.u32 [%x4+8], %r1;";
  CHECK(run_alike(through_memory, 4, 1).findings.find("global-race") != std::string::npos);
  const std::string through_stack =
      ".local .align 8 .b64 depot[2];\nst.local.u64 [depot+8], %a;\n"
      "ld.local.u64 %x4, [depot+8];\nld.global.u32 %r5, [%a+8];\nst.global.u32 [%x4+8], %r1;";
  CHECK(run_alike(through_stack, 4, 1).findings.find("(byte 8 of a)") != std::string::npos);
}

TEST_CASE("rules that a run leaves out are told") {
  emulator::Options options = on(4);
  CHECK(run_body(kSumIntoOne, 8, options).result.unchecked.empty());
  options.checks.remove(Rule::GlobalRace).remove(Rule::ScopeTooNarrow);
  const RacedLaunch without = run_body(kSumIntoOne, 8, options);
  CHECK(without.result.status == emulator::Status::Ok);
  CHECK(to_text(without.result.unchecked) == "global-race, scope-too-narrow");
  // Blocks that hand each other something, in any order: nothing could tell who came first.
  options = on(4);
  options.parallel = true;
  const std::string_view chain =
      "mov.u32 %r5, 1;\natom.global.add.u32 %r6, [%b], %r5;\nadd.u64 %x2, %a, %x1;\n"
      "st.global.u32 [%x2], %r6;";
  const RacedLaunch any_order = run_body(chain, 8, options);
  CHECK(any_order.result.status == emulator::Status::Ok);
  CHECK(to_text(any_order.result.unchecked) == "global-race, scope-too-narrow");
  options.parallel = false;
  CHECK(run_body(chain, 8, options).result.unchecked.empty());
  options.checks = emulator::RuleSet::none();
  CHECK(to_text(run_body(chain, 8, options).result.unchecked).find("out-of-bounds, ") == 0);
  CHECK_FALSE(run_body(chain, 8, options).result.unchecked.has(Rule::Nondeterminism));
}

TEST_CASE("random kernels leave the same on one worker and on four") {
  const int kernels = count(30, 600);
  int raced = 0;
  for (int i = 0; i < kernels; ++i) {
    const std::uint64_t number = seed() + 7'000'000 + static_cast<std::uint64_t>(i);
    const RandomKernel kernel =
        random_kernel(number, i % 2 == 0 ? RaceKind::Global : RaceKind::None);
    INFO("kernel " << number << "\n" << kernel.ptx);
    // A device for each, so that addresses are equal.
    KernelRunner first(kernel), second(kernel);
    const KernelOutcome one = first.run(on(1));
    const KernelOutcome four = second.run(on(4));
    CHECK(four.findings == one.findings);
    CHECK(four.counters == one.counters);
    CHECK((four.out == one.out && four.sum == one.sum));
    raced += one.findings.find("global-race") != std::string::npos ? 1 : 0;
    if (i % 2 != 0) CHECK(one.findings.find("global-race") == std::string::npos);
  }
  CHECK(raced > kernels / 4);
}

TEST_CASE("a plain read before a loop around an atomic is a warning, a plain write an error") {
  const std::string_view compare_and_swap =
      "ld.global.u32 %r5, [%b];\nAGAIN:\nadd.u32 %r6, %r5, 1;\n"
      "atom.global.cas.b32 %r7, [%b], %r5, %r6;\nsetp.ne.u32 %q1, %r7, %r5;\nmov.u32 %r5, %r7;\n"
      "@%q1 bra AGAIN;";
  const RacedLaunch guide = run_alike(compare_and_swap, 3);
  CHECK(guide.result.status == emulator::Status::Ok);
  CHECK(guide.findings.find("warning: ") != std::string::npos);
  CHECK(guide.findings.find("[global-race]") != std::string::npos);
  CHECK(guide.findings.find("error: ") == std::string::npos);
  const RacedLaunch written =
      run_alike("atom.global.add.u32 %r7, [%b], 1;\nst.global.u32 [%b], %r4;", 3);
  CHECK(written.findings.find("error: ") != std::string::npos);
}

}  // namespace ptxgen::test
