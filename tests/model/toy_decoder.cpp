// tests/model/toy_decoder.cpp - small decoders as GGUF files, and their logits in fp64
#include "toy_decoder.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::test {

namespace {

using model::Architecture;

constexpr double kLocalBase = 10000;

class Maker {
 public:
  explicit Maker(Toy& toy) : toy_(toy), random_(toy.shape.seed * 7919 + 17) {}

  void metadata();
  void tensors();

 private:
  double uniform(double low, double high) {
    const double unit = static_cast<double>(random_() >> 11) * 0x1p-53;
    return low + (high - low) * unit;
  }
  std::vector<std::byte> floats(ElementType type, std::size_t count, double low, double high) {
    std::vector<double> values(count);
    for (double& value : values) value = uniform(low, high);
    return to_elements(type, values);
  }
  // Integers of any bits, scales of that magnitude.
  std::vector<std::byte> blocks(ElementType type, std::size_t count, double scale) {
    std::vector<std::byte> all(bytes(type, count));
    for (std::byte& byte : all) byte = static_cast<std::byte>(random_() >> 20);
    for (std::size_t at = 0; at < all.size(); at += bytes(type)) {
      for (const std::uint8_t field : half_fields(type)) {
        const double value = uniform(0.5, 1) * scale * (random_() % 2 == 0 ? 1 : -1);
        const std::vector<std::byte> half = to_elements(ElementType::f16, {&value, 1});
        std::memcpy(all.data() + at + field, half.data(), half.size());
      }
    }
    return all;
  }
  void tensor(const std::string& name, std::vector<std::uint64_t> dims, std::string_view type,
              double low, double high);
  void matrix(const std::string& name, std::uint64_t k, std::uint64_t n, std::string_view type);
  void layer(std::uint32_t i);

  Toy& toy_;
  std::mt19937_64 random_;
};

void Maker::tensor(const std::string& name, std::vector<std::uint64_t> dims, std::string_view type,
                   double low, double high) {
  const gguf::TensorType& row = *gguf::find_tensor_type(type);
  std::size_t count = 1;
  for (const std::uint64_t dim : dims) count *= dim;
  // The largest integer of a block, about.
  const double largest = row.block_values == 256            ? 512
                         : row.element == ElementType::q8_0 ? 127
                                                            : 16;
  const std::vector<std::byte> data = is_block_format(*row.element)
                                          ? blocks(*row.element, count, high / largest)
                                          : floats(*row.element, count, low, high);
  toy_.tensors[name] = {dims, to_values(*row.element, data)};
  toy_.writer.tensor(name, std::move(dims), row.id,
                     {reinterpret_cast<const char*>(data.data()), data.size()});
}

void Maker::matrix(const std::string& name, std::uint64_t k, std::uint64_t n,
                   std::string_view type) {
  const double limit = 2.5 / std::sqrt(static_cast<double>(k));
  tensor(name, {k, n}, type, -limit, limit);
}

void Maker::metadata() {
  const ToyShape& s = toy_.shape;
  const std::string name(model::to_string(s.architecture));
  const auto number = [&](const std::string& key, std::uint64_t value) {
    toy_.writer.key(name + key, written(ValueType::u32, value));
  };
  toy_.writer.key("general.architecture", written(name)).key("general.name", written("toy"));
  number(".block_count", s.layers);
  number(".embedding_length", s.width);
  number(".feed_forward_length", s.ffn);
  number(".context_length", s.context);
  number(".attention.head_count", s.heads);
  number(".attention.head_count_kv", s.kv_heads);
  number(".attention.key_length", s.head_size);
  number(".attention.value_length", s.head_size);
  number(".rope.dimension_count", s.head_size);
  if (s.architecture == Architecture::gemma3 || (s.architecture == Architecture::llama && s.window))
    number(".attention.sliding_window", s.window);
  toy_.writer.key(name + ".attention.layer_norm_rms_epsilon", written(1e-5F))
      .key(name + ".rope.freq_base", written(s.rope_base));
  if (s.rope_divisor != 1) {
    toy_.writer.key(name + ".rope.scaling.type", written("linear"))
        .key(name + ".rope.scaling.factor", written(s.rope_divisor));
  }
}

void Maker::layer(std::uint32_t i) {
  const ToyShape& s = toy_.shape;
  const std::uint64_t q = std::uint64_t{s.heads} * s.head_size;
  const std::uint64_t kv = std::uint64_t{s.kv_heads} * s.head_size;
  const std::string at = "blk." + std::to_string(i) + ".";
  tensor(at + "attn_norm.weight", {s.width}, "F32", 0.5, 1.5);
  matrix(at + "attn_q.weight", s.width, q, s.matrices);
  matrix(at + "attn_k.weight", s.width, kv, s.matrices);
  matrix(at + "attn_v.weight", s.width, kv, s.matrices);
  if (s.architecture == Architecture::qwen2) {
    tensor(at + "attn_q.bias", {q}, "F32", -1, 1);
    tensor(at + "attn_k.bias", {kv}, "F32", -1, 1);
    tensor(at + "attn_v.bias", {kv}, "F32", -1, 1);
  }
  if (s.architecture == Architecture::qwen3 || s.architecture == Architecture::gemma3) {
    tensor(at + "attn_q_norm.weight", {s.head_size}, "F32", 0.5, 1.5);
    tensor(at + "attn_k_norm.weight", {s.head_size}, "F32", 0.5, 1.5);
  }
  matrix(at + "attn_output.weight", q, s.width, s.matrices);
  if (s.architecture == Architecture::gemma3)
    tensor(at + "post_attention_norm.weight", {s.width}, "F32", 0.5, 1.5);
  tensor(at + "ffn_norm.weight", {s.width}, "F16", 0.5, 1.5);
  matrix(at + "ffn_gate.weight", s.width, s.ffn, s.ffn_matrices);
  matrix(at + "ffn_up.weight", s.width, s.ffn, s.ffn_matrices);
  matrix(at + "ffn_down.weight", s.ffn, s.width, s.ffn_matrices);
  if (s.architecture == Architecture::gemma3)
    tensor(at + "post_ffw_norm.weight", {s.width}, "F32", 0.5, 1.5);
}

void Maker::tensors() {
  const ToyShape& s = toy_.shape;
  tensor("token_embd.weight", {s.width, s.vocabulary}, s.embedding, -1, 1);
  if (s.rope_factors) tensor("rope_freqs.weight", {s.head_size / 2}, "F32", 1, 8);
  for (std::uint32_t i = 0; i < s.layers; ++i) layer(i);
  tensor("output_norm.weight", {s.width}, "F32", 0.5, 1.5);
  if (!s.tied) matrix("output.weight", s.width, s.vocabulary, s.embedding);
}

// ---- the forward pass ----

using Row = std::vector<double>;

class Forward {
 public:
  explicit Forward(const Toy& toy) : toy_(toy), s_(toy.shape) {
    keys_.resize(s_.layers);
    values_.resize(s_.layers);
  }
  Row next(std::uint32_t token);

