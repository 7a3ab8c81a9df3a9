// tests/model/toy_decoder.hpp - small decoders as GGUF files, and their logits in fp64
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gguf_writer.hpp"
#include "ptxgen/model/config.hpp"

namespace ptxgen::test {

/// What a toy is made of. Sizes are independent of each other, as in files.
struct ToyShape {
  model::Architecture architecture = model::Architecture::llama;
  std::uint32_t layers = 3;
  std::uint32_t width = 64;
  std::uint32_t ffn = 96;
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 2;
  std::uint32_t head_size = 16;
  std::uint32_t vocabulary = 101;
  std::uint32_t context = 96;
  std::uint32_t window = 5;          ///< gemma3: of local layers; llama: of all, 0: no key
  std::string matrices = "F32";      ///< type of attention matrices
  std::string ffn_matrices = "F32";  ///< of the feed-forward network
  std::string embedding = "F32";     ///< and of the output matrix
  bool tied = true;
  bool rope_factors = false;
  float rope_divisor = 1;
  float rope_base = 10000;
  std::uint64_t seed = 1;
};

/// Values of a tensor as the file's type rounds them.
struct ToyTensor {
  std::vector<std::uint64_t> dims;
  std::vector<double> values;
};

struct Toy {
  ToyShape shape;
  GgufWriter writer;
  std::map<std::string, ToyTensor> tensors;
  std::string bytes;  ///< the file
};

/// Deterministic for a shape.
[[nodiscard]] Toy make_toy(const ToyShape& shape);

/// Logits of every token, [tokens][vocabulary], in fp64, with plain loops over the tensors' values.
[[nodiscard]] std::vector<double> toy_logits(const Toy& toy, std::span<const std::uint32_t> tokens);

/// Sum of squared errors over sum of squares of `expected`.
[[nodiscard]] double nmse(std::span<const double> expected, std::span<const float> found);

/// Tokens of that number, deterministic.
[[nodiscard]] std::vector<std::uint32_t> toy_tokens(const ToyShape& shape, std::size_t count,
                                                    std::uint64_t seed);

/// "code: message" of the error that the call throws, "no error" if it throws none.
[[nodiscard]] std::string error_of(const std::function<void()>& call);

}  // namespace ptxgen::test
