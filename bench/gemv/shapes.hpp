// bench/gemv/shapes.hpp - which shapes are measured, and their rotation
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptxgen/kernels/gemv/plan.hpp"

namespace ptxgen::gemv_bench {

/// A matrix as decoders have it: k inputs, n outputs, and who does.
struct BenchShape {
  std::uint32_t k = 0;
  std::uint32_t n = 0;
  std::string who;  ///< "grid", "llama-2-7b qkv, mistral-7b o", "given"
};

/// `text`: words separated by commas. `grid`: squares of 1024 to 16384. `decode`: the GEMVs of all
/// models of the table, q, k, v and gate, up as one matrix and apart. A model's name: its own.
/// `KxN`. In the order in which they are said, each shape once. Throws `UsageError` that lists what
/// there is.
[[nodiscard]] std::vector<BenchShape> bench_shapes(const std::string& text);

/// "T,R", "f32,f16,bf16": what is said, each once, in that order. Throw `UsageError`.
[[nodiscard]] std::vector<GemvLayout> bench_layouts(const std::string& text);
[[nodiscard]] std::vector<GemvType> bench_types(const std::string& text);

/// The words between commas, without empty ones.
[[nodiscard]] std::vector<std::string> words_of(const std::string& text);

/// Which matrices a measurement goes round, so that none is in the L2 when its turn comes, and how
/// many launches a chain has.
struct Rotation {
  std::uint64_t matrices = 1;
  std::uint64_t matrix_bytes = 0;  ///< from one to the next, a multiple of 256
  std::uint32_t chain = 1;         ///< launches: whole rounds
  std::uint64_t wanted_bytes = 0;  ///< what all together should have
  [[nodiscard]] std::uint64_t bytes() const noexcept { return matrices * matrix_bytes; }
  /// False where memory did not suffice: then results may be partly hot.
  [[nodiscard]] bool cold() const noexcept { return bytes() >= wanted_bytes; }
};

/// The fewest matrices, at least two, that together have `wanted_bytes`, but no more than fit into
/// `room` bytes and at least one; and the fewest whole rounds of at least `min_chain` launches.
[[nodiscard]] Rotation rotation_of(std::uint64_t bytes, std::uint64_t wanted_bytes,
                                   std::uint32_t min_chain, std::uint64_t room) noexcept;

}  // namespace ptxgen::gemv_bench
