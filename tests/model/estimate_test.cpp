// tests/model/estimate_test.cpp - predicted tokens: the launches of a session, and their sums
#include "ptxgen/model/estimate.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <utility>

#include "model_bench.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::test {
namespace {

using model::config_of;
using model::DecodeEstimate;
using model::estimate_decode;
using model::EstimatedLaunches;
using model::EstimateOptions;

const ptx::Gpu& gpu(std::string_view name) { return *ptx::find_gpu(name); }
const DecoderModel& shape(std::string_view name) { return *find_decoder_model(name); }

using Launches = std::map<std::pair<std::string, std::string>, std::uint32_t>;

Launches launches_of(const DecodeEstimate& estimate) {
  Launches all;
  for (const EstimatedLaunches& row : estimate.rows) all[{row.step, row.kernel}] += row.launches;
  return all;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code + ": " + error.message;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("an estimate has the launches of a session's token, whatever the architecture") {
  for (const model::Architecture architecture :
       {model::Architecture::llama, model::Architecture::qwen2, model::Architecture::qwen3,
        model::Architecture::gemma3}) {
    ToyShape toy;
    toy.architecture = architecture;
    toy.layers = 7;
    toy.window = architecture == model::Architecture::gemma3 ? 5 : 0;
    INFO(to_string(architecture));
    const ModelBench bench(toy);
    const model::Session session(bench.model, {.context = 32});
    Launches expected;
    for (const model::Step& step : session.steps()) {
      // A GEMV's step names the kernel that serves it.
      const std::string kernel(step.kernel);
      ++expected[{std::string(step.name),
                  kernel.starts_with("gemv") && kernel != "gemv_group" ? "gemv" : kernel}];
    }
    const DecodeEstimate estimate = estimate_decode(
        gguf::File::view(as_bytes(bench.toy.bytes), "toy.gguf"), gpu("h200"), {.context = 32});
    CHECK(launches_of(estimate) == expected);
    CHECK(estimate.launches == session.steps().size());
  }
}

TEST_CASE("an estimate is the sum of its launches") {
  const DecodeEstimate estimate =
      estimate_decode(config_of(shape("llama-3.2-1b")), "bf16", gpu("h200"));
  double us = 0;
  double boundaries = 0;
  for (const EstimatedLaunches& row : estimate.rows) {
    INFO(row.step << " " << row.kernel << " " << row.shape);
    us += row.launches * row.us;
    boundaries += row.launches * row.boundary_us;
    CHECK(row.us > row.boundary_us);
    CHECK(row.boundary_us > 0.5);
    CHECK(row.error.worst > 0);
  }
  CHECK(estimate.us == Approx(us));
  CHECK(estimate.boundary_us == Approx(boundaries));
  CHECK(estimate.tokens_per_s() == Approx(1e6 / us));
  CHECK(estimate.tokens_per_s() < estimate.roofline(rates_of(gpu("h200")).read_gb_per_s));
  CHECK(estimate.error.mean < estimate.error.worst);
}

TEST_CASE("bytes of a token are those of weights and cache") {
  const auto gigabytes = [](std::string_view name, std::string_view type) {
    return static_cast<double>(
               estimate_decode(config_of(shape(name)), type, gpu("h200")).weight_bytes) /
           1e9;
  };
  CHECK(gigabytes("llama-2-7b", "f32") == Approx(26.4).epsilon(0.01));
  CHECK(gigabytes("llama-2-7b", "bf16") == Approx(13.2).epsilon(0.01));
  CHECK(gigabytes("llama-2-7b", "q8_0") == Approx(7.0).epsilon(0.01));
  CHECK(gigabytes("llama-2-7b", "q4_k_m") == Approx(4.08).epsilon(0.02));
  CHECK(gigabytes("llama-3.2-1b", "bf16") == Approx(2.47).epsilon(0.01));
  const auto cache = [](std::uint32_t context, ElementType type) {
    return estimate_decode(config_of(shape("llama-3.2-1b")), "bf16", gpu("h200"),
                           {.context = context, .cache = type})
        .cache_bytes;
  };
  CHECK(cache(100, ElementType::f16) == 2ull * 16 * 8 * 64 * 100 * 2);
  CHECK(cache(100, ElementType::q8_0) == 2ull * 16 * 8 * 64 * 100 / 32 * 34);
}

TEST_CASE("large matrices are bound by DRAM, small kernels by their launch") {
  const DecodeEstimate large = estimate_decode(config_of(shape("llama-2-7b")), "f32", gpu("h200"));
  for (const EstimatedLaunches& row : large.rows) {
    INFO(row.step << " " << row.kernel);
    if (row.step == "qkv" || row.step == "output") CHECK(row.bound_by == "dram");
    if (row.kernel == "rope_kv_write") CHECK(row.bound_by == "launch");
  }
  const auto us = [](Boundary boundary, std::uint32_t context) {
    return estimate_decode(config_of(shape("qwen2.5-0.5b")), "f16", gpu("h200"),
                           {.context = context, .boundary = boundary})
        .us;
  };
  CHECK(us(Boundary::Stream, 64) > us(Boundary::Graph, 64));
  CHECK(us(Boundary::Graph, 64) > us(Boundary::Programmatic, 64));
  CHECK(us(Boundary::Graph, 32768) > us(Boundary::Graph, 64));
}

TEST_CASE("what an estimate refuses") {
  const auto of = [](std::string_view name, std::string_view type, std::uint32_t context) {
    return refusal([&] {
      (void)estimate_decode(config_of(shape(name)), type, gpu("h200"), {.context = context});
    });
  };
  CHECK(of("llama-2-7b", "q4_k_s", 1) ==
        "arguments: there are no matrices of q4_k_s; expects f32, f16, bf16, q4_0, q4_1, q5_0, "
        "q5_1, q8_0, q4_k, q5_k, q6_k, or q4_k_m");
  CHECK(of("llama-2-7b", "f16", 0) ==
        "arguments: context is 0; a token sees 1 to 131072 positions of this model");
  CHECK(of("qwen2.5-0.5b", "q4_k", 1) ==
        "arguments: token_embd.weight has rows of 896 elements, which are no whole blocks of q4_k "
        "(256 values); take another type");
}

}  // namespace ptxgen::test
