// tests/ptx/parser_hostile_test.cpp - huge and deep texts neither crash nor eat memory
#include <catch2/catch.hpp>

#include "parser_helpers.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::string repeated(std::string_view piece, std::size_t times) {
  std::string text;
  text.reserve(piece.size() * times);
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

constexpr std::size_t kMany = 200000;

}  // namespace

TEST_CASE("nesting is bounded") {
  CHECK(body_error(repeated("{", kMany)) == "7:256: blocks are nested deeper than 256");
  CHECK(body_error(repeated("{", 255) + repeated("}", 255)) == "read");
  CHECK(body_error("mov.u32 %r1, " + repeated("(", kMany)) ==
        "7:270: constant expression is nested deeper than 256");
  CHECK(body_error("mov.u32 %r1, " + repeated("(", 256) + "1" + repeated(")", 256) + ";") ==
        "read");
  CHECK(body_error("mov.u32 %r1, " + repeated("-", kMany) + "1;") ==
        "7:270: constant expression is nested deeper than 256");
  CHECK(
      body_error("mov.u32 %r1, " + repeated("1?1:", kMany) + "1;").find("nested deeper than 256") !=
      std::string::npos);
  CHECK(body_error("mov.u32 %r1, " + repeated("(.s64)", kMany) + "1;")
            .find("nested deeper than 256") != std::string::npos);
  CHECK(module_error(".global .u32 a = " + repeated("{", kMany)) ==
        "4:274: initialiser is nested deeper than 256");
}

TEST_CASE("long expressions and lists are read") {
  CHECK(body_error("mov.u32 %r1, 1" + repeated("+1", kMany) + ";") == "read");
  CHECK(body_error("mov.u32 %r1, 1" + repeated("*1+2<<3|4", kMany / 10) + ";") == "read");
  CHECK(module_error(".global .u32 a[] = {0" + repeated(",1", kMany) + "};") == "read");
  CHECK(module_error(".global .u32 a" + repeated("[2]", kMany) + ";") == "read");
  const ptx::Module module = kernel_of("mov.b64 %rd1, {%r1" + repeated(",%r2", kMany) + "};");
  CHECK(kernel(module).operands_of(kernel(module).body[0])[1].index == kMany + 1);
  CHECK(lost(module).empty());
}

TEST_CASE("more operands than an instruction can hold are refused") {
  CHECK(body_error("add.u32 %r1" + repeated(",%r2", 254) + ";") == "read");
  CHECK(body_error("add.u32 %r1" + repeated(",%r2", 255) + ";")
            .find("expected at most 255 operands of 'add.u32'") != std::string::npos);
}

TEST_CASE("large declarations cost what their text costs") {
  const ptx::Module module = kernel_of(
      ".reg .b32 %huge<4294967295>; .local .b8 x<4294967295>; .shared .b8 y[18446744073709551615];"
      "mov.u32 %huge4294967294, 1; mov.u64 %rd1, x4294967294;");
  CHECK(kernel(module).registers.size() == 5);
  CHECK(kernel(module).variables.size() == 2);
  CHECK(lost(module).empty());
}

TEST_CASE("many names, labels, blocks and opcodes are read in linear time") {
  std::string text;
  for (std::size_t i = 0; i < 20000; ++i) {
    const std::string n = std::to_string(i);
    text += "{ .reg .b32 a" + n + ", %r" + n + "; L: mov.u32 a" + n + ", %q" + n +
            "; bra L; bra M; op" + n + ".x" + n + " y; }\n";
  }
  const ptx::Module module = kernel_of(text + "M:");
  CHECK(kernel(module).labels.size() == 20001);
  CHECK(kernel(module).scopes == 20001);
  CHECK(lost(module).empty());
  // A name in every block around the branch.
  CHECK(lost(kernel_of(repeated("{ L: ", 255) + repeated("bra L; ", 10000) + repeated("}", 255)))
            .empty());
}

TEST_CASE("long words and lines are read or refused") {
  const std::string long_name(1000000, 'n');
  CHECK(lost(kernel_of(".reg .b32 " + long_name + "; mov.u32 " + long_name + ", 1;")).empty());
  CHECK(lost(kernel_of("mov.u32 %r" + std::string(1000000, '1') + ", 1;")).empty());
  CHECK(lost(kernel_of(long_name + ".x 1;")).empty());
  CHECK(lost(kernel_of("add" + repeated(".u32", kMany) + " %r1;")).empty());
  CHECK(lost(kernel_of("add" + repeated(" .u32", kMany) + " %r1;")).empty());
  CHECK(body_error("mov.u32 %r1, " + std::string(1000000, '1') + ";").size() < 200);
  CHECK(body_error("mov.u32 %r1 " + long_name + ";").size() < 200);
  CHECK(body_error("mov.f64 %rd1, 1." + std::string(1000000, '1') + ";") == "read");
  CHECK(body_error(std::string(1000000, '\n') + std::string(1000000, ' ') + ")") ==
        "1000007:1000001: expected a statement, found ')'");
  CHECK(body_error(repeated("/**/", kMany) + repeated("//\n", kMany)) == "read");
}
