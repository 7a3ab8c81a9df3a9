// tests/cli/gguf_test.cpp - ptxgen gguf: text, JSON, refusals, time
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "model_file.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

GgufWriter small_model() {
  GgufWriter writer;
  std::vector<WrittenValue> tokens;
  for (int i = 0; i < 1000; ++i) tokens.push_back(written("token " + std::to_string(i)));
  writer.key("general.architecture", written("llama"))
      .key("llama.block_count", written(ValueType::u32, 2))
      .key("llama.attention.layer_norm_rms_epsilon", written(1e-5F))
      .key("test.offset", written(ValueType::i64, ~std::uint64_t{0}))
      .key("test.flag", written(ValueType::boolean, 1))
      .key("test.template", written("{{ bos }}\n\x1b[31m" + std::string(100, 'x')))
      .key("test.pairs", written_array(ValueType::array,
                                       {written_array(ValueType::u8, {written(ValueType::u8, 1)}),
                                        written_array(ValueType::f64, {})}))
      .key("tokenizer.ggml.tokens", written_array(ValueType::string, tokens));
  writer.tensor("token_embd.weight", {64, 3}, "Q4_0")
      .tensor("output.weight", {64, 100}, "Q4_0")
      .tensor("output_norm.weight", {64}, "F32");
  return writer;
}

}  // namespace

