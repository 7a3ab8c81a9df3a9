// tests/coverage/file_test.cpp - the file of recorded coverage, and its pictures
#include <catch2/catch.hpp>

#include "coverage/covered_kernel.hpp"
#include "ptxgen/support/error.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

using coverage::CellMap;
using coverage::Coverage;

Coverage recorded() {
  CoveredKernel kernel(R"(
.reg .pred %q; .reg .b32 %t; .reg .b64 %a;
mov.u32 %t, %tid.x;
setp.ge.u32 %q, %t, %n;
@%q bra $end;
mad.wide.u32 %a, %t, 4, %p;
st.global.u32 [%a], %t;
$end:
ret;)");
  Coverage all;
  coverage::add(all, kernel.run(5, 32, "n = 5"));
  coverage::add(all, kernel.run(32, 32, "n = \"32\""));
  all.kernels.front().of = "family";
  return all;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string refusal(std::string_view text) {
  try {
    (void)coverage::parse(text, "c.json");
  } catch (const Error& error) {
    CHECK(error.code == "bad-coverage");
    CHECK(error.file == "c.json");
    return error.message;
  }
  return "none";
}

}  // namespace

TEST_CASE("coverage file: written and read, it is the same") {
  const Coverage all = recorded();
  const std::string text = coverage::to_json(all);
  const Coverage read = coverage::parse(text, "c.json");
  REQUIRE(read.kernels.size() == 1);
  const coverage::KernelCoverage& kernel = read.kernels.front();
  CHECK(kernel.of == "family");
  REQUIRE(kernel.cases.size() == 2);
  CHECK(kernel.cases[1].name == "n = \"32\"");
  CHECK(kernel.cases[0].cells == all.kernels.front().cases[0].cells);
  CHECK(kernel.cases[0].taken == std::vector<std::uint64_t>{27});
  CHECK(coverage::to_json(read) == text);

  // Merged with itself, counts are twice as high and the code is the same.
  Coverage twice = read;
  coverage::merge(twice, all);
  REQUIRE(twice.kernels.size() == 1);
  CHECK(twice.kernels.front().cases[0].taken == std::vector<std::uint64_t>{54});
  CHECK(twice.kernels.front().cases[0].cells.front().cells[0].writes == 10);
}

TEST_CASE("coverage file: what is wrong with it is said") {
  const std::string text = coverage::to_json(recorded());
  CHECK(refusal("{}").starts_with("c.json: format: expected 'ptxgen coverage 1'; a file of"));
  CHECK(refusal("[1").starts_with("c.json: the file: "));
  CHECK(refusal(replaced(text, "\"taken\":[27]", "\"taken\":[27,3]"))
            .starts_with("c.json: kernel k, case 'n = 5': taken has 2 numbers, expected 1"));
  CHECK(refusal(replaced(text, "\"block\":0", "\"block\":7"))
            .starts_with("c.json: kernel k: there is no block 7"));
  CHECK(refusal(replaced(text, "\"side\":16", "\"side\":0"))
            .find("buffer p: 4 cells for 32 x 32 elements in cells of 0") != std::string::npos);
  CHECK(refusal(replaced(text, "\"launches\":1", "\"launches\":\"x\""))
            .starts_with("c.json: kernel k, case 'n = 5': "));
}

TEST_CASE("coverage pictures have the recorder's counts") {
  const Coverage all = recorded();
  const CellMap map = coverage::total(all.kernels.front()).cells.front();
  CHECK(map.cells[0].writes == 21);
  CHECK(map.cells[1].writes == 16);
  const std::string svg = coverage::heat_map_svg(map, "k<1>");
  CHECK(svg.find("k&lt;1&gt;") != std::string::npos);
  CHECK(svg.find("data-accesses=\"21\"><title>rows 0-15, columns 0-15: 0 reads, 21 writes, by "
                 "threads 0-15 of block 0</title>") != std::string::npos);
  CHECK(
      svg.find("fill=\"#c53030\" data-accesses=\"0\"><title>rows 16-31, columns 0-15: no access") !=
      std::string::npos);

  if (!coverage::has_png()) {
    CHECK_THROWS_WITH(coverage::heat_map_png(map), Catch::Contains("libpng-dev"));
    return skip("this build has no libpng: install libpng-dev");
  }
  const coverage::Pixels pixels = coverage::read_png(coverage::heat_map_png(map));
  REQUIRE(pixels.width == 16);
  REQUIRE(pixels.height == 16);
  const coverage::Grid grid = coverage::grid_of(map, 128, 128);
  for (std::size_t i = 0; i < map.cells.size(); ++i) {
    CHECK(pixels.colours[i / 2 * 8 * 16 + i % 2 * 8] == coverage::colour_of(grid, grid.fields[i]));
  }
  CHECK(pixels.colours[0] != pixels.colours[8]);
  CHECK_THROWS_WITH(coverage::read_png("no picture"), Catch::Contains("libpng says"));
}

}  // namespace ptxgen::test
