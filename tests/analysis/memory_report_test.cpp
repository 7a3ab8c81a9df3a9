// tests/analysis/memory_report_test.cpp - library and hand-written kernels against the emulator
#include "ptxgen/analysis/memory_report.hpp"

#include <catch2/catch.hpp>

#include "memory_runner.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;
using namespace ptxgen::analysis;
using test::kernel;
using test::MemoryRun;
using test::verdict_of;

TEST_CASE("memory report: library kernels, each access as the emulator counts it") {
  std::size_t accesses = 0;
  std::uint64_t requests = 0;
  const auto run = [&](std::string_view name, std::vector<std::uint64_t> values,
                       std::map<std::string, std::uint32_t> arguments) {
    const KernelDescription& entry = *find_kernel(name);
    for (const char* target : {"sm_75", "sm_90"}) {
      const ptx::Module module = entry.build(values, ptx::target(target));
      const LaunchGeometry geometry = entry.geometry(values, ptx::target(target));
      MemoryRun one;
      one.ptx = ptx::print(module);
      one.grid = {geometry.grid.x, geometry.grid.y, geometry.grid.z};
      one.block = {geometry.block.x, geometry.block.y, geometry.block.z};
      one.values = arguments;
      one.buffer_bytes = 4 << 18;
      const test::MemoryComparison compared = test::compare(one);
      INFO(name << ' ' << target << ' ' << values[0] << ' ' << values.back());
      CHECK(compared.differences == "");
      CHECK(compared.inexact == std::vector<std::string>{});
      accesses += compared.exact;
      requests += compared.requests;
    }
  };
  for (const std::uint32_t n : {1u, 31u, 32u, 100u, 256u, 257u, 1000u, 4096u}) {
    run("vadd", {n, 0}, {{"n", n}});
    run("copy", {n}, {{"n", n}});
    run("fma_rpt", {n, 5}, {{"n", n}, {"k", 5}});
  }
  for (const auto& [k, n] : {std::pair{0u, 5u},
                             {1u, 1u},
                             {7u, 32u},
                             {256u, 64u},
                             {257u, 100u},
                             {300u, 256u},
                             {515u, 300u},
                             {64u, 512u}}) {
    run("gemv_coalesced", {k, n}, {{"k_dim", k}, {"n_dim", n}});
    run("gemv_strided", {k, n}, {{"k_dim", k}, {"n_dim", n}});
  }
  WARN("memory report: " << accesses << " accesses of library kernels exact, " << requests
                         << " requests");
  CHECK(accesses > 300);
}

TEST_CASE("memory report: the warps of a block may differ") {
  // Lanes of the second warp, and of all after it, read what its first lane does.
  const std::string limited =
      "min.u32 %r6, %r0, 32;\nmul.wide.u32 %rd1, %r6, 32;\nadd.u64 %rd2, %rd0, %rd1;\n"
      "ld.global.u32 %r8, [%rd2];\n";
  CHECK(verdict_of(limited, ".reqntid 32, 1, 1") ==
        "strided: lanes are 32 bytes apart, 32 sectors of 32 bytes for 128 bytes wanted, 8 times "
        "what is needed");
  const std::string first =
      "strided: 32 sectors of 32 bytes for 128 bytes wanted, 8 times what is ";
  CHECK(verdict_of(limited, ".reqntid 128, 1, 1") == first + "needed");
  // In the other order.
  CHECK(verdict_of("max.u32 %r6, %r0, 96;\nmul.wide.u32 %rd1, %r6, 32;\nadd.u64 %rd2, %rd0, %rd1;\n"
                   "ld.global.u32 %r8, [%rd2];\n",
                   ".reqntid 128, 1, 1") == first + "needed");
}

