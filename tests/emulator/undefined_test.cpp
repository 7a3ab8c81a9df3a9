// tests/emulator/undefined_test.cpp - undefined bits of registers, followed bit by bit
#include <catch2/catch.hpp>

#include "emulator/memory_kernels.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using test::findings_of;
using test::MemoryKernel;

namespace {

/// What a run of a kernel says that stores to out[t] what `body` leaves in %r1 (or %rd1).
std::string found(std::string_view body, std::string_view variables = {}) {
  MemoryKernel kernel(std::string(body), variables);
  kernel.input(std::vector<std::uint32_t>(256, 7));
  kernel.output(1024);
  return findings_of(kernel.run());
}

const std::string kStore = "\nadd.u64 %rd30, %out, %t4; st.global.u32 [%rd30], %r1;\n";
const std::string kStore64 = "\nadd.u64 %rd30, %out, %t8; st.global.u64 [%rd30], %rd1;\n";

constexpr const char* kStored = "register %r1 is stored to global memory and was never";

}  // namespace

// %r31 and %r30, %rs7, %rd31, %p3, %f15 are never written in any of these.
TEST_CASE("undefined bits that are dropped are no finding") {
  const std::string body =
      GENERATE(as<std::string>{},
               // The low half of a pair.
               "mov.b64 %rd2, {%t, %r31}; cvt.u32.u64 %r1, %rd2;",
               "mov.b64 %rd2, {%t, %r31}; mov.b64 {%r1, %r2}, %rd2;",
               "mov.b64 %rd2, {%r31, %t}; shr.u64 %rd3, %rd2, 32; cvt.u32.u64 %r1, %rd3;",
               "mov.b64 %rd2, {%r31, %t}; { .reg .b32 lo; mov.b64 {lo, %r1}, %rd2; }",
               "mov.b32 %r2, {%rs7, %rs7}; and.b32 %r1, %r2, 0;",
               "cvt.u16.u32 %rs1, %t; mov.b32 %r2, {%rs1, %rs7}; cvt.u16.u32 %rs2, %r2; "
               "cvt.u32.u16 %r1, %rs2;",
               // prmt that selects the defined bytes.
               "prmt.b32 %r1, %t, %r31, 0x3210;", "prmt.b32 %r1, %r31, %t, 0x7654;",
               "prmt.b32 %r2, %t, %r31, 0x7610; prmt.b32 %r1, %r2, 0, 0x4410;",
               // Masks and shifts.
               "shl.b32 %r2, %r31, 8; or.b32 %r3, %r2, %t; and.b32 %r1, %r3, 255;",
               "or.b32 %r1, %r31, -1;", "shl.b32 %r2, %r31, 4; and.b32 %r1, %r2, 15;",
               "bfi.b32 %r2, %t, %r31, 0, 12; bfe.u32 %r1, %r2, 0, 12;",
               "bfi.b32 %r2, %t, %r31, 8, 24; shr.u32 %r1, %r2, 8;",
               "lop3.b32 %r1, %t, %r31, 0xff, 0xc0; and.b32 %r1, %r1, 0;",
               "shl.b32 %r2, %r31, 16; add.u32 %r3, %r2, %t; cvt.u16.u32 %rs1, %r3; "
               "cvt.u32.u16 %r1, %rs1;",
               "shf.l.wrap.b32 %r1, %r31, %t, 0;",
               // A predicate that the other side decides.
               "setp.eq.u32 %p1, %t, 99; and.pred %p2, %p1, %p3; selp.u32 %r1, 1, 2, %p2;",
               "setp.ne.u32 %p1, %t, 99; or.pred %p2, %p1, %p3; selp.u32 %r1, 1, 2, %p2;",
               // One half of packed arithmetic.
               "cvt.u16.u32 %rs1, %t; mov.b32 %r2, {%rs1, %rs7}; add.f16x2 %r3, %r2, %r2; "
               "and.b32 %r1, %r3, 65535;",
               "cvt.rn.f32.u32 %f1, %t; cvt.rn.f16x2.f32 %r2, %f15, %f1; and.b32 %r1, %r2, 65535;");
  CAPTURE(body);
  CHECK(found(body + kStore) == "");
}

TEST_CASE("undefined bits that are kept are found") {
  const std::string body =
      GENERATE(as<std::string>{}, "mov.b64 %rd2, {%t, %r31}; mov.b64 {%r2, %r1}, %rd2;",
               "mov.b64 %rd2, {%r31, %t}; cvt.u32.u64 %r1, %rd2;",
               "prmt.b32 %r1, %t, %r31, 0x7654;", "prmt.b32 %r1, %t, %r31, 0x3217;",
               "prmt.b32 %r1, %t, %t, %r31;", "shl.b32 %r2, %r31, 8; or.b32 %r1, %r2, %t;",
               "and.b32 %r1, %r31, 1;", "shr.s32 %r1, %r31, 31;", "shl.b32 %r1, %t, %r31;",
               "bfi.b32 %r1, %t, %r31, 0, 31;", "bfe.s32 %r1, %r31, 31, 1;",
               "lop3.b32 %r1, %t, %r31, %t, 0x3c;", "shf.l.wrap.b32 %r1, %r31, %t, 1;",
               "mul.lo.u32 %r2, %r31, 16; shr.u32 %r1, %r2, 4;", "mad.lo.u32 %r1, %t, 2, %r31;",
               "setp.eq.u32 %p1, %t, %t; and.pred %p2, %p1, %p3; selp.u32 %r1, 1, 2, %p2;",
               "cvt.u16.u32 %rs1, %t; mov.b32 %r2, {%rs1, %rs7}; add.f16x2 %r1, %r2, %r2;",
               "cvt.rn.f32.u32 %f1, %t; cvt.rn.f16x2.f32 %r1, %f15, %f1;", "popc.b32 %r1, %r31;",
               "setp.lt.u32 %p1, %r31, 7; selp.u32 %r1, 1, 2, %p1;",
               "setp.eq.u32 %p1, %t, %t; selp.u32 %r1, %r31, %t, %p1;", "cvt.s32.s8 %r1, %r31;");
  CAPTURE(body);
  CHECK_THAT(found(body + kStore), Catch::Contains("register %r1 is stored to global memory"));
}

