// tests/cli/profile_test.cpp - --trace, --flame and ptxgen playbook
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "support/trace_summary.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using Json = nlohmann::json;

namespace {

// The call of `ptxgen run` for a vadd of 1024 elements in 4 blocks.
std::vector<std::string> vadd_run(const std::string& ptx) {
  return {"run",   ptx,         "--grid",          "4",       "--block",
          "256",   "--arg",     "random:f32:1024", "--arg",   "random:f32:1024",
          "--arg", "zero:4096", "--arg",           "u32:1024"};
}

std::vector<std::string> with(std::vector<std::string> call, std::vector<std::string> more) {
  call.insert(call.end(), more.begin(), more.end());
  return call;
}

}  // namespace

TEST_CASE("run --trace has its steps, the kernel, and counters that agree with --profile") {
  const TemporaryDirectory folder;
  const std::string ptx = folder.file("vadd.ptx"), trace = folder.file("trace.json");
  REQUIRE(ptxgen_program({"dump", "vadd", "-o", ptx}).exit_code == 0);
  const auto result =
      ptxgen_program(with(vadd_run(ptx), {"--json", "--profile", "--trace", trace}));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const Json document = Json::parse(result.out);
  const TraceSummary summary = summarize_trace(read_file(trace));
  CHECK(summary.overlapping == 0);
  for (const char* const path :
       {"run", "run/load", "run/arguments", "run/launch", "run/launch/vadd"}) {
    INFO(path);
    CHECK(summary.span(path) != nullptr);
  }
  const CounterTrack* const kernel = summary.track("vadd");
  REQUIRE(kernel != nullptr);
  CHECK(document.at("counters").at("warp_instructions") == kernel->value("warp_instructions"));
  std::size_t lines = 0;
  for (const Json& line : document.at("lines")) {
    if (line.at("executions") == 0) continue;
    const std::string name = "vadd:" + std::to_string(line.at("line").get<int>()) + " " +
                             line.at("opcode").get<std::string>();
    INFO(name);
    const CounterTrack* const track = summary.track(name);
    REQUIRE(track != nullptr);
    CHECK(line.at("executions") == track->value("executions"));
    ++lines;
  }
  CHECK(lines > 10);
  CHECK(summary.counters.size() == lines + 1);
}

TEST_CASE("the summary of --flame prints the tree and the hottest lines, and leaves no file") {
  const TemporaryDirectory folder;
  const std::string ptx = folder.file("vadd.ptx");
  REQUIRE(ptxgen_program({"dump", "vadd", "-o", ptx}).exit_code == 0);
  const auto run = ptxgen_program(with(vadd_run(ptx), {"--flame"}));
  CHECK(run.exit_code == 0);
  CHECK(contains(run.err, "  ####################  run\n"));
  CHECK(contains(run.err, "    launch\n"));
  CHECK(contains(run.err, "executions  PTX line, of "));
  CHECK(contains(run.err, "  vadd:"));
  CHECK_FALSE(contains(run.out, "PTX line"));

  const std::string trace = folder.file("bench.json");
  const auto bench = ptxgen_program({"bench", "vadd", "-p", "n=1000", "--flame", "--trace", trace});
  INFO(bench.err);
  CHECK(bench.exit_code == 0);
  CHECK(contains(bench.err, "  bench\n"));
  CHECK(contains(bench.err, "sectors "));
  const TraceSummary summary = summarize_trace(read_file(trace));
  CHECK(summary.span("bench/launch") != nullptr);
  CHECK(summary.span("vadd")->category == "emulator");
  CHECK(summary.track("vadd") != nullptr);
  const auto refused = ptxgen_program({"bench", "vadd", "--trace", folder.file("no/trace.json")});
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, "--trace: "));
}

TEST_CASE("a trace of a launch that faults is complete") {
  const TemporaryDirectory folder;
  const std::string trace = folder.file("trace.json");
  const auto result =
      with_environment({"PTXGEN_TRACE=" + trace, "PTXGEN_LOG=off"}, {"verify", "vadd"});
  CHECK(result.exit_code == 0);
  CHECK(summarize_trace(read_file(trace)).track("vadd") != nullptr);
}

TEST_CASE("playbook validates, draws and runs the library's own") {
  const TemporaryDirectory folder;
  const auto validated = ptxgen_program({"playbook"});
  CHECK(validated.exit_code == 0);
  CHECK(contains(validated.out, "launcher.yaml:11: note: state 'uninitialized' does not handle: "));
  CHECK_FALSE(contains(validated.out, "error: "));
  const std::string dot = folder.file("m.dot"), svg = folder.file("m.svg");
  const auto drawn = ptxgen_program({"playbook", "--dot", dot, "--svg", svg});
  CHECK(drawn.exit_code == 0);
  CHECK(drawn.out.empty());
  CHECK(read_file(dot).starts_with("digraph \"gemv_launcher\" {"));
  CHECK(read_file(svg).starts_with("<svg xmlns="));
  const auto run = ptxgen_program({"playbook", "--run", "--json"});
  CHECK(run.exit_code == 0);
  const Json document = Json::parse(run.out);
  CHECK(document.at("run").at("ok") == true);
  CHECK(document.at("run").at("driven").size() == 10);
  CHECK(document.at("mutation") == nullptr);
}

TEST_CASE("playbook of a file: what it prints is read again, and mistakes have their exit code") {
  const TemporaryDirectory folder;
  const std::string file = folder.file("own.yaml");
  REQUIRE(ptxgen_program({"playbook", "--print", "-o", file}).exit_code == 0);
  std::string text = read_file(file);
  const auto ends = text.find("ends: result_ready");
  REQUIRE(ends != std::string::npos);
  write_file(file, text.replace(ends, 18, "ends: initialized "));
  const auto failed = ptxgen_program({"playbook", file, "--mutate"});
  CHECK(failed.exit_code == 1);
  CHECK(contains(failed.out,
                 "  FAILED straight\n         run 'straight': it ends in state "
                 "'result_ready', not in 'initialized'\n"));
  CHECK(contains(failed.out, "no mutants: the playbook itself fails: "));
  write_file(file, "version: \"1\"\nmachine: []\n");
  const auto refused = ptxgen_program({"playbook", file});
  CHECK(refused.exit_code == 2);
  CHECK(contains(refused.err, file + ":2:10: error: the machine: a map with the keys "));
}
