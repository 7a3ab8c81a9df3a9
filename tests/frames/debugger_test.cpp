// tests/frames/debugger_test.cpp - steps through a launch, forward and back
#include "ptxgen/frames/debugger.hpp"

#include <catch2/catch.hpp>

#include "tile_kernel.hpp"

using namespace ptxgen;
using frames::Debugger;
using frames::DebuggerCommand;
using Kind = DebuggerCommand::Kind;

namespace {

/// Where a debugger was asked.
struct Stop {
  std::uint64_t number = 0;
  std::uint32_t line = 0;
  std::uint32_t warp = 0;
  std::string reason;
  std::uint64_t runs = 0;
  frames::Frame frame;
};

/// Gives commands one after the other, then quits.
class Script : public frames::DebuggerFront {
 public:
  explicit Script(std::vector<DebuggerCommand> commands) : commands_(std::move(commands)) {}
  DebuggerCommand ask(Debugger& debugger) override {
    const frames::Frame& frame = debugger.frame();
    stops.push_back(
        {frame.number, frame.line, frame.warp, debugger.reason(), debugger.runs(), frame});
    if (on_ask != nullptr) on_ask(debugger, stops.size());
    return stops.size() > commands_.size() ? DebuggerCommand{Kind::Quit}
                                           : commands_[stops.size() - 1];
  }
  bool interrupts() override { return interrupt; }
  std::vector<Stop> stops;
  bool interrupt = false;
  void (*on_ask)(Debugger&, std::size_t) = nullptr;

 private:
  std::vector<DebuggerCommand> commands_;
};

std::vector<Stop> stops_of(std::vector<DebuggerCommand> commands, std::vector<std::uint32_t> lines,
                           bool barriers = false, std::size_t history = 512) {
  test::TileLaunch launch;
  Debugger debugger(launch, {}, history);
  for (const std::uint32_t line : lines) CHECK(debugger.toggle_line(line));
  debugger.at_barriers = barriers;
  Script script(std::move(commands));
  debugger.run(script);
  return script.stops;
}

/// Lines by instruction number.
std::vector<std::uint32_t> all_lines() {
  test::TileLaunch launch;
  frames::FrameRecorder recorder(launch.device(), {});
  launch.observe(recorder);
  std::vector<std::uint32_t> lines;
  for (const frames::Frame& frame : recorder.frames()) lines.push_back(frame.line);
  return lines;
}

}  // namespace

TEST_CASE("debugger: stops before the first instruction, steps forward and back") {
  const std::vector<Stop> stops = stops_of(
      {{Kind::Step}, {Kind::Step, 5}, {Kind::Back, 2}, {Kind::Back, 100}, {Kind::Step}}, {});
  REQUIRE(stops.size() == 6);
  const std::uint64_t numbers[] = {0, 1, 6, 4, 0, 1};
  const std::vector<std::uint32_t> lines = all_lines();
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(stops[i].number == numbers[i]);
    CHECK(stops[i].line == lines[numbers[i]]);
    // All of it was kept: the launch ran once.
    CHECK(stops[i].runs == 1);
  }
  CHECK(stops[0].reason == "start");
  CHECK(stops[1].reason == "step");
}

TEST_CASE("debugger: stops at lines, at barriers and at the end") {
  const std::vector<Stop> stops = stops_of(
      {{Kind::Continue}, {Kind::Continue}, {Kind::Continue}, {Kind::Continue}}, {test::kTileStore});
  REQUIRE(stops.size() == 5);
  CHECK(stops[1].line == test::kTileStore);
  CHECK(stops[1].reason == "line 38");
  CHECK(stops[2].line == test::kTileStore);
  CHECK(stops[2].warp != stops[1].warp);
  CHECK(stops[3].reason == "end");
  CHECK(stops[3].frame.finished);
  CHECK(stops[3].number == all_lines().size());
  CHECK(stops[4].reason == "end");
  const std::vector<Stop> barriers = stops_of({{Kind::Continue}, {Kind::Continue}}, {}, true);
  CHECK(barriers[1].line == test::kTileBarrier);
  CHECK(barriers[1].reason == "barrier");
  CHECK(barriers[1].warp == 0);
  CHECK(barriers[2].line == test::kTileBarrier);
  CHECK(barriers[2].warp == 1);
}

TEST_CASE("debugger: back beyond what is kept runs the launch again, to the same state") {
  for (const std::size_t history : {2u, 8u, 512u}) {
    INFO("history " << history);
    const std::vector<Stop> stops =
        stops_of({{Kind::Step, 60}, {Kind::Back, 50}, {Kind::Step, 50}, {Kind::Back}, {Kind::Back}},
                 {}, false, history);
    REQUIRE(stops.size() == 6);
    CHECK(stops[2].number == 10);
    CHECK(stops[3].number == 60);
    CHECK(frames::to_text(stops[3].frame) == frames::to_text(stops[1].frame));
    CHECK(stops[4].number == 59);
    CHECK(stops[5].number == 58);
    CHECK(stops.back().runs > (history == 512 ? 0u : 1u));
  }
}

