// tests/cli/run_limits_test.cpp - ptxgen run: cooperative launches, budgets, progress
#include <catch2/catch.hpp>

#include "program.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// A kernel that stops itself where the launch is not cooperative, as grid.sync() of CUDA does.
constexpr std::string_view kGridSync = R"(.version 7.8
.target sm_80
.address_size 64
.visible .entry waits(.param .u64 p)
{
.reg .pred %q<2>;
.reg .b32 %r<4>;
.reg .b64 %rd<6>;
ld.param.u64 %rd4, [p];
mov.u32 %r1, %envreg2;
cvt.u64.u32 %rd1, %r1;
mov.u32 %r2, %envreg1;
cvt.u64.u32 %rd2, %r2;
bfi.b64 %rd3, %rd2, %rd1, 32, 32;
setp.ne.s64 %q1, %rd3, 0;
@%q1 bra go;
trap;
go:
st.global.u32 [%rd4], 7;
ret;
}
)";

constexpr std::string_view kEmpty =
    ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";

}  // namespace

TEST_CASE("a barrier of the grid needs --cooperative") {
  const TemporaryDirectory folder;
  const std::string ptx = folder.file("waits.ptx");
  write_file(ptx, kGridSync);
  std::vector<std::string> call = {"run",     ptx, "--grid", "1",
                                   "--block", "1", "--arg",  "print:u32:1"};
  auto result = ptxgen_program(call);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "because the launch is not cooperative [trap]"));
  call.emplace_back("--cooperative");
  result = ptxgen_program(call);
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out == "p: u32[1]\n  7\n");
}

TEST_CASE("a launch as a whole has a budget") {
  const TemporaryDirectory folder;
  const std::string ptx = folder.file("k.ptx");
  write_file(ptx, kEmpty);
  const auto run = [&](const std::string& budget) {
    return ptxgen_program(
        {"run", ptx, "--grid", "2147483647", "--block", "32", "--max-launch-instructions", budget});
  };
  const auto result = run("10000");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.err, "[instruction-budget]"));
  CHECK(contains(result.err, " of 2147483647 blocks"));
  CHECK(contains(run("-1").err, "--max-launch-instructions -1: expects a whole number in 0.."));
}

TEST_CASE("a long run says how far it is and how long it will take") {
  const TemporaryDirectory folder;
  const std::string ptx = folder.file("k.ptx");
  write_file(ptx, kEmpty);
  // Stopped from outside, soon after the first line; without a limit it would run for hours.
  const auto result =
      run_program({"/usr/bin/timeout", "2.6", PTXGEN_PROGRAM, "run", ptx, "--grid", "2147483647",
                   "--block", "32", "--max-launch-instructions", "0"});
  INFO(result.err);
  CHECK(result.exit_code == 124);
  CHECK(result.err.starts_with("k: "));
  CHECK(contains(result.err, " of 2147483647 blocks after 2 s, about "));
  CHECK(contains(result.err, " left; --max-launch-instructions limits a run\n"));
}
