// tests/ptx/parser_error_test.cpp - locations and messages of syntax errors
#include <catch2/catch.hpp>

#include "parser_helpers.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

TEST_CASE("errors in bodies name the place and what was expected") {
  CHECK(body_error("add.u32 %r1, %r1, %r2 ret;") ==
        "7:23: expected ',' or ';' after operand 3 of 'add.u32', found 'ret'");
  CHECK(body_error("add.u32 %r1 %r2, %r3;") ==
        "7:13: expected ',' or ';' after operand 1 of 'add.u32', found '%r2'");
  CHECK(body_error("add.u32 %r1, , %r2;") == "7:14: expected an operand, found ','");
  CHECK(body_error("mov.u32 %, 1;") == "7:9: expected an operand, found '%'");
  CHECK(body_error("mov.u32 %r1, \"text\";") == "7:14: expected an operand, found a string");
  CHECK(body_error("ld.global.u32 %r1, [%rd1+4;") ==
        "7:27: expected ']' at the end of the address, found ';'");
  CHECK(body_error("ld.global.u32 %r1, [%tid.x];") ==
        "7:21: expected a register, a variable or a number as address, found '%tid'");
  CHECK(body_error("mov.b64 %rd1, {%r1, %r2;") ==
        "7:24: expected ',' or '}' after element 2, found ';'");
  CHECK(body_error("mov.b64 %rd1, {};") == "7:16: expected an operand, found '}'");
  CHECK(body_error("add..u32 %r1, %r1, 1;") ==
        "7:4: expected a modifier after '.' in an opcode, found '.u32'");
  CHECK(body_error("bra 5;") == "7:5: expected a label, found '5'");
  CHECK(body_error("call 5;") == "7:6: expected a function or a register after 'call', found '5'");
  CHECK(body_error("call (%r1) h;") == "7:12: expected ',' after the results of 'call', found 'h'");
  CHECK(body_error("frob %r1\n}") == "8:1: expected ';' after 'frob', found '}'");
  CHECK(
      body_error("@ add.u32 %r1, %r1, 1;") ==
      "7:1: expected a declared predicate register after '@', found 'add', which is not declared");
  CHECK(body_error("@5 ret;") == "7:1: expected a predicate register after '@', found '5'");
  CHECK(body_error("@%p1 { }") == "7:6: expected an instruction after the guard, found '{'");
  CHECK(body_error(": ret;") == "7:1: expected a statement, found ':'");
  CHECK(body_error("ret;;") == "7:5: expected a statement, found ';'");
  CHECK(body_error(".entry inner { ret; }") == "7:1: expected a statement, found '.entry'");
  CHECK(body_error(".loc 1 2") == "8:1: expected a column number in '.loc', found '}'");
  CHECK(body_error("mov.f32 %f1, v.q;") ==
        "7:15: expected ',' or ';' after operand 2 of 'mov.f32', found '.q'");
  CHECK(body_error(".reg .v4 .f32 v; mov.f32 %f1, v.q;") ==
        "7:32: expected a component .x, .y, .z or .w, found '.q'");
}

