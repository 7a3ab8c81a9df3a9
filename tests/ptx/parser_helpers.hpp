// tests/ptx/parser_helpers.hpp - PTX frames for parser tests
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::test {

inline constexpr std::string_view kHead = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// A module with what `text` declares, after three lines of head.
inline ptx::Module module_of(std::string_view text) {
  return ptx::parse(std::string(kHead) + std::string(text), "t.ptx");
}

/// Statements in a kernel `k(.param .u64 p)` with registers %p0-3, %r0-15, %rd0-15, %f0-15 and
/// variables `g` (global array) and `s` (shared array). They begin in line 7.
inline std::string kernel_text(std::string_view statements) {
  return std::string(kHead) + ".global .u32 g[8]; .shared .b8 s[64]; .func h;\n" +
         ".entry k(.param .u64 p)\n{ .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg "
         ".f32 %f<16>;\n" +
         std::string(statements) + "\n}\n";
}

inline ptx::Module kernel_of(std::string_view statements) {
  return ptx::parse(kernel_text(statements), "t.ptx");
}

inline const ptx::Function& kernel(const ptx::Module& module) { return *module.find_function("k"); }

/// The kernel's statements as they are printed, one space between them.
inline std::string printed(std::string_view statements) {
  const ptx::Module module = kernel_of(statements);
  std::string text;
  for (const ptx::Instruction& statement : kernel(module).body) {
    if (!text.empty()) text += ' ';
    text += ptx::print(module, kernel(module), statement);
  }
  return text;
}

/// `line:column: message` of the syntax error that a text gives, or `read`.
inline std::string error_in(std::string_view text) {
  try {
    (void)ptx::parse(text, "t.ptx");
  } catch (const Error& error) {
    if (error.stage != Stage::Verify || error.code != "syntax")
      return "wrong kind: " + error.describe();
    return std::to_string(error.line) + ":" + std::to_string(error.column) + ": " + error.message;
  }
  return "read";
}
inline std::string module_error(std::string_view text) {
  return error_in(std::string(kHead) + std::string(text));
}
inline std::string body_error(std::string_view statements) {
  return error_in(kernel_text(statements));
}

/// The difference that printing and reading again makes: none is expected.
inline std::string lost(const ptx::Module& module) {
  return ptx::difference(module, ptx::parse(ptx::print(module), "printed"));
}

}  // namespace ptxgen::test
