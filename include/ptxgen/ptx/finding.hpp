// ptxgen/ptx/finding.hpp - findings of checks
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/support/source_location.hpp"

namespace ptxgen::inline v0 {

enum class Severity : std::uint8_t {
  Error,    ///< proved wrong, or observed
  Warning,  ///< cannot be proved correct
  Note,     ///< worth knowing
};

[[nodiscard]] std::string_view to_string(Severity severity) noexcept;

/// A source position from `.loc`.
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
  std::uint32_t other_line = 0;      ///< PTX line of the second access of a race, or 0
  std::vector<std::string> details;  ///< further lines: the construct, the second access, the cure
  /// Inlined code: the position of the code itself, then the call site of each inlined function.
  /// Empty if the code was not inlined.
  std::vector<SourcePosition> inlined;
  SourcePosition other_source;  ///< of `other_line`
  /// The subject ("argument 1 (parameter y)"), or empty. Findings with the same rule, source line
  /// and subject have one cause (see groups.hpp).
  std::string subject;
};

/// `FILE:LINE: error: MESSAGE [RULE]` and the indented further lines, without a final newline.
[[nodiscard]] std::string to_text(const Finding& finding);

}  // namespace ptxgen::inline v0
