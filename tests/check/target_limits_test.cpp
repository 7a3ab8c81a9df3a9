// tests/check/target_limits_test.cpp - limits that directives and variables must keep
#include <catch2/catch.hpp>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx/parser.hpp"

using namespace ptxgen;
using namespace ptxgen::gates;

namespace {

std::string reported(const std::string& text, const GateOptions& options = {}) {
  std::string all;
  for (const Finding& finding : target_limits(ptx::parse(text, "k.ptx"), options)) {
    CHECK(finding.rule == "tile-limits");
    all += to_text(finding) + "\n";
  }
  return all;
}

std::string module(const std::string& rest, const std::string& version = "7.8",
                   const std::string& target = "sm_89") {
  return ".version " + version + "\n.target " + target + "\n.address_size 64\n" + rest;
}
// A kernel in line 4.
std::string with(const std::string& directives) {
  return reported(module(".visible .entry k() " + directives + " { ret; }\n"));
}

}  // namespace

TEST_CASE("blocks that can be launched are not reported") {
  CHECK(with("") == "");
  CHECK(with(".reqntid 1024") == "");
  CHECK(with(".reqntid 32,32") == "");
  CHECK(with(".reqntid 1,16,64") == "");
  CHECK(with(".maxntid 1024,1,1 .maxnreg 255") == "");
  CHECK(with(".maxntid 256 .minnctapersm 6") == "");
}

TEST_CASE("a block that must be too large is an error") {
  CHECK(with(".reqntid 1024,2") ==
        "k.ptx:4: error: kernel 'k' .reqntid asks for 2048 threads [tile-limits]\n"
        "    rule: a block has at most 1024 threads\n"
        "    cure: make it at most 1024 threads, and let each work on more elements\n");
  CHECK(with(".reqntid 1,1,65") ==
        "k.ptx:4: error: kernel 'k' .reqntid asks for 65 threads in z [tile-limits]\n"
        "    rule: a block has at most 64 threads in z\n"
        "    cure: make it at most 64\n");
  CHECK(with(".reqntid 4294967295,4294967295,4294967295") ==
        "k.ptx:4: error: kernel 'k' .reqntid asks for 4294967295 threads in x [tile-limits]\n"
        "    rule: a block has at most 1024 threads in x\n"
        "    cure: make it at most 1024\n");
  CHECK(with(".reqntid 32,0") ==
        "k.ptx:4: error: kernel 'k' .reqntid has a 0 [tile-limits]\n"
        "    rule: a block has at least 1 thread along each side\n"
        "    cure: make it 1\n");
  CHECK(with(".reqntid 128 .maxntid 256") ==
        "k.ptx:4: error: kernel 'k' has both .reqntid and .maxntid [tile-limits]\n"
        "    rule: a kernel's block is either given or bounded\n"
        "    cure: leave .maxntid out\n");
}

TEST_CASE("bounds that an assembler ignores are warnings") {
  CHECK(with(".maxntid 2048") ==
        "k.ptx:4: warning: kernel 'k' .maxntid asks for 2048 threads in x [tile-limits]\n"
        "    rule: a block has at most 1024 threads in x\n"
        "    cure: make it at most 1024\n");
  CHECK(with(".maxntid 1024,1024") ==
        "k.ptx:4: warning: kernel 'k' .maxntid asks for 1048576 threads [tile-limits]\n"
        "    rule: a block has at most 1024 threads\n"
        "    cure: make it at most 1024: an assembler ignores a larger bound\n");
  CHECK(with(".maxnreg 256") ==
        "k.ptx:4: warning: kernel 'k' .maxnreg asks for 256 registers [tile-limits]\n"
        "    rule: a thread has at most 255 registers\n"
        "    cure: make it at most 255: an assembler ignores a larger bound\n");
  CHECK(with(".maxnreg 0") ==
        "k.ptx:4: error: kernel 'k' .maxnreg is 0 [tile-limits]\n"
        "    rule: a thread has at least 1 register\n"
        "    cure: leave it out, or make it 16 or more\n");
}

TEST_CASE("blocks that a multiprocessor is to hold") {
  CHECK(with(".minnctapersm 4") ==
        "k.ptx:4: warning: kernel 'k' .minnctapersm asks for 4 blocks of unknown size "
        "[tile-limits]\n"
        "    rule: without .maxntid or .reqntid an assembler ignores it\n"
        "    cure: say with .maxntid how many threads a block has at most\n");
  CHECK(with(".minnctapersm 25 .maxntid 32") ==
        "k.ptx:4: warning: kernel 'k' .minnctapersm asks for 25 blocks [tile-limits]\n"
        "    rule: a multiprocessor of sm_89 holds at most 24 blocks\n"
        "    cure: make it at most 24: an assembler ignores a larger one\n");
  CHECK(with(".minnctapersm 4 .maxntid 1024") ==
        "k.ptx:4: warning: kernel 'k' .minnctapersm asks for 4 blocks of 1024 threads, 4096 "
        "together [tile-limits]\n"
        "    rule: a multiprocessor of sm_89 holds at most 1536 threads\n"
        "    cure: make it at most 1: an assembler ignores a larger one\n");
  CHECK(with(".minnctapersm 0 .maxntid 32") ==
        "k.ptx:4: error: kernel 'k' .minnctapersm is 0 [tile-limits]\n"
        "    rule: a multiprocessor holds at least 1 block\n"
        "    cure: leave it out\n");
  // The target that is asked about, not the file's own.
  CHECK(reported(module(".visible .entry k() .minnctapersm 25 .maxntid 32 { ret; }\n"),
                 {.target = "sm_90"}) == "");
}

