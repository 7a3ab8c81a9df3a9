// ptxgen/ptx/finding.hpp - what a check has to say about a module
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/support/source_location.hpp"

namespace ptxgen::inline v0 {

enum class Severity : std::uint8_t {
  Error,    ///< proved wrong, or it happened
  Warning,  ///< cannot be shown right
  Note,     ///< worth knowing
};

[[nodiscard]] std::string_view to_string(Severity severity) noexcept;

/// A position in the source that a compiler noted with `.loc`.
struct SourcePosition {
  std::string file;
  std::uint32_t line = 0;  ///< 1-based, 0 if unknown
  std::uint32_t column = 0;
  std::string function;  ///< demangled, where the `.loc` names it
  [[nodiscard]] bool known() const noexcept { return line != 0; }
  friend bool operator==(const SourcePosition&, const SourcePosition&) = default;
};

/// One finding. The names of rules are stable (`type-mismatch`, `target-lacks`, ...).
struct Finding {
  Severity severity = Severity::Error;
  std::string rule;
  std::string message;
  std::string file;
  std::uint32_t line = 0;  ///< 1-based, 0 if unknown
  std::string kernel;      ///< function concerned, or empty
  SourceLocation cpp;      ///< the C++ builder call, if known
  /// Source position from `.loc`, or empty. For inlined code the line in the kernel's own file, so
  /// that an intrinsic shows the line that calls it.
  std::string source_file;
  std::uint32_t source_line = 0;
  std::uint32_t other_line = 0;  ///< PTX line of the other party (of a race), 0 if there is none
  std::vector<std::string> details;  ///< further lines: the construct, the other party, the cure
  /// Inlined code: the position of the code itself, then where each function was inlined. Empty
  /// where nothing was inlined.
  std::vector<SourcePosition> inlined;
  SourcePosition other_source;  ///< of `other_line`
  /// What the finding is about ("argument 1 (parameter y)"), or empty: findings of one rule and
  /// source line with the same subject have one cause (see groups.hpp).
  std::string subject;
};

/// `FILE:LINE: error: MESSAGE [RULE]` and the indented further lines, without a final newline.
[[nodiscard]] std::string to_text(const Finding& finding);

}  // namespace ptxgen::inline v0
