// tests/coverage/cells_test.cpp - accesses to buffers in cells
#include <catch2/catch.hpp>

#include "coverage/covered_kernel.hpp"

namespace ptxgen::test {
namespace {

using coverage::Cell;
using coverage::CellMap;

const CellMap& cells_of(const coverage::KernelCoverage& kernel) {
  return kernel.cases.front().cells.front();
}

std::vector<std::uint64_t> reads_of(const CellMap& map) {
  std::vector<std::uint64_t> all;
  for (const Cell& cell : map.cells) all.push_back(cell.reads);
  return all;
}

// Address of word %tid.x * STEP.
std::string at_thread(unsigned step, std::string_view access) {
  return ".reg .pred %q; .reg .b32 %t; .reg .b32 %v<4>; .reg .b64 %a;\nmov.u32 %t, %tid.x;\n"
         "setp.lt.u32 %q, %t, %n;\nmad.wide.u32 %a, %t, " +
         std::to_string(4 * step) + ", %p;\n" + std::string(access) + "\nret;";
}

}  // namespace

TEST_CASE("cells: elements that threads read, guards respected, and which threads") {
  // Thread t reads word 20 t: row 20 t / 32. Words 0, 20, ..., 180 are in rows 0 to 5.
  CoveredKernel kernel(at_thread(20, "@%q ld.global.u32 %v0, [%a];"));
  const coverage::KernelCoverage found = kernel.run(10);
  const CellMap& map = cells_of(found);
  CHECK(map.buffer == "p");
  REQUIRE(map.cells.size() == 4);  // 32 x 32 words in cells of 16 x 16
  // Columns 0 20 8 28 16 4 24 12 0 20: five in the left cells.
  CHECK(reads_of(map) == std::vector<std::uint64_t>{5, 5, 0, 0});
  CHECK(map.cells[0].writes == 0);
  CHECK(map.cells[0].first_thread == 0);
  CHECK(map.cells[0].last_thread == 8);
  CHECK(map.cells[1].first_thread == 1);
  CHECK(map.cells[0].first_block == 0);
  CHECK(map.cells[0].last_block == 0);
  CHECK(map.covered() == 2);
  CHECK(kernel.uncounted().empty());
}

TEST_CASE("cells: vectors, offsets, stores, atomics and copies") {
  SECTION("a vector is all its elements") {
    CoveredKernel kernel(at_thread(4, "@%q ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%a];"));
    const coverage::KernelCoverage found = kernel.run(32);
    CHECK(reads_of(cells_of(found)) == std::vector<std::uint64_t>{64, 64, 0, 0});
  }
  SECTION("the offset of the address counts") {
    CoveredKernel kernel(at_thread(1, "@%q ld.global.u32 %v0, [%a+2048];"));
    const coverage::KernelCoverage found = kernel.run(32);
    CHECK(reads_of(cells_of(found)) == std::vector<std::uint64_t>{0, 0, 16, 16});
  }
  SECTION("stores are writes, atomics both") {
    CoveredKernel kernel(
        at_thread(1, "@%q st.global.u32 [%a], %t;\n@%q red.global.add.u32 [%a], 1;"));
    const coverage::KernelCoverage found = kernel.run(32);
    CHECK(cells_of(found).cells[0].writes == 32);
    CHECK(cells_of(found).cells[0].reads == 16);
  }
  SECTION("cp.async reads its source") {
    CoveredKernel kernel(
        at_thread(4,
                  ".shared .align 16 .b8 tile[512];\nmov.u32 %v0, tile;\nmad.lo.u32 %v0, %t, 16, "
                  "%v0;\n@%q cp.async.ca.shared.global [%v0], [%a], 16;\ncp.async.wait_all;"));
    const coverage::KernelCoverage found = kernel.run(32);
    CHECK(reads_of(cells_of(found)) == std::vector<std::uint64_t>{64, 64, 0, 0});
    CHECK(cells_of(found).cells[0].writes == 0);
  }
  SECTION("shared memory is none of the buffer") {
    CoveredKernel kernel(at_thread(
        1, ".shared .align 4 .b32 word;\nst.shared.u32 [word], 1;\nld.shared.u32 %v0, [word];"));
    const coverage::KernelCoverage found = kernel.run(32);
    CHECK(cells_of(found).covered() == 0);
    CHECK(kernel.uncounted().empty());
  }
}

TEST_CASE("cells: accesses that are not counted are named") {
  CoveredKernel kernel(R"(
.reg .b32 %f<8>;
wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%p], 32;
ret;)");
  const coverage::KernelCoverage found = kernel.run(1);
  CHECK(kernel.uncounted().starts_with("wmma.load"));
}

