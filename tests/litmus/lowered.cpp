// tests/litmus/lowered.cpp - executes a kernel's IR with unknown memory
#include "lowered.hpp"

#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>

#include "analysis/evaluate.hpp"
#include "ptxgen/ptx/operand_specs.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::litmus {

using ptx::Field;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Op;
using ptx::OperandKind;

namespace {

/// Where the parameter's memory begins; any address that no computation overflows.
constexpr std::uint64_t kMemory = 0x10000;
constexpr std::size_t kMaxSteps = 10'000;

/// The locations of a program, in the order of their first access after the parameter's words.
class Locations {
 public:
  explicit Locations(std::uint32_t words) : words_(words) {}
  /// `block` for shared memory, -1 for global memory.
  std::uint32_t at(std::int64_t block, std::uint64_t address, std::uint32_t bytes) {
    if (block < 0) {
      if (bytes != 4 || address % 4 != 0 || address < kMemory ||
          address >= kMemory + 4 * std::uint64_t{words_}) {
        throw std::runtime_error("an access that is not one word of the parameter's memory");
      }
      return static_cast<std::uint32_t>((address - kMemory) / 4);
    }
    for (const auto& [key, number] : shared_) {
      const auto& [other_block, other, size] = key;
      const bool same = other == address && size == bytes;
      if (other_block == block && !same && other < address + bytes && address < other + size) {
        throw std::runtime_error("accesses to shared memory that overlap in part");
      }
    }
    const auto next = static_cast<std::uint32_t>(words_ + shared_.size());
    return shared_.try_emplace({block, address, bytes}, next).first->second;
  }
  [[nodiscard]] std::size_t count() const { return words_ + shared_.size(); }

 private:
  std::uint32_t words_;
  std::map<std::tuple<std::int64_t, std::uint64_t, std::uint32_t>, std::uint32_t> shared_;
};

/// Barriers of a path: which, in the order of use.
struct BarrierUse {
  std::string key;             ///< of the barrier, unique in the launch
  std::uint32_t expected = 0;  ///< arrivals, 0: all threads of its block (or cluster, or warp)
  bool arrives = false;
  bool waits = false;
  std::uint32_t event = 0;
};

struct ThreadState {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Value> registers;
  std::size_t next = 0;
  std::size_t steps = 0;
  Events control = 0;  ///< reads on which the path depends
  Path path;
  std::vector<BarrierUse> barriers;
};

Order order_of(Modifier modifier, Order absent) {
  switch (modifier) {
    case Modifier::none:
      return absent;
    case Modifier::weak:
      return Order::Weak;
    case Modifier::relaxed:
    case Modifier::volatile_:
      return Order::Relaxed;
    case Modifier::acquire:
      return Order::Acquire;
    case Modifier::release:
      return Order::Release;
    case Modifier::acq_rel:
      return Order::AcqRel;
    case Modifier::sc:
      return Order::Sc;
    default:
      throw std::runtime_error("an order that the model does not have");
  }
}

Scope scope_of(Modifier modifier, Scope absent) {
  switch (modifier) {
    case Modifier::none:
      return absent;
    case Modifier::cta:
      return Scope::Cta;
    case Modifier::cluster:
      return Scope::Cluster;
    case Modifier::gpu:
    case Modifier::gl:
      return Scope::Gpu;
    case Modifier::sys:
      return Scope::Sys;
    default:
      throw std::runtime_error("a scope that the model does not have");
  }
}

std::uint64_t combine(Modifier how, ptx::Type type, std::uint64_t old, std::uint64_t operand) {
  const unsigned width = ptx::bits(type);
  const bool is_signed = ptx::kind(type) == ptx::TypeKind::Signed;
  const auto less = [&](std::uint64_t a, std::uint64_t b) {
    return is_signed ? static_cast<std::int64_t>(analysis::extended(a, type)) <
                           static_cast<std::int64_t>(analysis::extended(b, type))
                     : a < b;
  };
  switch (how) {
    case Modifier::exch:
      return operand;
    case Modifier::add:
      return analysis::low_bits(old + operand, width);
    case Modifier::and_:
      return old & operand;
    case Modifier::or_:
      return old | operand;
    case Modifier::xor_:
      return old ^ operand;
    case Modifier::min:
      return less(operand, old) ? operand : old;
    case Modifier::max:
      return less(old, operand) ? operand : old;
    case Modifier::inc:
      return old >= operand ? 0 : old + 1;
    case Modifier::dec:
      return old == 0 || old > operand ? operand : old - 1;
    default:
      throw std::runtime_error("an atomic operation that the model does not have");
  }
}

/// A function of values; a constant where they all are.
template <class Compute>
Value apply(std::vector<Value> from, Compute compute) {
  Events reads = 0;
  for (const Value& value : from) reads |= value.reads;
  Value result;
  const auto all = [from = std::move(from),
                    compute = std::move(compute)](std::span<const std::uint64_t> read) {
    std::vector<std::uint64_t> numbers;
    for (const Value& value : from) numbers.push_back(value.of(read));
    return compute(numbers);
  };
  if (reads == 0) return all({});
  result.reads = reads;
  result.compute = all;
  return result;
}

/// All paths of one thread.
class Execution {
 public:
  Execution(std::shared_ptr<const ptx::Module> module, const ptx::Function& function,
            const Launch& launch, std::uint32_t block, std::uint32_t thread, Locations& locations)
      : owner_(std::move(module)),
        module_(*owner_),
        function_(function),
        launch_(launch),
        block_(block),
        number_(thread),
        locations_(locations) {
    for (std::size_t i = 0; i < function.body.size(); ++i) {
      if (function.body[i].kind == ptx::StatementKind::Label) {
        labels_[function.operands_of(function.body[i])[0].id] = i;
      }
    }
    std::uint64_t offset = 0;
    for (const ptx::Variable& variable : function.variables) lay_out(variable, offset);
    for (const ptx::Variable& variable : module_.variables) lay_out(variable, offset);
  }

