// src/cli/commands/step_screen.cpp - the debugger in a terminal, or by typed commands
#include "cli/commands/step_screen.hpp"

#include <algorithm>

#include "cli/commands/step_prompt.hpp"
#include "cli_common/program.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::cli {

namespace {

using frames::DebuggerCommand;
using frames::FrameLine;
using frames::FrameSize;
using frames::LineRole;
using Kind = DebuggerCommand::Kind;
using Key = KeyPress::Key;

constexpr std::string_view kStepKeys =
    "s step  b back  n next  c continue  r reverse  B break  w watch  ? keys  q quit";
constexpr std::size_t kPage = 20;

constexpr std::string_view kStepHelp[] = {
    "Keys of ptxgen step",
    "",
    "  s Right Space   one instruction forward, of whichever warp is next",
    "  b Left          one instruction back",
    "  n               to the next instruction of this warp",
    "  PgDn PgUp       20 instructions forward or back",
    "  c r             on to the next breakpoint, back to the one before",
    "  Home End        to the first instruction, to the end of the launch",
    "  B               breakpoint at this line, on or off",
    "  a f             stop at barriers, stop after findings: on or off",
    "  w u             watch a register, shared variable or buffer; remove the last",
    "  Up Down         scroll the watched values",
    "  :               a command: goto 100, break 12, watch tile[0..7], ...",
    "  q               quit",
    "",
    "Ctrl-C stops a launch that runs. Any key goes back to the frame.",
};

std::string fitted_line(std::string text, std::size_t width) {
  text.resize(width, ' ');
  return text;
}

bool moves(Kind kind) { return kind != Kind::Show && kind != Kind::Quit; }

}  // namespace

void StepScreen::draw(const frames::Debugger& debugger) {
  const FrameSize size = terminal_.size();
  if (size.width < frames::kMinFrame.width || size.height < frames::kMinFrame.height + 2) {
    draw_small(size);
    return;
  }
  frames::FrameStyle style;
  style.size = {size.width, size.height - 2};
  style.source = launch_.text();
  style.breakpoints = debugger.lines();
  style.previous = debugger.previous();
  style.scroll = scroll_;
  shown_ = frames::to_lines(debugger.frame(), style);
  std::string status = message_;
  if (status.empty()) {
    status = format_text("[{}] breakpoints: {}", debugger.reason(), breakpoints_text(debugger));
  }
  shown_.push_back(
      {refused_ ? LineRole::Finding : LineRole::Blocks, fitted_line(status, size.width)});
  shown_.push_back({LineRole::Title, fitted_line(std::string(kStepKeys), size.width)});
  terminal_.draw(shown_);
}

void StepScreen::draw_small(FrameSize size) {
  const FrameLine line{LineRole::Empty,
                       format_text("{}x{} is too small, need {}x{}", size.width, size.height,
                                   frames::kMinFrame.width, frames::kMinFrame.height + 2)};
  terminal_.draw(std::span(&line, 1));
}

void StepScreen::draw_help() {
  std::vector<FrameLine> lines;
  for (const std::string_view text : kStepHelp) {
    lines.push_back({lines.empty() ? LineRole::Title : LineRole::Empty,
                     fitted_line(std::string(text), terminal_.size().width)});
  }
  lines.resize(std::min(lines.size(), terminal_.size().height));
  terminal_.draw(lines);
  static_cast<void>(terminal_.read());
}

void StepScreen::draw_running() {
  if (shown_.empty()) return;
  shown_.back().text = fitted_line("running; Ctrl-C stops", terminal_.size().width);
  terminal_.draw(shown_);
}

bool StepScreen::interrupts() {
  for (KeyPress press = terminal_.poll(); press.key != Key::None; press = terminal_.poll()) {
    if (press.key == Key::Interrupt) return true;
  }
  return false;
}

DebuggerCommand StepScreen::ask(frames::Debugger& debugger) {
  draw(debugger);
  const KeyPress press = terminal_.read();
  if (press.key != Key::Resize) {
    message_.clear();
    refused_ = false;
  }
  const DebuggerCommand command = on_key(debugger, press);
  if (command.kind != Kind::Show) scroll_ = 0;
  if (moves(command.kind)) draw_running();
  return command;
}

