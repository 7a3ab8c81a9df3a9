// tests/cli/step_test.cpp - ptxgen step: frames, commands, a real terminal (tmux)
#include <catch2/catch.hpp>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <thread>

#include "program.hpp"
#include "ptxgen/frames/checks.hpp"
#include "support/harness.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

/// Thread i of a block of 64 stores i * 3; threads 8 and later skip the multiplication.
constexpr std::string_view kStepKernel = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry triple(.param .u64 out, .param .u32 n)
{
  .reg .pred %p1;
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  .shared .align 4 .u32 tile[64];
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r3, [n];
  mov.u32 %r1, %tid.x;
  mov.u32 %r4, %ctaid.x;
  mad.lo.u32 %r4, %r4, 64, %r1;
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd1, %rd2;
  mov.u32 %r2, %r1;
  setp.ge.u32 %p1, %r1, %r3;
  @%p1 bra SKIP;
  mul.lo.u32 %r2, %r1, 3;
SKIP:
  bar.sync 0;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";
constexpr const char* kMulLine = "20";
constexpr const char* kStoreLine = "23";

struct StepFile {
  StepFile() : folder("/tmp"), path(folder.path() + "/triple.ptx") {
    write_file(path, kStepKernel);
  }
  [[nodiscard]] std::vector<std::string> call(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {"step", path,    "--grid",        "2",    "--block",
                                    "64",   "--arg", "print:u32:128", "u32:8"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  TemporaryDirectory folder;
  std::string path;
};

std::vector<std::string> frames_of(const std::string& text) {
  std::vector<std::string> all;
  std::size_t from = 0;
  for (std::size_t end = text.find("\n\n"); end != text.npos; end = text.find("\n\n", from)) {
    all.push_back(text.substr(from, end + 1 - from));
    from = end + 2;
  }
  return all;
}

std::string find_tmux() {
  for (const char* path : {"/usr/bin/tmux", "/usr/local/bin/tmux"}) {
    if (std::filesystem::exists(path)) return path;
  }
  return {};
}

/// ptxgen step in a terminal of its own; its server ends with it.
class TerminalSession {
 public:
  TerminalSession(const std::string& tmux, const StepFile& file,
                  const std::vector<std::string>& options, unsigned width, unsigned height,
                  const std::string& environment = {})
      : tmux_(tmux), folder_("/tmp"), socket_(folder_.path() + "/t") {
    const std::string config = folder_.path() + "/tmux.conf";
    write_file(config, "set -g status off\nset -g default-terminal screen-256color\n");
    std::string command = "echo before; " + environment + " '" PTXGEN_PROGRAM "'";
    for (const std::string& part : file.call(options)) command += " '" + part + "'";
    command += "; echo exit $?; stty -a | grep -o '.icanon'; stty -a | grep -o '.echo '; sleep 60";
    tmux_call({"-f", config, "new-session", "-d", "-s", "step", "-x", std::to_string(width), "-y",
               std::to_string(height), command});
  }
  TerminalSession(const TerminalSession&) = delete;
  TerminalSession& operator=(const TerminalSession&) = delete;
  ~TerminalSession() { tmux_call({"kill-server"}); }

  void keys(const std::vector<std::string>& names) {
    std::vector<std::string> call = {"send-keys", "-t", "step"};
    call.insert(call.end(), names.begin(), names.end());
    tmux_call(call);
  }
  void resize(unsigned width, unsigned height) {
    tmux_call(
        {"resize-window", "-t", "step", "-x", std::to_string(width), "-y", std::to_string(height)});
  }
  [[nodiscard]] std::string screen(bool attributes = false) {
    std::vector<std::string> call = {"capture-pane", "-p", "-t", "step"};
    if (attributes) call.emplace_back("-e");
    return tmux_call(call);
  }
  /// The screen as soon as `check` of it holds.
  template <class Check>
  std::string wait_until(const Check& check) {
    std::string text;
    frames::FrameCheck result;
    for (int i = 0; i < 500; ++i) {
      text = screen();
      result = check(text);
      if (result) return text;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    FAIL("after 10 s: " << result.message);
    return text;
  }
  /// The screen as soon as a line matches.
  std::string wait_for(const std::string& expression) {
    return wait_until([&](const std::string& text) { return frames::matches(text, expression); });
  }

 private:
  std::string tmux_call(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {tmux_, "-S", socket_});
    return run_program(arguments).out;
  }

  std::string tmux_;
  TemporaryDirectory folder_;
  std::string socket_;
};

/// Why there is no test in a terminal, or empty.
std::string no_terminal_test() {
  if (find_tmux().empty()) return "tmux is not installed: no test of ptxgen step in a terminal";
#ifndef PTXGEN_TESTS_NCURSES
  return "built without ncurses: no test of ptxgen step in a terminal";
#else
  return {};
#endif
}

std::size_t screen_rows(const std::string& screen) {
  return static_cast<std::size_t>(std::count(screen.begin(), screen.end(), '\n'));
}

}  // namespace

TEST_CASE("step --frames prints frames of the size that was asked for") {
  const StepFile file;
  const auto all = ptxgen_program(file.call({"--frames"}));
  CHECK(all.exit_code == 0);
  const std::vector<std::string> frames = frames_of(all.out);
  REQUIRE(frames.size() > 40);
  for (const std::string& frame : frames) CHECK(frames::size_is(frame, 80, 24).message.empty());
  CHECK(frames::contains(frames[0], "triple  step 0  block (0,0,0)  warp 0 of 2"));
  CHECK(frames::contains(frames[0], ">   10   ld.param.u64 %rd1, [out];"));
  CHECK(frames::contains(frames.back(), "triple: the launch has ended after"));

  const auto store =
      ptxgen_program(file.call({"--frames", "--break", kStoreLine, "--watch", "%r2", "--only-warp",
                                "0", "--watch", "out[8..9]", "--size", "100x20"}));
  const std::vector<std::string> stores = frames_of(store.out);
  REQUIRE(stores.size() == 3);
  CHECK(frames::size_is(stores[0], 100, 20).message.empty());
  CHECK(frames::contains(stores[0], "%r2 b32 [0] 0 3 6 9 12 15 18 21 8 9 10"));
  CHECK(frames::contains(stores[0], "blocks of (2,1,1) >."));
  CHECK(frames::contains(stores.back(), "out u32 [8] 8 9"));
  const auto one = ptxgen_program(
      file.call({"--frames", "--break", kStoreLine, "--only-block", "1", "--only-warp", "1"}));
  CHECK(frames_of(one.out).size() == 2);
  const auto few = ptxgen_program(file.call({"--frames", "--max-frames", "3"}));
  CHECK(frames_of(few.out).size() == 3);
  CHECK(contains(few.err, "the 3 newest frames; "));
}

TEST_CASE("step --commands runs the debugger's commands and prints where it stops") {
  const StepFile file;
  const auto done = ptxgen_program(file.call(
      {"--commands", std::string("break ") + kMulLine +
                         ";continue;watch %r1[0..3];step;back;goto 2;break barrier;c;c;reverse"}));
  INFO(done.out << done.err);
  CHECK(done.exit_code == 0);
  std::vector<std::string> reasons;
  std::vector<std::string> titles;
  const std::regex reason("^\\[(.*)\\]$");
  std::smatch found;
  std::istringstream lines(done.out);
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, found, reason)) {
      reasons.push_back(found[1]);
      std::getline(lines, line);
      titles.push_back(line.substr(0, line.find("  block")));
    }
  }
  CHECK(reasons == std::vector<std::string>{"start", "line 20", "step", "step", "step", "line 20",
                                            "barrier", "line 20"});
  CHECK(titles[1] == "triple  step 10");
  CHECK(titles[2] == "triple  step 11");
  CHECK(titles[3] == "triple  step 10");
  CHECK(titles[4] == "triple  step 2");
  CHECK(titles[7] == titles[1]);
  CHECK(contains(done.out, "breakpoint at line 20: on\n"));
  CHECK(contains(done.out, "watching %r1[0..3]\n"));
  CHECK(contains(done.out, "%r1 b32 [0] 0 1 2 3"));
}

