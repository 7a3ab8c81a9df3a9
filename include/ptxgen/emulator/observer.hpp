// ptxgen/emulator/observer.hpp - a launch observed instruction by instruction
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0::emulator {

struct Context;     // src/emulator: the warp that runs
class Observation;  // src/emulator: an observed launch

/// A register in the 32 lanes of a warp.
struct RegisterLanes {
  ptx::Type type = ptx::Type::none;  ///< as declared; none if the function has no such register
  /// Lanes with a known value. Registers whose uses do not overlap in the text share a place: a
  /// register has values from the first to the last statement that needs it, and none elsewhere.
  /// Lanes with bits that were never written are not known either.
  std::uint32_t known = 0;
  /// Bit patterns, zero-extended; a predicate is 0 or 1. Valid for the known lanes.
  std::array<std::uint64_t, 32> low{};
  std::array<std::uint64_t, 32> high{};  ///< upper halves of 128-bit registers, else 0
};

/// Lanes of a warp that are at the same place in the code.
struct LaneGroup {
  enum class State : std::uint8_t {
    Running,    ///< executes the instruction of the moment
    Ready,      ///< can run
    Barrier,    ///< waits at a barrier
    Lanes,      ///< waits for other lanes of its warp
    Warpgroup,  ///< waits for the other warps of its warpgroup
  };
  State state = State::Ready;
  std::uint32_t lanes = 0;       ///< mask
  std::uint32_t line = 0;        ///< PTX line of the instruction that it executes next, or waits at
  std::uint32_t barrier = 0;     ///< State::Barrier: its number, or kClusterBarrierNumber
  std::uint32_t call_depth = 0;  ///< 0: in the kernel itself
  friend bool operator==(const LaneGroup&, const LaneGroup&) = default;
};
/// LaneGroup::barrier of lanes at barrier.cluster.
inline constexpr std::uint32_t kClusterBarrierNumber = 16;

/// A warp of the block of a moment.
struct WarpState {
  std::uint32_t lanes = 0;         ///< mask of its threads; the last warp of a block may have fewer
  std::uint32_t exited = 0;        ///< mask of threads that have exited
  std::uint64_t instructions = 0;  ///< executed so far, in units of basic blocks
  std::vector<LaneGroup> groups;   ///< of the other threads
};

/// A warp is about to execute an instruction: where, and the state before it. A view that is valid
/// only during the call of `Observer::before`. Names and lines are those of the PTX text.
class Moment {
 public:
  /// Position in the launch: 0 for the first instruction, then 1, ...
  [[nodiscard]] std::uint64_t number() const noexcept;

  // Where.
  [[nodiscard]] const ptx::Module& module() const noexcept;
  [[nodiscard]] const ptx::Function& function() const noexcept;
  /// Index in Function::body.
  [[nodiscard]] std::uint32_t statement() const noexcept { return statement_; }
  [[nodiscard]] const ptx::Instruction& instruction() const noexcept;
  [[nodiscard]] std::uint32_t line() const noexcept { return instruction().line; }
  [[nodiscard]] std::uint32_t call_depth() const noexcept;  ///< 0: in the kernel itself

  // Who.
  [[nodiscard]] Dim3 grid_size() const noexcept;   ///< blocks
  [[nodiscard]] Dim3 block_size() const noexcept;  ///< threads
  [[nodiscard]] Dim3 block() const noexcept;       ///< %ctaid
  /// Number of the block: x + grid.x * (y + grid.y * z).
  [[nodiscard]] std::uint64_t block_number() const noexcept;
  [[nodiscard]] std::uint32_t warp() const noexcept;    ///< in the block
  [[nodiscard]] std::uint32_t active() const noexcept;  ///< lanes at this instruction
  /// Of them, lanes whose guard is true; without a guard all of them.
  [[nodiscard]] std::uint32_t executing() const noexcept { return executing_; }
  /// All warps of the block, by number.
  [[nodiscard]] std::vector<WarpState> warps() const;

  // State.
  /// A register of the function by its name: "%f3", "%v.x" for an element of a vector register. In
  /// a text with several scopes of that name, the one with a value here.
  [[nodiscard]] RegisterLanes register_lanes(std::string_view name) const;
  /// The shared memory of the block: static, then dynamic. Bytes that were never written are 0.
  [[nodiscard]] std::span<const std::byte> shared() const noexcept;
  /// Whether all those bytes of it were written.
  [[nodiscard]] bool shared_written(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  /// The place of a shared variable of the kernel, by its name; one without a size is the dynamic
  /// memory. Size 0 if the kernel has none of that name.
  [[nodiscard]] Device::Extent shared_variable(std::string_view name) const noexcept;

  // Findings that are not suppressed, merged as in Result.
  [[nodiscard]] std::size_t finding_count() const;
  /// The newest one; only if `finding_count()` is not 0.
  [[nodiscard]] RunFinding last_finding() const;

 private:
  friend class Observation;
  Moment(const Observation& observation, const Context& context, std::uint32_t statement,
         std::uint32_t executing) noexcept
      : observation_(&observation),
        context_(&context),
        statement_(statement),
        executing_(executing) {}

  const Observation* observation_;
  const Context* context_;
  std::uint32_t statement_;
  std::uint32_t executing_;
};

/// Sees every warp instruction of a launch before it is executed.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  /// Called in the order of execution, in the thread of `observe`. May read the device's memory.
  /// Instructions of lanes that wait for others (barriers, .sync rows) are seen each time they are
  /// tried, as Counters count them. False stops the launch before this instruction. What it throws
  /// ends the launch and leaves `observe`.
  virtual bool before(const Moment& moment) = 0;
};

/// As `run`, with an observer, in one host thread: `Options::threads` and `parallel` are ignored.
/// Equal launches on equal memory give equal moments; `Options::seed` selects the schedule, 0 runs
/// each warp until it waits or exits. A launch that the observer stopped has the findings and
/// counters up to there, but counts the last basic block in full. Other launches do not get slower
/// because of observers.
Result observe(Program& program, const Launch& launch, Observer& observer,
               const Options& options = {});

}  // namespace ptxgen::inline v0::emulator
