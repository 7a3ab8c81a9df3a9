// tests/cli/gemv_test.cpp - ptxgen gemv: results, options, messages, exit codes
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

TEST_CASE("gemv generates, runs and compares") {
  auto result = ptxgen_program({"gemv", "-p", "k=300", "-p", "n=512", "--json", "--seed", "4"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err == "");
  json report = json::parse(result.out);
  for (const char* key :
       {"nmse", "max_error", "bound", "ok", "plan", "ptx_hash", "stages_us", "counters"}) {
    CHECK(report.contains(key));
  }
  CHECK(report.at("ok") == true);
  CHECK(report.at("nmse") > 0);
  CHECK(report.at("nmse") < 1e-12);
  CHECK(report.at("max_error") > 0);
  CHECK(report.at("worst_error_over_bound") <= 1);
  const json& plan = report.at("plan");
  CHECK(plan.at("kernel") == "gemv");
  CHECK(plan.at("implementation") == plan.at("plan").at("path"));
  CHECK(plan.at("reason").get<std::string>().substr(0, 6) == "auto: ");
  CHECK(plan.at("grid") == json({plan.at("plan").at("blocks"), 1, 1}));
  CHECK(plan.at("text") == plan.at("plan").at("text"));
  CHECK(plan.at("prediction").at("isolated_us") > 0);
  CHECK(plan.at("workspace_bytes") == plan.at("prediction").at("workspace_bytes"));
  CHECK(plan.at("layout") == "T");
  for (const char* stage : {"build", "passes", "gates", "print", "load", "rest", "inputs", "upload",
                            "run", "download", "reference", "compare"}) {
    CHECK(report.at("stages_us").at(stage).is_number());
  }
  CHECK(report.at("device") == "emulator");
  CHECK(report.at("gpu") == "h200");
  CHECK(report.at("module") == "compiled");
  const json& loads = report.at("counters").at("global_load");
  CHECK(loads.at("sectors") == loads.at("ideal_sectors"));
  // The same seed is the same job, another one is not.
  const json again = json::parse(
      ptxgen_program({"gemv", "-p", "k=300", "-p", "n=512", "--json", "--seed", "4"}).out);
  for (const char* key : {"nmse", "max_error", "bound", "ptx_hash", "counters"}) {
    CHECK(again.at(key) == report.at(key));
  }
  CHECK(json::parse(ptxgen_program({"gemv", "-p", "k=300", "-p", "n=512", "--json"}).out)
            .at("max_error") != report.at("max_error"));

  result = ptxgen_program({"gemv", "-p", "k=256", "-p", "n=256", "--impl", "strided", "--json"});
  REQUIRE(result.exit_code == 0);
  report = json::parse(result.out);
  CHECK(report.at("ok") == true);
  CHECK(report.at("plan").at("kernel") == "gemv_strided");
  // Of A, a warp's load fetches 32 sectors of which it uses 4 bytes each.
  CHECK(report.at("counters").at("global_load").at("sectors") == 256 * 8 * (32 + 4));
  CHECK(report.at("counters").at("global_load").at("ideal_sectors") == 256 * 8 * (4 + 4));

  result = ptxgen_program({"gemv", "-p", "k=64", "-p", "n=64", "-p", "layout=T", "-p", "dtype=f32",
                           "--impl", "coalesced", "--gpu", "h200"});
  REQUIRE(result.exit_code == 0);
  CHECK(contains(result.out, "y = A^T x           T f32 64x64, seed 0\n"));
  CHECK(contains(result.out, "kernel              gemv_coalesced ("));
  CHECK(contains(result.out, "NVIDIA H200"));
  CHECK(contains(result.out, "result              right: largest error "));
}

TEST_CASE("wrong calls of gemv say what is possible") {
  const auto refused = [](std::vector<std::string> arguments, std::string_view message) {
    arguments.insert(arguments.begin(), "gemv");
    const auto result = ptxgen_program(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out == "");
    CHECK(contains(result.err, message));
  };
  refused({"-p", "layout=X"}, "-p layout=X: expects T or R");
  refused({"-p", "dtype=bf16", "--x-type", "f16"},
          "--x-type f16: with weights of bf16 it may be f32 or bf16");
  refused({"--y-type", "bf16"}, "--y-type bf16: with weights of f32 it may be f32");
  refused({"--alpha", "two"}, "--alpha two: expects a number, as 0.5 or 1e-3");
  refused({"-p", "layout=R", "--impl", "coalesced", "--bias"},
          "the GEMV coalesced serves y = A^T x with layout T, f32 and tight rows only, not R f32 "
          "4096x4096 bias; choose auto or direct");
  refused({"-p", "dtype=int"}, "-p dtype=int: expects f32, f16 or bf16");
  refused({"-p", "k=0"}, "-p k=0: expects a whole number in 1..4294967295, or 2^E");
  refused({"-p", "m=1"}, "gemv has no parameter 'm'; it has: k (1..4294967295)");
  refused({"-p", "k"}, "-p expects NAME=VALUE, not 'k'");
  refused({"--impl", "cublas"}, "cuBLAS needs a GPU, and this device is emulated");
  refused({"--impl", "best"},
          "--impl best: there is no such GEMV; there are: auto, direct, async, bulk, coalesced, "
          "strided, cublas");
  refused({"--target", "sm_99"}, "there is no target 'sm_99'; there are: sm_75");
  refused({"--device", "tpu"},
          "--device tpu: there is no such device; expects auto, emulator, host or cuda:N");
  refused({"--gpu", "voodoo2"}, "--gpu voodoo2: ");
  refused({"-p", "k=4294967295", "-p", "n=4294967295"}, "A does not fit into the ");
}

TEST_CASE("gemv takes device, GPU and implementation from the environment where no option says") {
  const std::vector<std::string> call = {"gemv", "-p", "k=64", "-p", "n=32", "--json"};
  const auto report = [&](std::vector<std::string> variables, std::vector<std::string> more = {}) {
    auto arguments = call;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = with_environment(std::move(variables), arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return json::parse(result.out);
  };
  CHECK(report({"PTXGEN_GEMV=strided"}).at("plan").at("implementation") == "strided");
  CHECK(report({"PTXGEN_GEMV=strided"}, {"--impl", "coalesced"}).at("plan").at("implementation") ==
        "coalesced");
  CHECK(report({"PTXGEN_DEVICE=emulator:h100"}).at("gpu") == "h100");
  CHECK(report({"PTXGEN_DEVICE=emulator:h100"}, {"--gpu", "t4"}).at("gpu") == "t4");
  // A generic part, and a target that is not the GPU's own.
  CHECK(report({}, {"--gpu", "sm_80"}).at("plan").at("target") == "sm_80");
  const json other = report({}, {"--gpu", "h200", "--target", "sm_80"});
  CHECK(other.at("gpu") == "h200");
  CHECK(other.at("plan").at("target") == "sm_80");
  CHECK(other.at("ok") == true);
}

TEST_CASE("gemv serves every layout and type, with all that may be added") {
  const auto report = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"gemv", "-p", "k=200", "-p", "n=96", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = ptxgen_program(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return json::parse(result.out);
  };
  for (const char* layout : {"layout=T", "layout=R"}) {
    for (const char* type : {"f32", "f16", "bf16"}) {
      const json plain = report({"-p", layout, "-p", std::string("dtype=") + type});
      INFO(layout << " " << type);
      CHECK(plain.at("ok") == true);
      CHECK(plain.at("nmse") < 1e-12);
      const json all =
          report({"-p", layout, "-p", std::string("dtype=") + type, "-p", "lda=217", "--x-type",
                  type, "--y-type", type, "--bias", "--residual", "--alpha", "0.5", "--beta=-2"});
      CHECK(all.at("ok") == true);
      CHECK(all.at("worst_error_over_bound") <= 1);
      CHECK(all.at("plan").at("problem").at("lda") == 217);
    }
  }
  // A target that is not the GPU's own, with sums that are split.
  const json other = report({"-p", "k=20000", "--gpu", "h200", "--target", "sm_80"});
  CHECK(other.at("ok") == true);
  CHECK(other.at("plan").at("target") == "sm_80");
  CHECK(other.at("plan").at("reason") == "built for --target");
  CHECK(other.at("plan").at("workspace_bytes") > 0);
}

TEST_CASE("a second gemv takes its module from the cache folder") {
  const TemporaryDirectory folder;
  const std::vector<std::string> variables = {"PTXGEN_CACHE=on",
                                              "PTXGEN_CACHE_DIR=" + folder.file("cache")};
  const std::vector<std::string> call = {"gemv", "-p", "k=64", "-p", "n=32", "--json"};
  for (const char* origin : {"compiled", "disk"}) {
    const auto result = with_environment(variables, call);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    const json report = json::parse(result.out);
    CHECK(report.at("module") == origin);
    CHECK(report.at("ok") == true);
  }
}
