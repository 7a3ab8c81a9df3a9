// tests/analysis/memory_copies_test.cpp - asynchronous copies in the memory report
#include <catch2/catch.hpp>

#include "memory_runner.hpp"
#include "ptxgen/analysis/memory_report.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/ptx.hpp"

using namespace ptxgen;
using namespace ptxgen::analysis;
using test::kernel;
using test::MemoryRun;
using test::verdict_of;

namespace {

// Addresses of 16 bytes for each thread: %rd1 in global, %r9 in shared memory.
const std::string kOwn = "mad.wide.u32 %rd1, %r0, 16, %rd0;\nmad.lo.u32 %r9, %r0, 16, %r5;\n";

std::string lanes(std::string_view operands) {
  return kOwn + "cp.async.cg.shared.global [%r9], [%rd1], " + std::string(operands) + ";\n";
}

constexpr const char* kTile = "no bank conflicts: 4 wavefronts";
constexpr const char* kFull = "coalesced: 16 sectors of 32 bytes for 512 bytes wanted, 100 %";

// An mbarrier for bulk copies of one thread, which %p9 picks.
const std::string kBarrier =
    ".shared .align 8 .b64 bar;\nmov.u32 %r19, bar;\nsetp.eq.u32 %p9, %r0, 0;\n"
    "@%p9 mbarrier.init.shared.b64 [%r19], 1;\nbar.sync 0;\n";
const std::string kLoad = "@%p9 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes ";
const std::string kStore = "@%p9 cp.async.bulk.global.shared::cta.bulk_group ";
const std::string kWait = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";

std::string load(std::string_view address, std::string_view size) {
  return kBarrier + kLoad + "[%r5], " + std::string(address) + ", " + std::string(size) +
         ", [%r19];\n";
}

std::string store(std::string_view address, std::string_view size) {
  return "setp.eq.u32 %p9, %r0, 0;\n" + kStore + std::string(address) + ", [%r5], " +
         std::string(size) + ";\n" + kWait;
}

// The accesses of a body, beside what the emulator counts.
test::MemoryComparison compared(std::string_view body, std::array<std::uint32_t, 3> block,
                                std::uint32_t n = 77, std::uint32_t s = 3) {
  MemoryRun run;
  run.ptx = kernel(body, "");
  run.block = block;
  run.grid = {2, 1, 1};
  run.values = {{"n", n}, {"s", s}};
  run.buffer_bytes = 1 << 20;
  return test::compare(run);
}

void exact(std::string_view body, std::array<std::uint32_t, 3> block, std::size_t accesses,
           std::uint32_t n = 77, std::uint32_t s = 3) {
  const auto result = compared(body, block, n, s);
  INFO(body);
  CHECK(result.differences == "");
  CHECK(result.inexact == std::vector<std::string>{});
  CHECK(result.exact == accesses);
  CHECK(result.requests > 0);
}

}  // namespace

TEST_CASE("memory report: cp.async reads global and writes shared memory") {
  const ptx::Module module = ptx::parse(kernel(lanes("16"), ".reqntid 128, 1, 1"));
  const MemoryReport report = memory_report(module, module.functions[0]);
  REQUIRE(report.accesses.size() == 2);
  const MemoryAccess& read = report.accesses[0];
  const MemoryAccess& write = report.accesses[1];
  CHECK(read.space == ptx::Space::Global);
  CHECK((read.reads && !read.writes));
  CHECK(read.address_text == "a[16*tid.x]");
  CHECK(write.space == ptx::Space::Shared);
  CHECK((write.writes && !write.reads));
  CHECK(write.address_text == "tile[16*tid.x]");
  for (const MemoryAccess& access : report.accesses) {
    CHECK(access.statement == report.accesses[0].statement);
    CHECK(access.line == 28);
    CHECK(access.copy == CopyKind::Lanes);
    CHECK(access.bytes == 16);
    CHECK(access.lanes == 32);
    CHECK_FALSE(access.shortened);
  }
  CHECK(to_text(report) ==
        "k: memory accesses, for blocks of 128 x 1 x 1\n"
        "  line 28: cp.async.cg.shared.global a[16*tid.x]\n"
        "    coalesced: 16 sectors of 32 bytes for 512 bytes wanted, 100 %\n"
        "  line 28: cp.async.cg.shared.global tile[16*tid.x]\n"
        "    no bank conflicts: 4 wavefronts\n"
        "  total, each access once: 2 accesses, 0 unknown; 512 bytes wanted, 512 bytes moved; 0 "
        "bank conflicts\n");
}

