// src/analysis/memory_order.cpp - what memory accesses and fences order
#include "ptxgen/analysis/memory_order.hpp"

namespace ptxgen::inline v0::analysis {

using ptx::Field;
using ptx::Flag;
using ptx::Modifier;
using ptx::StatementKind;

namespace {

// What follows from the word, for accesses that order others.
void apply_order(MemoryOrder& out) noexcept {
  const bool both = out.order == Modifier::acq_rel || out.order == Modifier::sc;
  out.holds_later = both || out.order == Modifier::acquire;
  out.holds_earlier = both || out.order == Modifier::release;
}

}  // namespace

MemoryOrder memory_order(const ptx::Instruction& statement) noexcept {
  MemoryOrder out;
  if (statement.kind == StatementKind::Unknown) {
    return {true, true, true, true, true, Modifier::none, Modifier::none};
  }
  if (statement.kind != StatementKind::Instruction) return out;
  const Flag flags = ptx::info(statement.op).flags;
  out.reads = has(flags, Flag::ReadsMemory);
  out.writes = has(flags, Flag::WritesMemory);
  out.order = statement.get(Field::Order);
  out.scope = statement.get(Field::Scope);
  out.fixed =
      has(flags, Flag::WritesMemory | Flag::Volatile | Flag::Fence | Flag::Barrier | Flag::Call |
                     Flag::Asynchronous | Flag::Convergent | Flag::Branch | Flag::Terminator);
  const bool waits = has(flags, Flag::Barrier | Flag::Call | Flag::Asynchronous);
  const bool is_fence = has(flags, Flag::Fence) && !out.touches_memory();
  // Barriers with an order of their own and fences of one direction hold both ways here, which is
  // more than they ask for: an acquire fence also keeps the loads before it from passing it.
  if (waits || is_fence) {
    out.holds_later = out.holds_earlier = true;
  } else if (has(flags, Flag::Fence)) {
    apply_order(out);
  }
  return out;
}

bool may_swap(const ptx::Instruction& first, const ptx::Instruction& second) noexcept {
  const MemoryOrder a = memory_order(first);
  const MemoryOrder b = memory_order(second);
  const bool a_orders = a.holds_later || a.holds_earlier;
  const bool b_orders = b.holds_later || b.holds_earlier;
  const bool a_takes_part = a_orders || a.touches_memory();
  const bool b_takes_part = b_orders || b.touches_memory();
  if (!a_takes_part || !b_takes_part) return true;
  // What is ordered keeps its place among what orders.
  if (a_orders && b_orders) return false;
  if (a.holds_later || b.holds_earlier) return false;
  if ((a.fixed && a.touches_memory()) && (b.fixed && b.touches_memory())) return false;
  return !a.writes && !b.writes;
}

bool may_vanish(const ptx::Instruction& statement) noexcept {
  return !memory_order(statement).fixed;
}

std::string to_text(const MemoryOrder& order) {
  std::string text;
  const auto add = [&](std::string_view words) {
    text += (text.empty() ? "" : ", ") + std::string(words);
  };
  if (order.reads) add("reads");
  if (order.writes) add("writes");
  if (order.order != Modifier::none || order.scope != Modifier::none) {
    std::string words(ptx::name(order.order));
    if (order.scope != Modifier::none) words += "." + std::string(ptx::name(order.scope));
    add(words);
  }
  if (order.holds_later) add("holds later");
  if (order.holds_earlier) add("holds earlier");
  if (order.fixed) add("fixed");
  return text.empty() ? "nothing" : text;
}

}  // namespace ptxgen::inline v0::analysis
