// tests/litmus/memory_model.hpp - outcomes that the PTX memory model allows small programs
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "relation.hpp"

// The axioms of PTX ISA 9.x, section 8 "Memory Consistency Model", for operations of the generic
// proxy that overlap completely. Formal versions: Lustig, Sahasrabuddhe, Giroux, "A Formal Analysis
// of the NVIDIA PTX Memory Consistency Model", ASPLOS 2019, and its ptx.als.

namespace ptxgen::litmus {

enum class Order : std::uint8_t { Weak, Relaxed, Acquire, Release, AcqRel, Sc };
enum class Scope : std::uint8_t { None, Cta, Cluster, Gpu, Sys };

/// Where a thread runs; numbers are unique in the system.
struct Place {
  std::uint32_t device = 0;
  std::uint32_t cluster = 0;
  std::uint32_t block = 0;
  [[nodiscard]] bool includes(Scope scope, const Place& other) const noexcept;
};

/// A number that depends on what the thread's events have read.
struct Value {
  std::uint64_t constant = 0;
  Events reads = 0;  ///< the thread's events that it depends on; none: a constant
  std::function<std::uint64_t(std::span<const std::uint64_t> read)> compute;

  Value() = default;
  Value(std::uint64_t number) : constant(number) {}
  /// What event number `event` of the thread has read.
  [[nodiscard]] static Value of_read(std::uint32_t event);
  [[nodiscard]] bool is_constant() const noexcept { return reads == 0; }
  [[nodiscard]] std::uint64_t of(std::span<const std::uint64_t> read) const {
    return compute ? compute(read) : constant;
  }
};

/// An operation of a thread: of memory, a fence, or a barrier.
struct Event {
  bool reads = false;
  bool writes = false;
  bool atomic = false;     ///< atom or red
  bool reduction = false;  ///< red: its read forms no acquire pattern
  bool fence = false;
  bool arrives = false;       ///< at `barrier`
  bool waits = false;         ///< for `barrier`
  std::uint32_t barrier = 0;  ///< number of the barrier's phase in the program
  Order order = Order::Weak;
  Scope scope = Scope::None;
  std::uint32_t location = 0;
  Value value;         ///< written; may depend on the event's own read
  Events depends = 0;  ///< the thread's events that decide where and whether it is executed
};

/// One way through a thread's code: what it executes where the conditions hold.
struct Path {
  struct Condition {
    Value value;
    bool holds = true;  ///< whether the value is not 0
  };
  std::vector<Event> events;
  std::vector<Condition> conditions;
  /// Between events, transitive. Without it each event comes after all before it in `events`.
  std::optional<Relation> order;
};

struct Thread {
  Place place;
  std::vector<Path> paths;  ///< exactly one is taken, by the values read
};

struct Program {
  std::vector<Thread> threads;
  std::vector<std::uint64_t> initial;  ///< of each location
};

/// Final memory, a value for each location.
using Outcome = std::vector<std::uint64_t>;
/// How executions get to an outcome: conflicting operations, neither morally strong nor ordered by
/// causality, are a data race.
struct Executions {
  bool racy = false;
  bool race_free = false;
};
using Allowed = std::map<Outcome, Executions>;

/// Axioms that can be left out, to show what each of them forbids. No-Thin-Air gives the values,
/// what Fence-SC forbids contradicts Causality too, and Atomicity is part of SC-per-location, since
/// the read and the write of an atomic operation are one event here.
enum class Axiom : std::uint8_t { None, Coherence, ScPerLocation, Causality };

/// The outcomes of all executions that the axioms allow: every path, source of a read, coherence
/// order and Fence-SC order is tried. Throws `std::length_error` above 64 events.
[[nodiscard]] Allowed allowed(const Program& program, Axiom without = Axiom::None);

}  // namespace ptxgen::litmus
