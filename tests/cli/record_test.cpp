// tests/cli/record_test.cpp - ptxgen record and replay: another process, other threads, a changed
// bit
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "support/harness.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

TEST_CASE("what one process recorded another replays, and finds what was changed") {
  const TemporaryDirectory folder("/tmp");
  const std::string file = folder.path() + "/gemv.json";
  const auto recorded = ptxgen_program(
      {"record", "gemv", "-p", "k=256", "-p", "n=64", "--frames", "6", "--seed", "42", "-o", file});
  CHECK(recorded.exit_code == 0);
  CHECK(contains(recorded.err, "gemv: 6 frames, hash "));

  for (const char* const threads : {"1", "2"}) {
    const auto same = ptxgen_program({"replay", file, "--threads", threads, "--json"});
    CHECK(same.exit_code == 0);
    const auto report = nlohmann::json::parse(same.out);
    CHECK(report["same"] == true);
    CHECK(report["frames"] == 6);
    CHECK(report["hash"] == report["expected_hash"]);
    CHECK(report["first"].is_null());
  }

  const auto changed = ptxgen_program({"replay", file, "--flip", "3:x:31"});
  CHECK(changed.exit_code == 1);
  CHECK(contains(changed.out, "frame 3: "));
  CHECK(contains(changed.out, " of 256 bytes of the outputs differ, the first at byte "));
  CHECK(contains(changed.out, "not the same\n"));

  const auto unknown = ptxgen_program({"replay", file, "--flip", "3:w:31"});
  CHECK(unknown.exit_code == 2);
  CHECK(contains(unknown.err, "there is no buffer 'w'; there are: "));
  const auto listed = ptxgen_program({"replay", file, "--list"});
  CHECK(listed.exit_code == 2);
  CHECK(contains(listed.err, "--list is for recordings of programs; this one has launches of one"));
  const auto malformed = ptxgen_program({"replay", file, "--flip", "3"});
  CHECK(malformed.exit_code == 2);
  CHECK(contains(malformed.err, "--flip 3: expected FRAME:BUFFER:BIT, as in 3:x:17"));
}

TEST_CASE("a run that fails records itself where PTXGEN_REPRO says") {
  const TemporaryDirectory folder("/tmp");
  const std::string ptx = folder.path() + "/vadd.ptx";
  REQUIRE(ptxgen_program({"dump", "vadd", "-o", ptx}).exit_code == 0);
  const std::vector<std::string> call = {"run",
                                         ptx,
                                         "--grid",
                                         "4",
                                         "--block",
                                         "256",
                                         "--arg",
                                         "print:f32:1024",
                                         "random:f32:1024",
                                         "random:f32:512",
                                         "u32:1024"};
  const auto failed = with_environment({"PTXGEN_REPRO=" + folder.path()}, call);
  CHECK(failed.exit_code == 1);
  CHECK(contains(failed.err, "recorded: ptxgen replay " + folder.path() + "/run-vadd.json\n"));
  // The inputs of the run: without a seed the sequence of the argument's number.
  const auto buffers =
      nlohmann::json::parse(read_file(folder.path() + "/run-vadd.json"))["buffers"];
  CHECK(buffers[1]["content"]["spec"] == "random:f32:1024:2");
  CHECK(buffers[2]["content"]["spec"] == "random:f32:512:3");
  const auto again = ptxgen_program({"replay", folder.path() + "/run-vadd.json"});
  CHECK(again.exit_code == 0);
  CHECK(contains(again.out, "frame 0: findings: out-of-bounds\n"));

  const auto nowhere = with_environment({"PTXGEN_REPRO=" + folder.path() + "/no"}, call);
  CHECK(nowhere.exit_code == 1);
  CHECK(contains(nowhere.err, "not recorded (PTXGEN_REPRO=" + folder.path() + "/no): "));
}

TEST_CASE("record takes any PTX with the arguments of run") {
  const TemporaryDirectory folder("/tmp");
  const std::string ptx = folder.path() + "/vadd.ptx";
  const std::string file = folder.path() + "/vadd.json";
  REQUIRE(ptxgen_program({"dump", "vadd", "-o", ptx}).exit_code == 0);
  const auto recorded = ptxgen_program({"record", ptx, "--grid", "4", "--block", "256", "--arg",
                                        "print:f32:1024", "random:f32:1024", "random:f32:1024",
                                        "u32:1024", "--frames", "3", "-o", file});
  INFO(recorded.err);
  CHECK(recorded.exit_code == 0);
  CHECK(ptxgen_program({"replay", file}).exit_code == 0);

  const auto no_grid = ptxgen_program({"record", ptx});
  CHECK(no_grid.exit_code == 2);
  CHECK(contains(no_grid.err, "--grid is missing, and '" + ptx + "' is PTX"));
  const auto no_recording = ptxgen_program({"replay", ptx});
  CHECK(no_recording.exit_code != 0);
  CHECK(contains(no_recording.err, "this is not a recording: "));
}