  std::vector<ThreadState> run() {
    std::vector<ThreadState> waiting(1);
    std::vector<ThreadState> ended;
    while (!waiting.empty()) {
      ThreadState state = std::move(waiting.back());
      waiting.pop_back();
      while (state.next < function_.body.size()) {
        const Instruction& s = function_.body[state.next];
        try {
          step(state, s, waiting);
        } catch (const std::exception& error) {
          throw std::runtime_error(ptx::print(module_, function_, s) + ": " + error.what());
        }
      }
      ended.push_back(std::move(state));
    }
    return ended;
  }

 private:
  void lay_out(const ptx::Variable& variable, std::uint64_t& offset) {
    if (variable.space != ptx::Space::Shared) return;
    const std::uint64_t alignment = std::max(variable.alignment, ptx::natural_alignment(variable));
    offset = (offset + alignment - 1) / alignment * alignment;
    shared_[std::string(module_.text(variable.name))] = offset;
    offset += ptx::size_in_bytes(variable);
  }

  void step(ThreadState& state, const Instruction& s, std::vector<ThreadState>& waiting) {
    if (++state.steps > kMaxSteps) throw std::runtime_error("more steps than a small program has");
    if (s.kind == ptx::StatementKind::Unknown) throw std::runtime_error("an unknown instruction");
    if (s.kind != ptx::StatementKind::Instruction) {
      ++state.next;
      return;
    }
    if (s.guard.present()) {
      Value guard = state.registers[{s.guard.predicate.decl.value, s.guard.predicate.index}];
      if (s.guard.negated) guard = opposite(guard);
      if (!guard.is_constant()) return split(state, guard, waiting);
      if (guard.constant == 0) {
        ++state.next;
        return;
      }
    }
    execute(state, s, waiting);
  }

  // Both ways of a guard that is not known, each with the predicate as a constant from now on.
  void split(ThreadState& state, const Value& guard, std::vector<ThreadState>& waiting) {
    const Instruction& s = function_.body[state.next];
    const auto key = std::pair{s.guard.predicate.decl.value, s.guard.predicate.index};
    state.control |= guard.reads;
    ThreadState other = state;
    other.path.conditions.push_back({guard, false});
    other.registers[key] = std::uint64_t{s.guard.negated};
    state.path.conditions.push_back({guard, true});
    state.registers[key] = std::uint64_t{!s.guard.negated};
    waiting.push_back(std::move(other));
  }

  static Value opposite(const Value& value) {
    return apply({value}, [](const auto& v) { return std::uint64_t{v[0] == 0}; });
  }