TEST_CASE("memory report: verdicts on cp.async") {
  CHECK(verdict_of(lanes("16")) == std::string(kFull) + '\n' + kTile);
  CHECK(verdict_of("cp.async.ca.shared.global [tile+4], [%rd0], 4;\n") ==
        "broadcast: all lanes read the same 4 bytes, 1 sector\n"
        "broadcast: all lanes write the same 4 bytes, 1 wavefront");
  // A policy of the L2 is no size.
  CHECK(verdict_of(kOwn + "cp.async.cg.shared.global.L2::cache_hint [%r9], [%rd1], 16, %rd2;") ==
        std::string(kFull) + '\n' + kTile);
  CHECK(verdict_of("mad.wide.u32 %rd1, %r0, 64, %rd0;\nmad.lo.u32 %r9, %r0, 128, %r5;\n"
                   "cp.async.ca.shared.global [%r9], [%rd1], 4;\n") ==
        "strided: lanes are 64 bytes apart, 32 sectors of 32 bytes for 128 bytes wanted, 8 times "
        "what is needed\n"
        "bank conflicts: lanes are 128 bytes apart, 32 wavefronts where 1 would do");
  CHECK(verdict_of("cp.async.ca.shared.global [%r5], [%rd0], 8;\n") ==
        "broadcast: all lanes read the same 8 bytes, 1 sector\n"
        "broadcast: all lanes write the same 8 bytes, 2 wavefronts");
  // Of one side something may be unknown.
  CHECK(verdict_of("ld.global.u32 %r8, [%rd0];\nmad.wide.u32 %rd1, %r8, 16, %rd0;\n"
                   "mad.lo.u32 %r9, %r0, 16, %r5;\n"
                   "cp.async.cg.shared.global [%r9], [%rd1], 16;\n") ==
        "broadcast: all lanes read the same 4 bytes, 1 sector\n"
        "broadcast: all lanes read the same 16 bytes, 1 sector\n"
        "no bank conflicts: 4 wavefronts");
  CHECK(verdict_of("mad.wide.u32 %rd2, %r0, 4, %rd0;\nld.global.u32 %r8, [%rd2];\n"
                   "mad.wide.u32 %rd1, %r8, 16, %rd0;\nmad.lo.u32 %r9, %r0, 16, %r5;\n"
                   "cp.async.cg.shared.global [%r9], [%rd1], 16;\n") ==
        "coalesced: 4 sectors of 32 bytes for 128 bytes wanted, 100 %\n"
        "unknown: depends on %r8, loaded in line 27\n"
        "no bank conflicts: 4 wavefronts");
  // Masked lanes, on both sides.
  CHECK(verdict_of(kOwn + "setp.lt.u32 %p1, %r0, %r20;\n"
                          "@%p1 cp.async.cg.shared.global [%r9], [%rd1], 16;\n") ==
        std::string(kFull) + "; for a full warp, lanes may be masked\n" + kTile +
            "; for a full warp, lanes may be masked");
}

TEST_CASE("memory report: cp.async that reads fewer bytes than it writes") {
  // 12 of 16 bytes from each address; nothing; more than there are.
  CHECK(verdict_of(lanes("16, 12")) ==
        "strided: lanes are 16 bytes apart, 16 sectors of 32 bytes for 384 bytes wanted, 1.3 "
        "times what is needed\n" +
            std::string(kTile));
  CHECK(verdict_of("mov.u32 %r8, 12;\n" + lanes("16, %r8")) == verdict_of(lanes("16, 12")));
  CHECK(verdict_of(lanes("16, 0")) == kTile);
  CHECK(verdict_of(lanes("16, 20")) == verdict_of(lanes("16")));
  const std::string fewer = "; for copies in full, lanes may read fewer bytes\n";
  CHECK(verdict_of(lanes("16, %r20")) == kFull + fewer + kTile);
  CHECK(verdict_of("setp.lt.u32 %p1, %r0, %r20;\n" + lanes("16, %p1")) == kFull + fewer + kTile);
  // 5 bytes from a multiple of 16, wherever that is in its sector: never 2 sectors a lane.
  CHECK(verdict_of("mul.wide.u32 %rd2, %r20, 16;\nadd.u64 %rd2, %rd2, %rd0;\n"
                   "cp.async.cg.shared.global [%r5], [%rd2], 16, 5;\n") ==
        "broadcast: all lanes read the same 5 bytes, 1 sector\n"
        "broadcast: all lanes write the same 16 bytes, 4 wavefronts");
  // Fewer bytes, but from where 16 may be read: at a sector, or in the middle of one.
  CHECK(verdict_of("mad.wide.u32 %rd0, %r20, 4, %rd0;\n" + lanes("16, 12")) ==
        "strided: lanes are 16 bytes apart, 16 to 17 sectors of 32 bytes for 384 bytes wanted, "
        "1.3 times what is needed\n" +
            std::string(kTile));
  // A constant only if nothing wraps around before it is widened.
  CHECK(verdict_of("add.u32 %r8, %r20, 8;\ncvt.u64.u32 %rd2, %r8;\ncvt.u64.u32 %rd3, %r20;\n"
                   "sub.u64 %rd2, %rd2, %rd3;\ncvt.u32.u64 %r8, %rd2;\n" +
                   lanes("16, %r8")) == kFull + fewer + kTile);
  const ptx::Module module = ptx::parse(kernel(lanes("16, 12"), ".reqntid 128, 1, 1"));
  const MemoryReport report = memory_report(module, module.functions[0]);
  REQUIRE(report.accesses.size() == 2);
  CHECK(report.accesses[0].bytes == 12);
  CHECK(report.accesses[1].bytes == 16);
}

