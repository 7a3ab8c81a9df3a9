// tests/emulator/exited_barrier_test.cpp - threads that leave the kernel before a barrier
#include <catch2/catch.hpp>

#include <cstring>
#include <string>

#include "emulator/memory_kernels.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using test::findings_of;

namespace {

struct Run {
  Result result;
  std::vector<std::uint32_t> out;
};

/// Runs `body` with 64 threads: %out + 4 * tid in %slot, tid in %t.
Run run(std::string_view body, std::string_view target = "sm_90") {
  const std::string text = ".version 8.0\n.target " + std::string(target) +
                           "\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
                           ".reg .pred %p<4>;\n.reg .b32 %t, %r<8>;\n.reg .b64 %slot, %rd<3>;\n"
                           "ld.param.u64 %rd1, [out];\nmov.u32 %t, %tid.x;\n"
                           "mul.wide.u32 %rd2, %t, 4;\nadd.u64 %slot, %rd1, %rd2;\n"
                           "setp.ge.u32 %p1, %t, 48;\nand.b32 %r1, %t, 1;\n"
                           "setp.ne.u32 %p2, %r1, 0;\n" +
                           std::string(body) + "\n}\n";
  Device device(default_gpu(target));
  Program program = Program::load(device, text, "k.ptx");
  const std::uint64_t out = device.allocate(256, "argument 0 'out'");
  device.fill(out, std::byte{0}, 256);
  std::byte parameters[8];
  std::memcpy(parameters, &out, 8);
  Launch launch;
  launch.kernel = "k";
  launch.block = {64, 1, 1};
  launch.parameters = parameters;
  Options options;
  options.max_instructions = 10000;
  Run result{emulator::run(program, launch, options), std::vector<std::uint32_t>(64)};
  device.read(out, std::as_writable_bytes(std::span(result.out)));
  return result;
}

}  // namespace

TEST_CASE("threads that left before a barrier: a warning from sm_70 on, an error before") {
  const std::string body = "@%p1 ret;\nbar.sync 0;\nst.global.u32 [%slot], 5;\nret;";
  const Run now = run(body);
  INFO(findings_of(now.result));
  REQUIRE(now.result.findings.size() == 1);
  CHECK(now.result.findings[0].rule == Rule::ExitedBeforeBarrier);
  CHECK(now.result.findings[0].finding.severity == Severity::Warning);
  CHECK(now.result.status == Status::Ok);
  CHECK(to_text(now.result.findings[0]) ==
        "k.ptx:17: warning: 16 threads of warp 1 exited before this barrier, which expects all "
        "threads of the block [exited-before-barrier]\n"
        "    by thread (0,0,0) of block (0,0,0)\n"
        "    the other: thread (48,0,0) of block (0,0,0), line 16\n"
        "    rule: from sm_70 on a barrier waits only for the threads that have not exited\n"
        "    let every thread reach the barrier, and guard the work instead of exiting early");
  // The barrier has completed with the threads left.
  for (std::uint32_t t = 0; t < 64; ++t) CHECK(now.out[t] == (t < 48 ? 5 : 0));

  const Run before = run(body, "sm_60");
  REQUIRE(before.result.findings.size() == 1);
  CHECK(before.result.findings[0].rule == Rule::ExitedBeforeBarrier);
  CHECK(before.result.findings[0].finding.severity == Severity::Error);
  CHECK(before.result.status == Status::Findings);
  CHECK_THAT(findings_of(before.result),
             Catch::Contains("rule: before sm_70 a barrier waits for exited threads too"));
}

TEST_CASE("a whole warp, or work before leaving, is leaving too") {
  for (const char* body :
       {"setp.ge.u32 %p3, %t, 32; @%p3 ret;\nbar.sync 0;\nst.global.u32 [%slot], 5;\nret;",
        "@!%p1 bra ON; st.global.u32 [%slot], 9; ret;\nON: bar.sync 0;\n"
        "st.global.u32 [%slot], 5;\nret;",
        // In the third of four rounds.
        "mov.u32 %r2, 0;\nL: setp.eq.and.u32 %p3, %r2, 2, %p1;\n@%p3 bra OUT;\nbar.sync 0;\n"
        "st.global.u32 [%slot], %r2;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p3, %r2, 4;\n"
        "@%p3 bra L;\nOUT: ret;",
        // Counted, by a warp of which a part is left.
        "@%p1 ret;\nbar.sync 1, 64;\nst.global.u32 [%slot], 5;\nret;"}) {
    CAPTURE(body);
    const Run built = run(body);
    INFO(findings_of(built.result));
    REQUIRE(!built.result.findings.empty());
    for (const RunFinding& each : built.result.findings) {
      CHECK(each.rule == Rule::ExitedBeforeBarrier);
    }
    CHECK(built.result.status == Status::Ok);
  }
}

TEST_CASE("threads that pass a barrier by, or wait elsewhere, stay errors") {
  const auto rule_of = [](std::string_view body) {
    const Run built = run(body);
    INFO(findings_of(built.result));
    REQUIRE(!built.result.findings.empty());
    CHECK(built.result.findings[0].finding.severity == Severity::Error);
    return built.result.findings[0].rule;
  };
  // if (odd) barrier; out[t] = 5;
  CHECK(rule_of("@%p2 bar.sync 0;\nst.global.u32 [%slot], 5;\nret;") == Rule::BarrierDivergence);
  CHECK_THAT(findings_of(run("@%p2 bar.sync 0;\nst.global.u32 [%slot], 5;\nret;").result),
             Catch::Contains("16 threads of warp 0 skipped this barrier, which expects all threads "
                             "of the block, and exited later"));
  // Two barriers, and each half of a warp waits at one.
  CHECK(rule_of("@%p2 bra ODD; bar.sync 0; bra DONE;\nODD: bar.sync 0;\n"
                "DONE: st.global.u32 [%slot], 5;\nret;") == Rule::BarrierDivergence);
  // A number of threads that is never there, no matter which threads have left.
  CHECK(rule_of("setp.ge.u32 %p3, %t, 32; @%p3 ret;\nbar.sync 1, 64;\nret;") !=
        Rule::ExitedBeforeBarrier);
}