TEST_CASE("debugger: back to the breakpoint before, and to the start") {
  const std::vector<Stop> stops = stops_of({{Kind::Continue},
                                            {Kind::Continue},
                                            {Kind::Continue},
                                            {Kind::ReverseContinue},
                                            {Kind::ReverseContinue},
                                            {Kind::ReverseContinue},
                                            {Kind::ReverseContinue}},
                                           {test::kTileAdd});
  REQUIRE(stops.size() == 8);
  CHECK(stops[4].number == stops[2].number);
  CHECK(stops[4].reason == "line 31");
  CHECK(stops[5].number == stops[1].number);
  CHECK(stops[6].number == 0);
  CHECK(stops[6].reason == "start");
  CHECK(stops[7].number == 0);
  // From the end too.
  const std::vector<Stop> end =
      stops_of({{Kind::GoTo, ~std::uint64_t{0}}, {Kind::ReverseContinue}}, {test::kTileStore});
  REQUIRE(end.size() == 3);
  CHECK(end[1].frame.finished);
  CHECK(end[2].line == test::kTileStore);
  CHECK(end[2].reason == "line 38");
}

TEST_CASE("debugger: the next instruction of the warp skips the others") {
  std::vector<DebuggerCommand> commands{{Kind::Continue}};
  for (int i = 0; i < 6; ++i) commands.push_back({Kind::NextOfWarp});
  // Warp 0 waits at the first barrier while warp 1 gets there.
  const std::vector<Stop> stops = stops_of(commands, {}, true);
  REQUIRE(stops.size() == 8);
  CHECK(stops[1].line == test::kTileBarrier);
  // Breakpoints stop it as well: warp 1 at the same barrier.
  CHECK(stops[2].warp == 1);
  std::vector<DebuggerCommand> steps{{Kind::GoTo, stops[1].number}};
  for (int i = 0; i < 3; ++i) steps.push_back({Kind::NextOfWarp});
  const std::vector<Stop> warp = stops_of(steps, {});
  for (std::size_t i = 1; i < warp.size(); ++i) CHECK(warp[i].warp == 0);
  CHECK(warp[2].line > test::kTileBarrier);
}

TEST_CASE("debugger: stops after an instruction with a finding") {
  std::string ptx = test::kTileKernel;
  const std::string add = "add.u64 %rd4, %rd4, 256;";
  ptx.replace(ptx.find(add), add.size(), "add.u64 %rd4, %rd4, 512;");
  test::TileLaunch launch(ptx);
  Debugger debugger(launch);
  Script script({{Kind::Continue}, {Kind::Continue}, {Kind::Back}});
  debugger.run(script);
  REQUIRE(script.stops.size() == 4);
  CHECK(script.stops[1].reason == "finding");
  CHECK(script.stops[1].frame.findings == 1);
  CHECK(script.stops[1].line == 25);
  CHECK(script.stops[2].reason == "end");
  CHECK_FALSE(script.stops[3].frame.finished);
}

TEST_CASE("debugger: watches can be added at any frame") {
  test::TileLaunch launch;
  Debugger debugger(launch, {{"%r1", 0, 2}});
  CHECK(debugger.toggle_line(test::kTileStore));
  Script script({{Kind::Continue},
                 {Kind::Show},
                 {Kind::Back},
                 {Kind::Back},
                 {Kind::Show},
                 {Kind::GoTo, ~std::uint64_t{0}},
                 {Kind::Show}});
  script.on_ask = [](Debugger& at, std::size_t number) {
    if (number == 2) at.set_watches({{"%f1", 0, 1}});
    if (number == 5) at.set_watches({{"%f1", 0, 1}, {"tile", 0, 1}});
    if (number == 7) at.set_watches({{"y", 0, 1}});
  };
  debugger.run(script);
  REQUIRE(script.stops.size() == 8);
  CHECK(script.stops[1].frame.watched[0].name == "%r1");
  CHECK(script.stops[2].frame.watched[0].name == "%f1");
  CHECK(script.stops[2].number == script.stops[1].number);
  CHECK(script.stops[5].number == script.stops[4].number);
  CHECK(script.stops[5].frame.watched.size() == 2);
  CHECK(script.stops[7].frame.finished);
  REQUIRE(script.stops[7].frame.watched.size() == 1);
  CHECK(frames::value_of(script.stops[7].frame.watched[0].bits[0], ptx::Type::f32) ==
        static_cast<double>(test::tile_sum(0, 3)));
}

TEST_CASE("debugger: a launch that runs on can be interrupted") {
  std::string ptx = test::kTileKernel;
  const std::string step = "add.u32 %r5, %r5, 1;";
  ptx.replace(ptx.find(step), step.size(), "add.u32 %r5, %r5, 0;");
  const std::string pointer = "add.u64 %rd4, %rd4, 256;";
  ptx.replace(ptx.find(pointer), pointer.size(), "add.u64 %rd4, %rd4, 0;");
  test::TileLaunch launch(ptx);
  Debugger debugger(launch);
  class Interrupting : public frames::DebuggerFront {
   public:
    DebuggerCommand ask(Debugger& at) override {
      numbers.push_back(at.frame().number);
      reasons.push_back(at.reason());
      return {numbers.size() == 1 ? Kind::Continue : Kind::Quit};
    }
    bool interrupts() override { return ++polls == 3; }
    std::vector<std::uint64_t> numbers;
    std::vector<std::string> reasons;
    int polls = 0;
  } front;
  debugger.run(front);
  REQUIRE(front.numbers.size() == 2);
  CHECK(front.reasons[1] == "interrupt");
  CHECK(front.numbers[1] > 4000);
}

TEST_CASE("debugger: breakpoints are toggled and sorted") {
  test::TileLaunch launch;
  Debugger debugger(launch);
  CHECK(debugger.toggle_line(9));
  CHECK(debugger.toggle_line(3));
  CHECK(std::vector<std::uint32_t>(debugger.lines().begin(), debugger.lines().end()) ==
        std::vector<std::uint32_t>{3, 9});
  CHECK_FALSE(debugger.toggle_line(9));
  CHECK(debugger.lines().size() == 1);
}