TEST_CASE("memory report: cp.async as the emulator counts it") {
  exact(lanes("16"), {96, 1, 1}, 2);
  exact(lanes("16"), {40, 1, 1}, 2);
  for (const char* step : {"4", "8", "36", "128", "132"}) {
    exact("mad.wide.u32 %rd1, %r0, " + std::string(step) + ", %rd0;\nmad.lo.u32 %r9, %r0, " + step +
              ", %r5;\ncp.async.ca.shared.global [%r9], [%rd1+4], 4;\n",
          {64, 1, 1}, 2);
  }
  // Src-size: a constant, a parameter, a number for each lane, beyond the size.
  for (const char* size : {"16", "12", "1", "20"})
    exact(lanes("16, " + std::string(size)), {64, 1, 1}, 2);
  exact(lanes("16, 0"), {64, 1, 1}, 1);
  for (const std::uint32_t n : {0u, 7u, 16u, 40u}) exact(lanes("16, %r20"), {64, 1, 1}, 2, n);
  exact("mul.lo.u32 %r8, %r0, 3;\nand.b32 %r8, %r8, 31;\n" + lanes("16, %r8"), {64, 1, 1}, 2);
  // What is left of a row, as kernels write it.
  exact(
      "mul.lo.u32 %r8, %r0, 16;\nsub.s32 %r8, %r20, %r8;\nmax.s32 %r8, %r8, 0;\n"
      "min.s32 %r8, %r8, 16;\n" +
          lanes("16, %r8"),
      {64, 1, 1}, 2, 200);
  // Ignore-src: a condition, and its opposite.
  for (const char* condition : {"%p1", "!%p1"}) {
    exact("setp.lt.u32 %p1, %r0, %r20;\n" + lanes("16, " + std::string(condition)), {96, 1, 1}, 2);
    // For all lanes, or for none.
    exact("setp.lt.u32 %p1, %r0, 1000;\n" + lanes("16, " + std::string(condition)), {96, 1, 1},
          condition[0] == '!' ? 2 : 1);
  }
  // Guarded, in a loop, by lanes that leave early.
  exact(kOwn +
            "setp.lt.u32 %p1, %r0, %r20;\nsetp.lt.u32 %p2, %r4, 5;\n"
            "@!%p1 cp.async.cg.shared.global [%r9], [%rd1], 16, %p2;\n",
        {96, 1, 1}, 2);
  exact(kOwn +
            "mov.u32 %r10, 0;\nL:\n"
            "cp.async.cg.shared.global [%r9], [%rd1], 16;\n"
            "add.u64 %rd1, %rd1, 528;\nadd.u32 %r10, %r10, 1;\nsetp.lt.u32 %p1, %r10, %r21;\n"
            "@%p1 bra L;\n",
        {32, 1, 1}, 2);
  exact(kOwn +
            "setp.ge.u32 %p1, %r0, %r20;\n@%p1 ret;\n"
            "cp.async.cg.shared.global [%r9], [%rd1+16], 16;\n",
        {96, 1, 1}, 2);
}

