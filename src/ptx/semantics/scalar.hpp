// src/ptx/semantics/scalar.hpp - what integer, logic and comparison rows compute for one lane
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "ptxgen/ptx/operand_specs.hpp"

namespace ptxgen::inline v0::ptx {

/// The modifiers of one instruction, read once for many lanes. What a row does not have is zero.
struct ScalarOp {
  Op op{};
  Type type = Type::none;   ///< the opcode's first type
  Type type2 = Type::none;  ///< its second one (cvt: of the source)
  Type type3 = Type::none;
  Modifier rounding = Modifier::none;  ///< rn rz rm rp, rni rzi rmi rpi
  Modifier comparison = Modifier::none;
  Modifier boolean = Modifier::none;  ///< and or xor popc
  Modifier mode = Modifier::none;     ///< lo hi wide, l r, clamp wrap, f4e .., float class, approx
  bool ftz = false;
  bool sat = false;  ///< .sat
  bool satfinite = false;
  bool relu = false;
  bool nan = false;  ///< .NaN
  bool xorsign = false;
  bool abs = false;
  bool approx = false;
  bool carry_out = false;  ///< .cc
  bool shiftamt = false;
  bool clamp = false;
  std::uint8_t source_count = 0;  ///< 64-bit words of `sources`, without the carry
  std::uint8_t result_count = 0;
  std::uint32_t extra = 0;  ///< free for the semantics of a row
};

/// Computes one lane. `sources`: the source operands in the order in which they are written,
/// braces flattened, each as the zero-extended bits of its operand type (a predicate is 0 or 1,
/// `!p` already applied; 128 bits take two words, the low one first). A missing optional source is
/// left out, and `source_count` tells. `results` likewise for the destinations; `_` and a missing
/// second destination keep their place. Rows that read the carry flag find it (0 or 1) after the
/// last source; rows that write it (`carry_out`) put it after the last result. Never fails.
using ScalarFunction = void (*)(const ScalarOp& op, const std::uint64_t* sources,
                                std::uint64_t* results);

/// The modifiers of any instruction of the table, without the counts.
[[nodiscard]] ScalarOp scalar_op(const Instruction& instruction) noexcept;

/// The semantics of an integer, logic, shift, bit-field, comparison or selection row, a move or a
/// conversion between integers; nullptr for other rows.
[[nodiscard]] ScalarFunction scalar_function(const ScalarOp& op) noexcept;

/// Whether PTX defines the result for these sources. If not (division by zero, a base above 31 of
/// fns), the function gives what `integer.cpp` lists.
[[nodiscard]] bool is_defined(const ScalarOp& op, const std::uint64_t* sources) noexcept;

/// One instruction looked up for evaluation on known sources: a row of `scalar_function` without
/// effects whose operands are no vectors and have at most 64 bits.
class ScalarRow {
 public:
  static constexpr std::size_t kMaxSources = 6;
  using Results = std::array<std::uint64_t, 2>;  ///< one for each destination

  /// Unless `with_function`, only the operands: `resolved` gives the complete row.
  ScalarRow(const Function& function, const Instruction& instruction, const OperandSpecs& specs,
            bool with_function = true);
  [[nodiscard]] ScalarRow resolved(const Instruction& instruction) const;

  /// Whether the operands are registers, constants and the like with one word each.
  [[nodiscard]] bool fits() const noexcept { return destinations_ != 0; }
  /// Whether the row is one of `scalar_function`.
  [[nodiscard]] explicit operator bool() const noexcept { return function_ != nullptr; }

  [[nodiscard]] std::size_t sources() const noexcept { return sources_; }
  [[nodiscard]] std::size_t destinations() const noexcept { return destinations_; }
  /// The operand that source `i` is.
  [[nodiscard]] std::size_t operand(std::size_t i) const noexcept { return operands_[i]; }

  /// What the instruction computes from these sources, in their order; nothing if PTX leaves the
  /// result undefined or the row is not known.
  [[nodiscard]] std::optional<Results> operator()(
      std::span<const std::uint64_t> sources) const noexcept {
    if (function_ == nullptr || !is_defined(op_, sources.data())) return std::nullopt;
    Results results{};
    function_(op_, sources.data(), results.data());
    return results;
  }

 private:
  ScalarOp op_;
  ScalarFunction function_ = nullptr;
  std::size_t sources_ = 0, destinations_ = 0;
  std::array<std::uint8_t, kMaxSources> operands_{};
};

/// Parts of scalar_function; nullptr for rows of other parts.
[[nodiscard]] ScalarFunction integer_function(const ScalarOp& op) noexcept;
[[nodiscard]] ScalarFunction logic_function(const ScalarOp& op) noexcept;
[[nodiscard]] ScalarFunction comparison_function(const ScalarOp& op) noexcept;

}  // namespace ptxgen::inline v0::ptx
