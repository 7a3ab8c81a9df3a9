// src/optimize/tokens/memory_uses.cpp - statements that a barrier may order, and their conflicts
#include "optimize/tokens/memory_uses.hpp"

#include <algorithm>

#include "analysis/affine_forms.hpp"
#include "ptx/clock.hpp"
#include "ptx/vector_elements.hpp"
#include "ptxgen/analysis/memory_order.hpp"

namespace ptxgen::inline v0::optimize {

using namespace ptx;
using analysis::AffineForm;
using analysis::kNoNode;
using analysis::Overlap;

namespace {

/// Threads evaluated for all comparisons of a function; beyond, everything conflicts.
constexpr std::uint64_t kMaxWork = 5'000'000;

bool reads_clock(const Function& function, const Instruction& s) {
  const auto operands = function.operands_of(s);
  return std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
    return operand.kind == OperandKind::Special &&
           is_clock(static_cast<SpecialRegister>(operand.id));
  });
}

/// Sets space, address and bytes. The bytes of everything but plain and atomic accesses are not
/// known, nor are those of other blocks of a cluster.
void locate(const Function& function, const Instruction& s, MemoryUse& use) {
  const std::string_view mnemonic = info(s.op).mnemonic;
  const Modifier space = s.get(Field::Space);
  use.space = space_of(space);
  const bool plain = mnemonic == "ld" || mnemonic == "ldu" || mnemonic == "st" ||
                     mnemonic == "atom" || mnemonic == "red";
  use.bytes = bytes(s.type()) * vector_elements(s);
  use.anywhere = !plain || use.bytes == 0 || s.is(Op::st_bulk) || space == Modifier::shared_cluster;
  const auto operands = function.operands_of(s);
  for (std::uint32_t i = 0; i < operands.size(); ++i) {
    if (operands[i].kind != OperandKind::Memory) continue;
    use.operand = i;
    return;
  }
  use.anywhere = true;
}

bool seen_by_all(Space space) {
  return space == Space::Generic || space == Space::Global || space == Space::Shared;
}

}  // namespace

std::optional<MemoryUse> memory_use(const Function& function, std::uint32_t statement) {
  const Instruction& s = function.body[statement];
  MemoryUse use;
  use.statement = statement;
  if (s.kind == StatementKind::Unknown) {
    use.opaque = true;
    return use;
  }
  // A warp's barrier keeps its place among the statements of each thread.
  if (s.kind != StatementKind::Instruction || s.op == Op::bar_warp_sync) return std::nullopt;
  if (s.op == Op::trap || s.op == Op::brkpt) return std::nullopt;
  const OpInfo& row = info(s.op);
  const analysis::MemoryOrder order = analysis::memory_order(s);
  const bool accesses = order.touches_memory() && row.mnemonic != "mbarrier" &&
                        !has(row.flags, Flag::Call | Flag::Asynchronous | Flag::Barrier);
  // It reads shared and writes global memory.
  const bool both = s.op == Op::tensormap_cp_fenceproxy;
  use.opaque =
      both || reads_clock(function, s) ||
      (accesses ? order.order == Modifier::volatile_ || order.order == Modifier::mmio
                : order.touches_memory() || order.is_fence() || has(row.flags, Flag::Volatile));
  if (use.opaque) return use;
  if (!accesses) return std::nullopt;
  use.reads = order.reads;
  use.writes = order.writes;
  use.acquires = order.holds_later;
  use.releases = order.holds_earlier;
  use.strong = row.mnemonic == "atom" || row.mnemonic == "red" ||
               (order.order != Modifier::none && order.order != Modifier::weak);
  locate(function, s, use);
  use.wide =
      use.strong && order.scope != Modifier::cta && (use.space != Space::Shared || use.anywhere);
  if (!seen_by_all(use.space)) return std::nullopt;
  return use;
}

Conflicts::Conflicts(analysis::Facts& facts)
    : facts_(facts), block_(analysis::block_bounds(facts.function())) {
  threads_ = std::uint64_t{block_.size[0]} * block_.size[1] * block_.size[2];
}