  void execute(ThreadState& state, const Instruction& s, std::vector<ThreadState>& waiting) {
    const ptx::Flag flags = ptx::info(s.op).flags;
    const auto operands = function_.operands_of(s);
    if (s.is(Op::bra)) {
      state.next = labels_.at(operands[0].id);
      return;
    }
    if (s.is(Op::ret) || s.is(Op::exit)) {
      state.next = function_.body.size();
      return;
    }
    ++state.next;
    if (ptx::has(flags, ptx::Flag::Barrier)) {
      barrier(state, s);
    } else if (s.is(Op::fence) || s.is(Op::membar)) {
      fence(state, s);
    } else if (ptx::has(flags, ptx::Flag::ReadsMemory) ||
               ptx::has(flags, ptx::Flag::WritesMemory)) {
      memory(state, s, waiting);
    } else if (s.is(Op::cvta_to) || s.is(Op::cvta)) {
      if (s.get(Field::Space) != Modifier::global) throw std::runtime_error("a generic address");
      set(state, operands[0], source(state, s, 1));
    } else {
      compute(state, s);
    }
  }

  void set(ThreadState& state, const ptx::Operand& to, Value value) {
    if (to.kind == OperandKind::Sink) return;
    state.registers[{to.id, to.index}] = std::move(value);
  }

  [[nodiscard]] Value source(ThreadState& state, const Instruction& s, std::size_t i) const {
    const ptx::Operand& operand = function_.operands_of(s)[i];
    switch (operand.kind) {
      case OperandKind::Register: {
        const Value& value = state.registers[{operand.id, operand.index}];
        return operand.negated ? opposite(value) : value;
      }
      case OperandKind::Special:
        return special(static_cast<ptx::SpecialRegister>(operand.id), operand.component);
      case OperandKind::Symbol:
        return shared_.at(std::string(module_.text(module_.symbols[operand.id].name))) +
               operand.value;
      default:
        break;
    }
    const ptx::OperandSpec* spec = ptx::operand_spec(function_, s, i);
    const auto bits = analysis::constant_bits(
        operand, spec == nullptr ? ptx::Type::u64 : ptx::operand_type(s, *spec));
    if (!bits) throw std::runtime_error("an operand that is no number");
    return *bits;
  }

  [[nodiscard]] std::uint64_t special(ptx::SpecialRegister which, unsigned component) const {
    using S = ptx::SpecialRegister;
    const bool first = component <= 1;
    switch (which) {
      case S::tid:
        return first ? number_ : 0;
      case S::ntid:
        return first ? launch_.threads : 1;
      case S::ctaid:
        return first ? block_ : 0;
      case S::nctaid:
        return first ? launch_.blocks : 1;
      case S::laneid:
        return number_ % 32;
      case S::warpid:
        return number_ / 32;
      case S::cluster_ctarank:
        return block_ % launch_.cluster;
      default:
        throw std::runtime_error("a special register that the model does not have");
    }
  }

  void compute(ThreadState& state, const Instruction& s) {
    const ptx::OperandSpecs specs(function_, s);
    const auto operands = function_.operands_of(s);
    const analysis::Evaluator evaluator(function_, s, specs);
    const std::size_t results = evaluator.row().destinations();
    std::vector<Value> from;
    for (std::size_t i = results; i < operands.size(); ++i) from.push_back(source(state, s, i));
    for (std::size_t result = 0; result < results; ++result) {
      const auto of = [owner = owner_, &function = function_, &s, results,
                       result](const std::vector<std::uint64_t>& numbers) {
        std::vector<std::optional<std::uint64_t>> known(results);
        known.insert(known.end(), numbers.begin(), numbers.end());
        const analysis::Outcome outcome = analysis::evaluate(function, s, known);
        if (outcome.kind != analysis::Outcome::Kind::Values) {
          throw std::runtime_error("an instruction that cannot be computed here");
        }
        return outcome.values[result];
      };
      set(state, operands[result], apply(from, of));
    }
    if (results == 0) throw std::runtime_error("an instruction that the model does not have");
  }

  Event& add(ThreadState& state, Event event) {
    event.depends |= state.control;
    state.path.events.push_back(std::move(event));
    if (state.path.events.size() > kMaxEvents) throw std::runtime_error("too many operations");
    return state.path.events.back();
  }

  void fence(ThreadState& state, const Instruction& s) {
    Event event;
    event.fence = true;
    // membar is fence.sc (PTX ISA, "membar/fence").
    event.order = s.is(Op::membar) ? Order::Sc : order_of(s.get(Field::Order), Order::AcqRel);
    event.scope = scope_of(s.get(Field::Scope), Scope::None);
    add(state, event);
  }

