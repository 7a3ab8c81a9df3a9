// src/check/barrier_safety/barrier_safety.hpp - the parts of the gate barrier_safety
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts.hpp"
#include "check/known_values.hpp"
#include "ptxgen/check/gates.hpp"

namespace ptxgen::inline v0::gates::barriers {

[[nodiscard]] inline bool is_instruction(const ptx::Instruction& s) {
  return s.kind == ptx::StatementKind::Instruction;
}

enum class UseKind : std::uint8_t { None, Block, Warp, Cluster };

/// How a statement uses a barrier.
struct Use {
  UseKind kind = UseKind::None;
  bool aligned = false;                  ///< all lanes of a warp execute it together
  bool waits = true;                     ///< false for arrive
  bool arrives = true;                   ///< false for barrier.cluster.wait
  const ptx::Operand* id = nullptr;      ///< of a block's barrier; the mask of bar.warp.sync
  const ptx::Operand* count = nullptr;   ///< threads that it counts, null for all of the block
  const ptx::Operand* vote = nullptr;    ///< the predicate of bar.red
  const ptx::Operand* result = nullptr;  ///< the destination of bar.red
};
[[nodiscard]] Use use_of(const ptx::Function& function, const ptx::Instruction& instruction);

/// What a call may do to its threads.
struct CallEffect {
  bool barrier = false;  ///< may reach a barrier
  bool always = false;   ///< reaches one for all threads of the block on every path
  bool warp = false;     ///< may reach bar.warp.sync
  bool leaves = false;   ///< some threads may leave the kernel in it
};

/// A function and the facts about it that the parts of the gate share.
struct Subject {
  const ptx::Module& module;
  const ptx::Function& function;
  const analysis::Cfg& cfg;
  const analysis::RegisterIndex& index;
  const analysis::Uniformity& uniformity;
  std::vector<std::uint32_t> barriers;  ///< statements: barriers, calls that may reach one
  std::vector<CallEffect> calls;        ///< by statement, empty if the function calls nothing
  std::vector<bool> decides;            ///< by block: its end decides whether control reaches one
  /// Barrier numbers, as bits, that related functions use for more than one warp alone: callees,
  /// callers, and other callees of these.
  std::uint32_t elsewhere = 0;

