// tests/gemv_bench/tune_test.cpp - gemv-bench tune and decode; ptxgen forwards to them
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "gemv_bench/program.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

using nlohmann::json;

SubprocessResult tune(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"tune", "--n", "1", "--candidates", "2", "--dtype", "f32"});
  return gemv_bench_program(std::move(arguments));
}

void check_usage_error(const SubprocessResult& result, const std::string& message) {
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(contains(result.err, "gemv-bench: " + message + "\n"));
}

}  // namespace

TEST_CASE("the emulator is nothing to tune for, unless it is a rehearsal") {
  const std::string why =
      "tune chooses by time, and the emulator's times say nothing about a GPU; run it on a machine "
      "with a GPU, or see that it works with --device emulator --rehearse";
  check_usage_error(tune({"--device", "emulator"}), why);
  check_usage_error(tune({"--gpu", "h200"}), why);
  // The device must be said, too: PTXGEN_DEVICE alone could be left from something else.
  check_usage_error(tune({"--rehearse"}), why);
  check_usage_error(tune({"--device", "emulator", "--rehearse", "--xy", "f64"}),
                    "--xy f64: expects same or f32, or both with a comma between");
  const SubprocessResult off = with_environment(
      {"PTXGEN_TUNED=off"}, {"tune", "--device", "emulator", "--rehearse", "--shapes", "8x8"});
  check_usage_error(off,
                    "there is no folder for measured plans: PTXGEN_TUNED is off, or no cache "
                    "folder is known; say --folder");
}

TEST_CASE("a rehearsal leaves a file of records, which later ones add to") {
  const TemporaryDirectory folder;
  const auto run = [&](const std::string& shapes) {
    const SubprocessResult result = tune({"--device", "emulator", "--gpu", "h200", "--rehearse",
                                          "--shapes", shapes, "--folder", folder.path(), "--json"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return json::parse(result.out);
  };
  const json first = run("64x48");
  CHECK(first.at("emulated") == true);
  CHECK(first.at("tuned") == 2);
  REQUIRE(first.at("records").size() == 2);
  for (const json& record : first.at("records")) {
    INFO(record.dump());
    CHECK(record.at("metric") == "chained");
    CHECK(record.at("median_us") > 0);
    CHECK(record.at("place").at("sm") == 90);
    CHECK(record.at("candidates").size() <= 2);
    CHECK(record.at("plan").at("blocks") >= 1);
  }
  const json second = run("64x48,32x80");
  CHECK(second.at("file") == first.at("file"));
  const json file = json::parse(read_file(first.at("file")));
  CHECK(file.at("format") == "ptxgen tuned plans 1");
  // The same two again, and two new ones.
  CHECK(file.at("records").size() == 4);

  // Who is told of the folder uses the plan.
  const SubprocessResult gemv = with_environment(
      {"PTXGEN_TUNED=" + folder.path()},
      {"gemv", "-p", "k=64", "-p", "n=48", "--device", "emulator", "--gpu", "h200", "--json"});
  INFO(gemv.err);
  REQUIRE(gemv.exit_code == 0);
  CHECK(contains(json::parse(gemv.out).at("plan").at("reason"), "auto: tuned on "));
}

TEST_CASE("a chain is measured on a GPU only") {
  check_usage_error(
      gemv_bench_program({"decode", "--model", "qwen2.5-0.5b", "--device", "emulator"}),
      "--device emulator is the emulator here, whose times say nothing about a GPU; measure on a "
      "machine with one, or predict with ptxgen decode-estimate");
}

TEST_CASE("ptxgen hands these calls to gemv-bench beside it") {
  check_usage_error(
      ptxgen_program({"gemv-bench", "--shapes", "64"}),
      "--shapes 64: expects grid, decode, KxN (outputs N, both at least 1) or a model; "
      "there are llama-2-7b, llama-3-70b, llama-3-8b, llama-3.2-1b, mistral-7b, "
      "phi-3-mini, qwen2.5-0.5b, qwen2.5-1.5b, qwen2.5-7b, tinyllama-1.1b");
  check_usage_error(ptxgen_program({"tune", "--device", "emulator", "--rehearse", "--xy", "f64"}),
                    "--xy f64: expects same or f32, or both with a comma between");
  check_usage_error(
      ptxgen_program(
          {"decode-estimate", "--model", "qwen2.5-0.5b", "--measure", "--device", "emulator"}),
      "--device emulator is the emulator here, whose times say nothing about a GPU; measure on a "
      "machine with one, or predict with ptxgen decode-estimate");
}

TEST_CASE("without gemv-bench beside it ptxgen says where to look") {
  const TemporaryDirectory folder;
  const std::string alone = folder.file("ptxgen");
  std::filesystem::copy_file(PTXGEN_PROGRAM, alone);
  const SubprocessResult result = run_program({alone, "tune", "--json"});
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(contains(result.err,
                 "ptxgen: GEMV is measured by the program gemv-bench, which was not started from "
                 "the folder of ptxgen ("));
  CHECK(contains(result.err, "/gemv-bench: No such file or directory); run gemv-bench tune\n"));
}
