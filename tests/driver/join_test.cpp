// tests/driver/join_test.cpp - PTX texts joined by the linker
#include <array>
#include <catch2/catch.hpp>

#include "driver/emulated/link.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/support/error.hpp"

using namespace ptxgen;
using Catch::Contains;
using ptxgen::driver::emulated::join;
using ptxgen::driver::emulated::LinkInput;

namespace {

std::string head(const char* version, const char* target) {
  return std::string(".version ") + version + "\n.target " + target + "\n.address_size 64\n";
}

const char* const kKernel = R"(
.extern .func (.param .b32 r) twice(.param .b32 v);
.extern .global .u32 table[2];
.global .u32 own = 7;
.func (.param .b32 r) helper(.param .b32 v) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [v];
  add.s32 %r2, %r1, 1;
  st.param.b32 [r], %r2;
  ret;
}
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<6>;
  .reg .b64 %rd<2>;
  .param .b32 a;
  .param .b32 b;
  ld.param.u64 %rd1, [out];
  ld.global.u32 %r1, [table+4];
  ld.global.u32 %r2, [own];
  add.s32 %r1, %r1, %r2;
  st.param.b32 [a], %r1;
  call (b), twice, (a);
  ld.param.b32 %r3, [b];
  st.param.b32 [a], %r3;
  call (b), helper, (a);
  ld.param.b32 %r4, [b];
  st.global.u32 [%rd1], %r4;
  ret;
}
)";

const char* const kLibrary = R"(
.visible .global .u32 table[2] = {10, 20};
.global .u32 own = 100;
.func (.param .b32 r) helper(.param .b32 v) {
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [v];
  ld.global.u32 %r3, [own];
  mad.lo.s32 %r2, %r1, 2, %r3;
  st.param.b32 [r], %r2;
  ret;
}
.visible .func (.param .b32 r) twice(.param .b32 v) {
  .reg .b32 %r<3>;
  .param .b32 a;
  .param .b32 b;
  ld.param.b32 %r1, [v];
  st.param.b32 [a], %r1;
  call (b), helper, (a);
  ld.param.b32 %r2, [b];
  st.param.b32 [r], %r2;
  ret;
}
)";

}  // namespace

TEST_CASE("join: a single text stays as it is") {
  const LinkInput one{"a", "// with its comment\n" + head("8.0", "sm_80")};
  CHECK(join(std::span(&one, 1)) == one.ptx);
}

TEST_CASE("join: externs meet their definitions, private names stay apart") {
  const LinkInput kernel{"kernel", head("7.8", "sm_80") + kKernel};
  const LinkInput library{"library", head("8.0", "sm_89") + kLibrary};
  for (const bool kernel_first : {true, false}) {
    const std::array<LinkInput, 2> inputs =
        kernel_first ? std::array{kernel, library} : std::array{library, kernel};
    const std::string text = join(inputs);
    INFO(text);
    const ptx::Module module = ptx::parse(text);
    CHECK(module.version.major == 8);
    CHECK(module.version.minor == 0);
    CHECK(module.target == "sm_89");

    emulator::Device device(emulator::gpu_named("sm_89"));
    emulator::Program program = emulator::Program::load(device, text);
    const std::uint64_t out = device.allocate(4);
    emulator::Launch launch;
    launch.kernel = "k";
    launch.parameters = std::as_bytes(std::span(&out, 1));
    const emulator::Result result = emulator::run(program, launch);
    CHECK(result.findings.empty());
    std::uint32_t value = 0;
    device.read(out, std::as_writable_bytes(std::span(&value, 1)));
    // table[1] + own of the kernel = 27; the library's helper doubles and adds its own 100; the
    // kernel's helper adds one.
    CHECK(value == 155);
  }
}

TEST_CASE("join: one visible name defined twice is refused, a weak one gives way") {
  const std::string strong = head("8.0", "sm_80") + ".visible .global .u32 g = 1;\n";
  const std::string weak = head("8.0", "sm_80") + ".weak .global .u32 g = 2;\n";
  const std::array<LinkInput, 2> twice{LinkInput{"a", strong}, LinkInput{"b", strong}};
  try {
    (void)join(twice);
    FAIL("joined");
  } catch (const Error& error) {
    CHECK(error.code == "duplicate-name");
    CHECK_THAT(error.message, Contains("'g'") && Contains("'a'") && Contains("'b'"));
  }
  for (const bool weak_first : {true, false}) {
    const std::array<LinkInput, 2> inputs{LinkInput{"a", weak_first ? weak : strong},
                                          LinkInput{"b", weak_first ? strong : weak}};
    const ptx::Module module = ptx::parse(join(inputs));
    REQUIRE(module.variables.size() == 1);
    CHECK(module.variables[0].linkage == ptx::Linkage::Visible);
  }
}

TEST_CASE("join: results that only the caller or only the function has") {
  const std::string takes = head("8.0", "sm_80") + R"(
.extern .func (.param .b32 r) put(.param .b64 to);
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  .param .b64 a;
  .param .b32 b;
  ld.param.u64 %rd1, [out];
  st.param.b64 [a], %rd1;
  call (b), put, (a);
  ld.param.b32 %r1, [b];
  ret;
}
)";
  const std::string puts = head("8.0", "sm_80") + R"(
.visible .func put(.param .b64 to) {
  .reg .b64 %rd<2>;
  ld.param.b64 %rd1, [to];
  st.u32 [%rd1], 7;
  ret;
}
)";
  const std::string ignores = head("8.0", "sm_80") + R"(
.extern .func put(.param .b64 to);
.visible .entry k(.param .u64 out) {
  .reg .b64 %rd<2>;
  .param .b64 a;
  ld.param.u64 %rd1, [out];
  st.param.b64 [a], %rd1;
  call put, (a);
  call put, (a);
  ret;
}
)";
  const std::string returns = head("8.0", "sm_80") + R"(
.visible .func (.param .b32 r) put(.param .b64 to) {
  .reg .b64 %rd<2>;
  ld.param.b64 %rd1, [to];
  st.u32 [%rd1], 7;
  st.param.b32 [r], 8;
  ret;
}
)";
  const auto run = [](std::array<LinkInput, 2> inputs) {
    for (int order = 0; order < 2; ++order, std::swap(inputs[0], inputs[1])) {
      const std::string text = join(inputs);
      INFO(text);
      emulator::Device device(emulator::gpu_named("sm_80"));
      emulator::Program program = emulator::Program::load(device, text);
      const std::uint64_t out = device.allocate(4);
      emulator::Launch launch;
      launch.kernel = "k";
      launch.parameters = std::as_bytes(std::span(&out, 1));
      const emulator::Result result = emulator::run(program, launch);
      CHECK(result.findings.empty());
      std::uint32_t value = 0;
      device.read(out, std::as_writable_bytes(std::span(&value, 1)));
      CHECK(value == 7);
    }
  };
  run({LinkInput{"a", takes}, LinkInput{"b", puts}});
  run({LinkInput{"a", ignores}, LinkInput{"b", returns}});
  // In one text it stays an error, as for ptxas.
  const std::string one = takes + puts.substr(puts.find(".visible"));
  const std::array<LinkInput, 1> alone{LinkInput{"one", one}};
  emulator::Device device(emulator::gpu_named("sm_80"));
  CHECK_THROWS_WITH(emulator::Program::load(device, join(alone)),
                    Contains("takes 1 result, but the function has 1 and 0"));
}