TEST_CASE("cells: maps of other sizes are added at their place") {
  CellMap small = coverage::make_cells("a", 16, 8);
  small.cells[0].add(
      {.reads = 3, .first_block = 2, .last_block = 2, .first_thread = 1, .last_thread = 1});
  CellMap wide = coverage::make_cells("a", 20, 40);
  REQUIRE(wide.cells.size() == 6);
  wide.cells[0].writes = 5;
  wide.cells[4].reads = 7;
  CellMap tall = coverage::make_cells("a", 48, 1);
  tall.cells[2].reads = 9;
  coverage::add(small, wide);
  coverage::add(small, tall);
  CHECK(small.rows == 48);
  CHECK(small.columns == 40);
  CHECK(reads_of(small) == std::vector<std::uint64_t>{3, 0, 0, 0, 7, 0, 9, 0, 0});
  CHECK(small.cells[0].writes == 5);
  CHECK(small.cells[0].first_block == 2);

  const CellMap part = coverage::domain(small, 32, 64);
  CHECK(reads_of(part) == std::vector<std::uint64_t>{3, 0, 0, 0, 0, 7, 0, 0});
}

TEST_CASE("cells: maps that would be too large together stay apart") {
  std::vector<CellMap> maps;
  coverage::add(maps, coverage::make_cells("a", 1, 1 << 20));
  coverage::add(maps, coverage::make_cells("a", 1 << 20, 1));
  CHECK(maps.size() == 2);
  coverage::add(maps, coverage::make_cells("a", 1, 16));
  CHECK(maps.size() == 2);
  coverage::add(maps, coverage::make_cells("b", 1, 16));
  CHECK(maps.size() == 3);
}

TEST_CASE("cells: large buffers have larger cells") {
  CHECK(coverage::make_cells("a", 4096, 4096).side == 16);
  const CellMap map = coverage::make_cells("a", 8192, 4096);
  CHECK(map.side == 32);
  CHECK(map.cells.size() == 256 * 128);
  CHECK(coverage::make_cells("y", 1, 4096).cells.size() == 256);
}

TEST_CASE("cells: the heat map as text") {
  CellMap map = coverage::make_cells("a", 32, 48);
  map.cells[0].reads = 90;
  map.cells[1].reads = 10;
  map.cells[4].writes = 11;
  CHECK(coverage::heat_map_text(map) ==
        "a: 32 x 48 elements, 3 of 6 cells of 16 x 16; one character is 16 x 16 elements\n"
        "       0  91.\n"
        "      16  .2.\n"
        ". no access   - only some of the cells   1 to 9: up to 90 accesses\n");

  // Where cells share a character, one without accesses is still seen.
  CellMap wide = coverage::make_cells("a", 1, 16 * 128);
  for (Cell& cell : wide.cells) cell.reads = 1;
  wide.cells[5].reads = 0;
  const std::string text = coverage::heat_map_text(wide);
  CHECK(text.find("       0  99-9999") != std::string::npos);
  CHECK(text.find("one character is 32 x 32 elements") != std::string::npos);
}

}  // namespace ptxgen::test
