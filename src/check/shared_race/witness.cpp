// src/check/shared_race/witness.cpp - executes two threads to prove a race
#include "check/shared_race/witness.hpp"

#include <algorithm>

namespace ptxgen::inline v0::gates {

using namespace ptx;

namespace {

/// Typical sizes: many iterations, a partial last one, few, none.
constexpr std::uint64_t kParameters[] = {4096, 1000, 257, 64, 33, 7, 1, 0};
constexpr std::uint64_t kPointer = 0x7f00'0000'0000;
constexpr std::uint32_t kMaxStatements = 4000;

std::uint64_t size_of(const Variable& variable) {
  return std::min<std::uint64_t>(size_in_bytes(variable), 1u << 24);
}

}  // namespace

struct Witnesses::Run {
  std::uint32_t thread;
  Bits parameter;  ///< nothing: unknown
  Event now = {};  ///< fields of the next access
  Threads self;    ///< the thread alone
  KnownValues values;
  std::vector<bool> visited;             ///< by block
  std::uint32_t assumption_end = kNone;  ///< where the first assumed guard ends
  bool assumed_outside = false;          ///< the thread has reached that point
};

Witnesses::Witnesses(analysis::Facts& facts, const std::vector<SharedAccess>& accesses,
                     const std::vector<Orders>& orders, ThreadValueClasses& values,
                     std::array<std::uint32_t, 3> shape)
    : facts_(facts),
      accesses_(accesses),
      shape_(shape),
      orders_(orders),
      needed_(facts.function(), facts.index(), roots()),
      values_(values) {
  const Function& function = facts.function();
  first_access_.assign(function.body.size() + 1, 0);
  for (const SharedAccess& access : accesses) ++first_access_[access.statement + 1];
  for (std::size_t i = 0; i < function.body.size(); ++i) first_access_[i + 1] += first_access_[i];
  lay_out();
}

std::vector<std::uint32_t> Witnesses::roots() const {
  const Function& function = facts_.function();
  const analysis::RegisterIndex& index = facts_.index();
  std::vector<std::uint32_t> found;
  for (const Instruction& s : function.body) {
    if (s.kind == StatementKind::Instruction && s.guard.present())
      found.push_back(index.find(s.guard.predicate));
  }
  for (const SharedAccess& access : accesses_) {
    analysis::for_each_access(function, function.body[access.statement],
                              [&](const analysis::RegisterAccess& a) {
                                if (!a.write) found.push_back(index.find(a.reg));
                              });
  }
  return found;
}

void Witnesses::lay_out() {
  const Module& module = facts_.module();
  const Function& function = facts_.function();
  // A function can only address variables that it names.
  for (const Operand& operand : function.operands) {
    const bool named = operand.kind == OperandKind::Symbol ||
                       (operand.kind == OperandKind::Memory && operand.base == OperandKind::Symbol);
    if (named && operand.id < module.symbols.size()) bases_.emplace(operand.id, 0);
  }
  std::uint64_t next = 0;
  std::vector<std::uint32_t> unsized;
  for (auto at = bases_.begin(); at != bases_.end();) {
    const Variable* variable = analysis::variable_of(module, at->first);
    if (variable == nullptr || variable->space != Space::Shared) {
      at = bases_.erase(at);
      continue;
    }
    if (variable->linkage == Linkage::Extern) {
      unsized.push_back(at->first);
    } else {
      constexpr std::uint64_t kAlignment = 128;
      at->second = next;
      next += (size_of(*variable) + kAlignment - 1) / kAlignment * kAlignment;
    }
    ++at;
  }
  for (const std::uint32_t id : unsized) bases_[id] = next;
}

std::optional<std::uint64_t> Witnesses::base_of(std::uint32_t symbol) const {
  const auto at = bases_.find(symbol);
  return at == bases_.end() ? std::nullopt : std::optional(at->second);
}

// One thread ----------------------------------------------------------------------------------

Witnesses::Bits Witnesses::address(const Run& run, const Operand& operand) const {
  if (operand.base == OperandKind::Integer) return operand.value;
  if (operand.base == OperandKind::Symbol) {
    const auto base = base_of(operand.id);
    return base ? Bits(low_bits(*base + operand.value, 32)) : Bits{};
  }
  if (operand.component != 0) return {};
  const Value base = run.values.of(Operand::reg(operand.as_register()), run.thread);
  if (base.mark == Mark::Unknown || base.bits >= kPointer / 2) return {};
  return low_bits(base.bits + operand.value, 32);
}

/// What a store of one element writes.
Witnesses::Bits Witnesses::stored(const Run& run, const Instruction& s, const Operand& operand) {
  if (const auto constant = analysis::constant_bits(operand, s.type())) return constant;
  const Value value = run.values.of(operand, run.thread);
  if (value.mark == Mark::Unknown || s.type() == Type::none) return {};
  return low_bits(value.bits, bits(s.type()));
}

void Witnesses::record(Run& run, std::uint32_t statement, std::vector<Event>& events) {
  const Function& function = facts_.function();
  const Instruction& s = function.body[statement];
  for (std::uint32_t i = first_access_[statement]; i < first_access_[statement + 1]; ++i) {
    const SharedAccess& access = accesses_[i];
    // Which lane accesses an element of a wmma matrix is not specified.
    if (access.anywhere || access.rows != 0 || (access.lanes >> (run.thread % 32) & 1u) == 0)
      continue;
    const auto operands = function.operands_of(s);
    const Bits at = address(run, operands[access.operand]);
    if (!at) continue;
    Event event = run.now;
    event.access = i;
    event.address = *at;
    if (access.writes && !access.reads && operands.size() > 1)
      event.value = stored(run, s, operands[1]);
    events.push_back(event);
  }
}

/// Whether it may order the thread after accesses of another thread.
bool Witnesses::acquires(const Instruction& s) {
  const OpInfo& row = info(s.op);
  if (has(row.flags, Flag::Barrier | Flag::Call) || row.mnemonic == "mbarrier") return true;
  if (!has(row.flags, Flag::Fence)) return false;
  if (!has(row.flags, Flag::ReadsMemory | Flag::WritesMemory)) return true;
  const Modifier order = s.get(Field::Order);
  return order == Modifier::acquire || order == Modifier::acq_rel;
}

void Witnesses::pass(Run& run, std::uint32_t statement) const {
  const Instruction& s = facts_.function().body[statement];
  Event& now = run.now;
  if (orders_[statement] == Orders::Block) {
    ++now.interval;
    now.barrier = statement;
    now.warp_barrier = kNone;
    now.warp_interval = 0;
    now.unordered = now.unordered_in_warp = true;
  } else if (orders_[statement] == Orders::Warp) {
    ++now.warp_interval;
    now.warp_barrier = statement;
    now.unordered_in_warp = true;
  } else if (s.op == Op::bar_warp_sync) {
    now.unordered_in_warp = false;
  } else if (acquires(s)) {
    now.unordered = now.unordered_in_warp = false;
  }
}

/// The blocks that control may reach from `start` before `end`.
std::vector<std::uint32_t> Witnesses::blocks_before(std::uint32_t start, std::uint32_t end) const {
  const analysis::Cfg& cfg = facts_.cfg();
  std::vector<std::uint32_t> found;
  if (start == end || start >= cfg.blocks().size()) return found;
  std::vector<bool> seen(cfg.blocks().size());
  seen[start] = true;
  found.push_back(start);
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const std::uint32_t to : cfg.successors(found[i])) {
      if (to == end || to >= cfg.blocks().size() || seen[to]) continue;
      seen[to] = true;
      found.push_back(to);
    }
  }
  return found;
}

