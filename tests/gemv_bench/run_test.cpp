// tests/gemv_bench/run_test.cpp - gemv-bench run: what it measures, checks, writes, refuses
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "gemv_bench/program.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

SubprocessResult bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"run", "--device", "emulator"});
  return gemv_bench_program(std::move(arguments));
}

json report(std::vector<std::string> arguments, int exit_code = 0) {
  arguments.push_back("--json");
  const SubprocessResult result = bench(std::move(arguments));
  INFO(result.err);
  REQUIRE(result.exit_code == exit_code);
  return json::parse(result.out);
}

const json* arm_of(const json& problem, const std::string& name) {
  for (const json& arm : problem.at("arms")) {
    if (arm.at("arm") == name) return &arm;
  }
  return nullptr;
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

void check_usage_error(const std::vector<std::string>& arguments, const std::string& message) {
  const SubprocessResult result = bench(arguments);
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(contains(result.err, "gemv-bench: " + message + "\n"));
}

}  // namespace

TEST_CASE("every arm is measured for every problem, and every launch is checked") {
  const json run = report({"--shapes", "512x256", "--dtype", "f32,bf16", "--n", "3", "--with",
                           "cublas,roofline,copy,coalesced,strided", "--seed", "5"});
  CHECK(run.at("right") == true);
  CHECK(run.at("samples") == 3);
  CHECK(run.at("machine").at("emulated") == true);
  CHECK(contains(run.at("note"), "they say nothing about a GPU"));
  REQUIRE(run.at("problems").size() == 4);
  std::vector<std::string> problems;
  for (const json& problem : run.at("problems")) {
    problems.push_back(problem.at("problem"));
    INFO(problems.back());
    const std::uint64_t chain = problem.at("chain");
    CHECK(chain == 4);
    CHECK(problem.at("matrices") == 2);
    const bool baselines = problem.at("layout") == "T" && problem.at("dtype") == "f32";
    CHECK(problem.at("arms").size() == (baselines ? 5u : 3u));
    for (const json& arm : problem.at("arms")) {
      INFO(arm.dump());
      CHECK(arm.at("right") == true);
      CHECK(arm.at("isolated").at("us").at("n") == 3);
      CHECK(arm.at("isolated").at("checked_launches") == 3);
      // Copies of a chain go to as many places as there are matrices.
      CHECK(arm.at("chained").at("checked_launches") == 3 * (arm.at("arm") == "copy" ? 2 : chain));
      CHECK(arm.at("chained").at("us").at("median") > 0);
      CHECK(arm.at("isolated").at("differing_bits") == 0);
      CHECK(!arm.contains("stream"));
    }
    const json* const planned = arm_of(problem, "planned");
    REQUIRE(planned != nullptr);
    CHECK(planned->at("prediction").at("chained_us") > 0);
    CHECK(planned->at("worst_error_over_bound") < 1);
    // What is missing is said, with the reason.
    REQUIRE(problem.at("missing").size() == 1);
    CHECK(problem.at("missing")[0].at("arm") == "cublas");
    CHECK(problem.at("missing")[0].at("why") == "cuBLAS needs a GPU, and this device is emulated");
  }
  CHECK(problems == std::vector<std::string>{"T f32 512x256", "R f32 256x512",
                                             "T bf16 512x256 x bf16 y bf16",
                                             "R bf16 256x512 x bf16 y bf16"});
  // Nothing is claimed from times of the emulator; counts hold anywhere.
  REQUIRE(run.at("verdicts").size() == 27);
  for (const json& verdict : run.at("verdicts")) {
    INFO(verdict.dump());
    const bool counted = verdict.at("id") == "E6" || verdict.at("id") == "H1a";
    CHECK(verdict.at("verdict") == (counted ? "pass" : "n/a"));
  }
  std::set<std::string> ceilings;
  for (const json& ceiling : run.at("ceilings")) ceilings.insert(ceiling.at("name"));
  CHECK(ceilings == std::set<std::string>{"read", "copy", "hot-read", "launch-stream",
                                          "launch-graph", "launch-graph-pdl"});
}

TEST_CASE("a program compiled by NVRTC takes part") {
  const json run = report({"--shapes", "512x96", "--n", "2", "--with", "nvrtc", "--no-ceilings",
                           "--lead", "256", "--dtype", "f32,f16"});
  bool there = false;
  for (const json& problem : run.at("problems")) {
    const json* const arm = arm_of(problem, "nvrtc");
    if (arm == nullptr) {
      CHECK(contains(problem.at("missing").dump(), "NVRTC was not found"));
      continue;
    }
    there = true;
    CHECK(arm->at("right") == true);
    CHECK(arm->at("chained").at("us").at("n") == 2);
  }
  if (!there) skip_part("NVRTC was not found: install the CUDA toolkit's libnvrtc");
  CHECK(run.at("right") == true);
}

