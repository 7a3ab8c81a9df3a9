// bench/gemv/shapes.hpp - which shapes are measured, and their rotation
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ptxgen/kernels/gemv/plan.hpp"

namespace ptxgen::gemv_bench {

/// A matrix of a decoder: k inputs, n outputs, and the models that have it.
struct BenchShape {
  std::uint32_t k = 0;
  std::uint32_t n = 0;
  std::string who;  ///< "grid", "llama-2-7b qkv, mistral-7b o", "given"
};

/// `text`: words separated by commas. `grid`: squares of 1024 to 16384. `decode`: the GEMVs of all
/// models of the table, with q, k, v and gate, up fused and separate. A model's name: its shapes.
/// `KxN`. In the order of the text, each shape once. Throws `UsageError` with the list of valid
/// values.
[[nodiscard]] std::vector<BenchShape> bench_shapes(const std::string& text);

/// "T,R", "f32,f16,bf16": the values, each once, in that order. Throw `UsageError`.
[[nodiscard]] std::vector<GemvLayout> bench_layouts(const std::string& text);
[[nodiscard]] std::vector<ElementType> bench_types(const std::string& text);

/// The parts between commas, without empty ones.
[[nodiscard]] std::vector<std::string> split_list(const std::string& text);

/// The number of matrices that a measurement rotates through, large enough that none is still in
/// the L2 when it is used again, and the number of launches of a chain.
struct Rotation {
  std::uint64_t matrices = 1;
  std::uint64_t matrix_bytes = 0;  ///< from one to the next, a multiple of 256
  std::uint32_t chain = 1;         ///< launches: complete rotations
  std::uint64_t wanted_bytes = 0;  ///< of all matrices together
  [[nodiscard]] std::uint64_t bytes() const noexcept { return matrices * matrix_bytes; }
  /// False if memory is too small: matrices may then be partly in the L2.
  [[nodiscard]] bool cold() const noexcept { return bytes() >= wanted_bytes; }
};

/// The fewest matrices, at least two, that together have `wanted_bytes`, but no more than fit
/// `available_bytes`, and at least one; the fewest complete rotations with `min_chain` launches.
[[nodiscard]] Rotation rotation_of(std::uint64_t bytes, std::uint64_t wanted_bytes,
                                   std::uint32_t min_chain, std::uint64_t available_bytes) noexcept;

}  // namespace ptxgen::gemv_bench
