// src/cli/output/terminal.cpp - a terminal drawn line by line, by ncurses
#include "cli/output/terminal.hpp"

#include "ptxgen/support/error.hpp"

#ifdef PTXGEN_HAVE_NCURSES

// Its macros have names of the standard library.
#define NCURSES_NOMACROS
#include <curses.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>

namespace ptxgen::cli {

namespace {

// Pairs of colours, by LineRole; 0 is the terminal's own.
enum Pair : short { kDefault, kTitlePair, kBreakPair, kWarpPair, kChangedPair, kFindingPair };

attr_t attributes_of(frames::LineRole role, bool colours) {
  using frames::LineRole;
  const auto pair = [&](Pair p) { return colours ? static_cast<attr_t>(COLOR_PAIR(p)) : A_NORMAL; };
  switch (role) {
    case LineRole::Title:
      return A_REVERSE | pair(kTitlePair);
    case LineRole::Blocks:
      return pair(kTitlePair);
    case LineRole::CurrentSource:
      return A_BOLD;
    case LineRole::BreakSource:
      return pair(kBreakPair);
    case LineRole::CurrentWarp:
      return A_BOLD | pair(kWarpPair);
    case LineRole::ChangedValue:
      return A_BOLD | pair(kChangedPair);
    case LineRole::Finding:
      return A_BOLD | pair(kFindingPair);
    case LineRole::Source:
    case LineRole::Warp:
    case LineRole::Value:
    case LineRole::Empty:
      break;
  }
  return A_NORMAL;
}

KeyPress key_of(int code) {
  using Key = KeyPress::Key;
  switch (code) {
    case KEY_LEFT:
      return {Key::Left};
    case KEY_RIGHT:
      return {Key::Right};
    case KEY_UP:
      return {Key::Up};
    case KEY_DOWN:
      return {Key::Down};
    case KEY_PPAGE:
      return {Key::PageUp};
    case KEY_NPAGE:
      return {Key::PageDown};
    case KEY_HOME:
      return {Key::Home};
    case KEY_END:
      return {Key::End};
    case KEY_RESIZE:
      return {Key::Resize};
    case KEY_BACKSPACE:
    case 8:
    case 127:
      return {Key::Backspace};
    case KEY_ENTER:
    case '\n':
    case '\r':
      return {Key::Enter};
    case 27:
      return {Key::Escape};
    case 3:
      return {Key::Interrupt};
    default:
      break;
  }
  if (code >= ' ' && code <= '~') return {Key::Character, static_cast<char>(code)};
  return {};
}

[[noreturn]] void no_terminal(const char* why) {
  throw Error(Stage::Io, "terminal",
              std::string(why) + "; --frames prints the frames as text, --commands runs commands");
}

}  // namespace

struct Terminal::State {
  SCREEN* screen = nullptr;
  std::FILE* input = nullptr;  // null: standard input
  bool colours = false;
};

bool Terminal::supported() noexcept { return true; }

Terminal::Terminal(bool colours) : state_(std::make_unique<State>()) {
  if (isatty(STDOUT_FILENO) == 0) no_terminal("standard output is no terminal");
  if (isatty(STDIN_FILENO) == 0) {
    // The PTX may come from standard input, the keys then come from the terminal itself.
    state_->input = std::fopen("/dev/tty", "r");
    if (state_->input == nullptr) no_terminal("there is no terminal to read keys from");
  }
  state_->screen = newterm(nullptr, stdout, state_->input != nullptr ? state_->input : stdin);
  if (state_->screen == nullptr) {
    if (state_->input != nullptr) std::fclose(state_->input);
    no_terminal("ncurses does not know the type of this terminal (TERM)");
  }
  set_term(state_->screen);
  raw();
  noecho();
  nonl();
  curs_set(0);
  keypad(stdscr, TRUE);
  set_escdelay(50);
  state_->colours = colours && has_colors();
  if (state_->colours) {
    start_color();
    use_default_colors();
    init_pair(kTitlePair, COLOR_CYAN, -1);
    init_pair(kBreakPair, COLOR_RED, -1);
    init_pair(kWarpPair, COLOR_GREEN, -1);
    init_pair(kChangedPair, COLOR_YELLOW, -1);
    init_pair(kFindingPair, COLOR_RED, -1);
  }
}

Terminal::~Terminal() {
  endwin();
  delscreen(state_->screen);
  if (state_->input != nullptr) std::fclose(state_->input);
}

frames::FrameSize Terminal::size() const {
  return {static_cast<std::size_t>(getmaxx(stdscr)), static_cast<std::size_t>(getmaxy(stdscr))};
}

void Terminal::draw(std::span<const frames::FrameLine> lines, std::size_t cursor) {
  werase(stdscr);
  int row = 0;
  for (const frames::FrameLine& line : lines) {
    const attr_t attributes = attributes_of(line.role, state_->colours);
    wattrset(stdscr, static_cast<int>(attributes));
    // The last column of the last row is an error for curses, but it is drawn.
    static_cast<void>(mvwaddnstr(stdscr, row++, 0, line.text.c_str(), getmaxx(stdscr)));
  }
  wattrset(stdscr, A_NORMAL);
  curs_set(cursor == std::string::npos ? 0 : 1);
  if (cursor != std::string::npos) wmove(stdscr, row - 1, static_cast<int>(cursor));
  wrefresh(stdscr);
}

KeyPress Terminal::read() {
  wtimeout(stdscr, -1);
  const int code = wgetch(stdscr);
  // Without a limit in time, an error is the end of the input.
  return code == ERR ? KeyPress{KeyPress::Key::Closed} : key_of(code);
}

KeyPress Terminal::poll() {
  wtimeout(stdscr, 0);
  const int code = wgetch(stdscr);
  return code == ERR ? KeyPress{} : key_of(code);
}

}  // namespace ptxgen::cli

#else

namespace ptxgen::cli {

struct Terminal::State {};

bool Terminal::supported() noexcept { return false; }

Terminal::Terminal(bool) {
  throw Error(Stage::Io, "terminal",
              "this ptxgen was built without ncurses (Debian's libncurses-dev), which its terminal "
              "needs; --frames prints the frames as text, --commands runs commands");
}

Terminal::~Terminal() = default;
frames::FrameSize Terminal::size() const { return {}; }
void Terminal::draw(std::span<const frames::FrameLine>, std::size_t) {}
KeyPress Terminal::read() { return {KeyPress::Key::Closed}; }
KeyPress Terminal::poll() { return {}; }

}  // namespace ptxgen::cli

#endif