TEST_CASE("memory report: what is not known of cp.async is said") {
  const auto result =
      compared("mad.wide.u32 %rd2, %r0, 4, %rd0;\nld.global.u32 %r8, [%rd2];\n" + lanes("16, %r8"),
               {32, 1, 1});
  CHECK(result.differences == "");
  CHECK(result.exact == 2);
  CHECK(result.inexact ==
        std::vector<std::string>{"line 30, cp.async.cg.shared.global: how many bytes it copies "
                                 "depends on more than indices and parameters: %r8"});
  // The size is widened, and wraps around before it is.
  const auto wrapped = compared(
      "add.u32 %r8, %r20, %r21;\ncvt.u64.u32 %rd2, %r8;\nshr.u64 %rd3, %rd2, 4;\n"
      "cvt.u32.u64 %r10, %rd3;\n" +
          lanes("16, %r10"),
      {32, 1, 1}, 0xfffffff8, 200);
  CHECK(wrapped.differences == "");
  REQUIRE(wrapped.inexact.size() == 1);
  CHECK(wrapped.inexact[0] ==
        "line 32, cp.async.cg.shared.global: a part of its size wraps around: ((n + s)/16)");
}

TEST_CASE("memory report: bulk copies have the side in global memory") {
  const ptx::Module module = ptx::parse(kernel(load("[%rd0]", "4096"), ".reqntid 128, 1, 1"));
  const MemoryReport report = memory_report(module, module.functions[0]);
  REQUIRE(report.accesses.size() == 1);
  const MemoryAccess& access = report.accesses[0];
  CHECK(access.copy == CopyKind::Bulk);
  CHECK(access.space == ptx::Space::Global);
  CHECK((access.reads && !access.writes));
  CHECK(access.bytes == 4096);
  CHECK(access.lanes == 1);
  CHECK(access.masked);
  CHECK(access.sectors == Spread{128, 128});
  CHECK(access.ideal_sectors == 128);
  CHECK(access.bytes_wanted == 4096);
  CHECK(report.total.bytes_moved == Spread{4096, 4096});
  const ptx::Module other = ptx::parse(kernel(store("[%rd0]", "64"), ".reqntid 128, 1, 1"));
  const MemoryReport stored = memory_report(other, other.functions[0]);
  REQUIRE(stored.accesses.size() == 1);
  CHECK((stored.accesses[0].writes && !stored.accesses[0].reads));
  CHECK(stored.accesses[0].address_text == "a[0]");
}

TEST_CASE("memory report: verdicts on bulk copies") {
  CHECK(verdict_of(load("[%rd0]", "4096")) ==
        "coalesced: a copy moves 128 sectors of 32 bytes for 4096 bytes wanted, 100 %");
  CHECK(verdict_of(load("[%rd0+16]", "4096")) ==
        "misaligned: a copy begins within a sector, 129 sectors of 32 bytes for 4096 bytes "
        "wanted, 1 more than needed");
  // The half of a sector that is not wanted may be at either end.
  CHECK(verdict_of(load("[%rd0+16]", "48")) ==
        "coalesced: a copy moves 2 sectors of 32 bytes for 48 bytes wanted, 100 %");
  CHECK(verdict_of("mad.wide.u32 %rd0, %r20, 16, %rd0;\n" + store("[%rd0]", "4096")) ==
        "coalesced: a copy moves 128 to 129 sectors of 32 bytes for 4096 bytes wanted, by how the "
        "address is aligned, 100 % at best");
  // What nothing is known of is a multiple of 16 at least.
  CHECK(verdict_of("ld.global.u64 %rd1, [%rd0];\n" + store("[%rd1]", "32")) ==
        "broadcast: all lanes read the same 8 bytes, 1 sector\n"
        "coalesced: a copy moves 1 to 2 sectors of 32 bytes for 32 bytes wanted, by how the "
        "address is aligned, 100 % at best");
  CHECK(verdict_of("ld.global.u64 %rd1, [%rd0];\n" + store("[%rd1]", "48")) ==
        "broadcast: all lanes read the same 8 bytes, 1 sector\n"
        "coalesced: a copy moves 2 sectors of 32 bytes for 48 bytes wanted, 100 %");
  CHECK(verdict_of(load("[%rd0]", "0")) ==
        "coalesced: a copy moves 0 sectors of 32 bytes for 0 bytes wanted, 100 %");
  CHECK(verdict_of("mov.u32 %r10, 64;\n" + load("[%rd0]", "%r10")) ==
        verdict_of(load("[%rd0]", "64")));
  // Sizes that are no constant.
  CHECK(verdict_of("mul.lo.u32 %r10, %r20, 16;\n" + load("[%rd0+64]", "%r10")) ==
        "coalesced: a copy of 16*n bytes begins at a sector, 100 %");
  CHECK(verdict_of("mul.lo.u32 %r10, %r20, 16;\n" + load("[%rd0+16]", "%r10")) ==
        "unknown: copies 16*n bytes, which is not a constant, and may begin within a sector");
  CHECK(verdict_of("ld.global.u32 %r10, [%rd0];\n" + load("[%rd0+16]", "%r10")) ==
        "broadcast: all lanes read the same 4 bytes, 1 sector\n"
        "unknown: copies %r10 bytes, which is not a constant, and may begin within a sector");
  // Each thread by itself: lanes may be any way apart.
  CHECK(verdict_of("mad.wide.u32 %rd1, %r0, 4096, %rd0;\n"
                   "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r5], 64;\n") ==
        "coalesced: a copy moves 2 sectors of 32 bytes for 64 bytes wanted, 100 %");
  // Alignment of the pointer.
  CHECK(verdict_of(store("[%rd0]", "64"), "", {.pointer_alignment = 16}) ==
        "coalesced: a copy moves 2 to 3 sectors of 32 bytes for 64 bytes wanted, by how the "
        "address is aligned, 100 % at best");
  // Updates, and copies that no sectors are moved for.
  CHECK(
      verdict_of("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [%r5], 32;") ==
      "coalesced: a copy moves 1 sector of 32 bytes for 32 bytes wanted, 100 %");
  CHECK(verdict_of(kBarrier + "cp.async.bulk.shared::cluster.shared::cta.mbarrier::"
                              "complete_tx::bytes [%r5], [%r5+64], 64, [%r19];") == "");
  CHECK(verdict_of("cp.async.bulk.prefetch.L2.global [%rd0], 64;") == "");
}

