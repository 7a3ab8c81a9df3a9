// tests/optimize/performance_notes_test.cpp - notes on accesses that cost too much
#include <catch2/catch.hpp>

#include "ptxgen/kernels.hpp"
#include "ptxgen/optimize/gates.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;
using namespace ptxgen::optimize;

namespace {

std::string said(const std::string& body, const std::string& directive = ".reqntid 128, 1, 1",
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
  CHECK(said("mad.wide.u32 %rd1, %r0, 64, %rd0;\nld.global.u32 %r9, [%rd1];\n") ==
        "k.ptx:16: note: ld.global.u32 of a[64*tid.x] is not coalesced: lanes are 64 bytes apart, "
        "a warp moves 32 sectors for 128 bytes, 8 times what is needed [uncoalesced]\n"
        "    rule: memory is moved in sectors of 32 bytes, however few of them a warp wants\n"
        "    cure: let threads with neighbouring %tid.x access neighbouring elements, or bring a "
        "tile into shared memory first\n"
        "    for blocks of 128 x 1 x 1 threads\n");
  CHECK(
      said("mad.wide.u32 %rd1, %r0, 12, %rd0;\nst.global.u32 [%rd1], 0;\n", "") ==
      "k.ptx:16: note: st.global.u32 of a[12*tid.x] is not coalesced: lanes are 12 bytes apart, a "
      "warp moves 12 sectors for 128 bytes, 3 times what is needed [uncoalesced]\n"
      "    rule: memory is moved in sectors of 32 bytes, however few of them a warp wants\n"
      "    cure: let threads with neighbouring %tid.x access neighbouring elements, or bring a "
      "tile into shared memory first\n"
      "    for blocks of 1024 x 1 x 1 threads, assumed since the kernel requires none\n");
  // Not so bad as to be worth a note, and what is not known.
  CHECK(said("mad.wide.u32 %rd1, %r0, 4, %rd0;\nst.global.u32 [%rd1+4], 0;\n") == "");
  CHECK(said("ld.global.u32 %r9, [%rd0];\nmad.wide.u32 %rd1, %r9, 4, %rd0;\n"
             "ld.global.u32 %r9, [%rd1];\n") == "");
  // By the shape of the block.
  const std::string rows =
      "mov.u32 %r3, %tid.y;\nmad.lo.u32 %r4, %r0, 32, %r3;\nmad.wide.u32 %rd1, %r4, 4, %rd0;\n"
      "ld.global.u32 %r9, [%rd1];\n";
  CHECK(said(rows, "", {.block = {1, 32, 1}}) == "");
  CHECK(said(rows, "", {.block = {32, 4, 1}}).find("8 times what is needed") != std::string::npos);
}

TEST_CASE("notes: arrays of a thread that lanes index apart") {
  CHECK(said("and.b32 %r3, %r0, 15;\nmad.lo.u32 %r3, %r3, 16, %r2;\nst.local.u32 [%r3], 0;\n") ==
        "k.ptx:17: note: st.local.u32 of own[16*(tid.x mod 16)] is not coalesced: a warp moves 32 "
        "sectors for 128 bytes, 8 times what is needed [uncoalesced]\n"
        "    rule: memory is moved in sectors of 32 bytes, however few of them a warp wants\n"
        "    cure: index the array by what lanes agree on, or keep it in registers or shared "
        "memory\n"
        "    for blocks of 128 x 1 x 1 threads\n");
}

TEST_CASE("notes: bank conflicts") {
  CHECK(said("mad.lo.u32 %r3, %r0, 128, %r1;\nst.shared.u32 [%r3], 0;\n") ==
        "k.ptx:16: note: st.shared.u32 of tile[128*tid.x] has bank conflicts: lanes are 128 bytes "
        "apart, a warp takes 32 wavefronts where 1 would do [bank-conflict]\n"
        "    rule: shared memory has 32 banks of 4 bytes, and different words of one bank are "
        "served one after another\n"
        "    cure: make rows one element longer, or exchange columns by the number of their row\n"
        "    for blocks of 128 x 1 x 1 threads\n");
  CHECK(said("mad.lo.u32 %r3, %r0, 132, %r1;\nst.shared.u32 [%r3], 0;\n") == "");
  CHECK(said("mad.lo.u32 %r3, %r0, 8, %r1;\nst.shared.u32 [%r3], 0;\n")
            .find("a warp takes 2 wavefronts where 1 would do") != std::string::npos);
}

TEST_CASE("notes: more registers than fit") {
  // So many values at once, read behind the last one written.
  const auto live = [](unsigned count, const std::string& directives,
                       const GateOptions& options = {}) {
    std::string text =
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a) " +
        directives + "\n{ .reg .b32 %r<300>; .reg .b64 %rd<2>;\n";
    for (unsigned i = 0; i < count; ++i) text += "mov.u32 %r" + std::to_string(i) + ", %clock;\n";
    for (unsigned i = 1; i < count; ++i) text += "add.u32 %r0, %r0, %r" + std::to_string(i) + ";\n";
    text += "ld.param.u64 %rd0, [a];\nst.global.u32 [%rd0], %r0;\nret; }\n";
    std::string all;
    for (const Finding& finding : performance_notes(ptx::parse(text, "k.ptx"), options))
      all += to_text(finding) + "\n";
    return all;
  };
  CHECK(live(32, "") == "");
  CHECK(live(33, "") ==
        "k.ptx:38: note: 'k' holds values for 33 registers of 32 bits here, so that 1985 of 2048 "
        "threads fit on a multiprocessor of sm_90 [register-pressure]\n"
        "    rule: a multiprocessor has 65536 registers for all its threads\n"
        "    cure: let fewer values live across this place: smaller tiles, less unrolling, loads "
        "nearer to where they are used\n"
        "    as the PTX is written; ptxas may need fewer registers, or more\n");
  CHECK(live(42, "", {.target = "sm_89"}) == "");
  CHECK(live(43, "", {.target = "sm_89"}).find("1524 of 1536 threads") != std::string::npos);
  CHECK(live(128, ".maxntid 256 .minnctapersm 2") == "");
  CHECK(live(129, ".maxntid 256 .minnctapersm 2").find("508 of 512 threads") != std::string::npos);
  CHECK(live(255, ".maxntid 256 .minnctapersm 1") == "");
  CHECK(live(256, ".maxntid 256 .minnctapersm 1") ==
        "k.ptx:261: note: 'k' holds values for 256 registers of 32 bits here, a thread has 255 "
        "[register-pressure]\n"
        "    rule: what does not fit is kept in local memory, which is as slow as global\n"
        "    cure: let fewer values live across this place: smaller tiles, less unrolling, loads "
        "nearer to where they are used\n"
        "    as the PTX is written; ptxas may need fewer registers, or more\n");
  CHECK(live(65, ".maxnreg 64").find("a thread has 64 ") != std::string::npos);
}

