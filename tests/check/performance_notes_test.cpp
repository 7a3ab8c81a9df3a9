// tests/check/performance_notes_test.cpp - notes on accesses that cost too much
#include <catch2/catch.hpp>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"
#include "support/served_target.hpp"

using namespace ptxgen;
using namespace ptxgen::gates;

namespace {

std::string reported(const std::string& body, const std::string& directive = ".reqntid 128, 1, 1",
                     const GateOptions& options = {}) {
  const std::string text = R"(.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u32 n) )" +
                           directive + R"(
{
  .reg .pred %p<9>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<9>;
  .shared .align 16 .b8 tile[16384];
  .local .align 16 .b8 own[256];
  ld.param.u64 %rd0, [a];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  mov.u32 %r2, own;
)" + body + "  ret;\n}\n";
  std::string all;
  for (const Finding& finding : performance_notes(ptx::parse(text, "k.ptx"), options)) {
    CHECK(finding.severity == Severity::Note);
    CHECK(finding.kernel == "k");
    all += to_text(finding) + "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("notes: uncoalesced accesses of global memory") {
  CHECK(reported("mad.wide.u32 %rd1, %r0, 64, %rd0;\nld.global.u32 %r9, [%rd1];\n") ==
        "k.ptx:16: note: ld.global.u32 of a[64*tid.x] is not coalesced: lanes are 64 bytes apart, "
        "a warp moves 32 sectors for 128 bytes, 8 times what is needed [uncoalesced]\n"
        "    rule: memory is moved in sectors of 32 bytes, however few of them a warp needs\n"
        "    cure: let threads with neighbouring %tid.x access neighbouring elements, or bring a "
        "tile into shared memory first\n"
        "    for blocks of 128 x 1 x 1 threads\n");
  CHECK(
      reported("mad.wide.u32 %rd1, %r0, 12, %rd0;\nst.global.u32 [%rd1], 0;\n", "") ==
      "k.ptx:16: note: st.global.u32 of a[12*tid.x] is not coalesced: lanes are 12 bytes apart, a "
      "warp moves 12 sectors for 128 bytes, 3 times what is needed [uncoalesced]\n"
      "    rule: memory is moved in sectors of 32 bytes, however few of them a warp needs\n"
      "    cure: let threads with neighbouring %tid.x access neighbouring elements, or bring a "
      "tile into shared memory first\n"
      "    for blocks of 1024 x 1 x 1 threads, assumed since the kernel requires none\n");
  // Not so bad as to be worth a note, and what is not known.
  CHECK(reported("mad.wide.u32 %rd1, %r0, 4, %rd0;\nst.global.u32 [%rd1+4], 0;\n") == "");
  CHECK(reported("ld.global.u32 %r9, [%rd0];\nmad.wide.u32 %rd1, %r9, 4, %rd0;\n"
                 "ld.global.u32 %r9, [%rd1];\n") == "");
  // By the shape of the block.
  const std::string rows =
      "mov.u32 %r3, %tid.y;\nmad.lo.u32 %r4, %r0, 32, %r3;\nmad.wide.u32 %rd1, %r4, 4, %rd0;\n"
      "ld.global.u32 %r9, [%rd1];\n";
  CHECK(reported(rows, "", {.block = {1, 32, 1}}) == "");
  CHECK(reported(rows, "", {.block = {32, 4, 1}}).find("8 times what is needed") !=
        std::string::npos);
}

TEST_CASE("notes: arrays of a thread that lanes index apart") {
  CHECK(
      reported("and.b32 %r3, %r0, 15;\nmad.lo.u32 %r3, %r3, 16, %r2;\nst.local.u32 [%r3], 0;\n") ==
      "k.ptx:17: note: st.local.u32 of own[16*(tid.x mod 16)] is not coalesced: a warp moves 32 "
      "sectors for 128 bytes, 8 times what is needed [uncoalesced]\n"
      "    rule: memory is moved in sectors of 32 bytes, however few of them a warp needs\n"
      "    cure: index the array by what lanes agree on, or keep it in registers or shared "
      "memory\n"
      "    for blocks of 128 x 1 x 1 threads\n");
}

TEST_CASE("notes: bank conflicts") {
  CHECK(reported("mad.lo.u32 %r3, %r0, 128, %r1;\nst.shared.u32 [%r3], 0;\n") ==
        "k.ptx:16: note: st.shared.u32 of tile[128*tid.x] has bank conflicts: lanes are 128 bytes "
        "apart, a warp takes 32 wavefronts where 1 would do [bank-conflict]\n"
        "    rule: shared memory has 32 banks of 4 bytes, and different words of one bank are "
        "served one after another\n"
        "    cure: make rows one element longer, or exchange columns by the number of their row\n"
        "    for blocks of 128 x 1 x 1 threads\n");
  CHECK(reported("mad.lo.u32 %r3, %r0, 132, %r1;\nst.shared.u32 [%r3], 0;\n") == "");
  CHECK(reported("mad.lo.u32 %r3, %r0, 8, %r1;\nst.shared.u32 [%r3], 0;\n")
            .find("a warp takes 2 wavefronts where 1 would do") != std::string::npos);
}

TEST_CASE("notes: copies") {
  CHECK(reported("mad.wide.u32 %rd1, %r0, 64, %rd0;\nmad.lo.u32 %r3, %r0, 128, %r1;\n"
                 "cp.async.ca.shared.global [%r3], [%rd1], 4;\n") ==
        "k.ptx:17: note: cp.async.ca.shared.global of a[64*tid.x] is not coalesced: lanes are 64 "
        "bytes apart, a warp moves 32 sectors for 128 bytes, 8 times what is needed "
        "[uncoalesced]\n"
        "    rule: memory is moved in sectors of 32 bytes, however few of them a warp needs\n"
        "    cure: let threads with neighbouring %tid.x copy neighbouring elements; where they go "
        "in shared memory is free\n"
        "    for blocks of 128 x 1 x 1 threads\n"
        "k.ptx:17: note: cp.async.ca.shared.global of tile[128*tid.x] has bank conflicts: lanes "
        "are 128 bytes apart, a warp takes 32 wavefronts where 1 would do [bank-conflict]\n"
        "    rule: shared memory has 32 banks of 4 bytes, and different words of one bank are "
        "served one after another\n"
        "    cure: make rows one element longer, or exchange columns by the number of their row\n"
        "    for blocks of 128 x 1 x 1 threads\n");
  CHECK(reported("mad.wide.u32 %rd1, %r0, 16, %rd0;\nmad.lo.u32 %r3, %r0, 16, %r1;\n"
                 "cp.async.cg.shared.global [%r3], [%rd1], 16;\n") == "");
  // A bulk copy is contiguous: at worst it takes a sector more, which few bytes do not pay for.
  const auto store = [](const std::string& operands) {
    return reported("cp.async.bulk.global.shared::cta.bulk_group " + operands + ";\n");
  };
  CHECK(store("[%rd0+16], [%r1], 32") ==
        "k.ptx:15: note: cp.async.bulk.global.shared::cta.bulk_group of a[16] begins within a "
        "sector: a copy moves 2 sectors for 32 bytes, 2 times what is needed [uncoalesced]\n"
        "    rule: memory is moved in sectors of 32 bytes, however few of them a copy needs\n"
        "    cure: begin copies at multiples of 32 bytes, or copy more at once\n");
  CHECK(store("[%rd0+16], [%r1], 64") == "");
  CHECK(store("[%rd0], [%r1], 32") == "");
}

TEST_CASE("notes: of the library's kernels the strided GEMV has one, at its call") {
  for (const KernelDescription& entry : catalog()) {
    std::vector<std::uint64_t> values;
    for (const ParameterInfo& parameter : entry.parameters)
      values.push_back(parameter.default_value);
    const auto found = performance_notes(entry.build(values, test::served_target(entry, "sm_89")));
    INFO(entry.name);
    // Blocks as stored are read in halves of words; a warp of gemm_naive reads two elements of A.
    if (entry.name == "dequantize" || entry.name == "repack" || entry.name == "gemm_naive") {
      CHECK(!found.empty());
      continue;
    }
    // A thread stages 32 values of x in eight loads: the other half of each sector is in L1.
    if (entry.name == "batched_gemv" || entry.name == "gemv_group") {
      for (const auto& note : found) {
        CHECK(note.message.find(" of x[") != std::string::npos);
        CHECK(note.message.find("2 times what is needed") != std::string::npos);
      }
      continue;
    }
    // Fragments of 16-bit outputs are stored as they are, 16 bytes of a row at a time.
    if (entry.name == "flash_attention_tensor_core" || entry.name == "flash_attention_wgmma") {
      for (const auto& note : found) {
        CHECK(note.message.find("st.global.u32 of out[") == 0);
        CHECK(note.message.find("2 times what is needed") != std::string::npos);
      }
      continue;
    }
    REQUIRE(found.size() == (entry.name == "gemv_strided" ? 1 : 0));
    if (found.empty()) continue;
    CHECK(found[0].message ==
          "ld.global.f32 of a_ptr[4*n_dim*tid.x + 4*ctaid.x + 128*n_dim*i] is not coalesced: lanes "
          "are 4*n_dim bytes apart, a warp moves 32 sectors for 128 bytes, 8 times what is needed");
    CHECK(found[0].cpp.known());
    CHECK(std::string(found[0].cpp.file).find("gemv/strided.cpp") != std::string::npos);
  }
}

TEST_CASE("notes: in the list of gates, and not run before a load") {
  bool found = false;
  for (const GateInfo& gate : all_gates()) {
    if (gate.name != "performance_notes") continue;
    found = true;
    CHECK_FALSE(gate.before_load);
    CHECK(gate.run == performance_notes);
  }
  CHECK(found);
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
