// src/frames/debugger.cpp - steps through a launch, forward and back
#include "ptxgen/frames/debugger.hpp"

#include <algorithm>

#include "support/format.hpp"

namespace ptxgen::inline v0::frames {
namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
/// Instructions between two calls of DebuggerFront::interrupts.
constexpr std::uint64_t kPollInterval = 4096;

using Kind = DebuggerCommand::Kind;

}  // namespace

Debugger::Debugger(LaunchSource& source, std::vector<Watch> watches, std::size_t history)
    : source_(source),
      watches_(std::move(watches)),
      max_history_(std::max<std::size_t>(history, 2)) {}

Debugger::~Debugger() = default;

const Frame& Debugger::frame() const noexcept { return history_[position_]; }

void Debugger::run(DebuggerFront& front) {
  front_ = &front;
  goal_ = {};
  reason_ = "start";
  quit_ = false;
  do {
    again_ = false;
    ended_ = false;
    watches_changed_ = false;
    history_.clear();
    marks_ = {};
    findings_ = 0;
    ++runs_;
    emulator::Result result = source_.run(*this);
    if (quit_ || again_) continue;
    result_ = std::move(result);
    show_end();
  } while (!quit_);
}

/// The launch has ended by itself.
void Debugger::show_end() {
  ended_ = true;
  const std::uint64_t count = history_.empty() ? 0 : history_.back().number + 1;
  Frame frame = final_frame(result_, source_.device(), watches_, source_.buffers());
  frame.number = std::max(count, ran_);
  frame.kernel = kernel_;
  frame.blocks.assign(marks_.blocks().size(), Frame::Block::Ran);
  keep(std::move(frame));
  if (goal_.kind == Goal::Kind::Scan) {
    static_cast<void>(run_again_at_break());
    return;
  }
  reason_ = "end";
  static_cast<void>(interact());
}

const Frame* Debugger::previous() const noexcept {
  return position_ == 0 ? nullptr : &history_[position_ - 1];
}

bool Debugger::toggle_line(std::uint32_t line) {
  const auto found = std::ranges::find(lines_, line);
  if (found != lines_.end()) {
    lines_.erase(found);
    return false;
  }
  lines_.push_back(line);
  std::ranges::sort(lines_);
  return true;
}

std::string Debugger::break_reason(std::uint32_t line, bool barrier, bool new_finding) const {
  if (new_finding && at_findings) return "finding";
  if (std::ranges::find(lines_, line) != lines_.end()) return format_text("line {}", line);
  if (barrier && at_barriers) return "barrier";
  return {};
}

bool Debugger::reaches_goal(const emulator::Moment& moment) {
  if (goal_.kind == Goal::Kind::Number) return moment.number() >= goal_.number;
  const std::string reason = break_reason(moment.line(), is_barrier(moment.instruction()),
                                          moment.finding_count() > findings_);
  if (goal_.kind == Goal::Kind::Scan) {
    if (moment.number() < goal_.number) {
      if (!reason.empty()) {
        last_break_ = moment.number();
        last_reason_ = reason;
      }
      return false;
    }
    return true;
  }
  if (!reason.empty()) {
    reason_ = reason;
    return true;
  }
  if (goal_.kind != Goal::Kind::Warp) return false;
  if (moment.block_number() != goal_.block || moment.warp() != goal_.warp) return false;
  reason_ = "step";
  return true;
}

bool Debugger::before(const emulator::Moment& moment) {
  marks_.see(moment);
  ran_ = moment.number() + 1;
  if (moment.number() == 0) kernel_ = std::string(moment.module().text(moment.function().name));
  bool stops = reaches_goal(moment);
  if (!stops && moment.number() % kPollInterval == 0 && front_->interrupts()) {
    goal_ = {Goal::Kind::Number, moment.number()};
    reason_ = "interrupt";
    stops = true;
  }
  findings_ = moment.finding_count();
  if (stops && goal_.kind == Goal::Kind::Scan) return run_again_at_break();
  if (!stops && moment.number() < capture_from_) return true;
  const auto take = [&] {
    Frame frame = capture(moment, source_.device(), watches_, source_.buffers());
    frame.blocks = marks_.blocks();
    keep(std::move(frame));
  };
  take();
  if (!stops) return true;
  for (;;) {
    watches_changed_ = false;
    const bool goes_on = interact();
    if (!watches_changed_ || again_ || quit_ || goes_on) return goes_on;
    history_.clear();
    take();
  }
}

