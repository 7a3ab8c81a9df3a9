// bench/gemv/data.cpp - random matrices on a device, and their exact products
#include "bench/gemv/data.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "kernels/quantization/random_blocks.hpp"
#include "ptxgen/kernels/elementwise/read_stream.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "support/half.hpp"
#include "support/random_values.hpp"

namespace ptxgen::gemv_bench {

namespace {

using Bytes = std::vector<std::byte>;

std::uint16_t rounded(ElementType type, float value) {
  return type == ElementType::f16 ? float_to_f16(value) : float_to_bf16(value);
}

float element(ElementType type, std::span<const std::byte> bytes, std::size_t i) {
  if (type == ElementType::f32) {
    float value = 0;
    std::memcpy(&value, bytes.data() + 4 * i, 4);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes.data() + 2 * i, 2);
  return type == ElementType::f16 ? f16_to_float(bits) : bf16_to_float(bits);
}

// Half a step of the type next to 1, and half its smallest number.
struct Rounding {
  double relative;
  double absolute;
};
Rounding rounding_of(ElementType type) {
  if (type == ElementType::f16) return {0x1p-11, 0x1p-25};
  if (type == ElementType::bf16) return {0x1p-8, 0};
  return {0, 0};
}

std::uint32_t sum_of_words(std::span<const std::byte> bytes) {
  std::vector<std::uint32_t> words(bytes.size() / 16 * 4);
  std::memcpy(words.data(), bytes.data(), words.size() * 4);
  return ReadStream::reference(words);
}

// `work(i)` for each i below `count`, on all cores; throws what one of them threw.
template <class Work>
void for_all(std::uint64_t count, const Work& work) {
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failed;
  const auto run = [&] {
    try {
      for (std::uint64_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failed = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  const std::uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  try {
    while (helpers.size() + 1 < std::min(cores, count)) helpers.emplace_back(run);
  } catch (const std::system_error&) {
    // Continue with fewer threads.
  }
  run();
  for (std::thread& helper : helpers) helper.join();
  if (failed) std::rethrow_exception(failed);
}

}  // namespace

std::uint64_t matrix_bytes(const GemvProblem& problem) noexcept {
  return bytes(problem.weights, problem.matrix_elements());
}

Bytes random_elements(ElementType type, std::uint64_t count, std::uint64_t seed) {
  if (is_block_format(type)) return random_blocks(type, count, -1, 1, seed);
  const std::vector<float> values = random_values(count, seed);
  Bytes result(count * bytes(type));
  if (type == ElementType::f32) {
    std::memcpy(result.data(), values.data(), result.size());
    return result;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = rounded(type, values[i]);
    std::memcpy(result.data() + 2 * i, &bits, 2);
  }
  return result;
}

GemvData::GemvData(const Context& context, const GemvProblem& problem, const Rotation& rotation,
                   std::uint64_t seed)
    : problem_(problem), rotation_(rotation) {
  const Bytes x = random_elements(problem.x, problem.k, ~seed);
  x_ = Buffer<b8>(context, x.size());
  x_.write({reinterpret_cast<const std::uint8_t*>(x.data()), x.size()});
  Bytes all(rotation.bytes());
  products_.resize(rotation.matrices);
  word_sums_.resize(rotation.matrices);
  // On a machine with a GPU this takes longer than the measurement.
  for_all(rotation.matrices, [&](std::uint64_t i) {
    // A different seed for each matrix: equal matrices would have equal products.
    const Bytes one =
        random_elements(problem.weights, problem.matrix_elements(), seed + i * 0x632be59bd9b4e019u);
    std::memcpy(all.data() + i * rotation.matrix_bytes, one.data(), one.size());
    products_[i] = gemv_reference(problem, {.a = one, .x = x, .y = {}, .bias = {}, .residual = {}});
    word_sums_[i] = sum_of_words(one);
  });
  a_ = Buffer<b8>(context, all.size());
  a_.write({reinterpret_cast<const std::uint8_t*>(all.data()), all.size()});
  // Copies of the default stream may still run when other streams start.
  context.synchronize();
}

ProductCheck check_product(ElementType type, std::span<const std::byte> y,
                           const GemvReference& reference, const Exactness& exactness) {
  ProductCheck found;
  const Rounding last = rounding_of(type);
  double squares = 0;
  double squared_errors = 0;
  for (std::size_t j = 0; j < reference.y.size(); ++j) {
    const double exact = reference.y[j];
    double bound = gemv_error_bound(reference.magnitude[j], exactness.roundings);
    bound += last.relative * (std::abs(exact) + bound) + last.absolute;
    if (exactness.narrow_parts) bound += last.relative * reference.magnitude[j];
    const double error = std::abs(double{element(type, y, j)} - exact);
    squares += exact * exact;
    squared_errors += error * error;
    // False for NaN.
    if (!(error <= bound)) ++found.outside;
    if (bound > 0) found.worst = std::max(found.worst, error / bound);
  }
  if (squares > 0) found.nmse = squared_errors / squares;
  return found;
}

}  // namespace ptxgen::gemv_bench