TEST_CASE("memory report: after a loop lanes have what they left it with") {
  const std::string loop = R"(
  mov.u32 %r10, 1;
  mov.u32 %r11, 0;
LOOP:
  mad.lo.u32 %r10, %r10, 3, 1;
  and.b32 %r10, %r10, 255;
  shr.u32 %r12, %r10, 1;
  mov.u32 %r13, %r12;
  ld.shared.u32 %r14, [%r5];
  add.u32 %r11, %r11, 1;
  setp.lt.u32 %p1, %r11, LIMIT;
  @%p1 bra LOOP;
  mul.wide.u32 %rd2, %r13, 4;
  add.u64 %rd3, %rd0, %rd2;
  ld.global.u32 %r15, [%rd3];
)";
  const auto until = [&](std::string_view limit) {
    std::string text = loop;
    text.replace(text.find("LIMIT"), 5, limit);
    return verdict_of(text);
  };
  const std::string shared = "broadcast: all lanes read the same 4 bytes, 1 wavefront\n";
  // An inner loop that all leave together, in an outer one that they do not.
  const std::string nested = verdict_of(R"(
  mov.u32 %r10, 1;
  mov.u32 %r11, 0;
OUTER:
  mov.u32 %r12, 0;
INNER:
  mad.lo.u32 %r10, %r10, 3, 1;
  and.b32 %r10, %r10, 255;
  mov.u32 %r13, %r10;
  add.u32 %r12, %r12, 1;
  setp.lt.u32 %p1, %r12, %r21;
  @%p1 bra INNER;
  mul.wide.u32 %rd2, %r13, 4;
  add.u64 %rd3, %rd0, %rd2;
  ld.global.u32 %r15, [%rd3];
  add.u32 %r11, %r11, 1;
  setp.lt.u32 %p2, %r11, %r0;
  @%p2 bra OUTER;
  ld.global.u32 %r15, [%rd3];
)");
  CHECK(nested ==
        "broadcast: all lanes read the same 4 bytes, 1 sector; for a full warp, lanes may be "
        "masked\n"
        "unknown: depends on ((3*%r10 + 1) mod 256), with which lanes may have left a loop in "
        "different iterations");
  CHECK(until("%r20") == shared + "broadcast: all lanes read the same 4 bytes, 1 sector");
  CHECK(until("%r0") ==
        "broadcast: all lanes read the same 4 bytes, 1 wavefront; for a full warp, lanes may be "
        "masked\n"
        "unknown: depends on (((3*%r10 + 1) mod 256)/2), with which lanes may have left a loop in "
        "different iterations");
}

TEST_CASE("memory report: the coalesced GEMV is, the strided one is not, and by how much") {
  const auto report = [](std::string_view name) {
    const KernelDescription& entry = *find_kernel(name);
    static std::vector<ptx::Module> modules;
    const std::vector<std::uint64_t> values{4096, 4096};
    modules.push_back(ptx::parse(ptx::print(entry.build(values, ptx::target("sm_89")))));
    return memory_report(modules.back(), modules.back().functions[0]);
  };
  const MemoryReport coalesced = report("gemv_coalesced");
  std::size_t global = 0;
  for (const MemoryAccess& access : coalesced.accesses) {
    INFO(access.opcode << ' ' << access.address_text);
    CHECK(access.affine());
    if (access.space != ptx::Space::Global) continue;
    ++global;
    CHECK(access.pattern == AccessPattern::Coalesced);
    CHECK(access.factor() == 1.0);
    CHECK(access.sectors.min == 4);
  }
  CHECK(global == 7);
  const MemoryReport strided = report("gemv_strided");
  REQUIRE(strided.accesses.size() == 3);
  CHECK(verdict(strided.accesses[1]) ==
        "strided: lanes are 4*n_dim bytes apart, 32 sectors of 32 bytes for 128 bytes wanted, 8 "
        "times what is needed; for a full warp, lanes may be masked; assuming that tid.x + 32*i as "
        "u32 does not wrap around");
  CHECK(strided.accesses[1].factor() == 8.0);
  CHECK(
      to_text(strided) ==
      "gemv_strided: memory accesses, for blocks of 32 x 1 x 1 (assumed)\n"
      "  line 39: ld.global.f32 x_ptr[4*tid.x + 128*i]\n"
      "    coalesced: 4 sectors of 32 bytes for 128 bytes wanted, 100 %; for a full warp, lanes "
      "may be masked; assuming that tid.x + 32*i as u32 does not wrap around\n"
      "  line 42: ld.global.f32 a_ptr[4*n_dim*tid.x + 4*ctaid.x + 128*n_dim*i]\n"
      "    strided: lanes are 4*n_dim bytes apart, 32 sectors of 32 bytes for 128 bytes wanted, 8 "
      "times what is needed; for a full warp, lanes may be masked; assuming that tid.x + 32*i as "
      "u32 does not wrap around\n"
      "  line 62: st.global.f32 y_ptr[4*ctaid.x]\n"
      "    broadcast: all lanes write the same 4 bytes, 1 sector; for a full warp, lanes may be "
      "masked\n"
      "  total, each access once: 3 accesses, 0 unknown; 260 bytes wanted, 1184 bytes moved; 0 "
      "bank conflicts\n");
}

