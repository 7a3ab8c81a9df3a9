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

/// Bytes of device memory from the first weight to behind the last.
[[nodiscard]] std::uint64_t matrix_bytes(const GemvProblem& problem) noexcept;

/// `count` random elements of a type in [-1, 1), as their bits; of each seed others.
[[nodiscard]] std::vector<std::byte> random_elements(GemvType type, std::uint64_t count,
                                                     std::uint64_t seed);

/// The matrices of a rotation and one x, random, on a device; what their products are, and the sums
/// of their words, on the host.
class GemvData {
 public:
  /// The problem has neither alpha and beta nor bias nor residual. Throws as Buffer does, and
  /// std::bad_alloc where the host has too little memory.
  GemvData(const Context& context, const GemvProblem& problem, const Rotation& rotation,
           std::uint64_t seed);

  [[nodiscard]] const GemvProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] const Rotation& rotation() const noexcept { return rotation_; }
  /// Addresses on the device; matrices are counted round.
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
  /// Of the whole groups of 16 bytes of a matrix: what ReadStream gives.
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

/// How exact an implementation is, as far as its contract goes.
struct Exactness {
  std::uint64_t roundings = 0;  ///< on the longest way of a sum, see gemv_error_bound
  /// Parts of a sum may be rounded to y's type before they are added up, as cuBLAS does.
  bool narrow_parts = false;
};

/// How far a result is off.
struct ProductCheck {
  std::uint64_t outside = 0;  ///< elements beyond their bound, or no numbers
  double nmse = 0;
  double worst = 0;  ///< the largest error / bound
  [[nodiscard]] bool ok() const noexcept { return outside == 0; }
};
/// `y`: n elements of the type as their bits.
[[nodiscard]] ProductCheck check_product(GemvType type, std::span<const std::byte> y,
                                         const GemvReference& reference,
                                         const Exactness& exactness);

}  // namespace ptxgen::gemv_bench
