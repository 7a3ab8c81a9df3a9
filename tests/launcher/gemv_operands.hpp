// tests/launcher/gemv_operands.hpp - GEMVs of whole numbers, whose results are exact
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "launcher/rig.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "support/half.hpp"

namespace ptxgen::test {

[[nodiscard]] inline GemvProblem gemv_problem(std::uint32_t k, std::uint32_t n,
                                              GemvLayout layout = GemvLayout::T,
                                              ElementType weights = ElementType::f32) {
  GemvProblem problem;
  problem.k = k;
  problem.n = n;
  problem.layout = layout;
  problem.weights = weights;
  return problem;
}

/// A plan that splits each sum into `parts`, as far as it has steps.
[[nodiscard]] inline GemvPlan split_plan(const GemvProblem& problem, std::uint32_t parts) {
  GemvPlan plan;
  plan.problem = problem;
  plan.load_bytes = widest_load(problem);
  plan.warps_out = 1;
  plan.unroll = 4;
  const std::uint64_t blocks = plan.strips() * std::min<std::uint64_t>(plan.steps(), parts);
  plan.blocks = static_cast<std::uint32_t>(blocks);
  return plan;
}

using Bytes = std::vector<std::byte>;

inline void put(Bytes& array, std::size_t i, ElementType type, float value) {
  const std::uint16_t half = type == ElementType::f16 ? float_to_f16(value) : float_to_bf16(value);
  const void* const from = type == ElementType::f32 ? static_cast<const void*>(&value) : &half;
  std::memcpy(array.data() + i * bytes(type), from, bytes(type));
}

/// Numbers from -3 to 3.
[[nodiscard]] inline Bytes whole_numbers(std::uint64_t count, ElementType type,
                                         std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes array(count * bytes(type));
  for (std::size_t i = 0; i < count; ++i) {
    put(array, i, type, static_cast<float>(static_cast<int>(random() % 7) - 3));
  }
  return array;
}

/// Device memory of exactly these bytes, that many bytes after a multiple of 256.
class Placed {
 public:
  Placed() = default;
  Placed(const Context& context, const Bytes& values, std::uint64_t off)
      : off_(off), size_(values.size()), memory_(context, values.size() + off) {
    std::vector<std::uint8_t> all(off + size_, 0xa5);
    if (size_ != 0) std::memcpy(all.data() + off, values.data(), size_);
    memory_.write(all);
  }
  [[nodiscard]] DeviceRange range() const noexcept {
    return {memory_.address().value + off_, size_};
  }
  void write(const Bytes& values, const Stream* stream = nullptr) {
    std::vector<std::uint8_t> all(off_ + size_, 0xa5);
    std::memcpy(all.data() + off_, values.data(), size_);
    memory_.write(all, stream);
  }
  [[nodiscard]] Bytes read() const {
    std::vector<std::uint8_t> all(memory_.size());
    memory_.read(all);
    Bytes values(size_);
    std::memcpy(values.data(), all.data() + off_, size_);
    return values;
  }

 private:
  std::uint64_t off_ = 0;
  std::uint64_t size_ = 0;
  Buffer<u8> memory_;
};

/// The operands of a problem, on the host and on the device. y is between two sentinels.
class GemvCase {
 public:
  GemvCase(const Context& context, const GemvProblem& of, std::uint64_t seed = 1,
           std::uint64_t off = 0)
      : problem(of),
        a_(whole_numbers(of.matrix_elements(), of.weights, seed)),
        x_(whole_numbers(of.k, of.x, seed + 1)),
        y_(whole_numbers(of.n, of.y, seed + 2)),
        bias_(whole_numbers(of.bias ? of.n : 0, of.y, seed + 3)),
        residual_(whole_numbers(of.residual ? of.n : 0, of.y, seed + 4)),
        a(context, a_, off),
        x(context, x_, off),
        y(context, framed(y_), off),
        bias(context, bias_, off),
        residual(context, residual_, off) {}

  [[nodiscard]] GemvOperands operands() const {
    GemvOperands all;
    all.a = a.range();
    all.x = x.range();
    const DeviceRange frame = y.range();
    all.y = {frame.address + kSentinel, frame.bytes - 2 * kSentinel};
    if (problem.bias) all.bias = bias.range();
    if (problem.residual) all.residual = residual.range();
    if (problem.scaled) all.alpha = 2;
    if (problem.scaled) all.beta = 3;
    return all;
  }
  /// The right result, as it is in memory.
  [[nodiscard]] Bytes expected() const {
    GemvInputs inputs;
    inputs.a = a_;
    inputs.x = x_;
    if (problem.scaled) inputs.y = y_;
    inputs.bias = bias_;
    inputs.residual = residual_;
    if (problem.scaled) inputs.alpha = 2;
    if (problem.scaled) inputs.beta = 3;
    const GemvReference reference = gemv_reference(problem, inputs);
    Bytes result(problem.n * bytes(problem.y));
    for (std::size_t i = 0; i < problem.n; ++i) {
      put(result, i, problem.y, static_cast<float>(reference.y[i]));
    }
    return result;
  }
  /// y as it was before, for the next launch.
  void reset(const Stream* stream = nullptr) { y.write(framed(y_), stream); }
  /// After the launch: whether y is right and nothing beside it was touched.
  [[nodiscard]] bool right() const { return y.read() == framed(expected()); }

  GemvProblem problem;

 private:
  static constexpr std::uint64_t kSentinel = 64;
  [[nodiscard]] static Bytes framed(const Bytes& values) {
    Bytes all(values.size() + 2 * kSentinel, std::byte{0x5a});
    std::memcpy(all.data() + kSentinel, values.data(), values.size());
    return all;
  }
  Bytes a_, x_, y_, bias_, residual_;

 public:
  Placed a, x, y, bias, residual;
};

}  // namespace ptxgen::test
