// src/kernels/gemv/reference.cpp - a GEMV in fp64
#include <cmath>
#include <cstring>
#include <string>

#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/half.hpp"

namespace ptxgen::inline v0 {

namespace {

double element(std::span<const std::byte> array, std::uint64_t i, ElementType type) {
  if (type == ElementType::f32) {
    float value = 0;
    std::memcpy(&value, array.data() + 4 * i, sizeof value);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, array.data() + 2 * i, sizeof bits);
  return type == ElementType::f16 ? f16_to_float(bits) : bf16_to_float(bits);
}

void demand_size(std::string_view name, std::span<const std::byte> array, std::uint64_t elements,
                 ElementType type) {
  const std::uint64_t wanted = bytes(type, elements);
  if (array.size() == wanted) return;
  throw Error(Stage::Launch, "bad-size",
              format_text("{} has {} B; {} of {} have {} B", name, array.size(),
                          count_text(elements, "element"), to_string(type), wanted));
}

void demand_sizes(const GemvProblem& p, const GemvInputs& inputs) {
  demand_size("a", inputs.a, p.matrix_elements(), p.weights);
  demand_size("x", inputs.x, p.k, p.x);
  demand_size("y", inputs.y, p.scaled ? p.n : 0, p.y);
  demand_size("bias", inputs.bias, p.bias ? p.n : 0, p.y);
  demand_size("residual", inputs.residual, p.residual ? p.n : 0, p.y);
}

// The elements of a block format as f32: exact.
std::vector<float> unpacked(ElementType type, std::span<const std::byte> blocks) {
  std::vector<float> values(blocks.size() / bytes(type) * info(type).block_values);
  dequantize(type, blocks, values);
  return values;
}

GemvReference computed(const GemvProblem& problem, const GemvInputs& inputs) {
  const std::uint64_t pitch = problem.leading_dimension();
  const bool t = problem.layout == GemvLayout::T;
  GemvReference reference{std::vector<double>(problem.n), std::vector<double>(problem.n)};
  const auto add = [&](std::uint64_t j, double term) {
    reference.y[j] += term;
    reference.magnitude[j] += std::abs(term);
  };
  // In memory order of the matrix.
  const std::uint64_t rows = t ? problem.k : problem.n;
  const std::uint64_t columns = t ? problem.n : problem.k;
  const double alpha = problem.scaled ? double{inputs.alpha} : 1.0;
  std::vector<double> x(problem.k);
  for (std::uint64_t i = 0; i < problem.k; ++i) x[i] = alpha * element(inputs.x, i, problem.x);
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t column = 0; column < columns; ++column) {
      const double weight = element(inputs.a, row * pitch + column, problem.weights);
      add(t ? column : row, weight * x[t ? row : column]);
    }
  }
  for (std::uint64_t j = 0; j < problem.n; ++j) {
    if (problem.scaled) add(j, double{inputs.beta} * element(inputs.y, j, problem.y));
    if (problem.bias) add(j, element(inputs.bias, j, problem.y));
    if (problem.residual) add(j, element(inputs.residual, j, problem.y));
  }
  return reference;
}

}  // namespace

GemvReference gemv_reference(const GemvProblem& problem, const GemvInputs& inputs) {
  check(problem);
  demand_sizes(problem, inputs);
  GemvProblem in_f32 = problem;
  GemvInputs of_f32 = inputs;
  std::vector<float> weights, x;
  if (is_block_format(problem.weights)) {
    weights = unpacked(problem.weights, inputs.a);
    in_f32.weights = ElementType::f32;
    of_f32.a = std::as_bytes(std::span(weights));
  }
  if (is_block_format(problem.x)) {
    x = unpacked(problem.x, inputs.x);
    in_f32.x = ElementType::f32;
    of_f32.x = std::as_bytes(std::span(x));
  }
  return computed(in_f32, of_f32);
}

}  // namespace ptxgen::inline v0