 private:
  [[nodiscard]] const Row& of(const std::string& name) const {
    return toy_.tensors.at(name).values;
  }
  [[nodiscard]] bool gemma() const { return s_.architecture == Architecture::gemma3; }
  [[nodiscard]] bool global(std::uint32_t layer) const {
    return gemma() ? s_.window == 0 || (layer + 1) % 6 == 0 : s_.window == 0 || !is_llama();
  }
  [[nodiscard]] bool is_llama() const { return s_.architecture == Architecture::llama; }

  [[nodiscard]] Row times(const std::string& name, const Row& x) const {
    const Row& w = of(name);
    Row y(w.size() / x.size());
    for (std::size_t j = 0; j < y.size(); ++j) {
      for (std::size_t i = 0; i < x.size(); ++i) y[j] += w[j * x.size() + i] * x[i];
    }
    return y;
  }
  [[nodiscard]] static Row norm(const Row& x, const Row& weight) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    const double scale = 1 / std::sqrt(sum / static_cast<double>(x.size()) + double{1e-5F});
    Row y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
    return y;
  }
  void rotate(Row& heads, std::uint32_t layer) const;
  void norm_heads(Row& heads, const std::string& weight) const;
  [[nodiscard]] Row attention(std::uint32_t layer, const Row& q) const;
  [[nodiscard]] Row feed_forward(std::uint32_t layer, const Row& h) const;
  void add_layer(std::uint32_t layer, Row& h);

  const Toy& toy_;
  const ToyShape& s_;
  std::size_t position_ = 0;
  std::vector<std::vector<Row>> keys_, values_;  // [layer][position]
};

void Forward::rotate(Row& heads, std::uint32_t layer) const {
  const std::size_t size = s_.head_size;
  const bool local = gemma() && !global(layer);
  const double base = local ? kLocalBase : double{s_.rope_base};
  for (std::size_t head = 0; head < heads.size() / size; ++head) {
    for (std::size_t i = 0; i < size / 2; ++i) {
      double frequency = std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(size));
      if (s_.rope_factors) frequency /= of("rope_freqs.weight")[i];
      if (!local) frequency /= double{s_.rope_divisor};
      const double angle = static_cast<double>(position_) * frequency;
      double& a = heads[head * size + (is_llama() ? 2 * i : i)];
      double& b = heads[head * size + (is_llama() ? 2 * i + 1 : i + size / 2)];
      const double rotated = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = rotated;
    }
  }
}

void Forward::norm_heads(Row& heads, const std::string& weight) const {
  const auto size = static_cast<std::ptrdiff_t>(s_.head_size);
  for (auto at = heads.begin(); at != heads.end(); at += size) {
    const Row one = norm(Row(at, at + size), of(weight));
    std::copy(one.begin(), one.end(), at);
  }
}

