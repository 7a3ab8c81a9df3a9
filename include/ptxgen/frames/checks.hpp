// ptxgen/frames/checks.hpp - assertions on frames as text
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ptxgen::inline v0::frames {

/// The result of an assertion, for any test framework: `REQUIRE(check)`, or print `message`.
struct FrameCheck {
  bool ok = true;
  std::string message;  ///< what was expected and what is there, if not `ok`
  [[nodiscard]] explicit operator bool() const noexcept { return ok; }
};

// `text` is that of a frame (`to_text`): lines that end with newlines. Lines are numbered from 1.
// Spaces at the end of lines do not count, except for the size.

/// Some line contains the piece.
[[nodiscard]] FrameCheck contains(std::string_view text, std::string_view piece);
/// Some line contains a match of an ECMAScript regular expression. A malformed one is a failure
/// with the library's message.
[[nodiscard]] FrameCheck matches(std::string_view text, const std::string& expression);
/// Line `number` is `expected`.
[[nodiscard]] FrameCheck line_is(std::string_view text, std::size_t number,
                                 std::string_view expected);
/// Exactly `height` lines of exactly `width` columns.
[[nodiscard]] FrameCheck size_is(std::string_view text, std::size_t width, std::size_t height);

enum class SnapshotMode {
  Compare,
  Update,  ///< writes the file if it differs, and succeeds
};
/// Compares the text with a file. Fails with the first line that differs, or if the file does not
/// exist; the message says how to write it. The mode is the caller's: tests usually take it from a
/// variable of the environment. Throws `Error` (Stage::Io) for a file that cannot be read or
/// written.
[[nodiscard]] FrameCheck snapshot_is(std::string_view text, const std::string& path,
                                     SnapshotMode mode = SnapshotMode::Compare);

}  // namespace ptxgen::inline v0::frames