Conflict Conflicts::of(const MemoryUse& first, const MemoryUse& second, std::uint32_t loop) {
  if (first.opaque || second.opaque) return {"opaque", {}, {}};
  const bool blocks = (first.wide && first.reads) || (second.wide && second.writes);
  const bool orders = first.acquires || second.releases || blocks;
  const bool apart = first.space != second.space && first.space != Space::Generic &&
                     second.space != Space::Generic;
  const bool strong = first.strong && second.strong;
  if (!orders && (apart || (!first.writes && !second.writes && !strong))) return {};
  if (orders || first.anywhere || second.anywhere) {
    if (by_one_thread(first, second, loop)) return {};
    if (first.acquires) return {"acquire", {}, {}};
    if (second.releases) return {"release", {}, {}};
    return {blocks ? "other-blocks" : "may-conflict", {}, {}};
  }
  const AffineForm a = address(first), b = address(second);
  const Variable* const of_a = variable(a);
  const Variable* const of_b = variable(b);
  // Variables without a size share the dynamic shared memory.
  const bool sized =
      of_a != nullptr && of_b != nullptr && size_in_bytes(*of_a) != 0 && size_in_bytes(*of_b) != 0;
  if (sized && of_a != of_b) return {};
  const analysis::OverlapAnswer answer =
      overlap(a, first.bytes, first, b, second.bytes, second, loop);
  if (answer.kind == Overlap::Never) return {};
  if (answer.kind == Overlap::Possible) return {"conflict", answer.first, answer.second};
  return {"may-conflict", {}, {}};
}

/// Whether no two threads execute the two, as where both are done by thread 0: they are then
/// ordered by the program of that thread. As a question: whether two accesses of byte 0 overlap.
bool Conflicts::by_one_thread(const MemoryUse& first, const MemoryUse& second, std::uint32_t loop) {
  const AffineForm byte = analysis::constant_form(0, 64);
  return overlap(byte, 1, first, byte, 1, second, loop).kind == Overlap::Never;
}

analysis::OverlapAnswer Conflicts::overlap(const AffineForm& first, std::uint32_t first_bytes,
                                           const MemoryUse& a, const AffineForm& second,
                                           std::uint32_t second_bytes, const MemoryUse& b,
                                           std::uint32_t loop) {
  work_ += threads_;
  if (work_ > kMaxWork) return {};
  analysis::OverlapQuestion question;
  question.block = block_;
  question.common_loop = loop;
  question.no_wrap = true;
  return analysis::may_overlap(facts_.affine(), {first, first_bytes, conditions(a.statement)},
                               {second, second_bytes, conditions(b.statement)}, question);
}

AffineForm Conflicts::address(const MemoryUse& use) const {
  const Function& function = facts_.function();
  AffineForm form = facts_.affine().of(
      use.statement, function.operands_of(function.body[use.statement])[use.operand]);
  // Addresses of the window fit 32 bits, whatever names them.
  return use.space == Space::Shared ? analysis::resized(form, 32) : form;
}

const Variable* Conflicts::variable(const AffineForm& address) const {
  const std::uint32_t term = facts_.affine().base_term(address);
  if (term == kNone) return nullptr;
  const analysis::AffineTerm& base = address.terms[term];
  const analysis::AffineSymbol& symbol = facts_.affine().symbols()[base.symbols[0]];
  if (symbol.kind != analysis::AffineSymbol::Kind::Address || base.coefficient != 1 ||
      base.symbols[1] != kNone) {
    return nullptr;
  }
  return analysis::variable_of(facts_.module(), symbol.id);
}

std::vector<AffineForm> Conflicts::conditions(std::uint32_t statement) {
  const std::uint32_t block = facts_.cfg().block_of(statement);
  const auto [at, inserted] = of_blocks_.try_emplace(block);
  if (inserted) find_conditions(block, at->second);
  std::vector<AffineForm> all = at->second;
  if (facts_.function().body[statement].guard.present())
    all.push_back(facts_.affine().guard(statement));
  return all;
}

void Conflicts::find_conditions(std::uint32_t home, std::vector<AffineForm>& out) const {
  const Function& function = facts_.function();
  const analysis::Cfg& cfg = facts_.cfg();
  constexpr int kMaxBranches = 16;
  std::uint32_t below = home;
  for (int step = 0; step < kMaxBranches; ++step) {
    const std::uint32_t block = cfg.dominators().immediate(below);
    if (block == kNoNode || block >= cfg.blocks().size()) return;
    below = block;
    const std::uint32_t end = cfg.blocks()[block].terminator;
    const auto successors = cfg.successors(block);
    if (end == kNone || !function.body[end].guard.present() || successors.size() != 2 ||
        function.body[end].op == Op::brx_idx) {
      continue;
    }
    for (std::size_t way = 0; way < 2; ++way) {
      const std::uint32_t to = successors[way];
      if (to >= cfg.blocks().size() || !cfg.dominators().dominates(to, home)) continue;
      const auto from = cfg.predecessors(to);
      const bool only = std::all_of(from.begin(), from.end(), [&](std::uint32_t p) {
        return p == block || cfg.dominators().dominates(to, p);
      });
      if (!only) continue;
      AffineForm taken = facts_.affine().guard(end);
      // The first successor is the target of the branch. Of a predicate p + 1 is !p.
      if (way == 1) taken = analysis::sum(taken, analysis::constant_form(1, taken.bits));
      out.push_back(std::move(taken));
    }
  }
}

}  // namespace ptxgen::inline v0::optimize