TEST_CASE("memory report: verdicts") {
  const std::string own = "mad.wide.u32 %rd1, %r0, 4, %rd0;\n";
  CHECK(verdict_of(own + "ld.global.u32 %r9, [%rd1];\n") ==
        "coalesced: 4 sectors of 32 bytes for 128 bytes wanted, 100 %");
  CHECK(verdict_of(own + "ld.global.u32 %r9, [%rd1+4];\n") ==
        "strided: lanes are 4 bytes apart, 5 sectors of 32 bytes for 128 bytes wanted, 1.3 times "
        "what is needed");
  CHECK(verdict_of("mad.wide.u32 %rd1, %r20, 4, %rd0; mad.wide.u32 %rd1, %r0, 4, %rd1;\n"
                   "st.global.u32 [%rd1], 0;\n") ==
        "coalesced: 4 to 5 sectors of 32 bytes for 128 bytes wanted, by how the address is "
        "aligned, 100 % at best");
  CHECK(verdict_of(
            "mad.wide.u32 %rd1, %r0, 16, %rd0;\nld.global.v4.f32 {%f0,%f1,%f2,%f3}, [%rd1];") ==
        "coalesced: 16 sectors of 32 bytes for 512 bytes wanted, 100 %");
  CHECK(verdict_of("mad.wide.u32 %rd1, %r0, 12, %rd0;\nld.global.f32 %f0, [%rd1];") ==
        "strided: lanes are 12 bytes apart, 12 sectors of 32 bytes for 128 bytes wanted, 3 times "
        "what is needed");
  CHECK(verdict_of("ld.global.f32 %f0, [%rd0+8];") ==
        "broadcast: all lanes read the same 4 bytes, 1 sector");
  CHECK(verdict_of("atom.global.add.u32 %r9, [%rd0], 1;") ==
        "broadcast: all lanes update the same 4 bytes, 1 sector");
  CHECK(verdict_of(own + "ld.global.u32 %r9, [%rd1];\nmad.wide.u32 %rd2, %r9, 4, %rd0;\n"
                         "ld.global.u32 %r8, [%rd2];\n") ==
        "coalesced: 4 sectors of 32 bytes for 128 bytes wanted, 100 %\n"
        "unknown: depends on %r9, loaded in line 27");
  CHECK(verdict_of("popc.b32 %r9, %r0;\nmad.wide.u32 %rd2, %r9, 4, %rd0;\n"
                   "ld.global.u32 %r8, [%rd2];\n") ==
        "unknown: depends on %r9, made by popc.b32 in line 26");
  CHECK(verdict_of("ld.u32 %r8, [%rd1];\n") ==
        "unknown: the state space of the generic address is not known");
  CHECK(verdict_of("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r8}, [%r5];") ==
        "unknown: ldmatrix.sync.aligned.m8n8.x1.shared.b16 is not followed");
  // Shared memory.
  CHECK(verdict_of("mad.lo.u32 %r9, %r0, 4, %r5; ld.shared.u32 %r8, [%r9];") ==
        "no bank conflicts: 1 wavefront");
  CHECK(verdict_of("mad.lo.u32 %r9, %r0, 128, %r5; ld.shared.u32 %r8, [%r9];") ==
        "bank conflicts: lanes are 128 bytes apart, 32 wavefronts where 1 would do");
  CHECK(verdict_of("mad.lo.u32 %r9, %r0, 132, %r5; ld.shared.u32 %r8, [%r9];") ==
        "no bank conflicts: 1 wavefront");
  CHECK(verdict_of("mad.lo.u32 %r9, %r0, 16, %r5; ld.shared.v4.u32 {%r8,%r10,%r11,%r12}, [%r9];") ==
        "no bank conflicts: 4 wavefronts");
  CHECK(verdict_of("ld.shared.u32 %r8, [%r5+4];") ==
        "broadcast: all lanes read the same 4 bytes, 1 wavefront");
  CHECK(verdict_of("mul.lo.u32 %r10, %r0, %r20; mad.lo.u32 %r9, %r10, 4, %r5;"
                   "st.shared.u32 [%r9], 0;") ==
        "unknown: lanes are 4*n bytes apart, which is not a constant");
  // Constant and local memory.
  CHECK(verdict_of("mov.u32 %r10, table; ld.const.u32 %r8, [%r10+4];") ==
        "broadcast: all lanes read the same 4 bytes, at once");
  CHECK(verdict_of("mov.u32 %r10, table; mad.lo.u32 %r9, %r0, 4, %r10; ld.const.u32 %r8, [%r9];") ==
        "serialised: 32 different words, of which the constant cache serves one at a time");
  CHECK(verdict_of("st.local.u32 [%r6], 0;") ==
        "coalesced: 4 sectors of 32 bytes for 128 bytes wanted, 100 %");
  // Masked lanes.
  CHECK(verdict_of(own + "setp.lt.u32 %p1, %r0, %r20;\n@%p1 ld.global.u32 %r9, [%rd1];") ==
        "coalesced: 4 sectors of 32 bytes for 128 bytes wanted, 100 %; for a full warp, lanes may "
        "be masked");
  CHECK(verdict_of(own + "setp.lt.u32 %p1, %r21, %r20;\n@%p1 ld.global.u32 %r9, [%rd1];") ==
        "coalesced: 4 sectors of 32 bytes for 128 bytes wanted, 100 %");
  // Assumptions, one and two.
  CHECK(verdict_of("add.u32 %r9, %r0, %r20; mad.wide.u32 %rd1, %r9, 32, %rd0;\n"
                   "ld.global.u32 %r8, [%rd1];") ==
        "strided: lanes are 32 bytes apart, 32 sectors of 32 bytes for 128 bytes wanted, 8 times "
        "what is needed; assuming that tid.x + n as u32 does not wrap around");
  CHECK(verdict_of("add.u32 %r9, %r0, %r20; mad.wide.u32 %rd1, %r9, 32, %rd0;\n"
                   "add.u32 %r9, %r20, %r21; mad.wide.u32 %rd1, %r9, 32, %rd1;\n"
                   "ld.global.u32 %r8, [%rd1];") ==
        "strided: lanes are 32 bytes apart, 32 sectors of 32 bytes for 128 bytes wanted, 8 times "
        "what is needed; assuming that tid.x + n as u32 and n + s as u32 do not wrap around");
}

