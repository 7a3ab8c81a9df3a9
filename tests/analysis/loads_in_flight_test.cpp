// tests/analysis/loads_in_flight_test.cpp - loads that a thread issues before it waits
#include "ptxgen/analysis/loads_in_flight.hpp"

#include <catch2/catch.hpp>

#include "snippets.hpp"

using namespace ptxgen;
using namespace ptxgen::analysis;

namespace {

LoadsInFlight in_flight(std::string_view body) {
  const ptx::Module module =
      test::kernel("ld.param.u64 %rd1, [a];\ncvta.to.global.u64 %rd1, %rd1;\n" + std::string(body));
  const ptx::Function& function = module.functions[0];
  return loads_in_flight(function, memory_report(module, function));
}

}  // namespace

TEST_CASE("loads are in flight until an instruction reads what one of them loads") {
  const LoadsInFlight none = in_flight("ret;");
  CHECK(none.loads == 0);
  CHECK(none.bytes == 0);
  CHECK(none.statement == ptx::kNone);

  const LoadsInFlight both = in_flight(
      "ld.global.f32 %f1, [%rd1];\nld.global.v4.f32 {%f2, %f3, %f4, %f5}, [%rd1+16];\n"
      "add.f32 %f6, %f1, %f2;\n");
  CHECK(both.loads == 2);
  CHECK(both.bytes == 20);

  // Each sum waits for the load ahead of it.
  const LoadsInFlight one = in_flight(
      "ld.global.f32 %f1, [%rd1];\nadd.f32 %f6, %f6, %f1;\n"
      "ld.global.f32 %f2, [%rd1+4];\nadd.f32 %f6, %f6, %f2;\n");
  CHECK(one.loads == 1);
  CHECK(one.bytes == 4);
}

TEST_CASE("waiting for a load is waiting for those before it, not for those after it") {
  const LoadsInFlight pipelined = in_flight(
      "ld.global.f32 %f1, [%rd1];\nld.global.f32 %f2, [%rd1+4];\nld.global.f32 %f3, [%rd1+8];\n"
      "add.f32 %f6, %f2, %f2;\n"  // leaves the third
      "ld.global.f32 %f4, [%rd1+12];\nld.global.f32 %f5, [%rd1+16];\n"
      "ld.global.f32 %f7, [%rd1+20];\nadd.f32 %f6, %f1, %f3;\n");
  CHECK(pipelined.loads == 4);
  CHECK(pipelined.bytes == 16);
}

TEST_CASE("only loads from global memory count, and each basic block alone") {
  CHECK(in_flight("ld.shared.u32 %r1, [tile];\nld.const.u32 %r2, [table];\n"
                  "ld.global.u32 %r3, [%rd1];\nadd.u32 %r4, %r1, %r3;\n")
            .bytes == 4);
  CHECK(in_flight("ld.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p1, %r9, 0;\n@%p1 bra L;\n"
                  "ld.global.u32 %r4, [%rd1+4];\nL:\nadd.u32 %r5, %r3, %r4;\n")
            .bytes == 4);
  // An address that was loaded is waited for.
  CHECK(in_flight("ld.global.u64 %rd2, [%rd1];\nld.global.u64 %rd3, [%rd2];\n").bytes == 8);
}