  void barrier(ThreadState& state, const Instruction& s) {
    BarrierUse use;
    const auto operands = function_.operands_of(s);
    const auto number = [&](std::size_t i) {
      const Value value = source(state, s, i);
      if (!value.is_constant()) throw std::runtime_error("a barrier that depends on memory");
      return value.constant;
    };
    switch (s.op) {
      case Op::bar_sync:
      case Op::barrier_sync:
      case Op::bar_arrive:
      case Op::barrier_arrive:
        use.key = "block " + std::to_string(block_) + " barrier " + std::to_string(number(0));
        use.expected = operands.size() > 1 ? static_cast<std::uint32_t>(number(1)) : 0;
        use.arrives = true;
        use.waits = s.is(Op::bar_sync) || s.is(Op::barrier_sync);
        break;
      case Op::bar_warp_sync:
        if (number(0) != 0xffffffff) throw std::runtime_error("a barrier of some lanes");
        use.key = "block " + std::to_string(block_) + " warp " + std::to_string(number_ / 32);
        use.expected = 32;
        use.arrives = use.waits = true;
        break;
      case Op::barrier_cluster_arrive:
      case Op::barrier_cluster_wait:
        if (s.get(Field::Order) == Modifier::relaxed) throw std::runtime_error("relaxed arrival");
        use.key = "cluster " + std::to_string(block_ / launch_.cluster);
        use.expected = launch_.threads * launch_.cluster;
        use.arrives = s.is(Op::barrier_cluster_arrive);
        use.waits = !use.arrives;
        break;
      default:
        throw std::runtime_error("a barrier that the model does not have");
    }
    use.event = static_cast<std::uint32_t>(state.path.events.size());
    Event event;
    event.arrives = use.arrives;
    event.waits = use.waits;
    state.barriers.push_back(use);
    add(state, event);
  }

  [[nodiscard]] std::uint32_t location(ThreadState& state, const Instruction& s, std::size_t i) {
    const ptx::Operand& operand = function_.operands_of(s)[i];
    const ptx::Type type = s.type(0);
    if (s.has(Field::Vector)) throw std::runtime_error("a vector");
    std::uint64_t address = operand.value;
    if (operand.base == OperandKind::Register) {
      const Value& base = state.registers[{operand.id, operand.index}];
      if (!base.is_constant()) throw std::runtime_error("an address that depends on memory");
      address += base.constant;
    } else if (operand.base == OperandKind::Symbol) {
      address += shared_.at(std::string(module_.text(module_.symbols[operand.id].name)));
    }
    switch (s.get(Field::Space)) {
      case Modifier::global:
      case Modifier::none:
        return locations_.at(-1, address, ptx::bits(type) / 8);
      case Modifier::shared:
      case Modifier::shared_cta:
        return locations_.at(block_, address, ptx::bits(type) / 8);
      default:
        throw std::runtime_error("a state space that the model does not have");
    }
  }

  void memory(ThreadState& state, const Instruction& s, std::vector<ThreadState>& waiting) {
    const auto operands = function_.operands_of(s);
    const std::string_view name = ptx::info(s.op).mnemonic;
    Event event;
    if (name == "ld") {
      if (s.get(Field::Space) == Modifier::param) return set(state, operands[0], kMemory);
      event.reads = true;
    } else if (name == "st") {
      event.writes = true;
    } else if (name == "atom" || name == "red") {
      event.reads = event.writes = event.atomic = true;
      event.reduction = name == "red";
    } else {
      throw std::runtime_error("a memory operation that the model does not have");
    }
    const bool weak = !event.atomic;
    const bool is_volatile = s.get(Field::Order) == Modifier::volatile_;
    event.order = order_of(s.get(Field::Order), weak ? Order::Weak : Order::Relaxed);
    event.scope = scope_of(s.get(Field::Scope), is_volatile ? Scope::Sys
                                                : weak      ? Scope::None
                                                            : Scope::Gpu);
    const std::size_t at = event.reads && !event.reduction ? 1 : 0;
    event.location = location(state, s, at);
    const auto own = static_cast<std::uint32_t>(state.path.events.size());
    const Value read = Value::of_read(own);
    if (event.atomic) {
      atomic(state, s, event, at, waiting);
    } else if (event.writes) {
      event.value = source(state, s, 1);
    }
    add(state, event);
    if (at == 1) set(state, operands[0], read);
  }