/// Adds a frame; drops those that do not come directly before it.
void Debugger::keep(Frame frame) {
  if (!history_.empty() && history_.back().number + 1 != frame.number) history_.clear();
  if (history_.size() >= max_history_) {
    history_.erase(history_.begin(),
                   history_.begin() + static_cast<std::ptrdiff_t>(max_history_ / 2));
  }
  history_.push_back(std::move(frame));
  position_ = history_.size() - 1;
}

/// Asks until the launch goes on (true), or this run of it is over.
bool Debugger::interact() {
  for (;;) {
    bool runs_on = false;
    if (execute(front_->ask(*this), runs_on)) return runs_on;
    if (watches_changed_) {
      // Frames that are kept do not have the new watches.
      if (ended_ || position_ + 1 != history_.size()) return run_again_to(frame().number);
      return false;
    }
  }
}

/// Returns whether the frame is no longer the one to ask about; `runs_on` as `interact`.
bool Debugger::execute(const DebuggerCommand& command, bool& runs_on) {
  const std::uint64_t now = frame().number;
  switch (command.kind) {
    case Kind::Show:
      return false;
    case Kind::Quit:
      quit_ = true;
      return true;
    case Kind::Step:
      reason_ = "step";
      return go_to(now + std::min(command.count, kNever - now), runs_on);
    case Kind::Back:
      reason_ = "step";
      return go_to(now - std::min(command.count, now), runs_on);
    case Kind::GoTo:
      reason_ = "step";
      return go_to(command.count, runs_on);
    case Kind::NextOfWarp:
      return run_to({Goal::Kind::Warp, 0, frame().block_number, frame().warp}, runs_on);
    case Kind::Continue:
      return run_to({Goal::Kind::Breakpoint}, runs_on);
    case Kind::ReverseContinue:
      last_break_ = kNever;
      static_cast<void>(run_again({Goal::Kind::Scan, now}, kNever));
      return true;
  }
  return false;
}

/// To an instruction by its number.
bool Debugger::go_to(std::uint64_t number, bool& runs_on) {
  const std::uint64_t first = history_.front().number;
  const std::uint64_t last = history_.back().number;
  if (number >= first && number <= last) {
    position_ = static_cast<std::size_t>(number - first);
    if (frame().finished) reason_ = "end";
    return false;
  }
  const std::uint64_t from = number - std::min<std::uint64_t>(number, max_history_ / 2);
  if (number < first) {
    static_cast<void>(run_again_to(number));
    return true;
  }
  position_ = history_.size() - 1;
  if (ended_) {
    reason_ = "end";
    return false;
  }
  goal_ = {Goal::Kind::Number, number};
  capture_from_ = from;
  return runs_on = true;
}

/// To the first frame that the goal accepts: among those that are kept, else in the launch.
bool Debugger::run_to(const Goal& goal, bool& runs_on) {
  while (position_ + 1 < history_.size()) {
    const std::size_t findings = frame().findings;
    ++position_;
    if (frame().finished) break;
    reason_ = break_reason(frame().line, frame().barrier, frame().findings > findings);
    if (!reason_.empty()) return false;
    reason_ = "step";
    if (goal.kind == Goal::Kind::Warp && frame().block_number == goal.block &&
        frame().warp == goal.warp) {
      return false;
    }
  }
  if (ended_) {
    reason_ = "end";
    return false;
  }
  goal_ = goal;
  capture_from_ = kNever;
  return runs_on = true;
}

/// Runs the launch from its start. Returns false: this run is over.
bool Debugger::run_again(const Goal& goal, std::uint64_t capture_from) {
  goal_ = goal;
  capture_from_ = capture_from;
  again_ = true;
  return false;
}

/// The same, to an instruction by its number.
bool Debugger::run_again_to(std::uint64_t number) {
  return run_again({Goal::Kind::Number, number},
                   number - std::min<std::uint64_t>(number, max_history_ / 2));
}

/// The same, to the last breakpoint that a scan has found, or to the start.
bool Debugger::run_again_at_break() {
  const bool found = last_break_ != kNever;
  reason_ = found ? last_reason_ : "start";
  return run_again_to(found ? last_break_ : 0);
}

void Debugger::set_watches(std::vector<Watch> watches) {
  if (watches == watches_) return;
  watches_ = std::move(watches);
  watches_changed_ = true;
}

}  // namespace ptxgen::inline v0::frames
