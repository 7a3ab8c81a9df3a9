// src/analysis/evaluate.hpp - results of instructions without effects from known sources
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "ptx/semantics/bits.hpp"
#include "ptx/semantics/scalar.hpp"

namespace ptxgen::inline v0::analysis {

/// What is known of an instruction's result.
struct Outcome {
  enum class Kind : std::uint8_t {
    Unknown,
    Values,    ///< `values`, one for each destination as written
    Source,    ///< the only destination gets what operand `source` holds (`!` applied)
    Opposite,  ///< the only destination, a predicate, gets the opposite of that
  };
  Kind kind = Kind::Unknown;
  std::uint8_t count = 0;  ///< of destinations
  std::uint16_t source = 0;
  std::array<std::uint64_t, 2> values{};
};

/// One instruction, looked up once and evaluated on many sets of sources. Rows: integer arithmetic,
/// bit fields, logic, shifts, comparison, selection, moves and conversion between integers, as
/// `ptx/semantics` defines them. Refers to the function.
class Evaluator {
 public:
  Evaluator(const ptx::Function& function, const ptx::Instruction& instruction,
            const ptx::OperandSpecs& specs);

  /// `known[i]`: if operand i (0 the first as written) is a source and known, the bits of its
  /// operand type, zero-extended, a predicate 0 or 1 with `!` applied. Also finds results that do
  /// not depend on unknown sources (`x * 0`, `x - x`, `selp` of equals). Results that PTX leaves
  /// undefined (division by zero) are unknown, and so is every instruction with effects. Exact:
  /// the emulator computes the same. Without `names`, two operands that name one register are not
  /// assumed to be equal.
  [[nodiscard]] Outcome operator()(std::span<const std::optional<std::uint64_t>> known,
                                   bool names = true) const;
  /// The row, for callers that know all sources.
  [[nodiscard]] const ptx::ScalarRow& row() const noexcept { return row_; }

 private:
  const ptx::Instruction* instruction_;
  std::span<const ptx::Operand> operands_;
  ptx::ScalarRow row_;
};

/// Evaluates an instruction once.
[[nodiscard]] Outcome evaluate(const ptx::Function& function, const ptx::Instruction& instruction,
                               std::span<const std::optional<std::uint64_t>> known,
                               bool names = true);
/// The same for callers that have the operand specifications.
[[nodiscard]] Outcome evaluate(const ptx::Function& function, const ptx::Instruction& instruction,
                               const ptx::OperandSpecs& specs,
                               std::span<const std::optional<std::uint64_t>> known, bool names);

/// The bits of a constant as an operand of that type; nothing if it is none, or if the type does
/// not say how it is meant.
[[nodiscard]] std::optional<std::uint64_t> constant_bits(const ptx::Operand& operand,
                                                         ptx::Type type);
using ptx::low_bits;
/// The value of the lowest bits, extended to 64 bits by the type's rule.
[[nodiscard]] std::uint64_t extended(std::uint64_t bits, ptx::Type type) noexcept;

}  // namespace ptxgen::inline v0::analysis
