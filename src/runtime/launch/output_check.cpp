// src/runtime/launch/output_check.cpp - outputs of a kernel against their reference
#include "runtime/launch/output_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/quantization/blocks.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

bool same_bits(ElementType type, std::span<const std::byte> got, double expected, double value) {
  if (std::isnan(expected)) return std::isnan(value);
  const std::vector<std::byte> bits = to_elements(type, {&expected, 1});
  return std::memcmp(bits.data(), got.data(), bits.size()) == 0;
}

}  // namespace

void OutputCheck::output(ElementType type, std::span<const std::byte> elements,
                         std::span<const std::byte> before,
                         const HostOperands::Operand& reference) {
  if (is_block_format(type)) {
    if (bound_.exact || type != ElementType::q8_0) return blocks(type, elements, before, reference);
    return values_of_blocks(elements, before, reference);
  }
  const std::vector<double> values = to_values(type, elements);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double magnitude =
        i < reference.magnitude.size() ? reference.magnitude[i] : std::abs(reference.values[i]);
    const auto bits = elements.subspan(i * bytes(type), bytes(type));
    one(type, reference.name, i, bits, values[i], reference.values[i], magnitude);
  }
}

// Blocks are compared bit for bit with those of the reference's values. Where it left the values of
// a block, those bits: blocks of no quantised values come back as others.
void OutputCheck::blocks(ElementType type, std::span<const std::byte> got,
                         std::span<const std::byte> before,
                         const HostOperands::Operand& reference) {
  std::vector<std::byte> expected = to_elements(type, reference.values);
  const std::vector<double> values = to_values(type, before);
  const std::ptrdiff_t size = info(type).block_values;
  for (std::size_t at = 0; at < got.size(); at += bytes(type)) {
    const auto first = static_cast<std::ptrdiff_t>(at / bytes(type)) * size;
    const auto old = values.begin() + first;
    if (!std::equal(old, old + size, reference.values.begin() + first)) continue;
    std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(at), bytes(type),
                expected.begin() + static_cast<std::ptrdiff_t>(at));
  }
  for (std::size_t at = 0; at < got.size(); at += bytes(type)) {
    const std::size_t block = at / bytes(type);
    ++result_.compared;
    if (std::memcmp(&got[at], &expected[at], bytes(type)) == 0) continue;
    result_.worst_share = result_.max_error = INFINITY;
    if (result_.wrong++ == 0) {
      result_.first_wrong = format_text("block {} of {} is not that of the values, rounded to {}",
                                        block, reference.name, to_string(type));
    }
  }
}

// Of q8_0 from values that have an error before they are quantised: within the bound and half a
// step of the block, and the rounding of the step to f16. Where the reference left the values of a
// block, they are the same.
void OutputCheck::values_of_blocks(std::span<const std::byte> got,
                                   std::span<const std::byte> before,
                                   const HostOperands::Operand& reference) {
  constexpr ElementType kType = ElementType::q8_0;
  const std::size_t size = info(kType).block_values;
  const std::vector<double> values = to_values(kType, got);
  const std::vector<double> old = to_values(kType, before);
  for (std::size_t first = 0; first < values.size(); first += size) {
    const std::span expected = std::span(reference.values).subspan(first, size);
    const bool left = std::ranges::equal(expected, std::span(old).subspan(first, size));
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < size; ++i) {
      const double magnitude =
          reference.magnitude.empty() ? std::abs(expected[i]) : reference.magnitude[first + i];
      const double within = bound_.relative * magnitude + bound_.absolute + largest / 254 +
                            std::abs(expected[i]) * 0x1p-11;
      value(reference.name, first + i, values[first + i], expected[i], left ? 0 : within);
    }
  }
}

void OutputCheck::one(ElementType type, std::string_view name, std::size_t i,
                      std::span<const std::byte> bits, double got, double expected,
                      double magnitude) {
  if (same_bits(type, bits, expected, got)) {
    ++result_.compared;
    return add(0, expected);
  }
  value(name, i, got, expected,
        bound_.exact ? 0
                     : bound_.relative * magnitude + bound_.absolute +
                           unit_in_last_place(type, expected) / 2);
}

void OutputCheck::value(std::string_view name, std::size_t i, double got, double expected,
                        double within) {
  ++result_.compared;
  const double error = std::abs(got - expected);
  add(error, expected);
  const double share = error == 0 ? 0 : error / within;
  if (!(share <= result_.worst_share)) {
    result_.worst_share = std::isnan(share) ? INFINITY : share;
    result_.worst_bound = within;
  }
  result_.max_error = std::isnan(error) ? INFINITY : std::max(result_.max_error, error);
  if (error <= within) return;
  if (result_.wrong++ == 0) {
    result_.first_wrong =
        format_text("{}[{}] is {}, expected {} +- {:.3g}", name, i, got, expected, within);
  }
}

void OutputCheck::add(double error, double expected) {
  if (std::isfinite(error)) errors_ += error * error;
  if (std::isfinite(expected)) squares_ += expected * expected;
}

}  // namespace ptxgen::inline v0