TEST_CASE("a finding about a part of a register names the bits") {
  CHECK_THAT(found("shl.b32 %r2, %r31, 8; or.b32 %r1, %r2, %t;" + kStore),
             Catch::Contains("part of register %r1 is stored to global memory and was never "
                             "written by the thread (bits 0xffffff00) [uninitialized-read]"));
  CHECK_THAT(found("mov.b32 %r1, %r31;" + kStore), Catch::Contains(kStored));
}

TEST_CASE("only the stored bytes of a register matter") {
  const std::string pack = "mov.b64 %rd1, {%t, %r31}; add.u64 %rd30, %out, %t4;\n";
  CHECK(found(pack + "st.global.u32 [%rd30], %rd1;") == "");
  CHECK(found(pack + "st.global.u8 [%rd30], %rd1;") == "");
  CHECK_THAT(found(pack + kStore64),
             Catch::Contains("part of register %rd1 is stored to global memory and was never "
                             "written by the thread (bits 0xffffffff00000000)"));
  // An address matters as a whole.
  CHECK_THAT(found("mov.b64 %rd2, {%r31, %t}; and.b64 %rd2, %rd2, 7; add.u64 %rd3, %out, %rd2;\n"
                   "st.global.u8 [%rd3], 1;"),
             Catch::Contains("register %rd3 is an address and was never written"));
}

TEST_CASE("an undefined guard makes what it guards undefined") {
  // %p3 is never written: it is unknown which of the two values %r1 has.
  CHECK_THAT(found("mov.u32 %r1, 1; @%p3 mov.u32 %r1, 2;" + kStore), Catch::Contains(kStored));
  CHECK_THAT(found("mov.u32 %r1, 1; @!%p3 mov.u32 %r1, 2;" + kStore), Catch::Contains(kStored));
  CHECK_THAT(found("mov.u32 %r1, 1; @%p3 add.u32 %r2, %t, 1; add.u32 %r1, %r2, 1;" + kStore),
             Catch::Contains(kStored));
  // Written again afterwards, or never used: no finding.
  CHECK(found("@%p3 mov.u32 %r1, 2; mov.u32 %r1, 1;" + kStore) == "");
  CHECK(found("mov.u32 %r1, 1; @%p3 mov.u32 %r2, 2;" + kStore) == "");
  // Only some lanes: those whose guard was never written.
  MemoryKernel kernel(
      "setp.lt.u32 %p1, %t, 8; @%p1 setp.ne.u32 %p3, %t, 3; mov.u32 %r1, 1;\n"
      "@%p3 mov.u32 %r1, 2;" +
      kStore);
  kernel.input(std::vector<std::uint32_t>(32, 7));
  kernel.output(128);
  const Result result = kernel.run();
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings[0].thread == Dim3{8, 0, 0});
  CHECK(kernel.result<std::uint32_t>()[2] == 2);
}

TEST_CASE("a guard that is undefined where something is done is found there") {
  CHECK_THAT(found("mov.u32 %r1, 1; add.u64 %rd30, %out, %t4; @%p3 st.global.u32 [%rd30], %r1;"),
             Catch::Contains("register %p3 decides whether this is executed and was never"));
  CHECK_THAT(found("@%p3 bra L; mov.u32 %r1, 1;\nL:"),
             Catch::Contains("register %p3 decides a branch and was never"));
}

TEST_CASE("registers passed to functions and back are as defined as they were") {
  constexpr std::string_view kFunctions =
      ".func (.reg .b32 z) inner(.reg .b32 a, .reg .b32 b)\n{\nadd.u32 z, a, 1;\nret;\n}\n"
      ".func (.reg .b32 y) outer(.reg .b32 c, .reg .b32 d, .reg .b64 p)\n{\n.reg .b32 q, w;\n"
      "ld.global.u32 w, [p];\ncall (q), inner, (c, d);\nadd.u32 y, q, w;\nret;\n}\n"
      ".func (.reg .b32 y) second(.reg .b32 c, .reg .b32 d)\n{\nmov.u32 y, d;\nret;\n}\n";
  // The second argument goes through two functions and is used in none.
  CHECK(found("add.u64 %rd2, %in, %t4; call (%r1), outer, (%t, %t, %rd2);" + kStore, kFunctions) ==
        "");
  CHECK(found("add.u64 %rd2, %in, %t4; call (%r1), outer, (%t, %r31, %rd2);" + kStore,
              kFunctions) == "");
  CHECK_THAT(
      found("add.u64 %rd2, %in, %t4; call (%r1), outer, (%r31, %t, %rd2);" + kStore, kFunctions),
      Catch::Contains(kStored));
  CHECK_THAT(found("call (%r1), second, (%t, %r31);" + kStore, kFunctions),
             Catch::Contains(kStored));
  CHECK(found("call (%r1), second, (%r31, %t);" + kStore, kFunctions) == "");
  // By halves of the warp, which share the activation.
  CHECK(found("setp.lt.u32 %p1, %t, 16; add.u64 %rd2, %in, %t4; mov.u32 %r2, 3;\n"
              "@%p1 bra A; mov.u32 %r2, 4;\nA: call (%r1), outer, (%r2, %r31, %rd2);" +
                  kStore,
              kFunctions) == "");
}
