// tests/functional/gemv_cases.hpp - inputs of GEMV tests and what results may be
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "functional/places.hpp"

namespace ptxgen::functional {

struct Shape {
  std::uint32_t k = 1;
  std::uint32_t n = 1;
};

/// Numbers from a seed, the same on every machine and with every standard library.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits();
  /// In [low, high), with 24 random bits.
  float between(float low, float high);
  /// In [least, most].
  std::uint32_t integer(std::uint32_t min, std::uint32_t max);
  std::vector<float> list(std::size_t count, float low, float high);

 private:
  std::uint64_t state_;
};

/// A matrix and a vector. a is `[k x n]` row-major, x has k elements.
struct Problem {
  Shape shape;
  std::vector<float> a;
  std::vector<float> x;
};
[[nodiscard]] Problem random_problem(Shape shape, std::uint64_t seed, float low = -1.0f,
                                     float high = 1.0f);

/// The longest path of roundings in a GEMV kernel's sum; cuBLAS is allowed the longest there is.
[[nodiscard]] std::uint64_t roundings(GemvChoice choice, Shape shape);
/// The choices that this device can serve: direct, coalesced and strided, and cuBLAS where it is
/// found.
[[nodiscard]] std::vector<GemvChoice> choices(const Place& place);

/// Runs a GEMV through a launcher. The buffers are between guard bytes that are checked afterwards
/// together with the inputs, y is filled with NaN before.
[[nodiscard]] std::vector<float> run_guarded(const Place& place, const Launcher& launcher,
                                             const Problem& problem);
/// The same with buffers of exactly the sizes needed, so that the emulator sees every access
/// beyond them.
[[nodiscard]] std::vector<float> run_exact(const Place& place, const Launcher& launcher,
                                           const Problem& problem);

/// Checks every element against the fp64 reference: within the error bound of a sum with so many
/// roundings (and half the smallest number for each product, where they are tiny: those errors are
/// absolute, so that all of them count and not only those on the longest path), NaN and infinities
/// exactly where the reference has them. From 64 columns on also the normalised mean square error:
/// 1e-12 up to 1024 roundings and in proportion above, as the variance of a chain grows with its
/// length.
void check_gemv(const Problem& problem, const std::vector<float>& y, std::uint64_t roundings);

/// All choices of the device, guarded, checked.
void check_everywhere(const Place& place, const Problem& problem);

}  // namespace ptxgen::functional
