// tests/cli/plan_test.cpp - ptxgen plan and decode-estimate, as text and as JSON
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "program.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/kernels/model/rates.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

json json_of(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const auto result = ptxgen_program(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err == "");
  return json::parse(result.out);
}

// The first line of what a usage error says.
std::string refused(const std::vector<std::string>& arguments) {
  const auto result = ptxgen_program(arguments);
  CHECK(result.exit_code == 2);
  CHECK(result.out == "");
  return result.err.substr(0, result.err.find('\n'));
}

}  // namespace

TEST_CASE("plan shows the library's ranking with its predictions") {
  const json shown = json_of({"plan", "gemv", "-p", "k=4096", "-p", "n=11008", "-p", "layout=R",
                              "-p", "dtype=bf16", "--gpu", "h200", "--top", "7"});
  GemvProblem problem;
  problem.k = 4096;
  problem.n = 11008;
  problem.layout = GemvLayout::R;
  problem.weights = ElementType::bf16;
  const auto ranking = rank_gemv_plans(problem, *ptx::find_gpu("h200"));
  CHECK(shown.at("kernel") == "gemv");
  CHECK(shown.at("problem").at("text") == to_text(problem));
  CHECK(shown.at("gpu").at("name") == "h200");
  CHECK(shown.at("gpu").at("sms") == 132);
  CHECK(shown.at("roofline_us").at("datasheet") == Approx(4096.0 * 11008 * 2 / 4800e3));
  CHECK(shown.at("roofline_us").at("read") ==
        Approx(4096.0 * 11008 * 2 / (1e3 * rates_of(*ptx::find_gpu("h200")).read_gb_per_s)));
  CHECK(shown.at("considered") == ranking.size());
  REQUIRE(shown.at("candidates").size() == 7);
  for (std::size_t i = 0; i < 7; ++i) {
    const json& row = shown.at("candidates")[i];
    const GemvCandidate& candidate = ranking[i];
    CHECK(row.at("why") == candidate.why);
    CHECK(row.at("plan").at("text") == to_text(candidate.plan));
    CHECK(row.at("plan").at("blocks") == candidate.plan.blocks);
    CHECK(row.at("plan").at("unroll") == candidate.plan.unroll);
    const json& predicted = row.at("prediction");
    CHECK(predicted.at("isolated_us") == candidate.prediction.isolated_us);
    CHECK(predicted.at("chained_us") == candidate.prediction.chained_us);
    CHECK(predicted.at("bytes_in_flight_per_sm") == candidate.prediction.bytes_in_flight_per_sm);
    CHECK(predicted.at("tail_loss") == candidate.prediction.tail_loss);
    CHECK(predicted.at("registers") == candidate.prediction.registers);
    CHECK(predicted.at("workspace_bytes") == candidate.prediction.workspace_bytes);
    CHECK(predicted.at("weight_requests") == candidate.prediction.weight_requests);
  }
}

TEST_CASE("plan as text: three lines of heads, three for each candidate") {
  const auto result = ptxgen_program({"plan", "gemv", "--gpu", "rtx4090", "--top", "2"});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  const std::string head =
      "T f32 4096x4096 on NVIDIA GeForce RTX 4090, 128 SMs\n"
      "weights alone: 66.58 us at the 1008 GB/s of the datasheet, 68.14 us at the 985 GB/s that a "
      "reader gets\n"
      "predicted times; predictions of this kind are off by 15 % on average, 30 % at most "
      "(docs/predictions.md)\n\n"
      "   isolated us  chained us  GB/s  KiB in flight  waves  tail %  registers  workspace B\n";
  INFO(result.out);
  CHECK(result.out.substr(0, head.size()) == head);
  std::size_t lines = 0;
  for (const char c : result.out) lines += c == '\n' ? 1 : 0;
  CHECK(lines == 5 + 2 * 3);
  const auto best = rank_gemv_plans({}, *ptx::find_gpu("rtx4090")).front();
  CHECK(contains(result.out, "\n    " + to_text(best.plan) + "\n    " + best.why + "\n2"));
}

