// tests/check/gate_work_test.cpp - how the work of gates grows
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx.hpp"
#include "runtime/count_allocations.hpp"
#include "support/harness.hpp"

using namespace ptxgen;

namespace {

constexpr const char* kHeader = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// The text with the number in the place of each `#`.
std::string with_number(int number, std::string text) {
  for (std::size_t at = text.find('#'); at != std::string::npos; at = text.find('#'))
    text.replace(at, 1, std::to_string(number));
  return text;
}

/// Stages a value in shared memory, with a barrier that the gates have to judge.
std::string staging_kernel(int number) {
  return with_number(number, R"(.visible .entry staging_#(.param .u64 p)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  .reg .pred %p;
  .shared .b32 tile_#[256];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.b32 %r2, [%rd3];
  mov.u32 %r3, tile_#;
  mad.lo.u32 %r3, %r1, 4, %r3;
  st.shared.b32 [%r3], %r2;
  setp.lt.u32 %p, %r2, 7;
  @%p bra SKIP;
  bar.sync 0;
SKIP:
  ld.shared.b32 %r4, [%r3];
  st.global.b32 [%rd3], %r4;
  ret;
}
)");
}

/// Thread 0 never leaves its loop; the others wait for it.
std::string endless_kernel(int number) {
  return with_number(number, R"(.visible .entry endless_#()
{
  .reg .b32 %r;
  .reg .pred %p;
  mov.u32 %r, %tid.x;
  setp.ne.u32 %p, %r, 0;
  @%p bra DONE;
LOOP:
  bra LOOP;
DONE:
  bar.sync 0;
  ret;
}
)");
}

/// Half of the threads wait at a barrier that the others do not reach.
constexpr const char* kDeadlock = R"(.visible .entry deadlock()
.reqntid 64
{
  .reg .b32 %r;
  .reg .pred %p;
  mov.u32 %r, %tid.x;
  setp.lt.u32 %p, %r, 32;
  @%p bra LOWER;
  bar.sync 0;
  bra DONE;
LOWER:
  bar.sync 1;
DONE:
  ret;
}
)";

ptx::Module module_of(int count, const std::function<std::string(int)>& kernel) {
  std::string text = kHeader;
  for (int i = 0; i < count; ++i) text += kernel(i);
  return ptx::parse(text);
}

using Gate = std::function<void(const ptx::Module&)>;

/// How many times as much memory a gate asks for with 16 times as many kernels.
double growth(const Gate& gate) {
  const ptx::Module few = module_of(10, staging_kernel), many = module_of(160, staging_kernel);
  const auto bytes = [&](const ptx::Module& module) {
    const std::uint64_t before = test::allocated_bytes();
    gate(module);
    return static_cast<double>(test::allocated_bytes() - before);
  };
  (void)bytes(few);  // what is allocated once
  // A gate that asks for none has none that grows.
  return bytes(many) / std::max(1.0, bytes(few));
}

}  // namespace

TEST_CASE("the memory that gates ask for grows with the number of kernels") {
  if (!test::kCountsAllocations) return test::skip("clang's TSan has its own operator new");
  // A stand-in for their work, since the same at each run: tables of the module that are built for
  // each kernel would make it grow by the square, 256 times.
  for (const gates::GateInfo& gate : gates::all_gates()) {
    INFO(gate.name);
    CHECK(growth([&](const ptx::Module& module) { (void)gate.run(module, {}); }) <= 1.5 * 16);
  }
  const Gate quadratic = [](const ptx::Module& module) {
    for (std::size_t i = 0; i < module.functions.size(); ++i)
      (void)std::vector<std::uint64_t>(module.symbols.size()).data();
  };
  CHECK(growth(quadratic) > 1.5 * 16);
}

TEST_CASE("loops that do not end leave time for the kernels after them") {
  // A budget for each of these kernels, shapes and parameters would take minutes: beyond the test's
  // time limit.
  const ptx::Module endless = module_of(160, endless_kernel);
  CHECK(gates::barrier_safety(endless, {}).size() == 160);

  const std::string before = ptx::print(endless);
  const std::vector<Finding> found = gates::barrier_safety(ptx::parse(before + kDeadlock), {});
  REQUIRE(found.size() == 161);
  CHECK(found.back().severity == Severity::Error);
  CHECK(found.back().rule == "barrier-divergence");
  CHECK_THAT(found.back().message, Catch::Contains("threads with %tid.x < 32 (32 of 64) wait at"));
}
