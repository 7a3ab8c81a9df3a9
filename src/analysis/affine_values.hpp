// src/analysis/affine_values.hpp - integer helpers for affine forms
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "analysis/affine_forms.hpp"

namespace ptxgen::inline v0::analysis {

/// What an operation makes of the bits of its operands, `bits` wide each; in the symbol's width.
[[nodiscard]] std::optional<std::uint64_t> apply(const AffineSymbol& operation,
                                                 std::span<const std::uint64_t> operands,
                                                 std::span<const unsigned> bits) noexcept;

/// Evaluates forms, given `leaf(symbol number)`: std::optional<std::int64_t>, the value of a symbol
/// that is no operation. Keeps what it found until `forget`.
template <class Leaf>
class AffineValues {
 public:
  AffineValues(const Affine& affine, Leaf leaf)
      : affine_(affine), leaf_(std::move(leaf)), known_(affine.symbols().size()) {}

  void forget() { ++now_; }

  /// The bits of the form's value; nothing where a symbol has none.
  [[nodiscard]] std::optional<std::uint64_t> bits(const AffineForm& form) {
    const auto result = sum_of(form);
    if (!result) return std::nullopt;
    return pattern(*result, form.bits);
  }
  /// Modulo 2^64, without regard to the form's width.
  [[nodiscard]] std::optional<std::uint64_t> sum_of(const AffineForm& form) {
    auto result = static_cast<std::uint64_t>(form.constant);
    for (const AffineTerm& term : form.terms) {
      auto one = static_cast<std::uint64_t>(term.coefficient);
      for (const std::uint32_t factor : term.symbols) {
        if (factor == ptx::kNone) break;
        const auto value = symbol(factor);
        if (!value) return std::nullopt;
        one *= static_cast<std::uint64_t>(*value);
      }
      result += one;
    }
    return result;
  }
  /// Whether the form, as an integer without bounds, is a number of its width; nothing if that is
  /// unknown.
  [[nodiscard]] std::optional<bool> holds(const AffineAssumption& assumption) {
    const AffineForm& form = affine_.form(assumption.form);
    AffineRange exact = exactly(form.constant);
    for (const AffineTerm& term : form.terms) {
      AffineRange one = exactly(term.coefficient);
      for (const std::uint32_t factor : term.symbols) {
        if (factor == ptx::kNone) break;
        const auto value = symbol(factor);
        if (!value) return std::nullopt;
        one = one * exactly(*value);
      }
      exact = exact + one;
    }
    if (!exact.known) return false;
    if (form.bits >= 64) return assumption.is_signed || exact.min >= 0;
    return within(exact, range_of_width(form.bits, assumption.is_signed));
  }

  [[nodiscard]] std::optional<std::int64_t> symbol(std::uint32_t number) {
    Known& known = known_[number];
    if (known.when == now_) return known.value;
    const AffineSymbol& s = affine_.symbols()[number];
    const auto result = s.kind == AffineSymbol::Kind::Operation ? operation(s) : leaf_(number);
    // `leaf` may have come by here itself.
    known_[number] = {now_, result};
    return result;
  }

 private:
  struct Known {
    std::uint64_t when = 0;
    std::optional<std::int64_t> value;
  };
  std::optional<std::int64_t> operation(const AffineSymbol& s) {
    std::array<std::uint64_t, 3> values{};
    std::array<unsigned, 3> widths{};
    std::size_t count = 0;
    for (const std::uint32_t operand : s.operands) {
      if (operand == ptx::kNone) break;
      const AffineForm& form = affine_.form(operand);
      const auto value = bits(form);
      if (!value) return std::nullopt;
      values[count] = *value;
      widths[count++] = form.bits;
    }
    const auto result = apply(s, std::span(values.data(), count), std::span(widths.data(), count));
    if (!result) return std::nullopt;
    return s.is_signed ? signed_bits(*result, s.bits)
                       : static_cast<std::int64_t>(pattern(*result, s.bits));
  }

  const Affine& affine_;
  Leaf leaf_;
  std::vector<Known> known_;
  std::uint64_t now_ = 1;
};

}  // namespace ptxgen::inline v0::analysis
