// tests/check/impossible_block_test.cpp - gates on blocks that no GPU can launch
#include <catch2/catch.hpp>

#include <string>

#include "ptxgen/analysis.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;

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
    // A gate that walked the declared block would run into the test's time limit.
    for (const gates::GateInfo& gate : gates::all_gates()) (void)gate.run(checked, {});
  }
}
