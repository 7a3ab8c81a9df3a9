// tests/runtime/assembly_log_test.cpp - reading the logs of several releases
#include <catch2/catch.hpp>
#include <cstring>

#include "runtime/assemble/assembler_tools.hpp"

using namespace ptxgen;

namespace {

Assembly assembly_with(const std::string& log) {
  Assembly assembly;
  assembly.log = log;
  // An ELF file without sections, so that only the log speaks.
  assembly.cubin.resize(64);
  const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
  std::memcpy(assembly.cubin.data(), magic, sizeof magic);
  read_resources(assembly);
  return assembly;
}

}  // namespace

TEST_CASE("figures of ptxas -v", "[log]") {
  const Assembly assembly = assembly_with(
      "ptxas info    : 0 bytes gmem, 64 bytes cmem[3]\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_89'\n"
      "ptxas info    : Function properties for b\n"
      "    64 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 60 registers, used 2 barriers, 96 bytes cumulative stack size, 1024 "
      "bytes smem, 360 bytes cmem[0]\n"
      "ptxas info    : Compile time = 49.783 ms\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_89'\n"
      "ptxas info    : Function properties for a\n"
      "    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 8 registers, 364 bytes cmem[0]\n");
  REQUIRE(assembly.kernels.size() == 2);
  CHECK(assembly.kernels[0].name == "a");
  CHECK(assembly.kernels[0].registers == 8);
  CHECK(assembly.kernels[0].barriers == 0);
  CHECK(assembly.kernels[0].shared == 0);
  CHECK(assembly.kernels[1].name == "b");
  CHECK(assembly.kernels[1].registers == 60);
  CHECK(assembly.kernels[1].barriers == 2);
  CHECK(assembly.kernels[1].stack == 96);
  CHECK(assembly.kernels[1].shared == 1024);
  CHECK(assembly.kernels[1].spill_stores == 12);
  CHECK(assembly.kernels[1].spill_loads == 16);
  CHECK(assembly.registers == 60);
  CHECK(assembly.shared == 1024);
  CHECK(assembly.spill_stores == 16);
  CHECK(assembly.spill_loads == 24);
}

TEST_CASE("figures of nvJitLink: what the linker says holds", "[log]") {
  const Assembly assembly = assembly_with(
      "ptxas info    : Function properties for helper\n"
      "ptxas         .     40 bytes stack frame, 20 bytes spill stores, 24 bytes spill loads\n"
      "ptxas info    : Compiling entry function 'k1' for 'sm_75'\n"
      "ptxas info    : Function properties for k1\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 24 registers, used 0 barriers, 364 bytes cmem[0]\n"
      "info    : 0 bytes gmem\n"
      "info    : Function properties for 'k1':\n"
      "info    : used 26 registers, used 1 barriers, 40 stack, 128 bytes smem, 364 bytes cmem[0], "
      "0 bytes lmem\n");
  REQUIRE(assembly.kernels.size() == 1);
  CHECK(assembly.kernels[0].registers == 26);
  CHECK(assembly.kernels[0].barriers == 1);
  CHECK(assembly.kernels[0].stack == 40);
  CHECK(assembly.kernels[0].shared == 128);
  CHECK(assembly.kernels[0].spill_stores == 0);
  // A function's spills are the module's too.
  CHECK(assembly.spill_stores == 20);
  CHECK(assembly.spill_loads == 24);
}

TEST_CASE("the first complaint of a log", "[log]") {
  CHECK(first_error("").text.empty());
  CHECK(first_error("ptxas info    : 0 bytes gmem\n").text.empty());
  CHECK(first_error("ptxas x.ptx, line 4; warning : error in style\n").text.empty());
  CHECK(first_error("info : Compiling entry function 'error' for 'sm_89'\n").text.empty());

  LogError found = first_error(
      "ptxas x.ptx, line 4; warning : Look out\n"
      "ptxas /a b/x.ptx, line 10; error   : Unknown modifier '.f33'\n"
      "ptxas x.ptx, line 3; error   : Later\n");
  CHECK(found.line == 10);
  CHECK(found.text == "Unknown modifier '.f33'");

  found = first_error(
      "ptxas fatal   : Ptx assembly aborted due to errors\r\n"
      "ptxas application ptx input, line 7; fatal   : Parsing error near '}': syntax error\r\n");
  CHECK(found.line == 7);
  CHECK(found.text == "Parsing error near '}': syntax error");

  found = first_error("ptxas fatal   : Unexpected EOF encountered on line 5\n");
  CHECK(found.line == 5);
  found = first_error("error   : Undefined reference to 'foo' in 'ptx'\n");
  CHECK(found.line == 0);
  CHECK(found.text == "Undefined reference to 'foo' in 'ptx'");
  found = first_error("ERROR NVJITLINK_ERROR_UNRECOGNIZED_ARCH: unrecognized architecture\n");
  CHECK(found.text == "unrecognized architecture");
  CHECK(first_error("ERROR \n").line == 0);
}

TEST_CASE("names of targets", "[log]") {
  for (const char* good : {"sm_75", "sm_90", "sm_90a", "sm_100f", "sm_121a"}) {
    CHECK(is_target_name(good));
  }
  for (const char* bad : {"", "sm", "sm_", "sm_a", "sm_90af", "sm_90 ", "sm_-9", "sm_9999999"}) {
    CHECK_FALSE(is_target_name(bad));
  }
}
