// src/cli/commands/logits_comparison.cpp - logits beside those of another run
#include "cli/commands/logits_comparison.hpp"

#include <algorithm>
#include <cstring>

#include "cli_common/files.hpp"
#include "cli_common/program.hpp"
#include "support/format.hpp"
#include "support/npy.hpp"

namespace ptxgen::cli {

namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 40;

std::ptrdiff_t top_token(std::span<const float> row) {
  return std::ranges::max_element(row) - row.begin();
}

}  // namespace

ReferenceLogits read_reference(const std::string& path, std::uint32_t vocabulary) {
  const NpyArray array = parse_npy(read_input(path, kMaxFileBytes), path);
  if (array.type != "<f4" || array.shape.size() != 2 || array.shape[1] != vocabulary) {
    throw UsageError(
        format_text("--compare-logits {}: expects f32 [positions, {}], the logits of another run "
                    "with --logits",
                    path, vocabulary));
  }
  ReferenceLogits reference;
  reference.positions = array.shape[0];
  reference.values.resize(array.data.size() / sizeof(float));
  if (!array.data.empty()) {
    std::memcpy(reference.values.data(), array.data.data(), array.data.size());
  }
  return reference;
}

LogitsComparison compare_logits(std::span<const float> logits, const ReferenceLogits& reference,
                                std::uint64_t prompt_tokens, std::uint32_t vocabulary) {
  LogitsComparison result;
  double error = 0;
  double square = 0;
  const std::uint64_t positions = std::min(logits.size() / vocabulary, reference.positions);
  for (std::uint64_t position = 0; position < positions; ++position) {
    const auto found = logits.subspan(position * vocabulary, vocabulary);
    const auto expected = std::span(reference.values).subspan(position * vocabulary, vocabulary);
    for (std::uint32_t i = 0; i < vocabulary; ++i) {
      const double difference = double{found[i]} - double{expected[i]};
      error += difference * difference;
      square += double{expected[i]} * double{expected[i]};
    }
    ++result.positions;
    if (top_token(found) == top_token(expected)) continue;
    if (!result.first_difference) result.first_difference = position;
    // The next position holds another token.
    if (position + 1 >= prompt_tokens) break;
  }
  // A NaN is no agreement.
  result.nmse = square > 0 ? error / square : error;
  return result;
}

}  // namespace ptxgen::cli
