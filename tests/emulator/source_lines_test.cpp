// tests/emulator/source_lines_test.cpp - findings and counters by the line of the CUDA source
#include <catch2/catch.hpp>

#include <cstring>

#include "emulator/memory_kernels.hpp"
#include "ptxgen/emulator/report/groups.hpp"
#include "ptxgen/emulator/report/profile.hpp"

using namespace ptxgen;
using namespace ptxgen::emulator;
using test::findings_of;
using test::MemoryKernel;

namespace {

constexpr std::string_view kFiles = ".file 1 \"/src/k.cu\"\n.file 2 \"/cuda/half.hpp\"\n";

// An unrolled loop that reads x[4 * t .. 4 * t + 3] through an intrinsic, and y[t].
MemoryKernel unrolled() {
  return MemoryKernel(
      ".loc 1 7 3\nadd.u64 %rd1, %in, %t16; add.u64 %rd2, %out, %t4;\n"
      ".loc 1 8 3\n.loc 2 20 1, function_name F, inlined_at 1 8 3\n"
      "ld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [%rd1+4];\n"
      "ld.global.u32 %r3, [%rd1+8];\nld.global.u32 %r4, [%rd1+12];\n"
      "ld.global.u32 %r5, [%rd2];\n"
      ".loc 1 9 3\nadd.u32 %r1, %r1, %r5;\nst.global.u32 [%rd2], %r1;\n.loc 1 0 0\n",
      kFiles);
}

}  // namespace

TEST_CASE("findings in an intrinsic show the line that calls it, one entry for each cause") {
  MemoryKernel kernel = unrolled();
  kernel.input(std::vector<std::uint32_t>(64, 1));  // half of what is read
  kernel.output(100);                               // 25 of 32 words
  const Result result = kernel.run();
  INFO(findings_of(result));
  REQUIRE(result.findings.size() == 7);
  const RunFinding& first = result.findings[0];
  CHECK(first.finding.source_file == "/src/k.cu");
  CHECK(first.finding.source_line == 8);
  REQUIRE(first.finding.inlined.size() == 2);
  CHECK(first.finding.inlined[0].file == "/cuda/half.hpp");
  CHECK(first.finding.inlined[0].line == 20);
  CHECK(first.finding.subject == "argument 1 'in'");

  const auto groups = group_findings(result.findings);
  // x at line 8, y at line 8 (never written too: another rule), y at line 9.
  REQUIRE(groups.size() >= 3);
  CHECK(groups[0].members.size() == 4);
  CHECK(groups[0].count == 4 * 16);
  const std::string text = to_text(groups[0], result.findings);
  CHECK_THAT(text, Catch::Contains("4 findings of this cause, at PTX lines "));
  CHECK_THAT(text, Catch::Contains(", 64 times in all\n"));
  CHECK_THAT(text, Catch::Contains("\n    source /src/k.cu:8\n    inlined: /cuda/half.hpp:20, "
                                   "called at /src/k.cu:8"));
}

TEST_CASE("the other party of a race has its source line") {
  MemoryKernel kernel(
      "mov.u32 %r1, tile; shl.b32 %r2, %t, 2; add.u32 %r3, %r1, %r2;\n"
      ".loc 1 30 3\nst.shared.u32 [%r3], %t;\n.loc 1 31 3\nld.shared.u32 %r4, [%r1+128];\n"
      ".loc 1 32 1\nadd.u64 %rd1, %out, %t4; st.global.u32 [%rd1], %r4;\n",
      ".file 1 \"/src/k.cu\"\n.shared .align 4 .b8 tile[256];\n");
  kernel.input(std::vector<std::uint32_t>(64, 1));
  kernel.output(256);
  const Result result = kernel.run(64);
  REQUIRE(!result.findings.empty());
  CHECK_THAT(findings_of(result), Catch::Contains(", source /src/k.cu:30"));
}

TEST_CASE("counters are summed by source line") {
  MemoryKernel kernel = unrolled();
  kernel.input(std::vector<std::uint32_t>(128, 1));
  kernel.output(128);
  const Result result = kernel.run(32, 3);
  const auto lines = by_source(result.counters, kernel.program().module());
  // Nothing before the first `.loc`, and what follows line 0, is of no line.
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].line == 0);
  CHECK(lines[1].file == "/src/k.cu");
  CHECK(lines[1].line == 7);
  CHECK(lines[1].instructions == 2);
  CHECK(lines[2].line == 8);
  CHECK(lines[2].instructions == 5);
  CHECK(lines[2].executions == 15);
  CHECK(lines[2].thread_executions == 15 * 32);
  CHECK(lines[2].memory.requests == 15);
  CHECK(lines[2].memory.sectors == 3 * (4 * 16 + 4));
  CHECK(lines[3].line == 9);
  std::uint64_t all = 0;
  for (const SourceCounters& line : lines) all += line.executions;
  CHECK(all == result.counters.warp_instructions);
  CHECK(to_text(std::span<const SourceCounters>(lines)) ==
        "executions  lanes  divergent  sectors/ideal  wavefronts/ideal | source line\n"
        "--------------------------------------------------------------+------------\n"
        "        21   32.0                                             | (no source line)\n"
        "         6   32.0                                             | /src/k.cu:7\n"
        "        15   32.0                    204/60                   | /src/k.cu:8\n"
        "         6   32.0                     12/12                   | /src/k.cu:9\n");
}
