// bench/gemv/shapes.cpp - which shapes are measured, and their rotation
#include "bench/gemv/shapes.hpp"

#include <algorithm>
#include <optional>

#include "cli_common/files.hpp"
#include "cli_common/gemv_problem.hpp"
#include "cli_common/numbers.hpp"
#include "cli_common/program.hpp"
#include "ptxgen/kernels/gemv/models.hpp"
#include "support/format.hpp"

namespace ptxgen::gemv_bench {

namespace {

class Shapes {
 public:
  void add(std::uint32_t k, std::uint32_t n, const std::string& who) {
    const auto same = [&](const BenchShape& shape) { return shape.k == k && shape.n == n; };
    const auto found = std::find_if(shapes_.begin(), shapes_.end(), same);
    if (found == shapes_.end()) {
      shapes_.push_back({k, n, who});
    } else if (found->who != who) {
      found->who += ", " + who;
    }
  }
  void add_model(const DecoderModel& model) {
    for (const bool fused : {true, false}) {
      for (const DecodeShape& shape : decode_shapes(model, fused)) {
        const std::string who = std::string(model.name) + " " + std::string(shape.name);
        if (fused || !is_in_both(shape.name)) add(shape.k, shape.n, who);
      }
    }
  }
  [[nodiscard]] std::vector<BenchShape> take() { return std::move(shapes_); }

 private:
  static bool is_in_both(std::string_view name) {
    return name == "o" || name == "down" || name == "head";
  }
  std::vector<BenchShape> shapes_;
};

// "KxN", both at least 1.
std::optional<BenchShape> sizes(std::string_view text) {
  const auto cross = text.find('x');
  if (cross == std::string_view::npos) return {};
  constexpr std::uint64_t kMax = 0xffffffff;
  const auto k = cli::parse_whole(text.substr(0, cross), 1, kMax);
  const auto n = cli::parse_whole(text.substr(cross + 1), 1, kMax);
  if (!k || !n) return {};
  BenchShape shape;
  shape.k = static_cast<std::uint32_t>(*k);
  shape.n = static_cast<std::uint32_t>(*n);
  return shape;
}

[[noreturn]] void throw_unknown(const std::string& word) {
  std::string models;
  for (const DecoderModel& model : decoder_models()) models += ", " + std::string(model.name);
  throw cli::UsageError(format_text(
      "--shapes {}: expects grid, decode, KxN (outputs N, both at least 1) or a model; there are{}",
      word, models.substr(1)));
}

// The values of a list of words, each once.
template <class T, class Read>
std::vector<T> list_of(const std::string& option, const std::string& text, Read&& read) {
  std::vector<T> values;
  for (const std::string& word : split_list(text)) {
    const T value = read(word);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  if (values.empty()) throw cli::UsageError(option + ": names nothing");
  return values;
}

}  // namespace

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (end != at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::vector<BenchShape> bench_shapes(const std::string& text) {
  Shapes shapes;
  for (const std::string& word : split_list(text)) {
    if (word == "grid") {
      for (std::uint32_t size = 1024; size <= 16384; size *= 2) shapes.add(size, size, "grid");
    } else if (word == "decode") {
      for (const DecoderModel& model : decoder_models()) shapes.add_model(model);
    } else if (const DecoderModel* const model = find_decoder_model(word)) {
      shapes.add_model(*model);
    } else if (const auto size = sizes(word)) {
      shapes.add(size->k, size->n, "given");
    } else {
      throw_unknown(word);
    }
  }
  std::vector<BenchShape> all = shapes.take();
  if (all.empty()) throw cli::UsageError("--shapes: names nothing");
  return all;
}

std::vector<GemvLayout> bench_layouts(const std::string& text) {
  return list_of<GemvLayout>("--layout", text, [](const std::string& word) {
    if (word == "T") return GemvLayout::T;
    if (word == "R") return GemvLayout::R;
    throw cli::UsageError("--layout " + word + ": expects T or R, or both with a comma between");
  });
}

std::vector<ElementType> bench_types(const std::string& text) {
  return list_of<ElementType>(
      "--dtype", text, [](const std::string& word) { return cli::gemv_weights("--dtype", word); });
}

Rotation rotation_of(std::uint64_t bytes, std::uint64_t wanted_bytes, std::uint32_t min_chain,
                     std::uint64_t available_bytes) noexcept {
  Rotation rotation;
  rotation.wanted_bytes = wanted_bytes;
  rotation.matrix_bytes = std::max<std::uint64_t>((bytes + 255) / 256 * 256, 256);
  const std::uint64_t wanted = std::max<std::uint64_t>(
      2, (wanted_bytes + rotation.matrix_bytes - 1) / rotation.matrix_bytes);
  const std::uint64_t fit = std::max<std::uint64_t>(1, available_bytes / rotation.matrix_bytes);
  rotation.matrices = std::min(wanted, fit);
  const std::uint64_t rounds =
      std::max<std::uint64_t>(1, (min_chain + rotation.matrices - 1) / rotation.matrices);
  rotation.chain = static_cast<std::uint32_t>(rounds * rotation.matrices);
  return rotation;
}

}  // namespace ptxgen::gemv_bench