DebuggerCommand StepScreen::on_key(frames::Debugger& debugger, const KeyPress& press) {
  switch (press.key) {
    case Key::Right:
      return {Kind::Step};
    case Key::Left:
      return {Kind::Back};
    case Key::PageDown:
      return {Kind::Step, kPage};
    case Key::PageUp:
      return {Kind::Back, kPage};
    case Key::Home:
      return {Kind::GoTo, 0};
    case Key::End:
      return {Kind::GoTo, ~std::uint64_t{0}};
    case Key::Up:
      scroll_ -= std::min<std::size_t>(scroll_, 1);
      return {};
    case Key::Down:
      ++scroll_;
      return {};
    case Key::Closed:
      return {Kind::Quit};
    case Key::Interrupt:
      message_ = "q quits";
      return {};
    case Key::Character:
      return on_character(debugger, press.character);
    default:
      return {};
  }
}

DebuggerCommand StepScreen::on_character(frames::Debugger& debugger, char key) {
  switch (key) {
    case 's':
    case ' ':
      return {Kind::Step};
    case 'b':
      return {Kind::Back};
    case 'n':
      return {Kind::NextOfWarp};
    case 'c':
      return {Kind::Continue};
    case 'r':
      return {Kind::ReverseContinue};
    case 'q':
      return {Kind::Quit};
    case 'B':
      if (debugger.frame().line == 0) return {};
      message_ =
          run_prompt(format_text("break {}", debugger.frame().line), debugger, launch_).message;
      return {};
    case 'a':
      message_ = run_prompt("break barrier", debugger, launch_).message;
      return {};
    case 'f':
      message_ = run_prompt("break finding", debugger, launch_).message;
      return {};
    case 'u': {
      const Prompted done = run_prompt("unwatch", debugger, launch_);
      message_ = done.message;
      refused_ = done.refused;
      return {};
    }
    case 'w':
      return prompt(debugger, "watch ");
    case ':':
      return prompt(debugger, "");
    case '?':
      draw_help();
      return {};
    default:
      message_ = format_text("'{}' is no key of this program; ? lists them", key);
      refused_ = true;
      return {};
  }
}

// A command typed in the last line.
DebuggerCommand StepScreen::prompt(frames::Debugger& debugger, std::string text) {
  for (;;) {
    if (!shown_.empty()) {
      const std::size_t width = terminal_.size().width;
      // The end of a long command is what is typed.
      const std::size_t cut = text.size() + 2 > width ? text.size() + 2 - width : 0;
      const std::string visible = ":" + text.substr(std::min(cut, text.size()));
      shown_.back() = {LineRole::Empty, fitted_line(visible, width)};
      terminal_.draw(shown_, visible.size());
    }
    const KeyPress press = terminal_.read();
    switch (press.key) {
      case Key::Character:
        text += press.character;
        break;
      case Key::Backspace:
        if (text.empty()) return {};
        text.pop_back();
        break;
      case Key::Resize:
        draw(debugger);
        break;
      case Key::Enter: {
        Prompted done = run_prompt(text, debugger, launch_);
        message_ = std::move(done.message);
        refused_ = done.refused;
        return done.command;
      }
      case Key::Escape:
      case Key::Interrupt:
        return {};
      case Key::Closed:
        return {Kind::Quit};
      default:
        break;
    }
  }
}

StepScript::StepScript(const StepLaunch& launch, std::string_view commands, FrameSize size)
    : launch_(launch), size_(size) {
  while (!commands.empty()) {
    const std::size_t end = commands.find_first_of(";\n");
    commands_.emplace_back(commands.substr(0, end));
    commands.remove_prefix(end == commands.npos ? commands.size() : end + 1);
  }
}

DebuggerCommand StepScript::ask(frames::Debugger& debugger) {
  if (moved_) {
    frames::FrameStyle style;
    style.size = size_;
    style.source = launch_.text();
    style.breakpoints = debugger.lines();
    style.previous = debugger.previous();
    stops_.push_back({debugger.reason(), debugger.frame()});
    output_ += format_text("[{}]\n", debugger.reason());
    output_ += frames::to_text(debugger.frame(), style);
    output_ += '\n';
  }
  while (next_ < commands_.size()) {
    const std::string& text = commands_[next_++];
    const std::vector<frames::Watch> before(debugger.watches().begin(), debugger.watches().end());
    const Prompted done = run_prompt(text, debugger, launch_);
    if (done.refused) throw UsageError("--commands: " + done.message);
    if (!done.message.empty()) output_ += done.message + '\n';
    moved_ = moves(done.command.kind);
    const bool watches_changed = !std::ranges::equal(before, debugger.watches());
    if (moved_ || watches_changed || done.command.kind == Kind::Quit) return done.command;
  }
  return {Kind::Quit};
}

}  // namespace ptxgen::cli
