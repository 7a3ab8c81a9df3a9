// src/analysis/evaluate.hpp - what instructions without effects compute from known sources
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/operand_specs.hpp"

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

/// Integer arithmetic, comparison, selection, logic, shifts, moves and conversion between integers.
/// `known[i]`: of operand i (0 the first as written), where it is a source and known, the bits of
/// its operand type, zero-extended, a predicate 0 or 1 with `!` applied. What does not depend on
/// unknown sources is found too (`x * 0`, `x - x`, `selp` of equals); what PTX leaves open
/// (division by zero) is unknown, and so is everything with effects. Exact: the emulator computes
/// the same.
/// Without `names`, that two operands name one register says nothing.
[[nodiscard]] Outcome evaluate(const ptx::Function& function, const ptx::Instruction& instruction,
                               std::span<const std::optional<std::uint64_t>> known,
                               bool names = true);
/// The same for whoever has looked up what the op table says of the operands.
[[nodiscard]] Outcome evaluate(const ptx::Function& function, const ptx::Instruction& instruction,
                               const ptx::OperandSpecs& specs,
                               std::span<const std::optional<std::uint64_t>> known, bool names);

/// The bits of a constant as an operand of that type; nothing if it is none, or if the type does
/// not say how it is meant.
[[nodiscard]] std::optional<std::uint64_t> constant_bits(const ptx::Operand& operand,
                                                         ptx::Type type);
/// The lowest `width` bits.
[[nodiscard]] constexpr std::uint64_t low_bits(std::uint64_t bits, unsigned width) noexcept {
  return width >= 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}
/// The value of the lowest bits, extended to 64 bits by the type's rule.
[[nodiscard]] std::uint64_t extended(std::uint64_t bits, ptx::Type type) noexcept;

}  // namespace ptxgen::inline v0::analysis