TEST_CASE("plan takes what gemv takes, and a target for a generic part") {
  const json shown = json_of({"plan", "gemv", "-p", "k=100", "-p", "n=60", "-p", "lda=64", "-p",
                              "dtype=f16", "--gpu", "sm_80", "--top", "1"});
  CHECK(shown.at("problem").at("lda") == 64);
  CHECK(shown.at("problem").at("dtype") == "f16");
  CHECK(shown.at("problem").at("layout") == "T");
  CHECK(shown.at("gpu").at("name") == "sm_80");
  // Without --gpu: the GPU that the emulated driver shows.
  CHECK(json_of({"plan", "gemv"}).at("gpu").at("name") == "h200");
  const auto other = with_environment({"PTXGEN_EMULATED_GPU=l40s"}, {"plan", "gemv", "--json"});
  CHECK(json::parse(other.out).at("gpu").at("name") == "l40s");
  const auto named = with_environment({"PTXGEN_DEVICE=emulator:a100"}, {"plan", "gemv", "--json"});
  CHECK(json::parse(named.out).at("gpu").at("name") == "a100");
}

TEST_CASE("plan ranks plans for weights in blocks") {
  const auto result = ptxgen_program({"plan", "gemv", "-p", "layout=R", "-p", "dtype=q4_k", "-p",
                                      "k=4096", "-p", "n=14336", "--gpu", "h200"});
  CHECK(result.exit_code == 0);
  // 14336 * 4096 / 256 blocks of 144 bytes.
  CHECK(
      result.out.starts_with("R q4_k 14336x4096 on NVIDIA H200 SXM, 132 SMs\n"
                             "weights alone: 6.88 us at the 4800 GB/s of the datasheet, "));
  const auto predicted = ptxgen_program({"predict", "gemv", "-p", "layout=R", "-p", "dtype=q6_k",
                                         "-p", "k=4096", "-p", "n=4096", "--gpu", "a100"});
  CHECK(predicted.exit_code == 0);
  CHECK(contains(predicted.out, "gemv R q6_k 4096x4096"));
}

TEST_CASE("plan refuses what it has no answer for, and says what it takes") {
  const auto plan = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"plan", "gemv"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return refused(arguments);
  };
  CHECK(refused({"plan", "nothing"})
            .starts_with("ptxgen: there is no kernel 'nothing'; there are: "));
  CHECK(plan({"-p", "k"}) == "ptxgen: -p expects NAME=VALUE, not 'k'");
  CHECK(plan({"-p", "=1"}) == "ptxgen: -p expects NAME=VALUE, not '=1'");
  CHECK(plan({"-p", "k=0"}) == "ptxgen: -p k=0: expects a whole number in 1..4294967295, or 2^E");
  CHECK(plan({"-p", "n=4294967296"}) ==
        "ptxgen: -p n=4294967296: expects a whole number in 1..4294967295, or 2^E");
  CHECK(plan({"-p", "k=12x"}) ==
        "ptxgen: -p k=12x: expects a whole number in 1..4294967295, or 2^E");
  CHECK(plan({"-p", "layout=r"}) == "ptxgen: -p layout=r: expects T or R");
  CHECK(plan({"-p", "dtype=f64"}) ==
        "ptxgen: -p dtype=f64: expects one of f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, "
        "q5_k, q6_k");
  CHECK(plan({"-p", "dtype=q4_k"}) ==
        "ptxgen: -p dtype=q4_k: only with -p layout=R: blocks are parts of rows");
  CHECK(plan({"-p", "dtype=q4_k", "-p", "layout=R", "-p", "k=4100"}) ==
        "ptxgen: -p dtype=q4_k: k and lda are multiples of 256, the values of a block");
  CHECK(plan({"-p", "lda=5000000000"}) ==
        "ptxgen: -p lda=5000000000: expects a whole number in 1..2147483648, or 2^E");
  CHECK(plan({"-p", "lda=4095"}) ==
        "ptxgen: -p lda=4095: a row has 4096 elements (n, layout T); expects at least that");
  CHECK(plan({"-p", "lda=99", "-p", "k=100", "-p", "layout=R"}) ==
        "ptxgen: -p lda=99: a row has 100 elements (k, layout R); expects at least that");
  CHECK(plan({"-p", "m=1"}) ==
        "ptxgen: gemv has no parameter 'm'; it has: k (1..4294967295), n (1..4294967295), layout "
        "(T or R), dtype (f32, f16, bf16, or with layout R q4_0 to q6_k), repacked (0 or 1), lda "
        "(1..2147483648)");
  CHECK(contains(plan({"--gpu", "h201"}), "ptxgen: --gpu h201: there is no GPU 'h201'; write t4"));
  CHECK(plan({"--gpu", "h200", "--device", "cuda:0"}) ==
        "ptxgen: --gpu needs the emulator, and --device cuda:0 is a GPU; leave it out, or use "
        "--device emulator");
}

