// tests/model/alphabet_model.hpp - a model that continues the alphabet
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "model/gguf_writer.hpp"

namespace ptxgen::test {

struct AlphabetOptions {
  std::string tokenizer = "llama";  ///< `tokenizer.ggml.model`; empty: none
  bool chat_template = true;        ///< ChatML
  std::uint32_t context = 96;
};

/// A decoder of the architecture llama (2 layers, 64 wide, F32) whose most likely token after a
/// letter is the next letter, and after z the end of the text. After a line break comes x, so a
/// chat's answer is "xyz". Layers disturb this a little, and take every position into account.
class AlphabetModel {
 public:
  static constexpr std::uint32_t kBegin = 1, kEnd = 2, kFirstByte = 3, kSpace = 259;
  static constexpr std::uint32_t kA = 260, kChatStart = 286, kChatEnd = 287, kVocabulary = 288;
  static constexpr std::uint32_t kLayers = 2, kWidth = 64, kFfn = 96, kHeads = 2, kHeadSize = 32;

  explicit AlphabetModel(AlphabetOptions options = {}) : options_(std::move(options)) {
    write_metadata();
    if (!options_.tokenizer.empty()) write_tokenizer();
    write_tensors();
  }

  static std::uint32_t letter(char character) {
    return kA + static_cast<std::uint32_t>(character - 'a');
  }
  [[nodiscard]] std::string bytes() const { return writer.bytes(); }

  GgufWriter writer;

 private:
  static WrittenValue number(std::uint32_t value) { return written(ValueType::u32, value); }

  void write_metadata() {
    writer.key("general.architecture", written("llama"))
        .key("general.name", written("Alphabet"))
        .key("llama.block_count", number(kLayers))
        .key("llama.context_length", number(options_.context))
        .key("llama.embedding_length", number(kWidth))
        .key("llama.feed_forward_length", number(kFfn))
        .key("llama.attention.head_count", number(kHeads))
        .key("llama.attention.head_count_kv", number(1))
        .key("llama.attention.layer_norm_rms_epsilon", written(1e-5F))
        .key("llama.vocab_size", number(kVocabulary))
        .key("tokenizer.ggml.eos_token_id", number(kEnd));
  }

  void write_tokenizer() {
    std::vector<WrittenValue> tokens, types, scores;
    const auto add = [&](const std::string& text, std::uint32_t type, float score) {
      tokens.push_back(written(text));
      types.push_back(written(ValueType::i32, type));
      scores.push_back(written(score));
    };
    add("<unk>", 2, 0);
    add("<s>", 3, 0);
    add("</s>", 3, 0);
    constexpr const char* kDigits = "0123456789ABCDEF";
    for (unsigned byte = 0; byte < 256; ++byte) {
      add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 6, 0);
    }
    add("\xe2\x96\x81", 1, -1);
    for (char letter = 'a'; letter <= 'z'; ++letter) add(std::string(1, letter), 1, -2);
    add("<|im_start|>", 3, 0);
    add("<|im_end|>", 3, 0);
    writer.key("tokenizer.ggml.model", written(options_.tokenizer))
        .key("tokenizer.ggml.tokens", written_array(ValueType::string, tokens))
        .key("tokenizer.ggml.token_type", written_array(ValueType::i32, types))
        .key("tokenizer.ggml.scores", written_array(ValueType::f32, scores))
        .key("tokenizer.ggml.add_space_prefix", written(ValueType::boolean, 0))
        .key("tokenizer.ggml.bos_token_id", number(kBegin));
    if (!options_.chat_template) return;
    writer.key("tokenizer.chat_template",
               written("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
                       "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if "
                       "add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"));
  }

  // SplitMix64, as a number in [-1, 1).
  float random() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return static_cast<float>(static_cast<double>(z >> 11) * 0x1p-52 - 1);
  }
  std::vector<float> random_matrix(std::size_t count, float scale) {
    std::vector<float> values(count);
    for (float& value : values) value = scale * random();
    return values;
  }
  void add(const std::string& name, std::vector<std::uint64_t> dims,
           const std::vector<float>& values) {
    std::string data(values.size() * sizeof(float), '\0');
    std::memcpy(data.data(), values.data(), data.size());
    writer.tensor(name, std::move(dims), gguf::find_tensor_type("F32")->id, data);
  }

  void write_tensors() {
    // Signs, so that different tokens are nearly orthogonal.
    std::vector<float> embedding = random_matrix(kVocabulary * kWidth, 1);
    for (float& value : embedding) value = value < 0 ? -1.0F : 1.0F;
    add("token_embd.weight", {kWidth, kVocabulary}, embedding);
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      const auto matrix = [&](const char* name, std::uint32_t k, std::uint32_t n) {
        add(prefix + name, {k, n}, random_matrix(std::size_t{k} * n, 0.05F));
      };
      add(prefix + "attn_norm.weight", {kWidth}, std::vector<float>(kWidth, 1.0F));
      matrix("attn_q.weight", kWidth, kHeads * kHeadSize);
      matrix("attn_k.weight", kWidth, kHeadSize);
      matrix("attn_v.weight", kWidth, kHeadSize);
      matrix("attn_output.weight", kHeads * kHeadSize, kWidth);
      add(prefix + "ffn_norm.weight", {kWidth}, std::vector<float>(kWidth, 1.0F));
      matrix("ffn_gate.weight", kWidth, kFfn);
      matrix("ffn_up.weight", kWidth, kFfn);
      matrix("ffn_down.weight", kFfn, kWidth);
    }
    add("output_norm.weight", {kWidth}, std::vector<float>(kWidth, 1.0F));
    add("output.weight", {kWidth, kVocabulary}, output_matrix(embedding));
  }

  // The row of a token is the sum of the embeddings after which it comes.
  std::vector<float> output_matrix(const std::vector<float>& embedding) {
    std::map<std::uint32_t, std::uint32_t> next = {{kBegin, letter('a')},
                                                   {kSpace, letter('a')},
                                                   {kFirstByte + '\n', letter('x')},
                                                   {letter('z'), kEnd}};
    for (char character = 'a'; character < 'z'; ++character) {
      next[letter(character)] = letter(character) + 1;
    }
    std::vector<float> output = random_matrix(kVocabulary * kWidth, 0.1F);
    for (const auto& [before, after] : next) {
      for (std::uint32_t i = 0; i < kWidth; ++i) {
        output[after * kWidth + i] += 0.25F * embedding[before * kWidth + i];
      }
    }
    return output;
  }

  AlphabetOptions options_;
  std::uint64_t state_ = 1;
};

}  // namespace ptxgen::test
