// tests/model/prefill_test.cpp - prompts by GEMM kernels: numbers, launches, overflow, refusals
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "model_bench.hpp"
#include "ptxgen/driver/emulated.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/support/error.hpp"
#include "support/fault_table.hpp"
#include "support/harness.hpp"

namespace ptxgen::test {
namespace {

using Catch::Matchers::Contains;
using model::Session;
using model::SessionOptions;
using Tokens = std::vector<std::uint32_t>;

ToyShape prefill_shape(model::Architecture architecture) {
  ToyShape shape;
  shape.architecture = architecture;
  shape.layers = 2;
  shape.width = 64;
  shape.ffn = 96;
  shape.window = architecture == model::Architecture::gemma3 ? 9 : 0;
  shape.matrices = "Q4_1";
  shape.ffn_matrices = "Q8_0";
  shape.embedding = "Q5_0";
  return shape;
}

SessionOptions options_of(ElementType type, std::uint32_t rows) {
  SessionOptions options;
  options.prefill_type = type;
  options.prefill_rows = rows;
  return options;
}

std::vector<float> by_tokens(const model::Model& model, const Tokens& tokens,
                             ElementType cache = ElementType::f32) {
  SessionOptions options;
  options.cache = cache;
  Session session(model, options);
  std::vector<float> all;
  for (const std::uint32_t token : tokens) {
    session.decode(token);
    const auto logits = session.logits();
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

double nmse_of(const std::vector<float>& expected, const std::vector<float>& found) {
  return nmse(std::vector<double>(expected.begin(), expected.end()), found);
}

}  // namespace

TEST_CASE("a prompt by GEMM kernels gives the logits of its tokens, one by one") {
  for (const auto architecture : {model::Architecture::gemma3, model::Architecture::qwen2}) {
    // Every day one of them.
    if (!full() && architecture == model::Architecture::qwen2) continue;
    const ToyShape shape = prefill_shape(architecture);
    // One with the plans for the emulator, one with those of a GPU.
    model::ModelOptions loading = model_options();
    loading.gpu_plans = architecture == model::Architecture::qwen2;
    const ModelBench bench(shape, loading);
    // A chunk or two of GEMM kernels, and a rest for batched GEMVs.
    const Tokens tokens = toy_tokens(shape, full() ? 77 : 40, 5);
    Tokens with_next = tokens;
    with_next.push_back(7);
    std::vector<float> expected = by_tokens(bench.model, with_next);
    const auto end = expected.end() - shape.vocabulary;
    const std::vector<float> last(end, expected.end());
    expected.erase(end, expected.end());
    const auto error = [&](ElementType type) {
      Session session(bench.model, options_of(type, full() ? 35 : 36));
      const double all = nmse_of(expected, session.prefill_all(tokens));
      // Keys and values are those of the prompt: the next token sees them.
      session.decode(7);
      const auto found = session.logits();
      CHECK(nmse_of(last, {found.begin(), found.end()}) <= 1e-4);
      return all;
    };
    const double exact = error(ElementType::f32);
    const double f16 = error(ElementType::f16);
    const double bf16 = error(ElementType::bf16);
    WARN(to_string(architecture) << ": NMSE against single tokens: f32 " << exact << ", f16 " << f16
                                 << ", bf16 " << bf16);
    CHECK(exact <= 1e-9);
    CHECK(f16 <= 1e-5);
    CHECK(bf16 <= 1e-4);
    // They did run on tensor cores.
    CHECK(f16 > 100 * exact);
    CHECK(bf16 > 5 * f16);
    CHECK(bench.device.findings().empty());
  }
}

TEST_CASE("a prompt of few tokens is exact whatever the type of the prefill") {
  const ToyShape shape = prefill_shape(model::Architecture::llama);
  const ModelBench bench(shape);
  const Tokens tokens = toy_tokens(shape, model::kMinGemmRows - 1, 5);
  const auto logits = [&](ElementType type) {
    Session session(bench.model, options_of(type, 64));
    return session.prefill_all(tokens);
  };
  CHECK(logits(ElementType::f16) == logits(ElementType::f32));
}

namespace {

// The toy with all weights of a tensor replaced.
Toy with_weights(const ToyShape& shape, const std::string& tensor, double value) {
  Toy toy = make_toy(shape);
  const gguf::File file = gguf::File::view(as_bytes(toy.bytes), "toy.gguf");
  const gguf::Tensor& of = file.tensor(tensor);
  const std::vector<double> values(of.shape[0], value);
  const std::vector<std::byte> elements = to_elements(*of.type->element, values);
  REQUIRE(elements.size() == of.data.size());
  const auto* begin = reinterpret_cast<const std::byte*>(toy.bytes.data());
  std::memcpy(toy.bytes.data() + (of.data.data() - begin), elements.data(), elements.size());
  return toy;
}

}  // namespace

namespace {

/// The kernels that a context launches.
class Kernels {
 public:
  explicit Kernels(const Context& context) : context_(context) {
    REQUIRE(driver::emulated::observe_launches(context.handle(), report, this) ==
            driver::CUDA_SUCCESS);
  }
  ~Kernels() {
    static_cast<void>(driver::emulated::observe_launches(context_.handle(), nullptr, nullptr));
  }
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  [[nodiscard]] std::ptrdiff_t count(std::string_view name) const {
    return std::ranges::count(names_, name);
  }

 private:
  static void report(void* user, const driver::emulated::LaunchReport& launch) {
    static_cast<Kernels*>(user)->names_.emplace_back(launch.kernel);
  }
  const Context& context_;
  std::vector<std::string> names_;
};

}  // namespace

TEST_CASE("attention of a prompt's chunk is one kernel over a cache of any type") {
  ToyShape shape = prefill_shape(model::Architecture::gemma3);
  shape.layers = 1;
  shape.head_size = 32;
  const ModelBench bench(shape);
  const Tokens tokens = toy_tokens(shape, 38, 6);
  struct Case {
    ElementType prefill, cache;
    const char* kernel;
    double
        wanted;  ///< sums in another order are rounded to another value of the cache now and then
  };
  for (const Case& of :
       {Case{ElementType::f32, ElementType::q8_0, "flash_attention", 1e-7},
        Case{ElementType::f16, ElementType::f16, "flash_attention_tensor_core", 1e-5},
        Case{ElementType::f32, ElementType::bf16, "flash_attention", 1e-7},
        Case{ElementType::bf16, ElementType::bf16, "flash_attention_tensor_core", 1e-4},
        Case{ElementType::f16, ElementType::f32, "flash_attention", 1e-5}}) {
    // Every day two of them.
    const bool daily = of.cache == ElementType::q8_0 ||
                       (of.prefill == ElementType::f16 && of.cache == ElementType::f16);
    if (!full() && !daily) continue;
    INFO(to_string(of.prefill) << ", cache " << to_string(of.cache));
    const std::vector<float> expected = by_tokens(bench.model, tokens, of.cache);
    SessionOptions options = options_of(of.prefill, 64);
    options.cache = of.cache;
    options.sequences = 2;
    Session session(bench.model, options);
    // The second of two sequences, the second of two chunks: 5 tokens are before it.
    std::vector<float> found = session.prefill_all(std::span(tokens).first(5), 1);
    const Kernels kernels(bench.context);
    const std::vector<float> more = session.prefill_all(std::span(tokens).subspan(5), 1);
    found.insert(found.end(), more.begin(), more.end());
    CHECK(nmse_of(expected, found) <= of.wanted);
    CHECK(kernels.count(of.kernel) == shape.layers);
    CHECK(kernels.count("attention_decode") == 0);
  }
}

TEST_CASE("an activation that f16 does not have is an error of the prefill") {
  const ToyShape shape = prefill_shape(model::Architecture::llama);
  const Toy toy = with_weights(shape, "blk.1.ffn_norm.weight", 60000);
  const Device device = Device::open("emulator", model_settings());
  const Context context(device);
  model::ModelOptions loading = model_options();
  loading.gpu_plans = true;
  const model::Model model(context, gguf::File::view(as_bytes(toy.bytes), "toy.gguf"), loading);
  const Tokens tokens = toy_tokens(shape, 40, 5);
  Session session(model, options_of(ElementType::f16, 64));
  const Tokens before{1, 2, 3};
  session.prefill(before);
  CHECK(error_of([&] { session.prefill(tokens); }) ==
        "activation-overflow: positions 3 to 42: ffn_norm of layer 1 is infinite or not a number "
        "in f16, which has no magnitude above 65504; take prefill_type bf16 or prefill_type f32");
  // The sequence has the tokens that it had before, and no logits.
  CHECK(session.position() == before.size());
  CHECK_THAT(error_of([&] { (void)session.logits(); }), Contains("no-logits"));
  // bf16 has the range of f32.
  Session wide(model, options_of(ElementType::bf16, 64));
  CHECK_NOTHROW(wide.prefill(tokens));
}

TEST_CASE("a query that f16 does not have is an error of attention on tensor cores") {
  const ToyShape shape = prefill_shape(model::Architecture::gemma3);
  const Toy toy = with_weights(shape, "blk.1.attn_q_norm.weight", 60000);
  const Device device = Device::open("emulator", model_settings());
  const Context context(device);
  const model::Model model(context, gguf::File::view(as_bytes(toy.bytes), "toy.gguf"),
                           model_options());
  SessionOptions options = options_of(ElementType::f16, 64);
  options.cache = ElementType::f16;
  Session session(model, options);
  CHECK_THAT(error_of([&] { session.prefill(toy_tokens(shape, 40, 5)); }),
             Contains("positions 0 to 39: q_rope of layer 1 is infinite or not a number in f16"));
}

TEST_CASE("an infinity is an error of a prefill in bf16") {
  const ToyShape shape = prefill_shape(model::Architecture::llama);
  const Toy toy =
      with_weights(shape, "blk.0.attn_norm.weight", std::numeric_limits<double>::infinity());
  const Device device = Device::open("emulator", model_settings());
  const Context context(device);
  const model::Model model(context, gguf::File::view(as_bytes(toy.bytes), "toy.gguf"),
                           model_options());
  Session session(model, options_of(ElementType::bf16, 64));
  CHECK(error_of([&] { session.prefill(toy_tokens(shape, 40, 5)); }) ==
        "activation-overflow: positions 0 to 39: attn_norm of layer 0 is infinite or not a number "
        "in bf16, as it is in f32; take prefill_type f32");
}

namespace {

// Kernels launched by `work`.
int launches_of(FaultTable& table, const std::function<void()>& work) {
  table.fail(0, driver::CUDA_SUCCESS);
  work();
  return static_cast<int>(std::ranges::count_if(table.rows(), [](const driver::FunctionInfo* one) {
    return one->symbol == "cuLaunchKernel" || one->symbol == "cuLaunchKernelEx";
  }));
}

}  // namespace

TEST_CASE("a prompt of 512 tokens takes a twentieth of the launches of its tokens") {
  ToyShape shape = prefill_shape(model::Architecture::llama);
  shape.layers = 1;
  shape.width = 32;
  shape.ffn = 32;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.context = 512;
  const Toy toy = make_toy(shape);
  FaultTable table(driver::emulated::table());
  const int ordinal = driver::emulated::add_gpu(*ptx::find_gpu("h200"));
  const Device device =
      Device::open(table.table(), ordinal, DeviceKind::Emulator, model_settings());
  const Context context(device);
  const model::Model model(context, gguf::File::view(as_bytes(toy.bytes), "toy.gguf"),
                           model_options());
  const Tokens tokens = toy_tokens(shape, kSanitized ? 64 : 512, 5);
  for (const ElementType type : {ElementType::f32, ElementType::f16}) {
    SessionOptions options = options_of(type, 512);
    options.graph = false;  // whose launches are one call
    Session session(model, options);
    const int prompt = launches_of(table, [&] { session.prefill(tokens); });
    session.truncate(1);
    const int one = launches_of(table, [&] { session.decode(tokens[1]); });
    const int all = one * static_cast<int>(tokens.size());
    WARN(tokens.size() << " tokens, " << to_string(type) << ": " << prompt << " launches, " << all
                       << " one by one: " << all / prompt << " times fewer");
    CHECK(one == static_cast<int>(session.steps().size()));
    CHECK(20 * prompt <= all);
  }
}

TEST_CASE("what a prefill cannot be is refused by name") {
  const ToyShape shape = prefill_shape(model::Architecture::llama);
  const ModelBench bench(shape);
  const auto refusal = [&](const model::Model& model, ElementType type, std::uint32_t rows) {
    return error_of([&] { Session session(model, options_of(type, rows)); });
  };
  CHECK(refusal(bench.model, ElementType::q8_0, 64) ==
        "bad-option: prefill_type is q8_0; expects f32, f16 or bf16");
  CHECK(refusal(bench.model, ElementType::f16, 1025) ==
        "bad-option: prefill_rows is 1025; expects 1 to 1024");
  model::ModelOptions repacked = model_options();
  repacked.repack = true;
  const ModelBench other(shape, repacked);
  CHECK(
      refusal(other.model, ElementType::f16, 64) ==
      "bad-option: prefill_type is f16, but matrices of q4_1 are repacked; load the model without "
      "ModelOptions::repack, or take f32");
  CHECK(refusal(other.model, ElementType::f32, 64) == "no error");
  const Device host = Device::open("host", model_settings());
  const Context context(host);
  const model::Model on_host(context, gguf::File::view(as_bytes(bench.toy.bytes), "toy.gguf"),
                             model_options());
  CHECK(refusal(on_host, ElementType::bf16, 64) ==
        "bad-option: prefill_type is bf16, which the host does not multiply; expects f32");
}

}  // namespace ptxgen::test
