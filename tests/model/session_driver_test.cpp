// tests/model/session_driver_test.cpp - the driver calls of loading and decoding, and their faults
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model_bench.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/support/error.hpp"
#include "support/fault_table.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

using model::Session;
using model::SessionOptions;

ToyShape tiny_shape() {
  ToyShape shape;
  shape.layers = 1;
  shape.width = 32;
  shape.ffn = 32;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.vocabulary = 40;
  shape.window = 0;
  shape.embedding = "Q8_0";
  return shape;
}

Device device_of(const driver::Table& table) {
  const int ordinal = driver::emulated::add_gpu(*ptx::find_gpu("h200"));
  Settings settings = model_settings();
  settings.log = "off";  // failed clean-ups are logged
  return Device::open(table, ordinal, DeviceKind::Emulator, settings);
}

model::Model model_of(const Context& context, const Toy& toy) {
  return model::Model(context, gguf::File::view(as_bytes(toy.bytes), "toy.gguf"), model_options());
}

// How often each function was called.
std::map<std::string, int> calls_of(const FaultTable& table) {
  std::map<std::string, int> calls;
  for (const driver::FunctionInfo* one : table.rows()) ++calls[std::string(one->symbol)];
  return calls;
}

// Sizes of copies to the device, which the table of a test has no place for.
std::vector<std::size_t> copied_bytes;
driver::CUresult (*real_copy)(driver::CUdeviceptr, const void*, std::size_t, driver::CUstream);
driver::CUresult watched_copy(driver::CUdeviceptr to, const void* from, std::size_t bytes,
                              driver::CUstream stream) {
  copied_bytes.push_back(bytes);
  return real_copy(to, from, bytes, stream);
}

}  // namespace

TEST_CASE("a token is one copy, one graph launch, one copy back") {
  const Toy toy = make_toy(tiny_shape());
  driver::Table watched = driver::emulated::table();
  real_copy = watched.memcpy_to_device_async;
  watched.memcpy_to_device_async = &watched_copy;
  FaultTable table(watched);
  const Device device = device_of(table.table());
  const Context context(device);
  const model::Model model = model_of(context, toy);
  Session session(model);
  session.prefill(std::vector<std::uint32_t>{1, 2, 3});
  session.decode(session.greedy());

  copied_bytes.clear();
  table.fail(0, driver::CUDA_SUCCESS);
  constexpr int kTokens = 8;
  for (int i = 0; i < kTokens; ++i) session.decode(session.greedy());
  const std::map<std::string, int> calls = calls_of(table);
  std::map<std::string, int> work = calls;
  // Whose context is current is no work.
  for (const char* name : {"cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxPushCurrent_v2",
                           "cuCtxPopCurrent_v2", "cuStreamIsCapturing"}) {
    work.erase(name);
  }
  CHECK(work == std::map<std::string, int>{{"cuGraphLaunch", kTokens},
                                           {"cuMemcpyDtoHAsync_v2", kTokens},
                                           {"cuMemcpyHtoDAsync_v2", kTokens},
                                           {"cuStreamSynchronize", kTokens}});
  CHECK(copied_bytes == std::vector<std::size_t>(kTokens, 12));
  CHECK(table.leaked() != "");  // the model and the session are alive
}

TEST_CASE("eight launches a layer") {
  for (const auto architecture : {model::Architecture::llama, model::Architecture::qwen3}) {
    ToyShape shape = tiny_shape();
    shape.architecture = architecture;
    shape.layers = 2;
    const ModelBench bench(shape);
    const Session session(bench.model);
    std::vector<std::string> names;
    for (const model::Step& step : session.steps()) {
      if (step.layer == 1) names.emplace_back(step.name);
    }
    CHECK(names == std::vector<std::string>{"attn_norm", "qkv", "rope_kv", "attention",
                                            "attn_output", "ffn_norm", "ffn_gate_up", "ffn_down"});
    CHECK(session.steps().size() == 2 * 8 + 4);
  }
}

