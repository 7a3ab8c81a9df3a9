// src/cli/commands/logits_comparison.hpp - logits beside those of another run
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::cli {

/// Logits of one model by kernels that add in the same order, on different devices, differ less.
inline constexpr double kMaxLogitsNmse = 1e-6;
/// With the products of the prompt in that type.
[[nodiscard]] constexpr double max_logits_nmse(ElementType prefill_type) noexcept {
  return prefill_type == ElementType::f16    ? 1e-5
         : prefill_type == ElementType::bf16 ? 1e-4
                                             : kMaxLogitsNmse;
}

/// Logits of another run: f32 [positions, vocabulary].
struct ReferenceLogits {
  std::vector<float> values;
  std::uint64_t positions = 0;
};
/// Throws `Error` (stage io) for a file that is no such array, `UsageError` for another vocabulary.
[[nodiscard]] ReferenceLogits read_reference(const std::string& path, std::uint32_t vocabulary);

struct LogitsComparison {
  std::uint64_t positions = 0;  ///< compared: up to the first that has another token before it
  double nmse = 0;              ///< sum of squared errors over sum of squares of the reference
  std::optional<std::uint64_t> first_difference;  ///< position with another top token
  double max_nmse = kMaxLogitsNmse;
  [[nodiscard]] bool ok() const noexcept { return positions != 0 && nmse <= max_nmse; }
};
/// Of two greedy runs of one prompt. `logits`: [positions, vocabulary].
[[nodiscard]] LogitsComparison compare_logits(std::span<const float> logits,
                                              const ReferenceLogits& reference,
                                              std::uint64_t prompt_tokens,
                                              std::uint32_t vocabulary);

}  // namespace ptxgen::cli
