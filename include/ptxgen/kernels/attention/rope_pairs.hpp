// ptxgen/kernels/attention/rope_pairs.hpp - pairs of elements that are rotated together
#pragma once

#include <cstdint>

namespace ptxgen::inline v0 {

/// Which two elements of a head are rotated together. The results of one for the other look right
/// and are wrong, so each is a kernel of its own.
enum class RopePairs : std::uint8_t {
  Interleaved,  ///< (2i, 2i + 1), as in the LLaMA papers' code and in GGUF's NORM models
  Halves,       ///< (i, i + head_size / 2), as in GPT-NeoX, Qwen and Gemma
};

}  // namespace ptxgen::inline v0
