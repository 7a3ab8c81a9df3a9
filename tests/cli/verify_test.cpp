// tests/cli/verify_test.cpp - ptxgen verify
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

TEST_CASE("verify runs one shape, and says how far from its bound the result is") {
  const auto result = ptxgen_program({"verify", "rmsnorm", "-p", "rows=3", "-p", "columns=100"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  CHECK(contains(result.out, "rows = 3, columns = 100"));
  CHECK(contains(result.out, " ok "));
  CHECK(contains(result.out, "1 of 1 right\n"));
  // The same for a kernel whose outputs depend on what they should.
  const auto more =
      ptxgen_program({"verify", "rmsnorm", "-p", "rows=3", "-p", "columns=100", "--dependence"});
  CHECK(more.exit_code == 0);
  CHECK(more.out == result.out);
}

TEST_CASE("verify all runs every case of every kernel") {
  const auto listed = ptxgen_program({"list", "--json"});
  REQUIRE(listed.exit_code == 0);
  // Every day its default values alone: the tests of the launcher have the cases.
  std::vector<std::string> arguments = {"verify", "all", "--offset", "1", "--json"};
  if (full()) arguments.emplace_back("--cases");
  const auto result = ptxgen_program(arguments);
  CHECK(result.exit_code == 0);
  const auto rows = nlohmann::json::parse(result.out);
  for (const auto& kernel : nlohmann::json::parse(listed.out)) {
    INFO(kernel["name"]);
    CHECK(std::count_if(rows.begin(), rows.end(), [&](const auto& row) {
            return row["kernel"] == kernel["name"];
          }) >= (full() ? 3 : 1));
  }
  for (const auto& row : rows) {
    INFO(row.dump());
    CHECK(row["ok"] == true);
    CHECK(row["compared"] > 0);
    CHECK(row["bytes_changed_outside"] == 0);
  }
}

TEST_CASE("verify and bench run kernels on the host") {
  const auto result =
      with_environment({"PTXGEN_HOST=auto"}, {"verify", "all", "--cases", "--device", "host"});
  CHECK(result.exit_code == 0);
  CHECK(result.out.starts_with("host ("));
  const auto scalar = with_environment(
      {"PTXGEN_HOST=scalar"}, {"verify", "gemv", "--device", "host", "-p", "k=100", "-p", "n=7"});
  CHECK(scalar.exit_code == 0);
  CHECK(scalar.out.starts_with("host (scalar)\n"));
  const auto timed =
      ptxgen_program({"bench", "vadd", "-p", "n=1000", "--device", "host", "--json"});
  CHECK(timed.exit_code == 0);
  const auto report = nlohmann::json::parse(timed.out);
  CHECK(report["device"] == "host");
  CHECK(report["emulated"] == false);
  CHECK(report["timing_source"] == "host");
  const auto wrong = ptxgen_program({"verify", "vadd", "--device", "host", "--gpu", "h200"});
  CHECK(wrong.exit_code == 2);
  CHECK(contains(wrong.err,
                 "--gpu needs the emulator, and --device host is the host; leave it out, "
                 "or use --device emulator"));
}

TEST_CASE("what verify cannot do is refused with what to write") {
  const auto all = ptxgen_program({"verify", "all", "-p", "n=3"});
  CHECK(all.exit_code == 2);
  CHECK(contains(all.err, "verify all takes no -p: each kernel has its own parameters"));
  const auto unknown = ptxgen_program({"verify", "nothing"});
  CHECK(unknown.exit_code == 2);
  CHECK(contains(unknown.err, "there is no kernel 'nothing'; there are: "));
  const auto odd = ptxgen_program({"verify", "rope", "-p", "head_size=63"});
  CHECK(odd.exit_code == 2);
  CHECK(contains(odd.err, "error: head_size is 63, not a multiple of 2 [bad-parameter]"));
}
