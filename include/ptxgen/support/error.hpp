// ptxgen/support/error.hpp - the one exception type of the library
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/support/source_location.hpp"

namespace ptxgen::inline v0 {

/// Which step failed. The names returned by `to_string` are stable.
enum class Stage : std::uint8_t {
  Build,
  Verify,
  Optimize,
  Assemble,
  Load,
  Launch,
  Cache,
  Emulate,
  Device,
  Io,
};

[[nodiscard]] std::string_view to_string(Stage stage) noexcept;

/// The exception of every failure of the library. Fields that do not apply are empty or zero.
///
/// `code` is a short stable identifier for programs (`"syntax"`, `"type-mismatch"`,
/// `"target-lacks"`, `"not-found"`, ...): where a rule of `ptxgen check` exists it is that rule's
/// name. `message` is for people: lower case, no full stop, values with units.
/// `what()` joins everything that is set into one readable text.
class Error : public std::exception {
 public:
  Error(Stage stage, std::string code, std::string message);

  Stage stage;
  std::string code;
  std::string message;
  std::string kernel;         ///< entry or function name, or empty
  std::string target;         ///< for example "sm_89, PTX 7.8", or empty
  std::string file;           ///< the PTX or other file concerned, or empty
  std::uint32_t line = 0;     ///< 1-based line in that PTX, 0 if unknown
  std::uint32_t column = 0;   ///< 1-based column, 0 if unknown
  std::string excerpt;        ///< the PTX lines around `line`, at most two before and after
  SourceLocation site;        ///< the C++ call that built the construct
  int driver_status = 0;      ///< CUresult or tool exit status, 0 if none
  std::string log;            ///< the driver's or assembler's whole log, never cut
  std::vector<Error> causes;  ///< later or nested failures (clean-up that failed too)

  /// Everything known about the failure as one text; stable layout, see the tests.
  [[nodiscard]] std::string describe() const;

  /// `describe()` as it was at the last `refresh()` or at construction.
  [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }

  /// Recomputes `what()`. Returns itself: `throw error.refresh();`.
  Error& refresh();

 private:
  std::string what_;
};

}  // namespace ptxgen::inline v0