TEST_CASE("errors in declarations name the place and what was expected") {
  CHECK(module_error(".global .u33 a;") == "4:9: expected a type, found '.u33'");
  CHECK(module_error(".global a;") == "4:9: expected a type after '.global', found 'a'");
  CHECK(module_error(".global .u32 ;") == "4:14: expected the name of a variable, found ';'");
  CHECK(module_error(".global .u32 a .global .u32 b;") ==
        "4:16: expected ';' after the declaration of 'a', found '.global'");
  CHECK(module_error(".global .align 3 .u32 a;") ==
        "4:15: expected an alignment that is a power of two, found 3");
  CHECK(module_error(".global .u32 a[-4];") ==
        "4:16: expected a number of elements from 0 to 18446744073709551615, found a negative "
        "number");
  CHECK(module_error(".global .u32 a[0];") == "4:16: expected at least one element, found 0");
  CHECK(module_error(".global .u32 a[2] = {1, 2, 3};") ==
        "4:21: expected at most 2 initial values for 'a', found 3");
  CHECK(module_error(".global .u32 a[2] = {1, 2;") ==
        "4:26: expected ',' or '}' in the initialiser, found ';'");
  CHECK(module_error(".entry (.param .u64 p) { ret; }") ==
        "4:8: expected the name of the entry, found '('");
  CHECK(module_error(".entry k(.param p) { ret; }") ==
        "4:17: expected a type after '.param', found 'p'");
  CHECK(module_error(".entry k(u64 p) { ret; }") ==
        "4:10: expected '.param' or '.reg' of a parameter, found 'u64'");
  CHECK(module_error(".entry k .maxntid { ret; }") ==
        "4:19: expected a number after '.maxntid', found '{'");
  CHECK(module_error(".entry k .maxfoo 3 { ret; }") ==
        "4:10: expected a directive of the function, '{' or ';', found '.maxfoo'");
  CHECK(module_error(".entry k 5") ==
        "4:10: expected '{' or ';' after the head of 'k', found '5' at the end of the text");
  CHECK(module_error(".frobnicate 3;") ==
        "4:1: expected a directive, a variable or a function, found '.frobnicate'");
  CHECK(module_error("hello world;") ==
        "4:1: expected a directive, a variable or a function, found 'hello'");
  CHECK(module_error(".visible .reg .b32 x;") ==
        "4:10: expected '.func', '.entry' or a state space after '.visible', found '.reg'");
  CHECK(body_error(".reg .b32 %big<>;") ==
        "7:16: expected the number of registers after '<', found '>'");
  CHECK(body_error(".reg .b32 %big<99999999999>;") ==
        "7:16: expected a number of registers up to 4294967295, found '99999999999'");
  CHECK(body_error(".reg .b32 %big<3;") ==
        "7:17: expected '>' after the number of registers, found ';'");
  CHECK(error_in(".target sm_80") ==
        "1:1: expected '.version' at the start of the text, found '.target'");
  CHECK(error_in("") == "1:1: expected '.version' at the start of the text, found end of text");
  CHECK(error_in(".version 7.8\n.entry k { ret; }") ==
        "2:1: expected '.target' after '.version', found '.entry'");
  CHECK(error_in(".version 300.1 .target sm_80") ==
        "1:10: expected a version such as 7.8, found '300'");
  CHECK(error_in(".version 7.x") ==
        "1:12: expected a version such as 7.8, found 'x' at the end of the text");
}

TEST_CASE("errors in constants name the constant") {
  CHECK(body_error("mov.u32 %r1, 0xZZ;") ==
        "7:14: expected hexadecimal digits in a number, found '0xZZ'");
  CHECK(body_error("mov.u32 %r1, 0b102;") ==
        "7:14: expected binary digits in a number, found '0b102'");
  CHECK(body_error("mov.u32 %r1, 089;") == "7:14: expected octal digits in a number, found '089'");
  CHECK(body_error("mov.f32 %f1, 0f3F80;") ==
        "7:14: expected 8 hexadecimal digits after '0f', found '0f3F80'");
  CHECK(body_error("mov.f64 %rd1, 0d3FF000000000000;") ==
        "7:15: expected 16 hexadecimal digits after '0d', found '0d3FF000000000000'");
  CHECK(body_error("mov.u64 %rd1, 18446744073709551616;") ==
        "7:15: expected an integer of at most 64 bits, found '18446744073709551616'");
  CHECK(body_error("mov.u32 %r1, 1 / 0;") == "7:16: division by zero in a constant expression");
  CHECK(body_error("mov.u32 %r1, 1 % 0;") ==
        "7:16: remainder of a division by zero in a constant expression");
  CHECK(body_error("mov.u32 %r1, 1.5 & 2;") == "7:18: expected integers around '&', found a float");
  CHECK(body_error("mov.u32 %r1, 1 +;") == "7:17: expected a constant after '+', found ';'");
  CHECK(body_error("mov.u32 %r1, (1;") ==
        "7:16: expected ')' at the end of the constant expression, found ';'");
  CHECK(body_error("mov.u32 %r1, (.f32) 1;") ==
        "7:15: expected '.s64' or '.u64' in a cast, found '.f32'");
  CHECK(body_error("mov.f32 %f1, 1e999;") == "7:14: expected a float within the range of .f64");
  CHECK(body_error("mov.f32 %f1, 1e+;") ==
        "7:14: expected digits in the exponent of a float, found ';'");
}

