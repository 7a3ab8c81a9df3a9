// tests/model/gguf_seeds_test.cpp - the fuzzer's seeds are what the writer writes
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "model/gguf_writer.hpp"
#include "model/tokenizer/vocabulary_writer.hpp"
#include "ptxgen/model/gguf.hpp"
#include "ptxgen/support/error.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

GgufWriter model() {
  GgufWriter writer;
  writer.key("general.architecture", written("llama"))
      .key("general.alignment", written(ValueType::u32, 32))
      .key("llama.block_count", written(ValueType::u32, 1))
      .key("llama.attention.layer_norm_rms_epsilon", written(1e-5F))
      .key("tokenizer.ggml.tokens",
           written_array(ValueType::string, {written("<s>"), written("a")}))
      .key("tokenizer.ggml.scores", written_array(ValueType::f32, {written(0.0F), written(-1.0F)}));
  writer.tensor("token_embd.weight", {32, 2}, "Q8_0").tensor("output_norm.weight", {32}, "F32");
  return writer;
}

GgufWriter nested() {
  GgufWriter writer;
  WrittenValue value = written_array(ValueType::string, {written("x")});
  for (int depth = 2; depth <= 4; ++depth) value = written_array(ValueType::array, {value, value});
  writer.key("nested", value);
  return writer;
}

VocabularyWriter pieces() {
  VocabularyWriter writer;
  writer.model = "llama";
  writer.add("<unk>", 0, TokenType::Unknown)
      .add("<s>", 0, TokenType::Control)
      .add("a")
      .add("b", -1);
  writer.add("ab", -2).add("\xe2\x96\x81", -3).add("<0x0A>", 0, TokenType::Byte);
  writer.add("aa", 0, TokenType::UserDefined).add("aab", 0, TokenType::UserDefined);
  return writer.text("tokenizer.chat_template", "<start_of_turn><end_of_turn>first_user_prefix");
}

VocabularyWriter pairs(const std::string& pre) {
  VocabularyWriter writer;
  writer.model = "gpt2";
  writer.pre = pre;
  writer.add("a").add("b").add("\xc4\xa0").add("1").add("<s>", 0, TokenType::Control).id("bos", 4);
  return writer.merge("a", "b").merge("\xc4\xa0", "ab").flag("add_bos_token", true);
}

// With faults, so that a fuzzer begins on both sides of each check.
std::map<std::string, std::string> seeds() {
  std::map<std::string, std::string> all = {{"everything.gguf", everything().bytes()},
                                            {"model.gguf", model().bytes()},
                                            {"nested.gguf", nested().bytes()},
                                            {"pairs.gguf", pairs("llama-bpe").bytes()},
                                            {"pairs_smollm.gguf", pairs("smollm").bytes()},
                                            {"pieces.gguf", pieces().bytes()}};
  GgufWriter old = model();
  old.version = 2;
  all["version_2.gguf"] = old.bytes();
  GgufWriter overlap = model();
  overlap.tensors[1].offset = 32;
  all["overlap.gguf"] = overlap.bytes();
  GgufWriter promise = model();
  promise.more_keys = 1;
  all["promise.gguf"] = promise.bytes();
  GgufWriter twice = model();
  twice.key("llama.block_count", written(ValueType::u32, 2));
  all["twice.gguf"] = twice.bytes();
  GgufWriter dims = model();
  dims.tensors[0].dims = {std::uint64_t{1} << 62, 4, 4};
  all["dims.gguf"] = dims.bytes();
  return all;
}

}  // namespace

TEST_CASE("the seeds of the fuzzer are files of the writer") {
  const char* rewrite = std::getenv("PTXGEN_REWRITE_GOLDENS");
  const std::filesystem::path folder = GGUF_SEEDS;
  std::size_t files = 0;
  for (const auto& [name, bytes] : seeds()) {
    const std::string path = (folder / name).string();
    if (rewrite != nullptr) {
      std::filesystem::create_directories(folder);
      write_file(path, bytes);
    }
    INFO(name << ": PTXGEN_REWRITE_GOLDENS=1 writes it anew");
    CHECK(read_file(path) == bytes);
    ++files;
  }
  const auto found = std::distance(std::filesystem::directory_iterator(folder), {});
  CHECK(static_cast<std::size_t>(found) == files);
}

TEST_CASE("seeds with a fault are refused, the others are opened") {
  std::string outcomes;
  for (const auto& [name, bytes] : seeds()) {
    try {
      (void)gguf::File::view(as_bytes(bytes), name);
      outcomes += name + " opened\n";
    } catch (const Error& error) {
      outcomes += name + " " + error.code + "\n";
    }
  }
  CHECK(outcomes ==
        "dims.gguf out-of-file\neverything.gguf opened\nmodel.gguf opened\nnested.gguf opened\n"
        "overlap.gguf overlap\npairs.gguf opened\npairs_smollm.gguf opened\npieces.gguf opened\n"
        "promise.gguf truncated\ntwice.gguf duplicate-name\n"
        "version_2.gguf opened\n");
}

TEST_CASE("seeds with a tokenizer give ids") {
  CHECK(pieces().read().encode("aab ab") == Ids{1, 8, 5, 5, 4});
  if (Tokenizer::supported_pre_tokenizers().empty()) return;
  CHECK(pairs("smollm").read().encode("ab ab1") == Ids{4, 5, 6, 3});
}