/// Whether one of the blocks has an access, or an instruction that orders threads.
bool Witnesses::has_events(const std::vector<std::uint32_t>& blocks) const {
  const Function& function = facts_.function();
  return std::any_of(blocks.begin(), blocks.end(), [&](std::uint32_t block) {
    const analysis::Block& range = facts_.cfg().blocks()[block];
    for (std::uint32_t i = range.first; i < range.end; ++i) {
      const Instruction& s = function.body[i];
      if (s.kind == StatementKind::Unknown) return true;
      if (s.kind != StatementKind::Instruction) continue;
      if (first_access_[i] != first_access_[i + 1] || orders_[i] != Orders::Nothing || acquires(s))
        return true;
    }
    return false;
  });
}

/// Continues after a branch with an unknown condition. If all threads of the block take the same
/// path and only one path has accesses, assumes a launch that takes this path; such guards are
/// assumed once each, one nested in the other. Otherwise continues where the paths reconverge.
/// False if that is not possible.
bool Witnesses::decide(Run& run, std::uint32_t branch, std::uint32_t& at) {
  const analysis::Cfg& cfg = facts_.cfg();
  const std::uint32_t block = cfg.block_of(branch);
  const std::uint32_t end = cfg.post_dominators().immediate(block);
  const auto successors = cfg.successors(block);
  if (successors.size() != 2) return false;
  std::array<std::vector<std::uint32_t>, 2> paths;
  for (std::size_t i = 0; i < 2; ++i) {
    paths[i] = blocks_before(successors[i], end);
    if (budget_ < paths[i].size()) return false;
    budget_ -= paths[i].size();
  }
  const std::array<bool, 2> matters{has_events(paths[0]), has_events(paths[1])};
  const bool together = facts_.uniformity().of_branch(block) >= analysis::Agreement::Block;
  if (!run.parameter && together && matters[0] != matters[1]) {
    const std::uint32_t to = successors[matters[0] ? 0 : 1];
    // Assuming a guard again would assume another iteration.
    if (run.visited[to] || run.assumed_outside) return false;
    if (run.assumption_end == kNone) run.assumption_end = end;
    at = cfg.blocks()[to].first;
    return true;
  }
  if (end >= cfg.blocks().size()) return false;
  for (const std::vector<std::uint32_t>& path : paths) {
    if (!jump_over(run, path)) return false;
  }
  at = cfg.blocks()[end].first;
  return true;
}

