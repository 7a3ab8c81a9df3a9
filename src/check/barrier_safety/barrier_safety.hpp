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

enum class UseKind : std::uint8_t { None, Block, Warp, Cluster };

/// What a statement asks of a barrier.
struct Use {
  UseKind kind = UseKind::None;
  bool aligned = false;                  ///< all lanes of a warp execute it together
  bool waits = true;                     ///< false for arrive
  bool arrives = true;                   ///< false for barrier.cluster.wait
  const ptx::Operand* id = nullptr;      ///< of a block's barrier; the mask of bar.warp.sync
  const ptx::Operand* count = nullptr;   ///< threads that it counts, null for all of the block
  const ptx::Operand* vote = nullptr;    ///< the predicate of bar.red
  const ptx::Operand* result = nullptr;  ///< what bar.red writes
};
[[nodiscard]] Use use_of(const ptx::Function& function, const ptx::Instruction& instruction);

/// What a call may do to the threads that make it.
struct CallEffect {
  bool barrier = false;  ///< comes to a barrier, or may
  bool always = false;   ///< comes to one that waits for all threads of the block, on every path
  bool warp = false;     ///< the same for bar.warp.sync
  bool leaves = false;   ///< some threads may leave the kernel in there
};

/// A function with what the parts of the gate share about it.
struct Subject {
  const ptx::Module& module;
  const ptx::Function& function;
  const analysis::Cfg& cfg;
  const analysis::RegisterIndex& index;
  const analysis::Uniformity& uniformity;
  std::vector<std::uint32_t> barriers;  ///< statements: barriers, calls that come to one
  std::vector<CallEffect> calls;        ///< by statement, empty if the function calls nothing
  std::vector<bool> decides;            ///< by block: its end decides whether control comes to one
  /// Numbers of barriers, as bits, that functions around it use for more than a warp by itself:
  /// those that it calls, its callers, and what else they call.
  std::uint32_t elsewhere = 0;

  [[nodiscard]] CallEffect call(std::uint32_t statement) const {
    return calls.empty() ? CallEffect{} : calls[statement];
  }
};

/// Whether threads that part from others at a statement, and do not come to the barrier, may go a
/// way on which they wait for nobody until they leave. Unless they are whole warps, it also must
/// not lead over a store that follows the barrier for the others: such threads skip the barrier,
/// they do not leave before it.
[[nodiscard]] bool leaves_before(const Subject& subject, std::uint32_t decider,
                                 std::uint32_t barrier, bool whole_warps);

/// One arrival of some threads at a barrier, as they come to it.
struct Arrival {
  std::uint32_t statement = 0;
  std::uint32_t id = 0;
  std::uint32_t count = 0;  ///< 0 all
  friend bool operator==(const Arrival&, const Arrival&) = default;
};

/// Why nobody can go on.
enum class Trouble : std::uint8_t {
  Left,       ///< threads left the kernel, which the barrier counts
  Elsewhere,  ///< threads that it counts wait somewhere else
  Apart,      ///< lanes of one warp come to an aligned barrier apart
  TooFew,     ///< fewer threads come than the number that it names
  Counts,     ///< two numbers of threads for one barrier
  Number,     ///< no such barrier, or no such number of threads
  Numbers,    ///< those that it counts wait at it by another number
  Unnamed,    ///< a lane that executes bar.warp.sync is not in its mask
};

/// How a walk through a launch ended.
struct Walk {
  enum class End : std::uint8_t { Finished, Stuck, Lost };
  End end = End::Lost;
  bool left_before = false;  ///< Left: the others go on from sm_70 on
  bool exact = true;         ///< no choice of the way hung on anything but the thread's index
  // Where it is stuck:
  Trouble trouble{};
  std::uint32_t barrier = ptx::kNone;  ///< the statement at which threads wait
  Threads waiting;                     ///< at it
  Threads missing;                     ///< that it counts and that will not come
  std::uint32_t other = ptx::kNone;    ///< where they left or wait
  bool others_left = false;
  std::uint32_t decider = ptx::kNone;  ///< statement at which the two parted
  Threads turned;                      ///< at the decider: those whose guard held
  std::uint64_t wanted = 0;            ///< TooFew, Counts, Number
  std::uint64_t found = 0;             ///< the same
  /// Barriers before which threads had left the kernel, each once, as if it were stuck there: from
  /// sm_70 on the others go on.
  std::vector<Walk> exits;
  // Where it came to its end: what each thread did, as numbers in `stories`.
  std::vector<std::uint16_t> story_of;
  std::vector<std::vector<Arrival>> stories;
};

/// Walks all threads of a block through the function, with exact values where they follow from the
/// thread's index, and with what the launch says for parameters. Gives up (Lost) where the way
/// hangs on something else. `work` is what may still be done, in results of threads.
[[nodiscard]] Walk walk(const Subject& subject, const Launch& launch, std::uint64_t& work);

/// Whether every order in which threads with these stories may run comes to its end. Only says yes
/// when it has seen them all.
[[nodiscard]] bool all_orders_finish(const Subject& subject, const Walk& walk,
                                     const Launch& launch);

/// Registers of the function whose value hangs on the thread's index alone and is the same in all
/// threads of the block: what is read to compute them is replaced by constants (not by the right
/// ones: for Uniformity only).
void fold_equal_values(ptx::Function& function, const std::array<std::uint32_t, 3>& block,
                       bool exact);

/// For every thread the value of a register that is written once, from the index alone; empty if
/// it is not that.
class IndexValues {
 public:
  IndexValues(const ptx::Function& function, const analysis::RegisterIndex& index,
              const std::array<std::uint32_t, 3>& block, bool exact);
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

/// Whether roles that follow from the index alone, with control that is otherwise uniform, bring
/// exactly the threads to each barrier that it counts, in every order and however often uniform
/// loops go round. `sharper` is the same function with equal values folded.
[[nodiscard]] bool roles_agree(const Subject& subject, const Subject& sharper,
                               const std::array<std::uint32_t, 3>& block);

// Text ------------------------------------------------------------------------------------------

/// Threads of a block in words: "threads with %tid.x >= 17 (15 of 32)".
[[nodiscard]] std::string describe(const Threads& threads,
                                   const std::array<std::uint32_t, 3>& block);

/// A barrier that is in trouble in a launch. An error; without `sure`, which says that no launch of
/// the kernel is free of it, a warning.
[[nodiscard]] Finding proved(const Subject& subject, const Walk& walk, const Launch& launch,
                             bool sure);
/// A barrier that could not be shown to be safe.
struct Doubt {
  std::uint32_t barrier = ptx::kNone;
  std::vector<std::uint32_t> deciders;  ///< statements at which threads may part
  enum class Why : std::uint8_t {
    Control,  ///< threads may part at the deciders
    Number,   ///< which barrier may differ
    Count,    ///< how many threads come is not known to be what it counts
    Mask,     ///< the lanes of the mask
    Call,     ///< control to a call that comes to a barrier
    Left,     ///< threads may have left in a call before
    Cluster,  ///< blocks of a cluster may differ
    Unknown,  ///< an instruction that is not known
  } why = Why::Control;
  bool shape_known = false;
  bool exits = false;  ///< Control: who does not come leaves the kernel, and waits nowhere
};
[[nodiscard]] Finding doubted(const Subject& subject, const Doubt& doubt);

}  // namespace ptxgen::inline v0::gates::barriers