TEST_CASE("decode-estimate --gemvs adds up the GEMVs of a token") {
  const json shown = json_of(
      {"decode-estimate", "--model", "llama-2-7b", "--dtype", "f16", "--gpu", "h200", "--gemvs"});
  CHECK(shown.at("model").at("name") == "llama-2-7b");
  CHECK(shown.at("model").at("card") == "meta-llama/Llama-2-7b-hf");
  CHECK(shown.at("dtype") == "f16");
  CHECK(shown.at("fused") == true);
  CHECK(shown.at("fits") == true);
  CHECK(shown.at("gemvs") == 129);
  CHECK(shown.at("bytes") == Approx(13.2e9).epsilon(0.005));
  double sum = 0;
  double bytes = 0;
  for (const json& row : shown.at("shapes")) {
    const json& problem = row.at("problem");
    CHECK(problem.at("layout") == "R");
    const double count = row.at("count");
    CHECK(row.at("total_us") ==
          Approx(row.at("prediction").at("chained_us").get<double>() * count));
    sum += row.at("total_us").get<double>();
    bytes += problem.at("k").get<double>() * problem.at("n").get<double>() * 2 * count;
  }
  CHECK(shown.at("shapes").size() == 5);
  CHECK(shown.at("bytes") == Approx(bytes));
  CHECK(shown.at("predicted_us") == Approx(sum));
  CHECK(shown.at("predicted_tokens_per_s") == Approx(1e6 / sum));
  const json& roofline = shown.at("roofline_tokens_per_s");
  CHECK(roofline.at("datasheet") == Approx(4800e9 / bytes));
  CHECK(roofline.at("read") ==
        Approx(1e9 * rates_of(*ptx::find_gpu("h200")).read_gb_per_s / bytes));
  CHECK(shown.at("predicted_tokens_per_s") < roofline.at("read"));
  CHECK(shown.at("predicted_tokens_per_s") > 0.9 * roofline.at("read").get<double>());

  const json apart = json_of({"decode-estimate", "--model", "llama-2-7b", "--gemvs", "--unfused"});
  CHECK(apart.at("fused") == false);
  CHECK(apart.at("gemvs") == 225);
  CHECK(apart.at("bytes") == shown.at("bytes"));
  CHECK(apart.at("predicted_us") > shown.at("predicted_us"));
}

TEST_CASE("decode-estimate --gemvs as text, and where the weights do not fit") {
  const auto result = ptxgen_program({"decode-estimate", "--model", "llama-3-70b", "--dtype",
                                      "bf16", "--gpu", "rtx4090", "--gemvs"});
  CHECK(result.exit_code == 0);
  INFO(result.out);
  const std::string head =
      "llama-3-70b bf16 on NVIDIA GeForce RTX 4090, the GEMVs of one token as one chain\n\n"
      " matrix      k       n  count  MB each  us each  GB/s  us in all\n"
      "    qkv   8192   10240     80    167.8  ";
  CHECK(result.out.substr(0, head.size()) == head);
  CHECK(contains(result.out, "\n139.00 GB of weights in 321 GEMVs, "));
  CHECK(contains(result.out, " tokens/s\npredictions of this kind are off by 15 % on average"));
  CHECK(contains(result.out, "the weights do not fit into the 24 GB of this GPU\n"));
  CHECK(
      contains(result.out, " tokens/s at the 985 GB/s that a reader gets, 7 at the 1008 GB/s of"));
}

TEST_CASE("decode-estimate lists its models to those who name another") {
  CHECK(refused({"decode-estimate", "--model", "llama"}) ==
        "ptxgen: --model llama: there is no such model in the table; there are: llama-2-7b, "
        "llama-3-70b, llama-3-8b, llama-3.2-1b, mistral-7b, phi-3-mini, qwen2.5-0.5b, "
        "qwen2.5-1.5b, qwen2.5-7b, tinyllama-1.1b");
  CHECK(refused({"decode-estimate", "--model", "llama-2-7b", "--dtype", "q4", "--gemvs"}) ==
        "ptxgen: --dtype q4: expects f32, f16 or bf16");
}