/// Skips blocks that may be executed or not, with their accesses.
bool Witnesses::jump_over(Run& run, const std::vector<std::uint32_t>& blocks) const {
  const Function& function = facts_.function();
  for (const std::uint32_t block : blocks) {
    const analysis::Block& range = facts_.cfg().blocks()[block];
    for (std::uint32_t i = range.first; i < range.end; ++i) {
      const Instruction& s = function.body[i];
      if (s.kind == StatementKind::Unknown) return false;
      if (s.kind != StatementKind::Instruction) continue;
      const bool leaves = has(info(s.op).flags, Flag::Terminator) && !s.is(Op::bra);
      if (leaves || orders_[i] != Orders::Nothing || acquires(s)) return false;
      run.values.forget(i, run.self);
    }
  }
  return true;
}

Witnesses::Trace Witnesses::run(std::uint32_t thread, Bits parameter) {
  const Function& function = facts_.function();
  const analysis::Cfg& cfg = facts_.cfg();
  Trace trace;
  const KnownLaunch launch{
      .launch = {.block = shape_, .exact = true, .parameter = parameter.value_or(0)},
      .parameters = parameter.has_value(),
      .pointer = kPointer,
      .grid = false,
      .shared = &bases_};
  Run state{.thread = thread,
            .parameter = parameter,
            .self = Threads().set(thread),
            .values = {facts_.module(), function, facts_.index(), needed_, launch, thread},
            .visited = std::vector<bool>(cfg.blocks().size())};
  std::uint32_t at = 0;
  for (std::uint32_t steps = 0; steps < kMaxStatements; ++steps) {
    if (at >= function.body.size()) {
      trace.complete = true;
      break;
    }
    if (budget_ == 0) break;
    --budget_;
    const Instruction& s = function.body[at];
    const std::uint32_t statement = at++;
    const std::uint32_t block = cfg.block_of(statement);
    state.visited[block] = true;
    state.assumed_outside |= block == state.assumption_end;
    if (s.kind == StatementKind::Unknown) break;
    if (s.kind != StatementKind::Instruction) continue;
    const Value guard = state.values.holds(s.guard, thread);
    const bool known = guard.mark != Mark::Unknown;
    const Flag flags = info(s.op).flags;
    if (!known && (s.is(Op::bra) || s.is(Op::ret) || s.is(Op::exit))) {
      if (decide(state, statement, at)) continue;
      break;
    }
    // Stops if control, or the order of the thread, is unknown.
    if (!known && (has(flags, Flag::Terminator | Flag::Barrier | Flag::Fence | Flag::Call))) break;
    if (!known) {
      state.values.forget(statement, state.self);
      continue;
    }
    if (guard.bits == 0) continue;
    if (has(flags, Flag::Terminator)) {
      trace.complete = s.is(Op::ret) || s.is(Op::exit);
      if (!s.is(Op::bra)) break;
      const std::uint32_t to = cfg.successors(block)[0];
      if (to >= cfg.blocks().size()) break;
      at = cfg.blocks()[to].first;
      continue;
    }
    record(state, statement, trace.events);
    pass(state, statement);
    if (needed_.statements[statement]) state.values.execute(statement, state.self, {});
  }
  return trace;
}

