// tests/cli/predict_test.cpp - ptxgen predict, as text and as JSON
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/attention/flash_predict.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

json predict_json(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "predict");
  arguments.emplace_back("--json");
  const auto result = ptxgen_program(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

std::string predict_refused(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "predict");
  const auto result = ptxgen_program(arguments);
  CHECK(result.exit_code == 2);
  return result.err.substr(0, result.err.find('\n'));
}

}  // namespace

TEST_CASE("predict says what the library predicts of a described kernel") {
  const json shown =
      predict_json({"rmsnorm", "-p", "rows=64", "-p", "columns=4096", "--gpu", "gh200"});
  const KernelDescription& kernel = kernel_named("rmsnorm");
  std::vector<std::uint64_t> values = kernel.default_values();
  values[parameter_index(kernel, "rows")] = 64;
  values[parameter_index(kernel, "columns")] = 4096;
  const ptx::Gpu& gpu = *ptx::find_gpu("gh200");
  const LaunchPrediction predicted = predict(launch_work(kernel, values, gpu), gpu);
  CHECK(shown.at("us") == predicted.us);
  CHECK(shown.at("bound_by") == predicted.bound_by);
  CHECK(shown.at("terms").at("dram") == predicted.terms.dram);
  CHECK(shown.at("terms").at("launch") == predicted.terms.launch);
  CHECK(shown.at("error_band").at("worst") == predicted.error.worst);
  CHECK(shown.at("gpu_measured") == true);
  CHECK(predict_json({"rmsnorm", "--gpu", "h200"}).at("gpu_measured") == false);
}

TEST_CASE("predict says what bounds attention on tensor cores, and how far to trust it") {
  const json shown = predict_json({"flash_attention_tensor_core", "-p", "queries=4096", "-p",
                                   "keys=4096", "-p", "head_size=128", "--gpu", "a100"});
  FlashAttentionTensorCore kernel;
  kernel.problem.queries = kernel.problem.keys = 4096;
  kernel.problem.head_size = 128;
  const FlashPrediction predicted = predict(kernel, *ptx::find_gpu("a100"));
  CHECK(shown.at("us") == predicted.us);
  CHECK(shown.at("bound_by") == predicted.bound_by);
  CHECK(shown.at("terms").at("exp") == predicted.terms.exp);
  CHECK(shown.at("error_band").at("worst") == 0.4);
  const json split = predict_json({"flash_attention_tensor_core", "-p", "queries=4", "-p",
                                   "keys=16384", "-p", "splits=8", "--gpu", "a100"});
  CHECK(split.at("terms").at("merge") > 0);
  const json by_wgmma = predict_json({"flash_attention_wgmma", "-p", "queries=4096", "-p",
                                      "keys=4096", "-p", "head_size=128", "--gpu", "h100"});
  CHECK(by_wgmma.at("us") > 0);
  CHECK(by_wgmma.at("bound_by") == "tensor");
  CHECK(predict_refused({"flash_attention", "--warm"}) ==
        "ptxgen: predict: attention is predicted cold, as a node of a graph; leave out --warm and "
        "--boundary");
}

TEST_CASE("predict gemv is the planner's first choice") {
  const json shown = predict_json({"gemv", "-p", "k=2560", "-p", "n=12288", "-p", "layout=R", "-p",
                                   "dtype=bf16", "--gpu", "gh200"});
  GemvProblem problem;
  problem.k = 2560;
  problem.n = 12288;
  problem.layout = GemvLayout::R;
  problem.weights = ElementType::bf16;
  const ptx::Gpu& gpu = *ptx::find_gpu("gh200");
  GemvPlan plan = plan_gemv(problem, gpu);
  plan.programmatic = false;
  CHECK(shown.at("us") == predict(plan, gpu).chained_us);
  CHECK(shown.at("terms").at("dram") == predict(plan, gpu).terms.dram);
  CHECK(shown.at("bound_by") == "dram");
  const json early = predict_json({"gemv", "--gpu", "gh200", "--boundary", "programmatic"});
  CHECK(early.at("unproved") != "");
  CHECK(early.at("us") < predict_json({"gemv", "--gpu", "gh200"}).at("us").get<double>());
}

TEST_CASE("predict of a stated stream") {
  const json shown = predict_json({"stream", "--gpu", "gh200", "--blocks", "132000", "--block",
                                   "1024", "--bytes-per-thread", "8", "--blocks-per-sm", "2"});
  // gpu-stream: 2756 GB/s with 16 KiB of each SM in flight.
  const double bytes = 132000.0 * 1024 * 8;
  CHECK(bytes / shown.at("us").get<double>() * 1e-3 == Approx(2756).epsilon(0.02));
  CHECK(shown.at("terms").at("dram") < shown.at("us").get<double>());
  const json more = predict_json({"stream", "--gpu", "gh200", "--blocks", "132", "--block", "256",
                                  "--bytes-per-thread", "65536", "--loads-in-flight", "8"});
  const json fewer = predict_json({"stream", "--gpu", "gh200", "--blocks", "132", "--block", "256",
                                   "--bytes-per-thread", "65536"});
  CHECK(more.at("us") < fewer.at("us").get<double>());
  CHECK(fewer.at("bound_by") == "latency");
}

TEST_CASE("predict as text says that it is one, with its error") {
  const auto result = ptxgen_program({"predict", "silu", "--gpu", "b200"});
  CHECK(result.exit_code == 0);
  INFO(result.out);
  CHECK(
      result.out.starts_with("silu n = 1048576 on NVIDIA B200 SXM, whose own rates were never "
                             "measured\n4194304 bytes read, 4194304 bytes written, 1024 blocks of "
                             "256 threads, 8 on an SM, 16 bytes of a thread in flight\n\n"
                             "predicted: "));
  CHECK(contains(result.out, " by the largest error seen (22 %; mean 10.5 %)\nbound by launch\n"));
  CHECK(contains(result.out, "\n   term  us alone\n"));
  CHECK(contains(result.out, "after a graph boundary, data cold; docs/predictions.md explains"));
}

TEST_CASE("predict refuses what it cannot predict") {
  CHECK(predict_refused({"nothing"})
            .starts_with("ptxgen: there is no kernel 'nothing'; there are: "));
  CHECK(predict_refused({"silu", "--boundary", "none"}) ==
        "ptxgen: --boundary none: write stream, graph or programmatic");
  CHECK(predict_refused({"stream"}) == "ptxgen: --blocks 0: write 1 to 2147483648");
  CHECK(predict_refused({"stream", "--blocks", "1", "--block", "2000"}) ==
        "ptxgen: --block 2000: write 1 to 1024");
  CHECK(predict_refused({"stream", "--blocks", "1", "-p", "n=1"}) ==
        "ptxgen: predict stream takes no -p");
  CHECK(predict_refused({"stream", "--blocks", "9", "--blocks-per-sm", "9", "--gpu", "h200"}) ==
        "ptxgen: --blocks-per-sm 9: write 1 to 8");
  CHECK(predict_refused({"gemv", "--warm"}) ==
        "ptxgen: --warm: a GEMV is predicted with cold weights; leave it out");
  CHECK(predict_refused({"gemv", "--gpu", "a100", "--boundary", "programmatic"}) ==
        "ptxgen: --boundary programmatic: NVIDIA A100 80GB SXM has no programmatic launch");
}
