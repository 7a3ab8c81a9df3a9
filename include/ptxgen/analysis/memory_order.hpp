// ptxgen/analysis/memory_order.hpp - what memory accesses and fences order
#pragma once

#include <string>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::analysis {

/// The part of an instruction in the order of memory accesses, from the flags of its row and from
/// its order and scope. Passes ask it before they move or remove something; ordering by tokens can
/// add to it without asking more of them.
struct MemoryOrder {
  bool reads = false;
  bool writes = false;
  /// No later access may be moved in front of it: an acquire, a barrier, a fence, a call.
  bool holds_later = false;
  /// No earlier access may be moved behind it: a release, a barrier, a fence, a call.
  bool holds_earlier = false;
  /// It takes place as often as the text says: never removed, doubled or merged with another.
  /// Everything but weak accesses and plain arithmetic.
  bool fixed = false;
  /// The words, `Modifier::none` where the opcode has none. An atomic operation without an order is
  /// relaxed, without a scope `.gpu`; a fence without an order is acq_rel.
  ptx::Modifier order = ptx::Modifier::none;
  ptx::Modifier scope = ptx::Modifier::none;

  [[nodiscard]] bool touches_memory() const noexcept { return reads || writes; }
  /// Whether nothing at all may pass it, in either direction.
  [[nodiscard]] bool is_fence() const noexcept { return holds_later && holds_earlier; }
};

/// Of one statement, in constant time. What is outside the op table may do anything: it holds all.
[[nodiscard]] MemoryOrder memory_order(const ptx::Instruction& statement) noexcept;

/// Whether two statements, `first` right in front of `second`, may change places as far as memory
/// is concerned; registers are not looked at. Weak accesses of which one writes may not either,
/// since the addresses are not compared.
[[nodiscard]] bool may_swap(const ptx::Instruction& first, const ptx::Instruction& second) noexcept;

/// Whether the statement may go if nobody reads what it writes to registers: it touches no memory,
/// or reads it weakly.
[[nodiscard]] bool may_vanish(const ptx::Instruction& statement) noexcept;

/// "reads, acquire.gpu, holds later" and so on; "nothing" for arithmetic.
[[nodiscard]] std::string to_text(const MemoryOrder& order);

}  // namespace ptxgen::inline v0::analysis