TEST_CASE("step --json: frames and stops as one document") {
  const StepFile file;
  const auto all = nlohmann::json::parse(
      ptxgen_program(file.call({"--frames", "--break", kStoreLine, "--only-warp", "0", "--watch",
                                "%r2", "--json"}))
          .out);
  REQUIRE(all["frames"].size() == 3);
  CHECK(all["dropped"] == 0);
  CHECK(all["status"] == "ok");
  CHECK(all["findings"].empty());
  const nlohmann::json& frame = all["frames"][0];
  CHECK(frame["line"] == 23);
  CHECK(frame["block"] == nlohmann::json({0, 0, 0}));
  CHECK(frame["active"] == 0xffffffffu);
  CHECK(frame["warps"].size() == 2);
  CHECK(frame["watched"][0]["values"][7] == 21);
  CHECK(all["frames"][2]["finished"] == true);
  const auto stops =
      nlohmann::json::parse(ptxgen_program(file.call({"--commands", "step;step 2", "--json"})).out);
  REQUIRE(stops["stops"].size() == 3);
  CHECK(stops["stops"][0]["reason"] == "start");
  CHECK(stops["stops"][2]["frame"]["number"] == 3);
}

TEST_CASE("step refuses what it cannot do, with what it can") {
  const StepFile file;
  const auto error_of = [&](const std::vector<std::string>& options) {
    const auto result = ptxgen_program(file.call(options));
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    return result.err;
  };
  CHECK(
      contains(error_of({"--frames", "--watch", "%f1"}),
               "--watch: watch '%f1': '%f1' is no register of kernel 'triple', no shared variable "
               "(tile) and no buffer (out)"));
  CHECK(contains(error_of({"--frames", "--size", "80"}), "--size 80: expected WIDTHxHEIGHT"));
  CHECK(contains(error_of({"--frames", "--size", "20x20"}), "--size"));
  CHECK(contains(error_of({"--frames", "--break", "x"}), "--break"));
  CHECK(contains(error_of({"--commands", "jump 3"}),
                 "--commands: 'jump' is no command; there are step [N], back [N], next"));
  CHECK(contains(error_of({"--commands", "goto"}), "--commands: goto needs a number"));
  CHECK(contains(error_of({"--commands", "step x"}), "--commands: step x: expected a number"));
  CHECK(contains(error_of({"--commands", "continue 3"}),
                 "--commands: continue takes no argument, and '3' is one"));
  CHECK(contains(error_of({"--commands", "break 0"}),
                 "--commands: break 0: expected a PTX line, 'barrier' or 'finding'"));
  CHECK(contains(error_of({"--commands", "unwatch"}), "--commands: there is no watch"));
  CHECK(contains(error_of({"--device", "cuda:0", "--frames"}), "step"));
  CHECK(contains(error_of({"--arg", "in:-"}), "standard"));
  CHECK(contains(error_of({"--json"}), "--json prints frames: use --frames or --commands with it"));
  // Neither input nor output is a terminal here.
  CHECK(contains(error_of({}), "--frames prints the frames as text"));
}