TEST_CASE("static shared memory of a kernel and of what it calls") {
  const auto shared = [](std::uint64_t bytes) {
    return module(".visible .entry k() { .shared .b8 s[" + std::to_string(bytes) + "]; ret; }\n");
  };
  CHECK(reported(shared(49152)) == "");
  CHECK(reported(shared(49153)) ==
        "k.ptx:4: error: kernel 'k' has 49153 bytes of static shared memory [tile-limits]\n"
        "    rule: a block has at most 49152 bytes of static shared memory on every target\n"
        "    cure: declare it as .extern .shared and ask for the bytes at launch: sm_89 has up to "
        "101376\n");
  CHECK(reported(shared(200000), {.target = "sm_90"}) ==
        "k.ptx:4: error: kernel 'k' has 200000 bytes of static shared memory [tile-limits]\n"
        "    rule: a block has at most 49152 bytes of static shared memory on every target\n"
        "    cure: declare it as .extern .shared and ask for the bytes at launch: sm_90 has up to "
        "232448\n");
  CHECK(reported(shared(200000)) ==
        "k.ptx:4: error: kernel 'k' has 200000 bytes of static shared memory [tile-limits]\n"
        "    rule: a block has at most 49152 bytes of static shared memory on every target\n"
        "    cure: make the arrays smaller: sm_89 has at most 101376 bytes, dynamic ones "
        "included\n");
  // Alignment counts, dynamic memory does not.
  CHECK(reported(
            module(".visible .entry k() { .shared .b8 a[1]; .shared .align 16 .b8 b[49137]; ret; "
                   "}\n"))
            .find("has 49153 bytes") != std::string::npos);
  CHECK(reported(
            module(".extern .shared .align 16 .b8 dynamic[];\n.visible .entry k() { .reg .b32 r; "
                   "mov.u32 r, dynamic; ret; }\n")) == "");
  // Variables of the module count where they are named, in a function that is called too.
  const std::string named =
      ".shared .b8 s[49153];\n.func f() { .reg .b32 r; mov.u32 r, s; st.shared.u32 [r], r; ret; }\n"
      ".visible .entry quiet() { ret; }\n.visible .entry loud() { call f; ret; }\n";
  CHECK(reported(module(named)).find("k.ptx:7: error: kernel 'loud' has 49153 bytes") == 0);
  CHECK(reported(module(named)).find("quiet") == std::string::npos);
  CHECK(reported(
            module(".shared .b8 s[18446744073709551615];\n.visible .entry k() { .shared .b8 t[2]; "
                   ".reg .b32 r; mov.u32 r, s; ret; }\n"))
            .find("kernel 'k' has 2^64 or more bytes") != std::string::npos);
}

TEST_CASE("parameters and constant memory") {
  const auto parameters = [](unsigned bytes, const std::string& version) {
    return reported(
        module(".visible .entry k(.param .align 4 .b8 p[" + std::to_string(bytes) + "]) { ret; }\n",
               version));
  };
  CHECK(parameters(4352, "7.8") == "");
  CHECK(parameters(4353, "7.8") ==
        "k.ptx:4: error: kernel 'k' has 4353 bytes of parameters [tile-limits]\n"
        "    rule: a kernel in PTX 7.8 has at most 4352 bytes of them\n"
        "    cure: raise .version to 8.1, which allows 32764 bytes\n");
  CHECK(parameters(32764, "8.1") == "");
  CHECK(parameters(32765, "8.1") ==
        "k.ptx:4: error: kernel 'k' has 32765 bytes of parameters [tile-limits]\n"
        "    rule: a kernel in PTX 8.1 has at most 32764 bytes of them\n"
        "    cure: pass a pointer to them\n");
  CHECK(reported(module(".const .b8 a[65536];\n.visible .entry k() { ret; }\n")) == "");
  CHECK(reported(module(".const .b8 a[65537];\n.visible .entry k() { ret; }\n")) ==
        "k.ptx: error: the module has 65537 bytes of .const variables [tile-limits]\n"
        "    rule: a module has at most 65536 bytes of constant memory\n"
        "    cure: put the larger tables into .global memory\n");
}

TEST_CASE("a launch with another block than the kernel demands") {
  const std::string text = module(".visible .entry k() .reqntid 64,2 { ret; }\n");
  CHECK(reported(text, {.block = {64, 2, 1}}) == "");
  CHECK(reported(text, {.block = {128, 1, 1}}) ==
        "k.ptx:4: error: kernel 'k' is launched with a block of 128,1,1, and its .reqntid is "
        "64,2,1 [tile-limits]\n"
        "    rule: a kernel with .reqntid runs in blocks of exactly that shape\n"
        "    cure: launch it with 64,2,1\n");
}