  // What an atomic operation writes. A compare-and-swap that fails is a read only.
  void atomic(ThreadState& state, const Instruction& s, Event& event, std::size_t at,
              std::vector<ThreadState>& waiting) {
    const ptx::Type type = s.type(0);
    if (ptx::kind(type) == ptx::TypeKind::Float) throw std::runtime_error("an atomic on floats");
    const Value read = Value::of_read(static_cast<std::uint32_t>(state.path.events.size()));
    const Modifier how = s.get(Field::AtomicOp);
    if (how != Modifier::cas) {
      event.value = apply({read, source(state, s, at + 1)},
                          [how, type](const auto& v) { return combine(how, type, v[0], v[1]); });
      return;
    }
    const Value equal = apply({read, source(state, s, at + 1)},
                              [](const auto& v) { return std::uint64_t{v[0] == v[1]}; });
    ThreadState failed = state;
    failed.path.conditions.push_back({equal, false});
    Event only_read = event;
    only_read.writes = false;
    add(failed, only_read);
    set(failed, function_.operands_of(s)[0], read);
    waiting.push_back(std::move(failed));
    state.path.conditions.push_back({equal, true});
    event.value = source(state, s, at + 2);
  }

  std::shared_ptr<const ptx::Module> owner_;  ///< values refer to instructions
  const ptx::Module& module_;
  const ptx::Function& function_;
  const Launch& launch_;
  std::uint32_t block_;
  std::uint32_t number_;
  Locations& locations_;
  std::map<std::uint32_t, std::size_t> labels_;
  std::map<std::string, std::uint64_t> shared_;
};

/// Numbers the phases of barriers: the n-th use of a barrier by each thread is its n-th phase.
class Phases {
 public:
  explicit Phases(std::uint32_t block_threads) : block_threads_(block_threads) {}
  void number(std::vector<ThreadState>& paths) {
    for (ThreadState& state : paths) {
      const auto same = [](const BarrierUse& a, const BarrierUse& b) {
        return a.key == b.key && a.arrives == b.arrives && a.waits == b.waits;
      };
      if (!std::equal(state.barriers.begin(), state.barriers.end(), paths[0].barriers.begin(),
                      paths[0].barriers.end(), same)) {
        throw std::runtime_error("barriers that depend on memory");
      }
      std::map<std::string, std::uint32_t> uses;
      for (const BarrierUse& use : state.barriers) {
        const std::string key = use.key + (use.arrives ? "" : " wait");
        const std::string phase = use.key + " phase " + std::to_string(uses[key]++);
        const auto number = static_cast<std::uint32_t>(numbers_.size());
        Phase& at = numbers_.try_emplace(phase, Phase{number, 0, 0}).first->second;
        state.path.events[use.event].barrier = at.number;
        if (&state != &paths[0]) continue;
        at.arrivals += use.arrives ? 1 : 0;
        at.expected = use.expected == 0 ? block_threads_ : use.expected;
      }
    }
  }
  void check() const {
    for (const auto& [name, phase] : numbers_) {
      if (phase.arrivals != phase.expected) {
        throw std::runtime_error(name + " has " + std::to_string(phase.arrivals) +
                                 " arrivals, and expects " + std::to_string(phase.expected));
      }
    }
  }

 private:
  struct Phase {
    std::uint32_t number = 0;
    std::uint32_t arrivals = 0;
    std::uint32_t expected = 0;
  };
  std::uint32_t block_threads_;
  std::map<std::string, Phase> numbers_;
};

}  // namespace

Program read_program(const ptx::Module& module, std::string_view kernel, const Launch& launch) {
  const auto owner = std::make_shared<const ptx::Module>(module);
  const ptx::Function* const function = owner->find_function(kernel);
  if (function == nullptr) throw std::runtime_error("no kernel '" + std::string(kernel) + "'");
  Program program;
  Locations locations(launch.words);
  Phases phases(launch.threads);
  for (std::uint32_t block = 0; block < launch.blocks; ++block) {
    for (std::uint32_t number = 0; number < launch.threads; ++number) {
      auto paths = Execution(owner, *function, launch, block, number, locations).run();
      phases.number(paths);
      Thread thread;
      thread.place = {launch.device.empty() ? 0 : launch.device[block], block / launch.cluster,
                      block};
      bool acts = false;
      for (ThreadState& state : paths) {
        for (const Event& event : state.path.events) acts |= event.reads || event.writes;
        thread.paths.push_back(std::move(state.path));
      }
      if (acts) program.threads.push_back(std::move(thread));
    }
  }
  phases.check();
  program.initial.assign(locations.count(), 0);
  return program;
}

}  // namespace ptxgen::litmus
