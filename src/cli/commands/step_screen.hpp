// src/cli/commands/step_screen.hpp - the debugger in a terminal, or by typed commands
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/step_launch.hpp"
#include "cli/output/terminal.hpp"
#include "ptxgen/frames/debugger.hpp"

namespace ptxgen::cli {

/// Draws frames in a terminal, and reads keys.
class StepScreen : public frames::DebuggerFront {
 public:
  StepScreen(const StepLaunch& launch, bool colours) : launch_(launch), terminal_(colours) {}
  frames::DebuggerCommand ask(frames::Debugger& debugger) override;
  bool interrupts() override;

 private:
  void draw(const frames::Debugger& debugger);
  void draw_small(frames::FrameSize size);
  void draw_help();
  [[nodiscard]] frames::DebuggerCommand on_key(frames::Debugger& debugger, const KeyPress& press);
  [[nodiscard]] frames::DebuggerCommand on_character(frames::Debugger& debugger, char key);
  [[nodiscard]] frames::DebuggerCommand prompt(frames::Debugger& debugger, std::string text);
  void draw_running();

  const StepLaunch& launch_;
  Terminal terminal_;
  std::string message_;
  bool refused_ = false;
  std::size_t scroll_ = 0;
  std::vector<frames::FrameLine> shown_;
};

/// Runs typed commands one after the other; prints the frame after each that moves.
class StepScript : public frames::DebuggerFront {
 public:
  /// `commands` are separated by semicolons or newlines.
  StepScript(const StepLaunch& launch, std::string_view commands, frames::FrameSize size);
  frames::DebuggerCommand ask(frames::Debugger& debugger) override;
  /// What was printed; frames are separated by empty lines.
  [[nodiscard]] const std::string& output() const noexcept { return output_; }
  /// The frames, and why the launch stopped there.
  struct Stop {
    std::string reason;
    frames::Frame frame;
  };
  [[nodiscard]] const std::vector<Stop>& stops() const noexcept { return stops_; }

 private:
  const StepLaunch& launch_;
  std::vector<std::string> commands_;
  std::size_t next_ = 0;
  bool moved_ = true;
  frames::FrameSize size_;
  std::string output_;
  std::vector<Stop> stops_;
};

}  // namespace ptxgen::cli
