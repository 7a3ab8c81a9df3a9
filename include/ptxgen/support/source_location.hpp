// ptxgen/support/source_location.hpp - the C++ call site of a builder call
#pragma once

#include <cstdint>

#if __has_include(<source_location>)
#include <source_location>
#endif

namespace ptxgen::inline v0 {

/// Where in the user's C++ a call was made. Plain data; `file` points at a string literal of the
/// calling translation unit and therefore lives as long as the program. A default-constructed
/// location (`file == nullptr`) means "unknown".
struct SourceLocation {
  const char* file = nullptr;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  [[nodiscard]] constexpr bool known() const noexcept { return file != nullptr; }

#if defined(__cpp_lib_source_location)
  /// The location of the caller, when used as a default argument.
  // Not consteval: g++ 12 then takes the line of this declaration instead of the caller's.
  [[nodiscard]] static constexpr SourceLocation current(
      std::source_location at = std::source_location::current()) noexcept {
    return {at.file_name(), at.line(), at.column()};
  }
#else
  // clang 14 with libstdc++ has the builtins but not std::source_location.
  [[nodiscard]] static constexpr SourceLocation current(
      const char* file = __builtin_FILE(), std::uint32_t line = __builtin_LINE()) noexcept {
    return {file, line, 0};
  }
#endif
};

}  // namespace ptxgen::inline v0