TEST_CASE("notes: of the library's kernels only the strided GEMV has one, at its call") {
  for (const CatalogEntry& entry : catalog()) {
    std::vector<std::uint64_t> values;
    for (const ParameterInfo& parameter : entry.parameters)
      values.push_back(parameter.default_value);
    const auto found = performance_notes(entry.build(values, ptx::target("sm_89")));
    INFO(entry.name);
    REQUIRE(found.size() == (entry.name == "gemv_strided" ? 1 : 0));
    if (found.empty()) continue;
    CHECK(found[0].message ==
          "ld.global.f32 of a_ptr[4*n_dim*tid.x + 4*ctaid.x + 128*n_dim*i] is not coalesced: lanes "
          "are 4*n_dim bytes apart, a warp moves 32 sectors for 128 bytes, 8 times what is needed");
    CHECK(found[0].cpp.known());
    CHECK(std::string(found[0].cpp.file).find("gemv_strided.cpp") != std::string::npos);
  }
}

TEST_CASE("notes: stand in the list of gates, and not before a load") {
  bool found = false;
  for (const GateInfo& gate : all_gates()) {
    if (gate.name != "performance_notes") continue;
    found = true;
    CHECK_FALSE(gate.before_load);
    CHECK(gate.run == performance_notes);
  }
  CHECK(found);
}
