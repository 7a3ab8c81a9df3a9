// ptxgen/analysis/memory_order.hpp - what memory accesses and fences order
#pragma once

#include <string>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::analysis {

/// The memory ordering of an instruction, from the flags of its row and from its order and scope.
/// Passes check it before they move or remove an instruction.
struct MemoryOrder {
  bool reads = false;
  bool writes = false;
  /// No later access may be moved in front of it: an acquire, a barrier, a fence, a call.
  bool holds_later = false;
  /// No earlier access may be moved after it: a release, a barrier, a fence, a call.
  bool holds_earlier = false;
  /// Never removed, duplicated or merged: everything except weak accesses and plain arithmetic.
  bool fixed = false;
  /// The modifiers, `Modifier::none` if the opcode has none. An atomic operation without an order
  /// is relaxed, without a scope `.gpu`; a fence without an order is acq_rel.
  ptx::Modifier order = ptx::Modifier::none;
  ptx::Modifier scope = ptx::Modifier::none;

  [[nodiscard]] bool touches_memory() const noexcept { return reads || writes; }
  /// Whether no access may be moved across it in either direction.
  [[nodiscard]] bool is_fence() const noexcept { return holds_later && holds_earlier; }
};

/// The memory order of one statement, in constant time. An instruction outside the op table orders
/// everything.
[[nodiscard]] MemoryOrder memory_order(const ptx::Instruction& statement) noexcept;

/// Whether memory ordering allows to swap two adjacent statements; registers are not checked. Two
/// weak accesses of which one writes may not be swapped, since addresses are not compared.
[[nodiscard]] bool may_swap(const ptx::Instruction& first, const ptx::Instruction& second) noexcept;

/// Whether the statement may be removed if its result registers are never read: it accesses no
/// memory, or only reads it weakly.
[[nodiscard]] bool may_vanish(const ptx::Instruction& statement) noexcept;

/// "reads, acquire.gpu, holds later" and so on; "nothing" for arithmetic.
[[nodiscard]] std::string to_text(const MemoryOrder& order);

}  // namespace ptxgen::inline v0::analysis
