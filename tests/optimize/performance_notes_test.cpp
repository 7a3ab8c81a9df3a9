// tests/optimize/performance_notes_test.cpp - notes on strided accesses, banks, registers
#include <catch2/catch.hpp>

#include "ptxgen/kernels.hpp"
#include "ptxgen/optimize/gates.hpp"
#include "ptxgen/ptx/parser.hpp"

using namespace ptxgen;
using namespace ptxgen::optimize;

TEST_CASE("accesses that move more than they need are worth a note") {
  const ptx::Module module = ptx::parse(
      ".version 7.8\n.target sm_89\n.address_size 64\n.visible .entry k(.param .u64 p) .reqntid "
      "64\n"
      "{\n.shared .align 4 .b8 tile[8192];\n.reg .b64 %rd<4>; .reg .b32 %r<6>;\n"
      "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nmad.wide.u32 %rd2, %r1, 64, %rd1;\n"
      "ld.global.u32 %r2, [%rd2];\nmov.u32 %r3, tile;\nmad.lo.u32 %r4, %r1, 128, %r3;\n"
      "st.shared.u32 [%r4], %r2;\nmad.lo.u32 %r5, %r1, 4, %r3;\nst.shared.u32 [%r5], "
      "%r2;\nret;\n}\n",
      "k.ptx");
  std::string text;
  for (const Finding& finding : performance_notes(module)) text += to_text(finding) + "\n";
  CHECK(text ==
        "k.ptx:11: note: this access is strided: lanes are 64 bytes apart, 32 sectors of 32 bytes "
        "for 128 bytes wanted, 8 times what is needed [uncoalesced]\n"
        "    in: ld.global.u32 %r2, [%rd2];\n"
        "    address: p[64*tid.x]\n"
        "    rule: memory moves in sectors of 32 bytes, and a warp's request takes every sector "
        "that one of its lanes touches\n"
        "    cure: let neighbouring lanes access neighbouring elements, through a tile in shared "
        "memory if need be\n"
        "k.ptx:14: note: this access is ...");
}

TEST_CASE("of the library's kernels only the strided one has such accesses") {
  for (const CatalogEntry& entry : catalog()) {
    std::vector<std::uint64_t> values;
    for (const ParameterInfo& parameter : entry.parameters) {
      values.push_back(parameter.default_value);
    }
    INFO(entry.name);
    const auto notes = performance_notes(entry.build(values, ptx::target("sm_89")));
    CHECK(notes.size() == (entry.name == "gemv_strided" ? 1u : 0u));
  }
}

TEST_CASE("more values alive at once than registers are worth a note") {
  // Loads `count` values and stores them afterwards, so that all are alive in between.
  const auto kernel = [](unsigned count, const std::string& directives) {
    std::string text =
        ".version 7.8\n.target sm_89\n.address_size 64\n.visible .entry k(.param .u64 p) " +
        directives + " {\n.reg .b64 %rd<2>; .reg .b32 %r<400>;\nld.param.u64 %rd1, [p];\n";
    const auto at = [](unsigned i) { return "[%rd1+" + std::to_string(4 * i) + "]"; };
    for (unsigned i = 0; i < count; ++i)
      text += "ld.global.u32 %r" + std::to_string(i) + ", " + at(i) + ";\n";
    for (unsigned i = 0; i < count; ++i)
      text += "st.global.u32 " + at(count - i) + ", %r" + std::to_string(i) + ";\n";
    return ptx::parse(text + "ret;\n}\n", "k.ptx");
  };
  CHECK(performance_notes(kernel(253, "")).empty());
  const auto notes = performance_notes(kernel(254, ""));
  REQUIRE(notes.size() == 1);
  CHECK(to_text(notes[0]) ==
        "k.ptx:260: note: 256 registers of 32 bits are alive at once here, where kernel 'k' needs "
        "most [register-pressure]\n"
        "    in: ld.global.u32 %r253, [%rd1+1012];\n"
        "    rule: a thread has at most 255 registers; an assembler that finds no better order "
        "spills the rest to local memory\n"
        "    cure: compute values nearer to where they are used, or work on fewer at once");
  CHECK(performance_notes(kernel(30, ".maxnreg 32")).empty());
  const auto few = performance_notes(kernel(31, ".maxnreg 32"));
  REQUIRE(few.size() == 1);
  CHECK(few[0].details.at(1).find("rule: .maxnreg allows a thread 32 registers;") == 0);
}
