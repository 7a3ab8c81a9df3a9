// src/check/barrier_safety/values.cpp - what is known of the registers of all threads
#include "check/barrier_safety/values.hpp"

#include <algorithm>

#include "check/barrier_safety/lanes.hpp"

namespace ptxgen::inline v0::gates::barriers {

using namespace ptx;
using analysis::RegisterAccess;

namespace {

// Values of all threads: 9 bytes each.
constexpr std::size_t kMaxCells = std::size_t{1} << 22;

}  // namespace

ThreadValues::ThreadValues(const Subject& subject, const Launch& launch)
    : s_(subject),
      f_(subject.function),
      launch_(launch),
      threads_(launch.threads()),
      slots_(subject.index.size(), kNone) {
  find_wanted();
  const std::size_t cells = std::size_t{slot_count_} * threads_;
  fits_ = cells <= kMaxCells;
  if (!fits_) return;
  values_.assign(cells, 0);
  marks_.assign(cells, Mark::Unknown);
}

// What is computed: everything that leads to a choice of the way or to what a barrier names.
void ThreadValues::find_wanted() {
  computed_.assign(f_.body.size(), false);
  std::vector<std::vector<std::uint32_t>> writers(s_.index.size());
  for (std::uint32_t i = 0; i < f_.body.size(); ++i) {
    analysis::for_each_access(f_, f_.body[i], [&](const RegisterAccess& a) {
      if (a.write) writers[s_.index.find(a.reg)].push_back(i);
    });
  }
  std::vector<std::uint32_t> open;
  const auto want = [&](Register reg) {
    const std::uint32_t at = s_.index.find(reg);
    if (at == kNone || slots_[at] != kNone) return;
    slots_[at] = slot_count_++;
    open.push_back(at);
  };
  const auto want_reads = [&](const Instruction& statement) {
    analysis::for_each_access(f_, statement, [&](const RegisterAccess& a) {
      if (!a.write) want(a.reg);
    });
  };
  for (const analysis::Block& block : s_.cfg.blocks()) {
    if (block.terminator != kNone) want_reads(f_.body[block.terminator]);
  }
  for (const std::uint32_t barrier : s_.barriers) want_reads(f_.body[barrier]);
  while (!open.empty()) {
    const std::uint32_t reg = open.back();
    open.pop_back();
    for (const std::uint32_t writer : writers[reg]) {
      if (computed_[writer]) continue;
      computed_[writer] = true;
      const Instruction& statement = f_.body[writer];
      // What memory holds is not followed, so neither are its addresses.
      if (!has(info(statement.op).flags, Flag::ReadsMemory)) want_reads(statement);
    }
  }
}

Value ThreadValues::register_value(Register reg, std::uint32_t thread) const {
  const std::uint32_t at = s_.index.find(reg);
  if (at == kNone || slots_[at] == kNone) return {};
  const std::size_t cell = std::size_t{slots_[at]} * threads_ + thread;
  return {values_[cell], marks_[cell]};
}
Value ThreadValues::of(const Operand& o, std::uint32_t thread) const {
  switch (o.kind) {
    case OperandKind::Integer:
      return {o.value, Mark::Exact};
    case OperandKind::Register: {
      if (o.component != 0) return {};
      Value made = register_value(o.as_register(), thread);
      if (o.negated) made.bits = made.bits == 0 ? 1 : 0;
      return made;
    }
    case OperandKind::Special: {
      const auto reg = static_cast<SpecialRegister>(o.id);
      if (const auto known = index_value(reg, o.component, thread, launch_.block, true)) {
        const bool of_shape = reg == SpecialRegister::ntid || reg == SpecialRegister::nwarpid;
        return {*known, of_shape && !launch_.exact ? Mark::Sampled : Mark::Exact};
      }
      if (reg == SpecialRegister::ctaid)
        return {o.component == 1 ? launch_.ctaid : 0, Mark::Sampled};
      if (reg == SpecialRegister::nctaid) return {o.component == 1 ? 4u : 1u, Mark::Sampled};
      return {};
    }
    default:
      return {};
  }
}
/// Of a guard; true where there is none.
Value ThreadValues::holds(const Guard& guard, std::uint32_t thread) const {
  if (!guard.present()) return {1, Mark::Exact};
  Value made = register_value(guard.predicate, thread);
  made.bits = (made.bits != 0) != guard.negated ? 1 : 0;
  return made;
}
void ThreadValues::write(Register reg, std::uint32_t thread, Value made) {
  const std::uint32_t at = s_.index.find(reg);
  if (at == kNone || slots_[at] == kNone) return;
  const std::size_t cell = std::size_t{slots_[at]} * threads_ + thread;
  values_[cell] = made.bits;
  marks_[cell] = made.mark;
}

bool ThreadValues::is_parameter(const Instruction& statement) const {
  if (statement.op != Op::ld || space_of(statement.get(Field::Space)) != Space::Param) return false;
  if (!f_.entry || statement.has(Field::Vector)) return false;
  const TypeKind type = kind(statement.type());
  if (type == TypeKind::Float || type == TypeKind::Packed) return false;
  for (const Operand& o : f_.operands_of(statement)) {
    if (o.kind == OperandKind::Memory) return o.base == OperandKind::Symbol;
  }
  return false;
}

void ThreadValues::execute(std::uint32_t number, const Threads& threads, const Threads& left) {
  const Instruction& statement = f_.body[number];
  const auto operands = f_.operands_of(statement);
  if (statement.op == Op::vote_sync || statement.op == Op::vote_sync_ballot) {
    if (vote(statement, threads, left)) return;
  }
  const LaneOp op = lane_op(f_, statement);
  const bool parameter = is_parameter(statement);
  for_each_thread(threads, threads_, [&](std::uint32_t t) {
    const Value guard = holds(statement.guard, t);
    if (guard.mark != Mark::Unknown && guard.bits == 0) {
      // What stays was chosen by the guard.
      analysis::for_each_access(f_, statement, [&](const RegisterAccess& a) {
        if (!a.write) return;
        Value old = register_value(a.reg, t);
        old.mark = std::max(old.mark, guard.mark);
        write(a.reg, t, old);
      });
      return;
    }
    Value made, second;
    if (guard.mark == Mark::Unknown) {
      // Either the old value or the new one.
    } else if (parameter) {
      made = {launch_.parameter, Mark::Sampled};
    } else if (op.known) {
      std::uint64_t sources[kMaxSources] = {};
      Mark mark = guard.mark;
      for (std::size_t i = 0; i < op.sources; ++i) {
        const Value in = of(operands[op.results + i], t);
        sources[i] = in.bits;
        mark = std::max(mark, in.mark);
      }
      if (mark != Mark::Unknown) {
        const LaneResult result = compute(op, sources);
        if (result.known) {
          made = {result.value, mark};
          second = {result.second, mark};
        }
      }
    }
    analysis::for_each_access(f_, statement, [&](const RegisterAccess& a) {
      if (!a.write) return;
      const bool plain = a.component == 0 && operands[a.operand].kind == OperandKind::Register;
      write(a.reg, t, !plain ? Value{} : a.operand == 0 ? made : a.operand == 1 ? second : Value{});
    });
  });
}

/// A vote of lanes that are all there.
bool ThreadValues::vote(const Instruction& statement, const Threads& threads, const Threads& left) {
  const auto operands = f_.operands_of(statement);
  if (statement.guard.present() || operands.size() != 3 ||
      operands[0].kind != OperandKind::Register)
    return false;
  for (std::uint32_t first = 0; first < threads_; first += 32) {
    std::uint32_t named = 0, there = 0, set = 0;
    Mark mark = Mark::Exact;
    bool same_mask = true;
    for (std::uint32_t t = first; t < std::min(first + 32, threads_); ++t) {
      if (!threads[t]) continue;
      const Value mask = of(operands[2], t);
      const Value own = of(operands[1], t);
      mark = std::max({mark, mask.mark, own.mark});
      same_mask = same_mask && (there == 0 || named == static_cast<std::uint32_t>(mask.bits));
      named = static_cast<std::uint32_t>(mask.bits);
      there |= 1u << (t - first);
      if (own.bits != 0) set |= 1u << (t - first);
    }
    if (there == 0) continue;
    std::uint32_t live = 0;
    for (std::uint32_t t = first; t < std::min(first + 32, threads_); ++t) {
      if (!left[t]) live |= 1u << (t - first);
    }
    Value made{0, (named & live) == there && same_mask ? mark : Mark::Unknown};
    const Modifier mode = statement.get(Field::VoteMode);
    if (mode == Modifier::ballot || statement.op == Op::vote_sync_ballot) made.bits = set;
    if (mode == Modifier::all) made.bits = set == there;
    if (mode == Modifier::any) made.bits = set != 0;
    if (mode == Modifier::uni) made.bits = set == 0 || set == there;
    for (std::uint32_t t = first; t < std::min(first + 32, threads_); ++t) {
      if (threads[t]) write(operands[0].as_register(), t, made);
    }
  }
  return true;
}

void ThreadValues::forget(std::uint32_t statement, const Threads& threads) {
  analysis::for_each_access(f_, f_.body[statement], [&](const RegisterAccess& a) {
    if (a.write) for_each_thread(threads, threads_, [&](std::uint32_t t) { write(a.reg, t, {}); });
  });
}

std::optional<std::uint64_t> index_value(SpecialRegister reg, unsigned component,
                                         std::uint32_t thread,
                                         const std::array<std::uint32_t, 3>& block,
                                         bool shape_known) {
  const std::uint32_t lane = thread % 32;
  switch (reg) {
    case SpecialRegister::tid:
      if (component == 4) return 0;
      if (component == 1) return thread % block[0];
      if (!shape_known) return std::nullopt;
      if (component == 2) return thread / block[0] % block[1];
      if (component == 3) return thread / block[0] / block[1];
      return std::nullopt;
    case SpecialRegister::ntid:
      if (!shape_known) return std::nullopt;
      if (component == 4) return 1;
      return component >= 1 && component <= 3 ? std::optional<std::uint64_t>(block[component - 1])
                                              : std::nullopt;
    case SpecialRegister::laneid:
      if (!shape_known) return std::nullopt;
      return lane;
    case SpecialRegister::warpid:
      if (!shape_known) return std::nullopt;
      return thread / 32;
    case SpecialRegister::lanemask_eq:
      return shape_known ? std::optional<std::uint64_t>(1u << lane) : std::nullopt;
    case SpecialRegister::lanemask_lt:
      return shape_known ? std::optional<std::uint64_t>((1u << lane) - 1) : std::nullopt;
    case SpecialRegister::lanemask_le:
      return shape_known ? std::optional<std::uint64_t>((2u << lane) - 1) : std::nullopt;
    case SpecialRegister::lanemask_gt:
      return shape_known ? std::optional<std::uint64_t>(~((2u << lane) - 1)) : std::nullopt;
    case SpecialRegister::lanemask_ge:
      return shape_known ? std::optional<std::uint64_t>(~((1u << lane) - 1)) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace ptxgen::inline v0::gates::barriers
