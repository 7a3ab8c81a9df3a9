// bench/gemv/data.hpp - random matrices on a device, and their exact products
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/gemv/shapes.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/runtime/device/buffer.hpp"

namespace ptxgen::gemv_bench {

/// Size of the matrix in device memory, padding between rows included, in bytes.
[[nodiscard]] std::uint64_t matrix_bytes(const GemvProblem& problem) noexcept;

/// `count` random elements of a type in [-1, 1), as bits, determined by the seed.
[[nodiscard]] std::vector<std::byte> random_elements(ElementType type, std::uint64_t count,
                                                     std::uint64_t seed);

/// Random matrices of a rotation and one x on a device; their products and the sums of their 32-bit
/// words on the host.
class GemvData {
 public:
  /// The problem has neither alpha and beta nor bias nor residual. Throws as Buffer does, and
  /// std::bad_alloc where the host has too little memory.
  GemvData(const Context& context, const GemvProblem& problem, const Rotation& rotation,
           std::uint64_t seed);

  [[nodiscard]] const GemvProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] const Rotation& rotation() const noexcept { return rotation_; }
  /// Addresses on the device; the index is taken modulo the number of matrices.
  [[nodiscard]] std::uint64_t matrix(std::uint64_t i) const noexcept {
    return a_.address().value + i % rotation_.matrices * rotation_.matrix_bytes;
  }
  [[nodiscard]] std::uint64_t x() const noexcept { return x_.address().value; }
  [[nodiscard]] std::uint64_t y_bytes() const noexcept {
    return std::uint64_t{problem_.n} * bytes(problem_.y);
  }
  [[nodiscard]] const GemvReference& product(std::uint64_t i) const noexcept {
    return products_[i % rotation_.matrices];
  }
  /// Sum over the complete groups of 16 bytes of a matrix: the result of ReadStream.
  [[nodiscard]] std::uint32_t word_sum(std::uint64_t i) const noexcept {
    return word_sums_[i % rotation_.matrices];
  }

 private:
  GemvProblem problem_;
  Rotation rotation_;
  Buffer<b8> a_, x_;
  std::vector<GemvReference> products_;
  std::vector<std::uint32_t> word_sums_;
};

/// The error bound of an implementation's contract.
struct Exactness {
  std::uint64_t roundings = 0;  ///< in the longest chain of a sum, see gemv_error_bound
  /// Parts of a sum may be rounded to y's type before they are added up, as cuBLAS does.
  bool narrow_parts = false;
};

/// The error of a result.
struct ProductCheck {
  std::uint64_t outside = 0;  ///< elements beyond their bound, or NaN
  double nmse = 0;
  double worst = 0;  ///< the largest error / bound
  [[nodiscard]] bool ok() const noexcept { return outside == 0; }
};
/// `y`: n elements of the type as their bits.
[[nodiscard]] ProductCheck check_product(ElementType type, std::span<const std::byte> y,
                                         const GemvReference& reference,
                                         const Exactness& exactness);

}  // namespace ptxgen::gemv_bench
