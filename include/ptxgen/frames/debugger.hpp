// ptxgen/frames/debugger.hpp - steps through a launch, forward and back
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/emulator/observer.hpp"
#include "ptxgen/frames/recorder.hpp"

namespace ptxgen::inline v0::frames {

/// A launch that can be run again: each run begins with the same memory and the same schedule, so
/// that instruction N is the same in all of them.
class LaunchSource {
 public:
  LaunchSource() = default;
  LaunchSource(const LaunchSource&) = delete;
  LaunchSource& operator=(const LaunchSource&) = delete;
  virtual ~LaunchSource() = default;

  /// Prepares memory and runs the launch with the observer.
  virtual emulator::Result run(emulator::Observer& observer) = 0;
  /// Those of the last run, also while it runs.
  [[nodiscard]] virtual const emulator::Device& device() const = 0;
  [[nodiscard]] virtual std::span<const Buffer> buffers() const = 0;
};

/// What a user asks a debugger to do.
struct DebuggerCommand {
  enum class Kind : std::uint8_t {
    Show,             ///< ask again
    Step,             ///< `count` instructions forward, of any warp
    Back,             ///< `count` instructions back
    NextOfWarp,       ///< to the next instruction of the same warp, or a breakpoint
    Continue,         ///< to the next breakpoint, or the end
    ReverseContinue,  ///< to the breakpoint before, or the start
    GoTo,             ///< to instruction number `count`, or the end
    Quit,
  };
  Kind kind = Kind::Show;
  std::uint64_t count = 1;
};

class Debugger;

/// The user's side of a debugger.
class DebuggerFront {
 public:
  DebuggerFront() = default;
  DebuggerFront(const DebuggerFront&) = delete;
  DebuggerFront& operator=(const DebuggerFront&) = delete;
  virtual ~DebuggerFront() = default;
  /// Shows where the launch is, and returns what to do next. May change breakpoints and watches.
  virtual DebuggerCommand ask(Debugger& debugger) = 0;
  /// Called from time to time while the launch runs without being shown; true stops it where it is.
  [[nodiscard]] virtual bool interrupts() { return false; }
};

/// Steps through a launch. Keeps the newest frames that it has stopped at or stepped over; further
/// back it runs the launch again. Not for several threads.
class Debugger : private emulator::Observer {
 public:
  /// `history`: frames that are kept, at least 2.
  explicit Debugger(LaunchSource& source, std::vector<Watch> watches = {},
                    std::size_t history = 512);
  ~Debugger() override;

  /// Runs the launch, stops before its first instruction, and asks the front until it quits. Throws
  /// what the source and the front throw.
  void run(DebuggerFront& front);

  // While the front is asked.

  [[nodiscard]] const Frame& frame() const noexcept;
  /// The frame before, if it is kept; else null.
  [[nodiscard]] const Frame* previous() const noexcept;
  /// Why it stopped: "start", "step", "line 12", "barrier", "finding", "interrupt", "end".
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  /// Runs of the launch so far.
  [[nodiscard]] std::uint64_t runs() const noexcept { return runs_; }
  /// Of the last run that has ended; an empty one before.
  [[nodiscard]] const emulator::Result& result() const noexcept { return result_; }

  // Breakpoints, also before `run`.

  /// Adds or removes the breakpoint at a PTX line; true if there is one now.
  bool toggle_line(std::uint32_t line);
  [[nodiscard]] std::span<const std::uint32_t> lines() const noexcept { return lines_; }
  bool at_barriers = false;  ///< stop before barriers
  bool at_findings = true;   ///< stop after an instruction that had a new finding

  /// Replaces the watches. The frame has them when the front is asked again.
  void set_watches(std::vector<Watch> watches);
  [[nodiscard]] std::span<const Watch> watches() const noexcept { return watches_; }

 private:
  /// Where the launch runs to.
  struct Goal {
    enum class Kind : std::uint8_t {
      Number,
      Breakpoint,
      Warp,  ///< the next instruction of a warp, or a breakpoint
      Scan,  ///< to `number`, noting the last breakpoint before it
    };
    Kind kind = Kind::Number;
    std::uint64_t number = 0;
    std::uint64_t block = 0;
    std::uint32_t warp = 0;
  };

  bool before(const emulator::Moment& moment) override;
  [[nodiscard]] std::string break_reason(std::uint32_t line, bool barrier, bool new_finding) const;
  [[nodiscard]] bool reaches_goal(const emulator::Moment& moment);
  void keep(Frame frame);
  bool interact();
  bool execute(const DebuggerCommand& command, bool& runs_on);
  bool go_to(std::uint64_t number, bool& runs_on);
  bool run_to(const Goal& goal, bool& runs_on);
  bool run_again(const Goal& goal, std::uint64_t capture_from);
  bool run_again_to(std::uint64_t number);
  bool run_again_at_break();
  void show_end();

  LaunchSource& source_;
  std::vector<Watch> watches_;
  std::size_t max_history_;
  std::vector<std::uint32_t> lines_;
  DebuggerFront* front_ = nullptr;
  std::vector<Frame> history_;  // consecutive instructions
  std::size_t position_ = 0;
  std::string reason_;
  std::uint64_t runs_ = 0;
  emulator::Result result_;
  // Of the current run:
  Goal goal_;
  std::uint64_t capture_from_ = 0;  // frames of all instructions from here on are kept
  BlockMarks marks_;
  std::size_t findings_ = 0;
  std::uint64_t ran_ = 0;  // instructions
  std::string kernel_;
  std::uint64_t last_break_ = 0;  // of Goal::Scan
  std::string last_reason_;
  bool watches_changed_ = false;
  bool again_ = false;
  bool quit_ = false;
  bool ended_ = false;
};

}  // namespace ptxgen::inline v0::frames