TEST_CASE("memory report: shape of the block and alignment of pointers") {
  const std::string rows =
      "mad.lo.u32 %r9, %r1, %r3, %r0; mad.wide.u32 %rd1, %r9, 4, %rd0; ld.global.u32 %r8, [%rd1];";
  CHECK(verdict_of(rows, ".reqntid 16, 8, 1") ==
        "coalesced: 4 sectors of 32 bytes for 128 bytes wanted, 100 %");
  const std::string columns =
      "mad.lo.u32 %r9, %r0, 64, %r1; mad.wide.u32 %rd1, %r9, 4, %rd0; ld.global.u32 %r8, [%rd1];";
  CHECK(verdict_of(columns, ".reqntid 16, 8, 1") ==
        "strided: 16 sectors of 32 bytes for 128 bytes wanted, 4 times what is needed");
  CHECK(verdict_of(columns, "", {.block = {4, 32, 1}}) ==
        "coalesced: 4 sectors of 32 bytes for 128 bytes wanted, 100 %");
  const auto shape = [](std::string_view directive, const MemoryReportOptions& options = {}) {
    const ptx::Module module = ptx::parse(kernel("ld.global.u32 %r8, [%rd0];", directive));
    const MemoryReport report = memory_report(module, module.functions[0], options);
    const std::string text = to_text(report);
    return text.substr(0, text.find('\n'));
  };
  CHECK(shape(".reqntid 16, 8, 1") == "k: memory accesses, for blocks of 16 x 8 x 1");
  CHECK(shape(".maxntid 64, 2, 1") == "k: memory accesses, for blocks of 64 x 2 x 1 (assumed)");
  CHECK(shape("") == "k: memory accesses, for blocks of 1024 x 1 x 1 (assumed)");
  CHECK(shape("", {.block = {7, 2, 3}}) == "k: memory accesses, for blocks of 7 x 2 x 3");
  // A pointer that says how it is aligned.
  std::string text =
      kernel("mad.wide.u32 %rd1, %r0, 4, %rd0; ld.global.u32 %r8, [%rd1];", ".reqntid 128, 1, 1");
  text.replace(text.find(".param .u64 a"), 13, ".param .u64 .ptr .global .align 4 a");
  ptx::Module module = ptx::parse(text);
  CHECK(memory_report(module, module.functions[0]).accesses[0].sectors == Spread{4, 5});
  CHECK(memory_report(module, module.functions[0]).total.bytes_moved == Spread{128, 160});
  const std::string plain = "mad.wide.u32 %rd1, %r0, 4, %rd0; ld.global.u32 %r8, [%rd1];";
  CHECK(verdict_of(plain, ".reqntid 128, 1, 1", {.pointer_alignment = 16}) ==
        "coalesced: 4 to 5 sectors of 32 bytes for 128 bytes wanted, by how the address is "
        "aligned, 100 % at best");
}