Row Forward::attention(std::uint32_t layer, const Row& q) const {
  const std::size_t size = s_.head_size;
  Row out(q.size());
  const std::size_t first =
      !global(layer) && position_ + 1 > s_.window ? position_ + 1 - s_.window : 0;
  for (std::size_t head = 0; head < s_.heads; ++head) {
    const std::size_t kv = head * s_.kv_heads / s_.heads;
    std::vector<double> p;
    for (std::size_t i = first; i <= position_; ++i) {
      double score = 0;
      for (std::size_t j = 0; j < size; ++j)
        score += q[head * size + j] * keys_[layer][i][kv * size + j];
      p.push_back(score / std::sqrt(static_cast<double>(size)));
    }
    const double largest = *std::max_element(p.begin(), p.end());
    double sum = 0;
    for (double& one : p) sum += one = std::exp(one - largest);
    for (std::size_t i = first; i <= position_; ++i) {
      for (std::size_t j = 0; j < size; ++j)
        out[head * size + j] += p[i - first] / sum * values_[layer][i][kv * size + j];
    }
  }
  return out;
}

Row Forward::feed_forward(std::uint32_t layer, const Row& h) const {
  const std::string at = "blk." + std::to_string(layer) + ".";
  const Row x = norm(h, of(at + "ffn_norm.weight"));
  Row gate = times(at + "ffn_gate.weight", x);
  const Row up = times(at + "ffn_up.weight", x);
  constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double g = gate[i];
    const double active = gemma()
                              ? g / 2 * (1 + std::tanh(kSqrtTwoOverPi * (g + 0.044715 * g * g * g)))
                              : g / (1 + std::exp(-g));
    gate[i] = active * up[i];
  }
  Row out = times(at + "ffn_down.weight", gate);
  return gemma() ? norm(out, of(at + "post_ffw_norm.weight")) : out;
}

void Forward::add_layer(std::uint32_t layer, Row& h) {
  const std::string at = "blk." + std::to_string(layer) + ".";
  const Row x = norm(h, of(at + "attn_norm.weight"));
  Row rows[3] = {times(at + "attn_q.weight", x), times(at + "attn_k.weight", x),
                 times(at + "attn_v.weight", x)};
  const char* const names[] = {"attn_q", "attn_k", "attn_v"};
  for (std::size_t i = 0; i < 3; ++i) {
    if (s_.architecture == Architecture::qwen2) {
      const Row& bias = of(at + names[i] + ".bias");
      for (std::size_t j = 0; j < bias.size(); ++j) rows[i][j] += bias[j];
    }
    if (i < 2 && (gemma() || s_.architecture == Architecture::qwen3))
      norm_heads(rows[i], at + names[i] + "_norm.weight");
    if (i < 2) rotate(rows[i], layer);
  }
  keys_[layer].push_back(rows[1]);
  values_[layer].push_back(rows[2]);
  Row o = times(at + "attn_output.weight", attention(layer, rows[0]));
  if (gemma()) o = norm(o, of(at + "post_attention_norm.weight"));
  for (std::size_t i = 0; i < h.size(); ++i) h[i] += o[i];
  const Row f = feed_forward(layer, h);
  for (std::size_t i = 0; i < h.size(); ++i) h[i] += f[i];
}

Row Forward::next(std::uint32_t token) {
  const Row& table = of("token_embd.weight");
  const auto at = table.begin() + static_cast<std::ptrdiff_t>(std::size_t{token} * s_.width);
  Row h(at, at + static_cast<std::ptrdiff_t>(s_.width));
  // The kernel's factor is an f32.
  const double scale = gemma() ? double{std::sqrt(static_cast<float>(s_.width))} : 1;
  for (double& value : h) value *= scale;
  for (std::uint32_t layer = 0; layer < s_.layers; ++layer) add_layer(layer, h);
  ++position_;
  return times(s_.tied ? "token_embd.weight" : "output.weight", norm(h, of("output_norm.weight")));
}

}  // namespace

Toy make_toy(const ToyShape& shape) {
  Toy toy;
  toy.shape = shape;
  Maker maker(toy);
  maker.metadata();
  maker.tensors();
  toy.bytes = toy.writer.bytes();
  return toy;
}

std::vector<double> toy_logits(const Toy& toy, std::span<const std::uint32_t> tokens) {
  Forward forward(toy);
  std::vector<double> all;
  for (const std::uint32_t token : tokens) {
    const Row one = forward.next(token);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

double nmse(std::span<const double> expected, std::span<const float> found) {
  if (expected.size() != found.size() || expected.empty()) return 1;
  double error = 0;
  double square = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = double{found[i]} - expected[i];
    error += difference * difference;
    square += expected[i] * expected[i];
  }
  return error / square;  // a NaN fails every bound
}

std::vector<std::uint32_t> toy_tokens(const ToyShape& shape, std::size_t count,
                                      std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> tokens(count);
  for (std::uint32_t& token : tokens) {
    token = static_cast<std::uint32_t>(random() % shape.vocabulary);
  }
  return tokens;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code + ": " + error.message;
  }
  return "no error";
}

}  // namespace ptxgen::test