namespace {

struct Outcome {
  bool failed = false;
  std::string wrong;  // empty: as promised
};

// Everything that a program does with a model, on a table that may fail one of its calls.
void use(const Context& context, const Toy& toy, std::optional<model::Model>& model,
         std::optional<Session>& session) {
  model.emplace(model_of(context, toy));
  session.emplace(*model);
  session->prefill(std::vector<std::uint32_t>{1, 2, 3});
  session->decode(session->greedy());
  static_cast<void>(session->logits());
  session->restore(session->save());
  session->decode(5u);
}

// One error, no leak, and a session that goes on or says why not.
Outcome run_with_fault(const Toy& toy, FaultTable& table, std::uint64_t nth, driver::CUresult code,
                       const std::vector<float>& expected) {
  Outcome outcome;
  table.fail(0, driver::CUDA_SUCCESS);
  {
    const Device device = device_of(table.table());
    std::optional<Context> context;
    context.emplace(device);
    std::optional<model::Model> model;
    std::optional<Session> session;
    table.fail(nth, code);
    try {
      use(*context, toy, model, session);
    } catch (const Error& error) {
      outcome.failed = true;
      if (error.message.empty()) outcome.wrong = "an error without a message";
    } catch (const std::exception& error) {
      outcome.wrong = std::string("another exception: ") + error.what();
    }
    const bool fault = table.failed() != nullptr;
    table.fail(0, driver::CUDA_SUCCESS);
    if (fault && session && !context->poisoned()) {
      session->clear();
      session->prefill(std::vector<std::uint32_t>{1, 2, 3});
      session->decode(7u);
      const auto logits = session->logits();
      if (!std::equal(logits.begin(), logits.end(), expected.begin(), expected.end()))
        outcome.wrong = "the session gives other logits after the fault";
    } else if (session && context->poisoned()) {
      try {
        session->clear();
        session->decode(7u);
        outcome.wrong = "a session of a lost context goes on";
      } catch (const Error& error) {
        if (error.code != "context-lost") outcome.wrong = "the code is " + error.code;
      }
    }
    session.reset();
    model.reset();
    context.reset();
    if (const std::string left = table.leaked(); !left.empty()) outcome.wrong = "leaked: " + left;
  }
  return outcome;
}

}  // namespace

TEST_CASE("each driver call of loading and decoding may fail") {
  const Toy toy = make_toy(tiny_shape());
  FaultTable table(driver::emulated::table());
  std::vector<float> expected;
  std::uint64_t calls = 0;
  std::vector<std::string> rows;
  {
    const Device device = device_of(table.table());
    const Context context(device);
    std::optional<model::Model> model;
    std::optional<Session> session;
    table.fail(0, driver::CUDA_SUCCESS);
    use(context, toy, model, session);
    calls = table.calls();
    for (const driver::FunctionInfo* one : table.rows()) rows.emplace_back(one->symbol);
    session->clear();
    session->prefill(std::vector<std::uint32_t>{1, 2, 3});
    session->decode(7u);
    const auto logits = session->logits();
    expected.assign(logits.begin(), logits.end());
  }
  REQUIRE(calls > 300);
  // The first call of each function and step, and every few of the others.
  std::map<std::string, int> seen;
  int failed = 0;
  for (std::uint64_t nth = 1; nth <= calls; ++nth) {
    const bool early = ++seen[rows[nth - 1]] <= 2;
    if (!early && !test::takes(nth, 23, 97)) continue;
    constexpr driver::CUresult kCodes[] = {driver::CUDA_ERROR_INVALID_VALUE,
                                           driver::CUDA_ERROR_OUT_OF_MEMORY,
                                           driver::CUDA_ERROR_LAUNCH_FAILED};
    for (std::size_t i = 0; i < std::size(kCodes); ++i) {
      // Every day each call fails in one of the ways.
      if (!test::full() && i != nth % std::size(kCodes)) continue;
      const driver::CUresult code = kCodes[i];
      INFO("call " << nth << " of " << calls << ", " << rows[nth - 1] << ", code " << code);
      const Outcome outcome = run_with_fault(toy, table, nth, code, expected);
      CHECK(outcome.wrong == "");
      failed += outcome.failed ? 1 : 0;
    }
  }
  CHECK(failed > 20);
}

}  // namespace ptxgen::test