TEST_CASE("memory report: totals leave out what has no size") {
  const ptx::Module module =
      ptx::parse(kernel("shl.b32 %r10, %r20, 4;\n" + load("[%rd0]", "%r10"), ".reqntid 128, 1, 1"));
  const MemoryReport report = memory_report(module, module.functions[0]);
  CHECK(report.total.unsized == 1);
  CHECK(report.total.unknown == 0);
  CHECK(to_text(report) ==
        "k: memory accesses, for blocks of 128 x 1 x 1\n"
        "  line 32: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes a[0]\n"
        "    coalesced: a copy of 16*n bytes begins at a sector, 100 %\n"
        "  total, each access once: 1 access, 0 unknown, 1 of unknown size; 0 bytes wanted, 0 "
        "bytes moved; 0 bank conflicts\n");
}

TEST_CASE("memory report: bulk copies as the emulator counts them") {
  for (const char* address : {"[%rd0]", "[%rd0+16]", "[%rd0+48]"}) {
    for (const char* size : {"16", "32", "48", "4096"}) {
      exact(load(address, size), {64, 1, 1}, 1);
      exact(store(address, size), {64, 1, 1}, 1);
    }
    // A parameter is the size, and a number for each block.
    for (const std::uint32_t n : {0u, 1u, 2u, 77u}) {
      exact("shl.b32 %r10, %r20, 4;\n" + load(address, "%r10"), {64, 1, 1}, 1, n);
      exact("mad.lo.u32 %r10, %r2, 48, 16;\n" + store(address, "%r10"), {64, 1, 1}, 1, n);
    }
  }
  // By several lanes, each from its own place, and in a loop.
  exact(
      "mad.wide.u32 %rd1, %r0, 48, %rd0;\nsetp.lt.u32 %p1, %r4, %r21;\n"
      "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r5], 48;\n" +
          kWait,
      {64, 1, 1}, 1);
  exact(
      "and.b32 %r10, %r0, 3;\nmul.lo.u32 %r10, %r10, 16;\nmad.wide.u32 %rd1, %r0, 80, %rd0;\n"
      "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r5], %r10;\n" +
          kWait,
      {64, 1, 1}, 1);
  exact("setp.eq.u32 %p9, %r0, 0;\nmov.u32 %r10, 0;\nL:\n" + kStore +
            "[%rd0], [%r5], 64;\n"
            "add.u64 %rd0, %rd0, 80;\nadd.u32 %r10, %r10, 1;\nsetp.lt.u32 %p1, %r10, %r21;\n"
            "@%p1 bra L;\n" +
            kWait,
        {64, 1, 1}, 1);
  const auto result =
      compared("ld.global.u32 %r10, [%rd0];\n" + store("[%rd0]", "%r10"), {32, 1, 1});
  CHECK(result.differences == "");
  CHECK(result.inexact ==
        std::vector<std::string>{"line 28, cp.async.bulk.global.shared::cta.bulk_group: how many "
                                 "bytes it copies depends on more than indices and parameters: "
                                 "%r10"});
}