TEST_CASE("gguf lists metadata, tensors and totals") {
  const GgufFile model(small_model());
  const auto result = ptxgen_program({"gguf", model.path});
  CHECK(result.exit_code == 0);
  CHECK(result.err == "");
  const std::string bytes = std::to_string(std::filesystem::file_size(model.path));
  CHECK(
      result.out.starts_with("GGUF version 3, " + bytes + " bytes: 8 keys, 3 tensors, data from "));
  CHECK(contains(result.out, R"(
general.architecture                    string        "llama"
llama.block_count                       u32           2
llama.attention.layer_norm_rms_epsilon  f32           1e-05
test.offset                             i64           -1
test.flag                               bool          true
test.template                           string        "{{ bos }}\n\x1b[31mxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
test.pairs                              array[2]      [[1], []]
tokenizer.ggml.tokens                   string[1000]  ["token 0", "token 1", "token 2", "token 3", "token 4", ...]

tensor              type  dims      bytes  offset
token_embd.weight   Q4_0  64 x 3      108       0
output.weight       Q4_0  64 x 100   3600     128
output_norm.weight  F32   64          256    3744

type  tensors  values  bytes
Q4_0        2    6592   3708
F32         1      64    256
all         3    6656   3964
)"));
}

TEST_CASE("gguf --json has every element") {
  const GgufFile model(small_model());
  const auto result = ptxgen_program({"gguf", "--json", model.path});
  REQUIRE(result.exit_code == 0);
  CHECK(result.err == "");
  const json document = json::parse(result.out);
  CHECK(document.at("version") == 3);
  CHECK(document.at("alignment") == 32);
  CHECK(document.at("bytes") == std::filesystem::file_size(model.path));
  CHECK(document.at("data_offset").get<std::uint64_t>() % 32 == 0);
  const json& metadata = document.at("metadata");
  CHECK(metadata.size() == 8);
  CHECK(metadata.at("general.architecture") == "llama");
  CHECK(metadata.at("llama.block_count") == 2);
  CHECK(metadata.at("llama.attention.layer_norm_rms_epsilon") == 1e-5);
  CHECK(metadata.at("test.offset") == -1);
  CHECK(metadata.at("test.flag") == true);
  CHECK(metadata.at("test.template") == "{{ bos }}\n\x1b[31m" + std::string(100, 'x'));
  CHECK(metadata.at("test.pairs") == json::parse("[[1],[]]"));
  CHECK(metadata.at("tokenizer.ggml.tokens").size() == 1000);
  CHECK(metadata.at("tokenizer.ggml.tokens")[999] == "token 999");
  CHECK(document.at("types").at("tokenizer.ggml.tokens") == "string[1000]");
  CHECK(document.at("types").at("test.offset") == "i64");
  CHECK(document.at("tensors")[1] == json::parse(R"({"name": "output.weight", "type": "Q4_0",
      "dims": [64, 100], "offset": 128, "bytes": 3600, "values": 6400})"));
  CHECK(document.at("tensors").size() == 3);
  CHECK(document.at("totals") == json::parse(R"([
      {"type": "Q4_0", "tensors": 2, "values": 6592, "bytes": 3708},
      {"type": "F32", "tensors": 1, "values": 64, "bytes": 256}])"));
}

TEST_CASE("gguf --json shows floats that JSON has no numbers for as text") {
  GgufWriter writer;
  const float infinity = std::numeric_limits<float>::infinity();
  writer.key("a", written(infinity)).key("b", written(-double{infinity}));
  writer.key("c", written(std::numeric_limits<float>::quiet_NaN())).key("\xff", written("\xff"));
  const GgufFile model(writer);
  const auto result = ptxgen_program({"gguf", "--json", model.path});
  REQUIRE(result.exit_code == 0);
  const json metadata = json::parse(result.out).at("metadata");
  CHECK(metadata.at("a") == "inf");
  CHECK(metadata.at("b") == "-inf");
  CHECK(metadata.at("c") == "nan");
  CHECK(metadata.at("\xef\xbf\xbd") == "\xef\xbf\xbd");
  CHECK(contains(ptxgen_program({"gguf", model.path}).out, "\n\\xff  string  \"\\xff\"\n"));
}

TEST_CASE("gguf reads standard input and writes files") {
  const GgufFile model(small_model());
  const std::string expected = ptxgen_program({"gguf", model.path}).out;
  const auto piped =
      run_program({"/bin/sh", "-c", std::string(PTXGEN_PROGRAM) + " gguf - < " + model.path});
  CHECK(piped.exit_code == 0);
  CHECK(piped.out == expected);
  const std::string product = model.folder.file("list.txt");
  const auto written = ptxgen_program({"gguf", model.path, "-o", product});
  CHECK(written.exit_code == 0);
  CHECK(written.out == "");
  CHECK(read_file(product) == expected);
}

TEST_CASE("gguf of a file without keys and tensors") {
  const GgufFile model({});
  CHECK(ptxgen_program({"gguf", model.path}).out ==
        "GGUF version 3, 24 bytes: 0 keys, 0 tensors, data from byte 32, alignment 32\n");
  const json document = json::parse(ptxgen_program({"gguf", "--json", model.path}).out);
  CHECK(document.at("metadata") == json::object());
  CHECK(document.at("tensors") == json::array());
}

TEST_CASE("gguf refuses with exit code 2, nothing on standard output, the file and the place") {
  GgufWriter bad = small_model();
  bad.tensors[1].offset = 96;
  const GgufFile model(bad);
  for (const bool as_json : {false, true}) {
    std::vector<std::string> call = {"gguf", model.path};
    if (as_json) call.push_back("--json");
    const auto result = ptxgen_program(call);
    CHECK(result.exit_code == 2);
    CHECK(result.out == "");
    CHECK(contains(result.err, model.path + ": error: tensor 'output.weight' at byte "));
    CHECK(contains(result.err,
                   ": its data at offset 96 begins within 'token_embd.weight', which has 108 bytes "
                   "at offset 0 [overlap]"));
  }
  const auto missing = ptxgen_program({"gguf", model.folder.file("none.gguf")});
  CHECK(missing.exit_code == 2);
  CHECK(contains(missing.err, "cannot map the file: No such file or directory [read]"));
  const auto no_file = ptxgen_program({"gguf"});
  CHECK(no_file.exit_code == 2);
  CHECK(contains(no_file.err, "file is required"));
}

TEST_CASE("a file of 250 MB with a vocabulary of 262144 tokens is listed within 50 ms") {
  GgufWriter writer;
  constexpr std::size_t kTokens = 262144;
  std::vector<WrittenValue> tokens, scores;
  for (std::size_t i = 0; i < kTokens; ++i) {
    tokens.push_back(written("\xe2\x96\x81token" + std::to_string(i)));
    scores.push_back(written(-static_cast<float>(i)));
  }
  writer.key("tokenizer.ggml.tokens", written_array(ValueType::string, tokens))
      .key("tokenizer.ggml.scores", written_array(ValueType::f32, scores))
      .tensor("token_embd.weight", {896, kTokens}, gguf::find_tensor_type("Q8_0")->id, "");
  const GgufFile model(writer);
  std::filesystem::resize_file(
      model.path, std::filesystem::file_size(model.path) + kTokens * 896 / 32 * 34);  // zeros
  CHECK(std::filesystem::file_size(model.path) > 250'000'000);
  double best_ms = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto result = ptxgen_program({"gguf", model.path});
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    best_ms = std::min(best_ms, time.count());
    REQUIRE(result.exit_code == 0);
    CHECK(contains(result.out, "tokenizer.ggml.tokens  string[262144]  "));
    CHECK(contains(result.out, "token_embd.weight  Q8_0  896 x 262144  249561088       0\n"));
  }
  INFO("best of 5: " << best_ms << " ms");
  if (!kSanitized) CHECK(best_ms <= 50);
}