  [[nodiscard]] CallEffect call(std::uint32_t statement) const {
    return calls.empty() ? CallEffect{} : calls[statement];
  }
};

/// Whether threads that diverge at a statement and do not reach the barrier have a path on which
/// they leave the kernel without waiting. Unless they are whole warps, the path must not contain a
/// store that follows the barrier for the others: such threads skip the barrier, they do not leave
/// before it.
[[nodiscard]] bool leaves_before(const Subject& subject, std::uint32_t decider,
                                 std::uint32_t barrier, bool whole_warps);

/// One arrival of a thread at a barrier.
struct Arrival {
  std::uint32_t statement = 0;
  std::uint32_t id = 0;
  std::uint32_t count = 0;  ///< 0 all
  friend bool operator==(const Arrival&, const Arrival&) = default;
};

/// Why no thread can continue.
enum class Trouble : std::uint8_t {
  Left,       ///< threads that the barrier counts left the kernel
  Elsewhere,  ///< threads that it counts wait somewhere else
  Diverged,   ///< divergent lanes of one warp reach an aligned barrier
  TooFew,     ///< fewer threads arrive than it counts
  Counts,     ///< two thread counts for one barrier
  Number,     ///< an invalid barrier number or thread count
  Numbers,    ///< threads that it counts name another barrier at it
  Unnamed,    ///< a lane that executes bar.warp.sync is not in its mask
};

/// How a walk through a launch ended.
struct Walk {
  enum class End : std::uint8_t { Finished, Deadlock, GaveUp };
  End end = End::GaveUp;
  bool left_before = false;  ///< Left: from sm_70 on the others continue
  bool exact = true;         ///< every branch depended on the thread's index alone
  // Deadlock:
  Trouble trouble{};
  std::uint32_t barrier = ptx::kNone;  ///< the statement at which threads wait
  Threads waiting;                     ///< at it
  Threads missing;                     ///< that it counts and that will not arrive
  std::uint32_t other = ptx::kNone;    ///< where the missing threads left or wait
  bool others_left = false;
  std::uint32_t decider = ptx::kNone;  ///< the statement at which the two diverged
  Threads taken;                       ///< at the decider: threads whose guard held
  std::uint64_t expected = 0;          ///< TooFew, Counts, Number
  std::uint64_t actual = 0;            ///< the same
  /// Barriers before which threads had left the kernel, each once, described as a deadlock: from
  /// sm_70 on the others continue.
  std::vector<Walk> exits;
  // Finished: the arrivals of each thread, as an index into `traces`.
  std::vector<std::uint16_t> trace_of;
  std::vector<std::vector<Arrival>> traces;
};

/// Executes all threads of a block, with exact values where they follow from the thread's index and
/// the launch's parameters otherwise. Gives up if a branch depends on anything else. `work`: what
/// the walk may still cost, with the result of one instruction in one thread as the unit; is used
/// up, and 0 after a walk that did not end within it.
[[nodiscard]] Walk walk(const Subject& subject, const Launch& launch, std::uint64_t& work);

/// Whether every order in which threads with these arrival traces may run finishes. True only if
/// all orders were examined.
[[nodiscard]] bool all_orders_finish(const Subject& subject, const Walk& walk,
                                     const Launch& launch);

/// Finds registers that depend on the thread's index alone and are equal in all threads of the
/// block, and replaces the sources of their definitions by constants (of arbitrary value: for
/// Uniformity only).
void fold_equal_values(ptx::Function& function, const std::array<std::uint32_t, 3>& block,
                       bool exact);

/// By thread, the value of each register that is written once and depends on the thread's index
/// alone.
class IndexValues {
 public:
  IndexValues(const ptx::Function& function, const analysis::RegisterIndex& index,
              const std::array<std::uint32_t, 3>& block, bool exact);
  /// Empty if it is not known.
  [[nodiscard]] const std::vector<std::uint64_t>& of(std::uint32_t reg) const {
    return values_[reg];
  }
  /// Of an operand; false if it is not known.
  [[nodiscard]] bool operand(const ptx::Operand& operand, std::vector<std::uint64_t>& out) const;
  [[nodiscard]] std::uint32_t threads() const { return threads_; }

 private:
  const analysis::RegisterIndex& index_;
  std::array<std::uint32_t, 3> block_;
  bool exact_;
  std::uint32_t threads_;
  std::vector<std::vector<std::uint64_t>> values_;
};

/// Whether roles that depend on the thread's index alone, with control that is otherwise uniform,
/// bring exactly the threads to each barrier that it counts, in every order and for any number of
/// iterations of uniform loops. `sharper`: the same function with equal values folded.
[[nodiscard]] bool roles_agree(const Subject& subject, const Subject& sharper,
                               const std::array<std::uint32_t, 3>& block);

// Text ------------------------------------------------------------------------------------------

/// Threads of a block in words: "threads with %tid.x >= 17 (15 of 32)".
[[nodiscard]] std::string describe(const Threads& threads,
                                   const std::array<std::uint32_t, 3>& block);

/// A barrier that fails in a launch: an error if `sure`, that is, if every launch of the kernel
/// fails; otherwise a warning.
[[nodiscard]] Finding proved(const Subject& subject, const Walk& walk, const Launch& launch,
                             bool sure);
/// A barrier that was not shown to be safe.
struct Doubt {
  std::uint32_t barrier = ptx::kNone;
  std::vector<std::uint32_t> deciders;  ///< statements at which threads may diverge
  enum class Why : std::uint8_t {
    Control,  ///< threads may diverge at the deciders
    Number,   ///< the barrier number may differ
    Count,    ///< the number of threads that arrive may differ from the count
    Mask,     ///< the lanes that arrive may differ from the mask
    Call,     ///< control of a call that reaches a barrier may differ
    Left,     ///< threads may have left in an earlier call
    Cluster,  ///< blocks of a cluster may differ
    Unknown,  ///< unknown instruction, or too large a function
  } why = Why::Control;
  bool shape_known = false;
  bool exits = false;  ///< Control: threads that do not arrive leave the kernel without waiting
};
[[nodiscard]] Finding doubted(const Subject& subject, const Doubt& doubt);

}  // namespace ptxgen::inline v0::gates::barriers