TEST_CASE("rotation, chain and the metrics are as they were asked for") {
  const json run = report({"--shapes", "64x64", "--layout", "R", "--dtype", "f32", "--n", "2",
                           "--with", "none", "--rotation", "2^16", "--chain", "6", "--stream",
                           "--chained", "--no-ceilings", "--keep-samples"});
  REQUIRE(run.at("problems").size() == 1);
  const json& problem = run.at("problems")[0];
  // 16 KiB each: four matrices, and chains of whole rounds.
  CHECK(problem.at("matrices") == 4);
  CHECK(problem.at("rotation_bytes") == 65536);
  CHECK(problem.at("cold") == true);
  CHECK(problem.at("chain") == 8);
  const json* const planned = arm_of(problem, "planned");
  REQUIRE(planned != nullptr);
  CHECK(!planned->contains("isolated"));
  CHECK(planned->at("chained").at("samples_us").size() == 2);
  CHECK(planned->at("stream").at("checked_launches") == 16);
  CHECK(run.at("ceilings").empty());
}

TEST_CASE("the variants for the hypotheses about loads and blocks give right results") {
  const json run = report({"--shapes", "512x512", "--layout", "T", "--dtype", "f32", "--n", "1",
                           "--with", "variants", "--chained", "--no-ceilings", "--gpu", "rtx4090"});
  const json& problem = run.at("problems")[0];
  CHECK(problem.at("missing").empty());
  for (const char* const name :
       {"starved-4", "starved-16", "full-4", "full-16", "threads-256", "threads-1024"}) {
    INFO(name);
    const json* const arm = arm_of(problem, name);
    REQUIRE(arm != nullptr);
    CHECK(arm->at("right") == true);
  }
  CHECK(arm_of(problem, "threads-1024")->at("plan").at("threads") == 1024);
  CHECK(arm_of(problem, "starved-4")->at("plan").at("load_bytes") == 4);
}

TEST_CASE("a folder gets JSON, CSV and a page, whole or not at all") {
  const TemporaryDirectory folder;
  const std::string out = folder.file("results");
  const std::vector<std::string> call = {"--shapes", "64x32",  "--dtype", "f32",   "--n",
                                         "2",        "--with", "copy",    "--out", out};
  const SubprocessResult first = bench(call);
  INFO(first.err);
  REQUIRE(first.exit_code == 0);
  const json run = json::parse(read_file(out + "/gemv-bench.json"));
  const std::string csv = read_file(out + "/gemv-bench.csv");
  const std::string page = read_file(out + "/gemv-bench.md");
  CHECK(page == first.out);
  CHECK(std::distance(fs::directory_iterator(out), fs::directory_iterator()) == 3);
  // Two layouts, two arms, two metrics, and the names of the columns.
  CHECK(run.at("problems").size() == 2);
  CHECK(lines_of(csv) == 1 + 8);
  CHECK(csv.starts_with("device,driver,layout,dtype,k,n,who,arm,metric,samples,median_us,"));
  CHECK(contains(page, "# GEMV on "));
  CHECK(contains(page,
                 "A rehearsal: these times are the emulator's on this host; they say nothing "
                 "about a GPU."));
  CHECK(contains(page, "### T f32 64x32\n"));
  CHECK(contains(page, "| E1 | 4096 x 4096 f32 isolated: < 100 us | n/a | not measured |"));

  check_usage_error(call, "--out " + out +
                              "/gemv-bench.json: the file exists; choose another name, or replace "
                              "it with --overwrite");
  std::vector<std::string> again = call;
  again.push_back("--overwrite");
  CHECK(bench(again).exit_code == 0);
}

TEST_CASE("what was not measured for lack of time is named") {
  const SubprocessResult result =
      bench({"--shapes", "64x32", "--dtype", "f32", "--n", "1", "--with", "none", "--no-ceilings",
             "--seconds", "0", "--json"});
  // 0 is no limit.
  CHECK(json::parse(result.out).at("left_out").empty());
}

TEST_CASE("refusals say what is possible") {
  check_usage_error(
      {"--shapes", "64"},
      "--shapes 64: expects grid, decode, KxN (outputs N, both at least 1) or a model; "
      "there are llama-2-7b, llama-3-70b, llama-3-8b, llama-3.2-1b, mistral-7b, "
      "phi-3-mini, qwen2.5-0.5b, qwen2.5-1.5b, qwen2.5-7b, tinyllama-1.1b");
  check_usage_error({"--shapes", ","}, "--shapes: names nothing");
  check_usage_error({"--layout", "N"}, "--layout N: expects T or R, or both with a comma between");
  check_usage_error({"--with", "magma"},
                    "--with magma: there is no such thing to measure; there are: cublas, nvrtc, "
                    "roofline, copy, coalesced, strided, variants");
  check_usage_error({"--n", "0"}, "--n 0: expects a whole number in 1..1000000, or 2^E");
  check_usage_error({"--rotation", "2^41"},
                    "--rotation 2^41: expects a whole number in 0..1099511627776, or 2^E");
}
