// tests/emulator/hostile_test.cpp - PTX whose counts and sizes are out of proportion
//
// What the fuzzer looks for at random, as cases with names.
#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::test {
namespace {

constexpr std::string_view kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";

struct Ran {
  emulator::Result result;
  std::vector<std::uint32_t> words;
};

/// `body` as kernel `k(.param .u64 p)`, where %p is the address of 64 zeros.
Ran run_body(std::string_view body, std::string_view declarations = {},
             emulator::Options options = {}) {
  emulator::Device device(emulator::gpu_named("sm_80"));
  const std::string text = std::string(kHead) + std::string(declarations) +
                           ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %p;\n"
                           "ld.param.u64 %p, [p];\n" +
                           std::string(body) + "\n}\n";
  emulator::Program program = emulator::Program::load(device, text);
  const std::uint64_t buffer = device.allocate(256, "p");
  device.fill(buffer, std::byte{0}, 256);
  emulator::Launch launch;
  launch.kernel = "k";
  launch.parameters = std::as_bytes(std::span(&buffer, 1));
  options.threads = 1;
  Ran built;
  built.result = emulator::run(program, launch, options);
  built.words.resize(64);
  device.read(buffer, std::as_writable_bytes(std::span(built.words)));
  return built;
}

std::string refusal(std::string_view body, std::string_view declarations = {}) {
  try {
    static_cast<void>(run_body(body, declarations));
  } catch (const Error& error) {
    return error.message;
  }
  return "nothing is refused";
}

/// A call of vprintf with a format of those bytes and arguments 7, 8, 9.
Ran print_with(std::string_view format) {
  std::string bytes;
  for (const char c : format) bytes += std::to_string(static_cast<int>(c)) + ",";
  const std::string text =
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
      ".global .align 1 .b8 text[" +
      std::to_string(format.size() + 1) + "] = {" + bytes + "0};\n";
  return run_body(
      ".local .align 8 .b8 args[16]; .reg .b64 %a, %b; .reg .b32 %r<4>;\n"
      "mov.u32 %r1, 7; st.local.u32 [args], %r1; mov.u32 %r1, 8; st.local.u32 [args+4], %r1;\n"
      "mov.u32 %r1, 9; st.local.u32 [args+8], %r1; st.local.u32 [args+12], %r1;\n"
      "mov.u64 %a, args; cvta.local.u64 %a, %a; mov.u64 %b, text; cvta.global.u64 %b, %b;\n"
      "{ .param .b64 f; .param .b64 v; .param .b32 r; st.param.b64 [f], %b;\n"
      "st.param.b64 [v], %a; call (r), vprintf, (f, v); }\nret;",
      text);
}

}  // namespace

TEST_CASE("registers are numbered as high as they are declared") {
  const Ran ran = run_body(
      ".reg .b32 %r<4000000000>;\nmov.u32 %r3999999999, 5;\nadd.u32 %r0, %r3999999999, 2;\n"
      "st.global.u32 [%p], %r0;\nret;");
  CHECK(ran.result.findings.empty());
  CHECK(ran.words[0] == 7);
}

TEST_CASE("a vector register is allowed only where its elements go") {
  const Ran ran = run_body(
      ".reg .v4 .u32 %v; .reg .u32 %r<2>;\nld.global.v4.u32 %v, [%p];\n"
      "add.u32 %r0, %v.x, 3;\nst.global.u32 [%p], %r0;\nret;");
  CHECK(ran.result.findings.empty());
  CHECK(ran.words[0] == 3);
  for (const std::string_view line :
       {"ld.param.u32 %v, [p];", "ld.global.v2.u32 %v, [%p];", "st.global.u32 [%p], %v;",
        "add.u32 %v, %v, %v;", "ld.global.v2.u32 {%v, %r0}, [%p];"}) {
    INFO(line);
    CHECK(refusal(".reg .v4 .u32 %v; .reg .u32 %r<2>;\n" + std::string(line) + "\nret;") !=
          "nothing is refused");
  }
}

TEST_CASE("a variable of gigabytes costs what its initialiser says") {
  const Ran ran = run_body(
      ".reg .b64 %a; .reg .b32 %r<4>;\nmov.u64 %a, big;\nld.global.u32 %r1, [%a+4];\n"
      "ld.global.u32 %r2, [%a+2000000000];\nadd.u32 %r1, %r1, %r2;\n"
      "st.global.u32 [%p], %r1;\nret;",
      ".global .u32 big[600000000] = {11, 12, 13};\n");
  CHECK(ran.result.findings.empty());
  CHECK(ran.words[0] == 12);
}

TEST_CASE("local memory beyond what a thread can have is refused") {
  CHECK(refusal(".local .b8 a[600000];\nret;") ==
        "a thread of kernel 'k' needs 600000 bytes of local memory; the maximum is 524288");
  CHECK(
      refusal("call far, ();\nret;", ".func far()\n{\n.local .b8 a[500000];\nret;\n}\n").empty() ==
      false);
  // Along a chain of calls sums would overflow 32 bits.
  std::string chain = ".func f0()\n{\n.local .b8 a[16000000];\nret;\n}\n";
  for (int i = 1; i < 300; ++i) {
    chain += ".func f" + std::to_string(i) + "()\n{\n.local .b8 a[16000000];\ncall f" +
             std::to_string(i - 1) + ", ();\nret;\n}\n";
  }
  CHECK(refusal("call f299, ();\nret;", chain).find("4800000064 bytes of local memory") !=
        std::string::npos);
}

TEST_CASE("endless recursion ends with the stack") {
  const Ran ran =
      run_body("call down, ();\nret;", ".func down();\n.func down()\n{\ncall down, ();\nret;\n}\n");
  CHECK(ran.result.status == emulator::Status::Fault);
  REQUIRE(ran.result.findings.size() == 1);
  CHECK(ran.result.findings[0].rule == emulator::Rule::StackOverflow);
}

TEST_CASE("formats of printf are not trusted") {
  CHECK(print_with("%d|%u|%x\n").result.printed == "7|8|9\n");
  CHECK(print_with("%*d|%d\n").result.printed == "      8|9\n");
  CHECK(print_with("%-+ #05d|%.3d|%.d\n").result.printed == "+7   |008|9\n");
  // Widths that would fill a page, lengths that mean nothing, conversions that take addresses.
  CHECK(print_with("%999999999d").result.printed.size() < 5000);
  CHECK(print_with("%2147483648d%18446744073709551616d").result.printed.size() < 10000);
  CHECK(print_with("%hhd %hd\n").result.printed == "7 8\n");
  for (const std::string_view format : {"%n", "%s", "%", "%q", "%l", "%*", "%.*", "%..5d"}) {
    INFO(format);
    const Ran ran = print_with(format);
    CHECK(ran.result.printed.size() < 8);
  }
}

TEST_CASE("an index beyond a table of targets goes somewhere in it") {
  const Ran ran = run_body(
      ".reg .b32 %r<2>;\nmov.u32 %r1, 0xffffffff;\nT: .branchtargets A, B;\nbrx.idx %r1, T;\n"
      "A: mov.u32 %r0, 1;\nbra END;\nB: mov.u32 %r0, 2;\nEND: st.global.u32 [%p], %r0;\nret;");
  CHECK((ran.words[0] == 1 || ran.words[0] == 2));
}

}  // namespace ptxgen::test