TEST_CASE("step: a finding is shown, and decides the exit code") {
  const StepFile file;
  std::string ptx(kStepKernel);
  ptx.replace(ptx.find("[%rd3]"), 6, "[%rd3+256]");
  write_file(file.path, ptx);
  const auto frames = ptxgen_program(file.call({"--frames", "--every", "1000"}));
  CHECK(frames.exit_code == 1);
  CHECK(contains(frames.err, "out-of-bounds"));
  const auto stopped = ptxgen_program(file.call({"--commands", "continue"}));
  CHECK(contains(stopped.out, "[finding]\n"));
  CHECK(frames::matches(stopped.out, "^1 finding: line 23, out-of-bounds: "));
}

TEST_CASE("step in a terminal of 80x24: keys, resize to 200x50, quit") {
  if (const std::string why = no_terminal_test(); !why.empty()) return skip(why);
  const StepFile file;
  TerminalSession session(find_tmux(), file, {"--watch", "%r2"}, 80, 24);
  const std::string footer =
      "^s step  b back  n next  c continue  r reverse  B break  w watch  \\? keys  q quit$";
  std::string screen = session.wait_for(footer);
  CHECK(screen_rows(screen) == 24);
  CHECK(frames::line_is(screen, 1, "triple  step 0  block (0,0,0)  warp 0 of 2"));
  CHECK(frames::contains(screen, "[start] breakpoints: findings"));
  session.keys({"s", "Right", "Space"});
  session.wait_for("^triple  step 3 ");
  session.keys({"b"});
  session.wait_for("^triple  step 2 ");
  session.keys({"Left"});
  session.wait_for("^triple  step 1 ");
  session.keys({"Home"});
  session.wait_for("^triple  step 0 ");
  session.keys({":", "break 20", "Enter"});
  session.wait_for("^breakpoint at line 20: on$");
  session.keys({"c"});
  screen = session.wait_for("^\\[line 20\\] breakpoints: line 20, findings$");
  CHECK(frames::contains(screen, ">B  20   mul.lo.u32 %r2, %r1, 3;"));
  CHECK(frames::contains(screen, "warp 0  ########........................ line 20 running"));
  session.keys({"a"});
  session.wait_for("^break at barriers: on$");
  session.keys({"c"});
  session.wait_for("^\\[barrier\\] ");
  session.keys({"r"});
  session.wait_for("^\\[line 20\\] ");
  session.keys({"B"});
  session.wait_for("^breakpoint at line 20: off$");
  session.keys({"w", "out[0..3]", "Enter"});
  session.wait_for("^out u32 \\[0\\] ");
  session.keys({"w", "nothing", "Enter"});
  session.wait_for("^watch 'nothing': 'nothing' is no register");
  session.keys({"u"});
  session.wait_for("^no longer watching out\\[0\\.\\.3\\]$");
  session.keys({"?"});
  session.wait_for("^Keys of ptxgen step$");
  session.keys({"x"});
  session.wait_for(footer);
  session.keys({"z"});
  session.wait_for("^'z' is no key of this program; \\? lists them$");
  session.keys({"w", "abc", "Escape"});
  session.wait_for(footer);
  session.keys({"End"});
  session.wait_for("^triple: the launch has ended after ");
  session.keys({"PPage"});
  session.wait_for("^triple  step [0-9]+  block \\(1,0,0\\)");

  session.resize(200, 50);
  // The footer is the last row again.
  screen = session.wait_until([](const std::string& text) {
    return frames::line_is(
        text, 50,
        "s step  b back  n next  c continue  r reverse  B break  w watch  ? keys "
        " q quit");
  });
  CHECK(screen_rows(screen) == 50);
  CHECK(frames::matches(screen, "^ +24   ret;$"));
  CHECK(frames::contains(screen, "breakpoints: barriers, findings"));
  session.resize(30, 6);
  session.wait_for("^30x6 is too small, need 40x10$");
  session.resize(80, 24);
  session.wait_for(footer);

  session.keys({"q"});
  screen = session.wait_for("^exit 0$");
  // The shell's screen is back, and so are the modes of the terminal.
  CHECK(frames::contains(screen, "before"));
  CHECK_FALSE(frames::contains(screen, "q quit"));
  session.wait_for("^ icanon$");
  session.wait_for("^ echo $|^ echo$");
}

