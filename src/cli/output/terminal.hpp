// src/cli/output/terminal.hpp - a terminal drawn line by line
#pragma once

#include <memory>
#include <span>
#include <string>

#include "ptxgen/frames/frame.hpp"

namespace ptxgen::cli {

struct KeyPress {
  enum class Key {
    None,
    Character,  ///< `character`
    Left,
    Right,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Backspace,
    Escape,
    Interrupt,  ///< Ctrl-C
    Resize,     ///< the terminal has another size
    Closed,     ///< no more input
  };
  Key key = Key::None;
  char character = 0;
};

/// The terminal of the process, drawn with ncurses while it lives; the destructor restores it. One
/// at a time.
class Terminal {
 public:
  /// Whether this program was built with ncurses.
  [[nodiscard]] static bool supported() noexcept;
  /// Throws `Error` (Stage::Io, code "terminal") where output or input is no terminal, or its type
  /// is not known.
  explicit Terminal(bool colours);
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  [[nodiscard]] frames::FrameSize size() const;
  /// Shows the lines from the top; the cursor after `cursor` columns of the last line, if it is not
  /// npos.
  void draw(std::span<const frames::FrameLine> lines, std::size_t cursor = std::string::npos);
  /// Waits for a key.
  [[nodiscard]] KeyPress read();
  /// Key::None if no key was pressed.
  [[nodiscard]] KeyPress poll();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ptxgen::cli