TEST_CASE("decode-estimate predicts each kernel of a token, and adds up") {
  const json shown = json_of({"decode-estimate", "--model", "llama-2-7b", "--dtype", "q4_k_m",
                              "--gpu", "h200", "--context", "128", "--kv-type", "q8_0"});
  CHECK(shown.at("model").at("name") == "llama-2-7b");
  CHECK(shown.at("context") == 128);
  CHECK(shown.at("kv_type") == "q8_0");
  CHECK(shown.at("boundary") == "graph");
  CHECK(shown.at("unproved") == "");
  double us = 0;
  int launches = 0;
  for (const json& row : shown.at("kernels")) {
    us += row.at("us").get<double>() * row.at("launches").get<int>();
    launches += row.at("launches").get<int>();
    CHECK(!row.at("bound_by").get<std::string>().empty());
    CHECK(row.at("error_band").at("worst") > 0);
  }
  CHECK(shown.at("launches") == launches);
  CHECK(shown.at("predicted_us") == Approx(us));
  CHECK(shown.at("predicted_tokens_per_s") == Approx(1e6 / us));
  CHECK(shown.at("bytes") ==
        shown.at("weight_bytes").get<double>() + shown.at("cache_bytes").get<double>());
  CHECK(shown.at("cache_bytes") == 2.0 * 32 * 4096 * 128 / 32 * 34);
  CHECK(shown.at("predicted_tokens_per_s") < shown.at("roofline_tokens_per_s").at("read"));
}

TEST_CASE("decode-estimate as text") {
  const auto result = ptxgen_program(
      {"decode-estimate", "--model", "llama-2-7b", "--dtype", "f32", "--gpu", "rtx4090"});
  CHECK(result.exit_code == 0);
  INFO(result.out);
  const std::string head =
      "llama-2-7b f32 on NVIDIA GeForce RTX 4090, one token with 512 positions in a cache of f16\n"
      "\n       step                  kernel  launches  MB each  us each  us in all  bound by\n"
      "  embedding               embedding         1    0.033  ";
  CHECK(result.out.substr(0, head.size()) == head);
  CHECK(contains(result.out, "\n     output                    gemv         1  524.432  "));
  CHECK(contains(result.out, "\npredicted: "));
  CHECK(contains(result.out, "\n260 launches, whose graph boundaries are "));
  CHECK(contains(result.out, "\nroofline: 26429.4 MB of weights and 268.4 MB of cache; "));
  CHECK(contains(result.out, "the weights do not fit into the 24 GB of this GPU\n"));
}

TEST_CASE("decode-estimate says what is wrong with its options") {
  const auto of = [](std::vector<std::string> options) {
    options.insert(options.begin(), {"decode-estimate"});
    return refused(options);
  };
  CHECK(of({}) ==
        "ptxgen: decode-estimate takes a GGUF file or --model NAME: write one of them, as in "
        "ptxgen decode-estimate --model llama-2-7b --dtype q4_k_m");
  CHECK(contains(of({"--model", "llama-2-7b", "--dtype", "q4"}),
                 "there are no matrices of q4; expects f32, f16, "));
  CHECK(of({"--model", "llama-2-7b", "--kv-type", "q4_0"}) ==
        "ptxgen: --kv-type q4_0: write f32, f16, bf16 or q8_0");
  CHECK(of({"--model", "llama-2-7b", "--boundary", "none"}) ==
        "ptxgen: --boundary none: write stream, graph or programmatic");
  CHECK(of({"--model", "llama-2-7b", "--boundary", "programmatic", "--gpu", "rtx4090"}) ==
        "ptxgen: --boundary programmatic: NVIDIA GeForce RTX 4090 has no programmatic launch");
  CHECK(of({"--model", "llama-2-7b", "--unfused"}) ==
        "ptxgen: --unfused is of --gemvs; add it, or leave --unfused out");
  CHECK(contains(of({"/nonexistent.gguf"}), "/nonexistent.gguf"));
}

TEST_CASE("plan says how a kernel that is no family would be launched") {
  const json shown = json_of({"plan", "rmsnorm", "-p", "rows=64", "--gpu", "h200"});
  const std::uint64_t bytes = (2 * 64 + 1) * 4096 * 4;
  CHECK(shown.at("parameters").at("rows") == 64);
  CHECK(shown.at("parameters").at("type") == "f32");
  CHECK(shown.at("grid") == json({1, 64, 1}));
  CHECK(shown.at("bytes") == bytes);
  CHECK(shown.at("roofline_us").at("datasheet") == Approx(bytes / 4800e3));
  const auto text = ptxgen_program({"plan", "rmsnorm", "-p", "rows=64", "--gpu", "h200"});
  CHECK(contains(text.out, "rmsnorm rows = 64, columns = 4096 on NVIDIA H200 SXM, 132 SMs\n"));
  CHECK(contains(text.out, "a grid of (1,64,1), 64 blocks of 256 threads"));
}