const Witnesses::Trace& Witnesses::trace(std::uint32_t thread, Bits parameter) {
  const auto [at, result] = traces_.try_emplace({thread, parameter});
  if (result) at->second = run(thread, parameter);
  return at->second;
}

// Two threads ---------------------------------------------------------------------------------

bool Witnesses::race(const Event& a, std::uint32_t first, const Event& b,
                     std::uint32_t second) const {
  const bool same_warp = first / 32 == second / 32;
  // Threads that passed different barriers may not be between the same two.
  if (a.interval != b.interval || a.barrier != b.barrier) return false;
  if (same_warp && (a.warp_interval != b.warp_interval || a.warp_barrier != b.warp_barrier))
    return false;
  if (!(same_warp ? a.unordered_in_warp && b.unordered_in_warp : a.unordered && b.unordered))
    return false;
  const SharedAccess& x = accesses_[a.access];
  const SharedAccess& y = accesses_[b.access];
  if (a.address + x.bytes <= b.address || b.address + y.bytes <= a.address) return false;
  if (!(x.writes && y.writes)) return true;
  // Equal values at one address are harmless.
  if (a.value && b.value) return *a.value != *b.value || a.address != b.address;
  const Function& function = facts_.function();
  if (function.body[x.statement].operand_count < 2 || function.body[y.statement].operand_count < 2)
    return true;
  const ThreadClasses& one = values_.of(x.statement, 1);
  if (x.statement == y.statement && one.of[first] == one.of[second]) return false;
  // Values that lanes exchanged may be equal although their classes differ.
  return !one.crosses_lanes && !values_.of(y.statement, 1).crosses_lanes;
}

std::optional<Witness> Witnesses::find_in(std::uint32_t first_access, std::uint32_t first_thread,
                                          std::uint32_t second_access, std::uint32_t second_thread,
                                          Bits parameter) {
  const std::vector<Event>& a = trace(first_thread, parameter).events;
  const std::vector<Event>& b = trace(second_thread, parameter).events;
  // Intervals grow along both lists.
  std::size_t begin = 0;
  for (const Event& x : a) {
    if (x.access != first_access) continue;
    while (begin < b.size() && b[begin].interval < x.interval) ++begin;
    for (std::size_t i = begin; i < b.size() && b[i].interval == x.interval; ++i) {
      if (b[i].access != second_access || !race(x, first_thread, b[i], second_thread)) continue;
      Witness found;
      found.every_launch = !parameter.has_value();
      found.first_thread = first_thread;
      found.second_thread = second_thread;
      found.first_access = first_access;
      found.second_access = second_access;
      found.first_address = x.address;
      found.second_address = b[i].address;
      found.parameter = parameter.value_or(0);
      for (const auto& [id, base] : bases_) {
        if (base > x.address || (found.variable != kNone && base < found.variable_base)) continue;
        found.variable = id;
        found.variable_base = base;
      }
      return found;
    }
  }
  return {};
}

std::optional<Witness> Witnesses::find(std::uint32_t first_access, std::uint32_t first_thread,
                                       std::uint32_t second_access, std::uint32_t second_thread) {
  if (first_thread == second_thread || std::max(first_thread, second_thread) >= kMaxThreads)
    return {};
  const auto with = [&](Bits parameter) {
    return find_in(first_access, first_thread, second_access, second_thread, parameter);
  };
  if (auto found = with({})) return found;
  std::optional<Witness> found;
  std::optional<std::uint64_t> harmless;
  for (const std::uint64_t parameter : kParameters) {
    if (found && harmless) break;
    auto result = with(parameter);
    if (result && !found) found = std::move(result);
    if (!result && !harmless && trace(first_thread, parameter).complete &&
        trace(second_thread, parameter).complete)
      harmless = parameter;
  }
  if (found) found->harmless_parameter = harmless;
  return found;
}

}  // namespace ptxgen::inline v0::gates