TEST_CASE("memory report: what an engine does to shared memory is not followed") {
  CHECK(verdict_of(kBarrier + "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 "
                              "[%r5], %r0, [%r19];") ==
        "unknown: st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 is not followed");
  CHECK(verdict_of("st.bulk.weak.shared::cta [%r5], 64, 0;") ==
        "unknown: st.bulk.weak.shared::cta is not followed");
  CHECK(verdict_of("cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd0], [%r5], 64, %h1;") ==
        "unknown: cp.async.bulk.global.shared::cta.bulk_group.cp_mask is not followed");
}

TEST_CASE("memory report: copies that lack operands, or copy what none can, are not followed") {
  // The verifier refuses such functions; the report must not read beyond their operands.
  const auto changed = [](std::string_view body, const auto& change) {
    ptx::Module module = ptx::parse(kernel(body, ".reqntid 128, 1, 1"));
    ptx::Function& function = module.functions.front();
    for (ptx::Instruction& s : function.body) {
      if (s.is(ptx::Op::cp_async) || s.is(ptx::Op::cp_async_bulk_store)) change(function, s);
    }
    const MemoryReport report = memory_report(module, function);
    return report.accesses.empty() ? "" : verdict(report.accesses.back());
  };
  const auto cut = [](ptx::Function&, ptx::Instruction& s) { s.operand_count = 1; };
  CHECK(changed(lanes("16"), cut) == "unknown: cp.async.cg.shared.global is not followed");
  CHECK(changed(store("[%rd0]", "64"), cut) ==
        "unknown: cp.async.bulk.global.shared::cta.bulk_group is not followed");
  const auto odd = [](ptx::Function& function, ptx::Instruction& s) {
    function.operands_of(s)[2].value = 3;
  };
  CHECK(changed(lanes("16"), odd) == "unknown: cp.async.cg.shared.global is not followed");
}

TEST_CASE("memory report: GEMV by way of cp.async, each access as the emulator counts it") {
  std::size_t copies = 0, inexact = 0;
  for (const GemvLayout layout : {GemvLayout::T, GemvLayout::R}) {
    for (const ElementType type : {ElementType::f32, ElementType::f16}) {
      for (const std::uint32_t warps : {1u, 2u}) {
        for (const std::uint32_t rest : {0u, 3u}) {
          GemvPlan plan;
          plan.path = GemvPath::Async;
          plan.problem.layout = layout;
          plan.problem.weights = type;
          plan.stages = 3;
          plan.warps_out = 2;
          plan.warps_k = warps;
          plan.unroll = 2;
          plan.problem.n = layout == GemvLayout::T ? 2 * plan.strip_outputs() : 12;
          plan.problem.k = 4 * plan.step_elements() + (layout == GemvLayout::T ? rest : 0);
          plan.blocks = static_cast<std::uint32_t>(plan.strips());
          const Gemv gemv{plan};
          const LaunchGeometry geometry = gemv.geometry();
          MemoryRun run;
          run.ptx = gemv.build(ptx::target("sm_90")).ptx();
          run.grid = {geometry.grid.x, geometry.grid.y, geometry.grid.z};
          run.block = {geometry.block.x, geometry.block.y, geometry.block.z};
          run.dynamic_shared_bytes = geometry.dynamic_shared_bytes;
          run.buffer_bytes = 1 << 21;
          const auto result = test::compare(run);
          INFO(to_text(plan));
          CHECK(result.differences == "");
          inexact += result.inexact.size();
          for (const MemoryAccess& access : result.report.accesses)
            copies += access.copy == CopyKind::Lanes ? 1 : 0;
        }
      }
    }
  }
  WARN("memory report: " << copies << " sides of cp.async in GEMV plans, " << inexact
                         << " inexact");
  CHECK(copies > 100);
  CHECK(inexact == 0);
}

TEST_CASE("memory report: kinds of copies have names") {
  CHECK(to_string(CopyKind::None) == "none");
  CHECK(to_string(CopyKind::Lanes) == "lanes");
  CHECK(to_string(CopyKind::Bulk) == "bulk");
}
