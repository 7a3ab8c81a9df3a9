// tests/cli/coverage_test.cpp - ptxgen coverage
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::vector<std::string> gemv(const std::string& k, const std::string& n,
                              std::vector<std::string> more) {
  std::vector<std::string> call = {"coverage", "gemv_coalesced", "-p", "k=" + k, "-p", "n=" + n};
  call.insert(call.end(), more.begin(), more.end());
  return call;
}

}  // namespace

TEST_CASE("coverage of a library kernel: counts, gaps, heat map, files; runs are added up") {
  const TemporaryDirectory folder("/tmp");
  const std::string full = folder.path() + "/full";
  const auto one = ptxgen_program(gemv("256", "256", {"--out", full}));
  CHECK(one.exit_code == 0);
  CHECK(contains(one.out, "k = 256, n = 256"));
  CHECK(contains(one.out, "no case executes (line of the PTX):\n"));
  CHECK(contains(one.out, "the branch is never taken: "));
  CHECK(contains(one.out,
                 "a: 256 x 256 elements, 256 of 256 cells of 16 x 16; one character is 16 "
                 "x 16 elements\n       0  9999999999999999\n"));
  const auto file = nlohmann::json::parse(read_file(full + "/coverage.json"));
  const auto& cells = file["kernels"][0]["cases"][0]["cells"];
  bool found = false;
  for (const auto& map : cells) {
    if (map["buffer"] != "a") continue;
    found = true;
    CHECK(map["covered"] == nlohmann::json({256, 256}));
    for (const auto& cell : map["cells"]) CHECK(cell[0] == 256);  // each element is read once
  }
  CHECK(found);
  CHECK(contains(read_file(full + "/gemv_coalesced-a-256x256.svg"), "data-accesses=\"256\""));

  // Fewer rows and columns than threads: outcomes that the first run lacks.
  const std::string both = folder.path() + "/both";
  const auto merged = ptxgen_program(
      gemv("127", "63", {"--merge", full + "/coverage.json", "--out", both, "--cells", "a"}));
  CHECK(merged.exit_code == 0);
  const auto sum = nlohmann::json::parse(read_file(both + "/coverage.json"));
  REQUIRE(sum["kernels"].size() == 1);
  CHECK(sum["kernels"][0]["cases"].size() == 2);
  const auto covered = [](const nlohmann::json& report) {
    return report["kernels"][0]["covered"]["branch_outcomes"][0].get<int>();
  };
  CHECK(covered(sum) > covered(file));

  const auto again = ptxgen_program({"coverage", "--merge", both + "/coverage.json", "--json"});
  CHECK(again.exit_code == 0);
  CHECK(again.out == read_file(both + "/coverage.json"));
}

TEST_CASE("coverage of a PTX file, and what it refuses") {
  const TemporaryDirectory folder("/tmp");
  const std::string ptx = folder.path() + "/vadd.ptx";
  REQUIRE(ptxgen_program({"dump", "vadd", "-o", ptx}).exit_code == 0);
  std::vector<std::string> call = {"coverage", ptx, "--grid", "2", "--block", "256", "--arg"};
  call.insert(call.end(), {"random:f32:500", "random:f32:500", "print:f32:500", "u32:500"});
  const auto run = ptxgen_program(call);
  CHECK(run.exit_code == 0);
  CHECK(contains(run.out, "grid 2 block 256 random:f32:500 random:f32:500 print:f32:500 u32:500"));
  CHECK(contains(run.out, "cells of 16 x 16"));

  call.insert(call.end(), {"--cells", "nothing"});
  const auto unknown = ptxgen_program(call);
  CHECK(unknown.exit_code == 2);
  CHECK(contains(unknown.err, "--cells nothing: there is no buffer 'nothing'; there are: "));
  call.back() = "a:256";
  CHECK(contains(ptxgen_program(call).err, "--cells a:256: expected NAME or NAME:ROWSxCOLUMNS"));

  CHECK(contains(ptxgen_program({"coverage", ptx}).err, "--grid is missing, and '" + ptx));
  CHECK(
      contains(ptxgen_program({"coverage"}).err, "coverage expects a kernel, all, or a PTX file"));
  CHECK(contains(ptxgen_program({"coverage", "all", "-p", "n=1"}).err,
                 "coverage all takes no -p and no --cells"));
  CHECK(contains(ptxgen_program({"coverage", "vadd", "--cases", "-p", "n=1"}).err,
                 "coverage takes -p or --cases, not both"));
  const auto damaged = folder.path() + "/damaged.json";
  write_file(damaged, "{\"format\":\"other\"}");
  const auto refused = ptxgen_program({"coverage", "--merge", damaged});
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "format: expected 'ptxgen coverage 1'"));
}

TEST_CASE("coverage fails below what is required, and for a launch that goes wrong") {
  const auto low = ptxgen_program(gemv("256", "256", {"--require", "90"}));
  CHECK(low.exit_code == 1);
  CHECK(contains(low.err, "--require 90: "));
  CHECK(contains(low.err, " outcomes are executed, "));
  CHECK(ptxgen_program(gemv("256", "256", {"--require", "10"})).exit_code == 0);

  const TemporaryDirectory folder("/tmp");
  const std::string ptx = folder.path() + "/vadd.ptx";
  REQUIRE(ptxgen_program({"dump", "vadd", "-o", ptx}).exit_code == 0);
  const auto wrong =
      ptxgen_program({"coverage", ptx, "--grid", "2", "--block", "256", "--arg", "random:f32:500",
                      "random:f32:100", "print:f32:500", "u32:500"});
  CHECK(wrong.exit_code == 1);
  CHECK(contains(wrong.err, "error: vadd grid 2 block 256"));
  CHECK(contains(wrong.err, "[out-of-bounds]"));
}
