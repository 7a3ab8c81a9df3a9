// tests/kernels/gemv_blocks_run.cpp - GEMVs with weights in blocks on the emulator
#include "gemv_blocks_run.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ptx/dice.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"

namespace ptxgen::test {
namespace {

double share(Dice& dice) { return static_cast<double>((dice.bits() >> 11) + 1) * 0x1p-53; }

float draw(Dice& dice, XValues values) {
  if (values == XValues::Uniform) return static_cast<float>(2 * share(dice) - 1);
  const double radius = std::sqrt(-2 * std::log(share(dice)));
  return static_cast<float>(radius * std::cos(2 * std::numbers::pi * share(dice)));
}

std::vector<std::byte> random_blocks(Dice& dice, ElementType type, std::uint64_t values) {
  std::vector<std::byte> blocks(static_cast<std::size_t>(bytes(type, values)));
  for (std::byte& byte : blocks) byte = static_cast<std::byte>(dice.bits() >> 13);
  for (std::size_t at = 0; at < blocks.size(); at += bytes(type)) {
    for (const std::uint8_t field : half_fields(type)) {
      const std::span<std::byte> half(&blocks[at + field], 2);
      set_element(half, ElementType::f16, 0, draw(dice, XValues::Uniform) / 64);
    }
  }
  return blocks;
}

std::vector<std::byte> as(ElementType type, std::span<const float> values) {
  std::vector<std::byte> list(static_cast<std::size_t>(bytes(type, values.size())));
  if (is_block_format(type)) {
    quantize(type, values, list);
    return list;
  }
  for (std::size_t i = 0; i < values.size(); ++i) set_element(list, type, i, values[i]);
  return list;
}

}  // namespace

std::vector<std::byte> repacked_rows(const GemvProblem& problem,
                                     std::span<const std::byte> blocks) {
  std::vector<std::byte> rows(static_cast<std::size_t>(problem.matrix_bytes()));
  const std::size_t from = blocks.size() / problem.n;
  const std::size_t to = rows.size() / problem.n;
  for (std::size_t j = 0; j < problem.n; ++j) {
    repack_row(problem.weights, problem.k, blocks.subspan(j * from, from),
               std::span(rows).subspan(j * to, to));
  }
  return rows;
}

BlocksData make_blocks_data(const GemvCase& point, XValues values) {
  const GemvProblem& problem = point.plan.problem;
  Dice dice(point.seed);
  BlocksData result;
  result.data.a = random_blocks(dice, problem.weights, problem.matrix_elements());
  if (problem.repacked) result.data.a = repacked_rows(problem, result.data.a);
  result.original_x.resize(problem.k);
  for (float& x : result.original_x) x = draw(dice, values);
  result.data.x = as(problem.x, result.original_x);
  std::vector<float> outputs(problem.n);
  const auto draw_outputs = [&] {
    for (float& y : outputs) y = draw(dice, XValues::Uniform);
    return as(problem.y, outputs);
  };
  result.data.y = draw_outputs();
  if (problem.bias) result.data.bias = draw_outputs();
  if (problem.residual) result.data.residual = draw_outputs();
  if (problem.scaled) {
    result.data.alpha = -1.7f;
    result.data.beta = 0.6f;
  }
  return result;
}

std::vector<float> stored_x(const GemvProblem& problem, const GemvData& data) {
  std::vector<float> x(problem.k);
  if (is_block_format(problem.x)) {
    dequantize(problem.x, data.x, x);
    return x;
  }
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = element(data.x, problem.x, i);
  return x;
}

double blocks_nmse(const GemvProblem& problem, const GemvData& data, std::span<const float> x,
                   std::span<const std::byte> y) {
  const auto row_bytes = static_cast<std::size_t>(problem.row_bytes());
  std::vector<float> row(problem.k);
  const std::size_t used = static_cast<std::size_t>(bytes(problem.weights, problem.k));
  std::vector<std::byte> blocks(used);
  double errors = 0;
  double squares = 0;
  for (std::size_t j = 0; j < problem.n; ++j) {
    if (problem.repacked) {
      unpack_row(problem.weights, problem.k, std::span(data.a).subspan(j * row_bytes, row_bytes),
                 blocks);
    } else {
      std::copy_n(data.a.begin() + static_cast<std::ptrdiff_t>(j * row_bytes), used,
                  blocks.begin());
    }
    dequantize(problem.weights, blocks, row);
    double sum = 0;
    for (std::size_t i = 0; i < row.size(); ++i) sum += double{row[i]} * double{x[i]};
    if (problem.scaled) {
      sum = double{data.alpha} * sum + double{data.beta} * double{element(data.y, problem.y, j)};
    }
    if (problem.bias) sum += double{element(data.bias, problem.y, j)};
    if (problem.residual) sum += double{element(data.residual, problem.y, j)};
    const double error = double{element(y, problem.y, j)} - sum;
    errors += error * error;
    squares += sum * sum;
  }
  return squares > 0 ? errors / squares : errors;
}

GemvCase blocks_layer(ElementType weights, ElementType x, std::uint32_t n, std::uint32_t k) {
  GemvCase point;
  point.target = "sm_90a";
  GemvProblem& problem = point.plan.problem;
  problem.layout = GemvLayout::R;
  problem.weights = weights;
  problem.x = x;
  problem.n = n;
  problem.k = k;
  return point;
}

}  // namespace ptxgen::test