TEST_CASE("errors at the end of the text say what is still open") {
  CHECK(module_error(".entry k {\nret;\n") ==
        "6:1: expected '}' at the end of 'k' (its '{' is in line 4), found end of text");
  CHECK(module_error(".entry k {\n{\nret;\n}") ==
        "7:2: expected '}' at the end of 'k' (its '{' is in line 4), found end of text");
  CHECK(module_error(".entry k {\n{\nret;\n") ==
        "7:1: expected '}' at the end of a block (its '{' is in line 5), found end of text");
  CHECK(module_error(".entry k { mov.u32 %r1, 1; /* never") ==
        "4:28: expected '*/' at the end of the comment, found end of text");
  CHECK(module_error(".entry k { .pragma \"nounroll;\n ret; }") ==
        "4:20: expected '\"' at the end of the string, found end of line");
  CHECK(module_error(".section .debug_info { .b8 1") ==
        "4:29: expected '}' at the end of the section, found end of text");
  CHECK(module_error(".entry k { } }") ==
        "4:14: expected a directive, a variable or a function, found '}'");
}

TEST_CASE("an error quotes the line, with a caret under the place") {
  const auto excerpt = [](const std::string& text) {
    try {
      (void)ptx::parse(text);
    } catch (const Error& error) {
      return error.excerpt;
    }
    return std::string("read");
  };
  CHECK(excerpt(kernel_text("\tadd.u32 %r1, %r2 ret;")) ==
        "7 |  add.u32 %r1, %r2 ret;\n  |                   ^");
  // The mistake is often at the end of the line before.
  CHECK(excerpt(kernel_text("add.u32 %r1, %r2\r\n  ret;")) ==
        "7 | add.u32 %r1, %r2\n8 |   ret;\n  |   ^");
  const std::string long_line =
      excerpt(std::string(kHead) + std::string(1000, ' ') + "hello" + std::string(1000, 'x'));
  CHECK(long_line.size() < 400);
  CHECK(long_line.find("...") != std::string::npos);
  CHECK(excerpt("\x7f"
                "ELF\x01\xff") == "1 | ?ELF??\n  | ^");
}

TEST_CASE("an error knows its file and kernel, and reads as one text") {
  try {
    (void)ptx::parse(kernel_text("add.u32 %r1"), "dir/k.ptx");
    FAIL("read");
  } catch (const Error& error) {
    CHECK(error.file == "dir/k.ptx");
    CHECK(error.kernel == "k");
    CHECK(std::string(error.what()) ==
          "dir/k.ptx:8:1: error: expected ',' or ';' after operand 1 of 'add.u32', found '}' "
          "[syntax]\n"
          "  7 | add.u32 %r1\n"
          "  8 | }\n"
          "    | ^\n"
          "  stage verify, kernel k");
  }
}

TEST_CASE("bytes that are no text are named") {
  CHECK(body_error(std::string("mov.u32 %r\0 1, 1;", 17)) ==
        "7:11: expected ',' or ';' after operand 1 of 'mov.u32', found byte 0x00");
  CHECK(body_error("mov.u32 %r\xc3\xa9, 1;") ==
        "7:11: expected ',' or ';' after operand 1 of 'mov.u32', found byte 0xC3");
  CHECK(module_error(std::string("\0.entry k { ret; }", 18)) ==
        "4:1: expected a directive, a variable or a function, found byte 0x00");
}
