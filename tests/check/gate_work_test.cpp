// tests/check/gate_work_test.cpp - the work of gates grows with the module
#include <catch2/catch.hpp>

#include <algorithm>
#include <ctime>
#include <string>

#include "ptxgen/analysis.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;

namespace {

/// Kernels with everything that gates follow: shared memory of their own and of the module, a
/// barrier under a condition, a call, an access that is not coalesced.
std::string kernels(unsigned count) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".extern .shared .align 16 .b8 dynamic[];\n.shared .b32 common[64];\n"
      ".func f()\n{\n  st.shared.b32 [common], 1;\n  ret;\n}\n";
  for (unsigned i = 0; i < count; ++i) {
    text += ".visible .entry k" + std::to_string(i) + "(.param .u64 p, .param .u32 n)\n{\n" +
            R"(  .reg .b32 %r<9>;
  .reg .b64 %rd<6>;
  .reg .pred %p<2>;
  .shared .b32 tile[64];
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r5, [n];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 256;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.b32 %r6, [%rd4];
  mov.u32 %r2, tile;
  mad.lo.u32 %r4, %r1, 4, %r2;
  st.shared.b32 [%r4], %r6;
  st.shared.b32 [dynamic], %r6;
  setp.lt.u32 %p1, %r1, %r5;
  @%p1 bar.sync 0;
  ld.shared.b32 %r7, [%r4+4];
  st.global.b32 [%rd4], %r7;
  call f, ();
  ret;
}
)";
  }
  return text;
}

/// Processor time of this thread, however busy the machine is.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double work(const gates::GateInfo& gate, const ptx::Module& module) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = cpu_seconds();
    (void)gate.run(module, {});
    best = std::min(best, cpu_seconds() - start);
  }
  return best;
}

}  // namespace

TEST_CASE("gates look at a module of many kernels in linear time") {
  constexpr double kTimes = 16;
  const ptx::Module small = ptx::parse(kernels(10));
  const ptx::Module large = ptx::parse(kernels(10 * static_cast<unsigned>(kTimes)));
  for (const gates::GateInfo& gate : gates::all_gates()) {
    const double first = work(gate, small), second = work(gate, large);
    INFO(gate.name << ": " << first << " s, " << second << " s for " << kTimes << " times as much");
    // 16 where the work is linear, 256 where it is quadratic; below a millisecond nothing is told.
    CHECK(second < 3 * kTimes * std::max(first, 1e-3));
  }
}

TEST_CASE("a block that no GPU can launch is a finding, and is not walked through") {
  const auto module = [](const std::string& directive) {
    return ptx::parse(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n" +
        directive + R"(
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .shared .b32 tile[1024];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.z;
  add.u32 %r1, %r1, %r2;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.b32 %r3, [%rd3];
  mov.u32 %r2, tile;
  mad.lo.u32 %r2, %r1, 4, %r2;
  st.shared.b32 [%r2], %r3;
  bar.sync 0;
  ret;
}
)");
  };
  const auto text_of = [](const ptx::Module& checked) {
    std::string text;
    for (const Finding& finding : gates::target_limits(checked)) text += to_text(finding) + "\n";
    return text;
  };
  struct Case {
    std::string directive, finding;
    std::array<std::uint32_t, 3> walked;
  };
  const Case cases[] = {
      {".maxntid 1024, 1, 1000000",
       "<ptx>:4: warning: kernel 'k' .maxntid asks for 1000000 threads in z [tile-limits]\n"
       "    rule: a block has at most 64 threads in z\n    cure: make it at most 64\n",
       {1024, 1, 1}},
      {".maxntid 1024, 1024, 64",
       "<ptx>:4: warning: kernel 'k' .maxntid asks for 67108864 threads [tile-limits]\n"
       "    rule: a block has at most 1024 threads\n"
       "    cure: make it at most 1024: an assembler ignores a larger bound\n",
       {1024, 1, 1}},
      {".reqntid 32, 4294967295, 2",
       "<ptx>:4: error: kernel 'k' .reqntid asks for 4294967295 threads in y [tile-limits]\n"
       "    rule: a block has at most 1024 threads in y\n    cure: make it at most 1024\n",
       {1024, 1, 1}},
      {".maxntid 32, 8, 16",
       "<ptx>:4: warning: kernel 'k' .maxntid asks for 4096 threads [tile-limits]\n"
       "    rule: a block has at most 1024 threads\n"
       "    cure: make it at most 1024: an assembler ignores a larger bound\n",
       {32, 8, 4}},
  };
  for (const Case& one : cases) {
    INFO(one.directive);
    const ptx::Module checked = module(one.directive);
    CHECK(text_of(checked) == one.finding);
    CHECK(analysis::memory_report(checked, checked.functions[0]).block == one.walked);
    for (const gates::GateInfo& gate : gates::all_gates()) {
      const double seconds = work(gate, checked);
      INFO(gate.name);
      CHECK(seconds < 50 * std::max(work(gate, module(".reqntid 1024, 1, 1")), 1e-3));
    }
  }
}
