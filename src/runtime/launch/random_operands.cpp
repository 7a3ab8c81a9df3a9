// src/runtime/launch/random_operands.cpp - random operands of a described kernel
#include "runtime/launch/random_operands.hpp"

#include <cmath>

#include "kernels/quantization/random_blocks.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"
#include "support/random_values.hpp"

namespace ptxgen::inline v0 {

namespace {

std::vector<double> random_between(std::uint64_t count, const ArgumentInfo& info, bool integral,
                                   std::uint64_t seed) {
  const std::vector<float> random = random_values(static_cast<std::size_t>(count), seed);
  std::vector<double> values(random.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double share = (double{random[i]} + 1) / 2;
    values[i] = info.low + share * (info.high - info.low);
    if (integral) values[i] = std::floor(values[i]);
  }
  return values;
}

bool is_integral(ElementType type) {
  return !is_block_format(type) && type != ElementType::e4m3 &&
         ptx::kind(ptxgen::info(type).type) != ptx::TypeKind::Float;
}

}  // namespace

std::vector<std::byte> random_elements(ElementType type, std::uint64_t count,
                                       const ArgumentInfo& info, std::uint64_t seed) {
  if (is_block_format(type)) return random_blocks(type, count, info.low, info.high, seed);
  return to_elements(type, random_between(count, info, is_integral(type), seed));
}

std::vector<std::byte> random_elements(const RepackedRows& rows, std::uint64_t count,
                                       const ArgumentInfo& info, std::uint64_t seed) {
  const std::uint64_t number = count / repacked_bytes(rows.type, rows.columns);
  const std::vector<std::byte> blocks =
      random_elements(rows.type, number * rows.columns, info, seed);
  std::vector<std::byte> repacked(static_cast<std::size_t>(count));
  const std::size_t from = blocks.size() / number;
  const std::size_t to = repacked.size() / number;
  for (std::size_t row = 0; row < number; ++row) {
    repack_row(rows.type, rows.columns, std::span(blocks).subspan(row * from, from),
               std::span(repacked).subspan(row * to, to));
  }
  return repacked;
}

double random_scalar(const ArgumentInfo& info, std::uint64_t seed) {
  const bool integral = ptx::kind(info.scalar) != ptx::TypeKind::Float;
  const double number = random_between(1, info, integral, seed)[0];
  return info.scalar == ptx::Type::f32 ? double{static_cast<float>(number)} : number;
}

std::vector<double> magnitudes_of(ElementType type, std::span<const std::byte> elements) {
  if (!is_block_format(type)) return {};
  std::vector<float> values(elements.size() / bytes(type) * ptxgen::info(type).block_values);
  term_magnitudes(type, elements, values);
  return {values.begin(), values.end()};
}

}  // namespace ptxgen::inline v0