TEST_CASE("step in a terminal of 200x50 shows the whole kernel") {
  if (const std::string why = no_terminal_test(); !why.empty()) return skip(why);
  const StepFile file;
  TerminalSession session(find_tmux(), file, {"--break", kStoreLine, "--watch", "%r2"}, 200, 50);
  std::string screen = session.wait_for("q quit$");
  CHECK(screen_rows(screen) == 50);
  CHECK(frames::contains(screen, "B  23   st.global.u32 [%rd3], %r2;"));
  session.keys({"c"});
  // Warp 1, which comes last to the barrier, goes on first.
  screen = session.wait_for("^\\[line 23\\]");
  session.keys({"c"});
  screen = session.wait_for("^triple +step [0-9]+ +block .0,0,0. +warp 0 of 2");
  CHECK(
      frames::contains(screen,
                       "%r2 b32 [0] 0 3 6 9 12 15 18 21 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 "
                       "23 24 25 26 27 28 29 30 31"));
  session.keys({"C-c"});
  session.wait_for("^q quits$");
  session.keys({"q"});
  session.wait_for("^exit 0$");
}

TEST_CASE("step in a terminal has colours unless they are turned off") {
  if (const std::string why = no_terminal_test(); !why.empty()) return skip(why);
  const StepFile file;
  const std::regex colour("\x1b\\[[0-9;]*3[0-7]");
  const auto is_coloured = [&](const std::vector<std::string>& options,
                               const std::string& environment) {
    TerminalSession session(find_tmux(), file, options, 80, 24, environment);
    session.wait_for("q quit$");
    return std::regex_search(session.screen(true), colour);
  };
  CHECK(is_coloured({}, ""));
  CHECK_FALSE(is_coloured({"--no-color"}, ""));
  CHECK_FALSE(is_coloured({}, "NO_COLOR=yes"));
}

TEST_CASE("step: Ctrl-C stops a launch that runs, and the terminal comes back after an error") {
  if (const std::string why = no_terminal_test(); !why.empty()) return skip(why);
  const StepFile file;
  std::string ptx(kStepKernel);
  ptx.replace(ptx.find("  bar.sync 0;"), 13, "AGAIN:\n  bra AGAIN;");
  write_file(file.path, ptx);
  TerminalSession session(find_tmux(), file, {"--max-instructions", "1000000000000"}, 80, 24);
  session.wait_for("q quit$");
  session.keys({"c"});
  session.wait_for("^running; Ctrl-C stops$");
  session.keys({"C-c"});
  CHECK(frames::contains(session.wait_for("^\\[interrupt\\] "), "AGAIN;"));
  session.keys({"q"});
  session.wait_for("^exit 0$");
}