TEST_CASE("memory report: C++ calls and depth of loops") {
  const std::vector<std::uint64_t> values{64, 64};
  const ptx::Module module = find_kernel("gemv_coalesced")->build(values, ptx::target("sm_90"));
  const MemoryReport report = memory_report(module, module.functions[0]);
  REQUIRE(report.accesses.size() == 13);
  for (const MemoryAccess& access : report.accesses) {
    CHECK(access.cpp.known());
    CHECK(std::string(access.cpp.file).find("gemv/coalesced.cpp") != std::string::npos);
    CHECK(access.line == 0);
  }
  CHECK(report.accesses[0].depth == 1);
  CHECK(report.accesses[2].depth == 2);
  CHECK(report.accesses[12].depth == 0);
  const std::string text = to_text(report);
  const auto& access = report.accesses[1];
  CHECK(text.find("  statement " + std::to_string(access.statement) + " (" + access.cpp.file + ':' +
                  std::to_string(access.cpp.line) + "): st.shared.f32 tile[4*tid.x]\n") !=
        std::string::npos);
}

TEST_CASE("memory report: hand-written kernels as the emulator counts them") {
  const auto exact = [](std::string_view body, std::array<std::uint32_t, 3> block,
                        std::array<std::uint32_t, 3> grid = {2, 1, 1}, std::uint32_t n = 77,
                        std::uint32_t s = 3) {
    MemoryRun run;
    run.ptx = kernel(body, "");
    run.block = block;
    run.grid = grid;
    run.values = {{"n", n}, {"s", s}};
    run.buffer_bytes = 1 << 20;
    const auto compared = test::compare(run);
    INFO(body);
    CHECK(compared.differences == "");
    CHECK(compared.inexact == std::vector<std::string>{});
    CHECK(compared.requests > 0);
  };
  // A transpose through a padded tile, and without padding.
  for (const char* pitch : {"132", "128"}) {
    const std::string text =
        std::string("mad.lo.u32 %r9, %r1, ") + pitch + ", %r5; mad.lo.u32 %r9, %r0, 4, %r9;\n" +
        "st.shared.u32 [%r9], %r0;\nbar.sync 0;\n" + "mad.lo.u32 %r9, %r0, " + pitch +
        ", %r5; mad.lo.u32 %r9, %r1, 4, %r9;\nld.shared.u32 %r8, [%r9];\n" +
        "mad.lo.u32 %r10, %r1, 32, %r0; mad.wide.u32 %rd1, %r10, 4, %rd0;\n" +
        "st.global.u32 [%rd1], %r8;\n";
    exact(text, {32, 8, 1});
    exact(text, {32, 3, 1});
  }
  // Unrolled, with a rest, and rounds that lanes differ in.
  exact(
      "mov.u32 %r9, %r0;\nmad.wide.u32 %rd1, %r0, 4, %rd0;\n"
      "L:\nsetp.ge.u32 %p1, %r9, %r20;\n@%p1 bra E;\nst.global.u32 [%rd1], %r9;\n"
      "add.u32 %r9, %r9, %r21;\nmad.wide.u32 %rd1, %r21, 4, %rd1;\nbra L;\nE:\n"
      "st.global.u32 [%rd1+4096], %r9;\n",
      {48, 1, 1});
  // Pointers of two kinds, chosen by a parameter.
  exact(
      "mad.wide.u32 %rd1, %r0, 8, %rd0;\nsetp.lt.u32 %p1, %r20, 50;\n@%p1 bra L;\n"
      "add.u64 %rd1, %rd1, 1024;\nL:\nst.global.u64 [%rd1], %rd0;\n",
      {64, 1, 1});
  // Guards of all kinds.
  exact(
      "mad.wide.u32 %rd1, %r0, 4, %rd0;\nmad.lo.u32 %r9, %r2, %r3, %r0;\n"
      "setp.lt.u32 %p1, %r9, %r20;\nsetp.gt.u32 %p2, %r4, 3;\nand.pred %p3, %p1, %p2;\n"
      "@%p3 st.global.u32 [%rd1], 0;\n@!%p3 st.global.u32 [%rd1+8], 0;\n"
      "not.pred %p4, %p1;\nxor.pred %p5, %p4, %p2;\n@%p5 st.shared.u8 [%r5], 0;\n",
      {40, 1, 1}, {3, 1, 1});
  // Lanes that leave early.
  exact(
      "mad.wide.u32 %rd1, %r0, 4, %rd0;\nsetp.gt.u32 %p1, %r0, %r20;\n@%p1 ret;\n"
      "st.global.u32 [%rd1], 0;\n",
      {128, 1, 1});
  // Local memory of each thread, swizzled shared memory, an atomic.
  exact(
      "and.b32 %r9, %r0, 15;\nmad.lo.u32 %r9, %r9, 8, %r6;\nst.local.u64 [%r9], %rd0;\n"
      "shr.u32 %r10, %r0, 2;\nxor.b32 %r10, %r10, %r0;\nand.b32 %r10, %r10, 127;\n"
      "mad.lo.u32 %r10, %r10, 4, %r5;\nst.shared.u32 [%r10], 0;\n"
      "atom.shared.add.u32 %r11, [%r10], 1;\nred.global.add.u32 [%rd0], 1;\n",
      {128, 1, 1});
  // What is not known is said.
  MemoryRun run;
  run.ptx = kernel(
      "ld.global.u32 %r9, [%rd0];\nmad.wide.u32 %rd1, %r9, 4, %rd0;\n"
      "ld.global.u32 %r8, [%rd1];\n",
      "");
  auto compared = test::compare(run);
  CHECK(compared.differences == "");
  CHECK(compared.inexact ==
        std::vector<std::string>{"line 28, ld.global.u32: its address depends on more than indices "
                                 "and parameters: a[4*%r9]"});
  run.ptx = kernel(
      "ld.global.u32 %r9, [%rd0];\nsetp.eq.u32 %p1, %r9, 1;\n@%p1 bra L;\n"
      "st.global.u32 [%rd0], 0;\nL:\n",
      "");
  compared = test::compare(run);
  CHECK(compared.exact == 0);
  CHECK(compared.inexact.back() ==
        "line 29, st.global.u32: the branch in line 28 depends on more than indices and "
        "parameters: (%r9 == 1)");
  run.ptx = kernel(
      "ld.global.u32 %r9, [%rd0];\nsetp.eq.u32 %p1, %r9, 1;\n"
      "@%p1 st.global.u32 [%rd0], 0;\n",
      "");
  CHECK(test::compare(run).inexact.back() ==
        "line 28, st.global.u32: its guard depends on more than indices and parameters: (%r9 == "
        "1)");
  run.ptx = kernel(
      "add.u32 %r9, %r0, %r20;\nmad.wide.u32 %rd1, %r9, 4, %rd0;\n"
      "sub.u32 %r9, %r20, %r20;\nst.global.u32 [%rd1], 0;\n",
      "");
  run.values = {{"n", 0xfffffff8}};
  const auto wrapped = test::compare(run);
  CHECK(wrapped.inexact.back() ==
        "line 29, st.global.u32: a part of its address wraps around: 4*tid.x + a + 4*n");
}
