// tests/ptx/parser_module_test.cpp - module-level directives are parsed
#include <catch2/catch.hpp>

#include <rapidcheck/catch.h>

#include "parser_helpers.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using ptx::InitialValue;
using ptx::Item;

namespace {

// Module text as it is printed, without the head.
std::string reprinted(std::string_view text) {
  const ptx::Module module = module_of(text);
  CHECK(lost(module).empty());
  std::string out = ptx::print(module);
  out = out.substr(out.find("\n\n") + 2);
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

}  // namespace

TEST_CASE("the head is read") {
  const ptx::Module module = ptx::parse(
      "// x\n.version 7.5 // y\n.target sm_75 /* z */ , texmode_independent, debug .address_size "
      "32");
  CHECK(module.version == ptx::Version{7, 5});
  CHECK(module.target == "sm_75");
  CHECK(module.target_options == std::vector<std::string>{"texmode_independent", "debug"});
  CHECK(module.address_size == 32);
  CHECK(ptx::parse(".version 8.4 .target sm_90a").address_size == 64);
  CHECK(ptx::parse(".version 8.4 .target sm_90a", "name.ptx").file == "name.ptx");
}

TEST_CASE("module variables are read with all that they may have") {
  CHECK(reprinted(".global .u32 a;") == ".global .u32 a;");
  CHECK(reprinted(".visible.global.align 16 .v4.f32 a [ 4 ] [2];") ==
        ".visible .global .align 16 .v4 .f32 a[4][2];");
  CHECK(reprinted(".extern .shared .align 8 .b8 dyn[];") == ".extern .shared .align 8 .b8 dyn[];");
  CHECK(reprinted(".weak .const .s8 a, b[2*3];") == ".weak .const .s8 a;\n.weak .const .s8 b[6];");
  CHECK(reprinted(".common .global .attribute(.managed) .u64 a;") ==
        ".common .global .attribute(.managed) .u64 a;");
  CHECK(reprinted(".global .attribute(.unified(19,0x5)) .u64 a;") ==
        ".global .attribute(.unified(19, 0x5)) .u64 a;");
  CHECK(reprinted(".global .texref t; .tex .u64 u; .global .surfref s;") ==
        ".global .texref t;\n.tex .u64 u;\n.global .surfref s;");
  CHECK(reprinted(".global .u32 n<4>;") == ".global .u32 n<4>;");
  CHECK(reprinted(".shared .b8 x[4000000000000];") == ".shared .b8 x[4000000000000];");
}

TEST_CASE("initialisers are read") {
  CHECK(reprinted(".global .u32 a = 5, b = -1, c = 1 + 2;") ==
        ".global .u32 a = 5;\n.global .u32 b = -1;\n.global .u32 c = 3;");
  CHECK(reprinted(".global .s32 a[2][3] = { {1, 2}, {3} };") ==
        ".global .s32 a[2][3] = {{1, 2}, {3}};");
  CHECK(reprinted(".global .s32 a[2] = {};") == ".global .s32 a[2] = {};");
  CHECK(reprinted(".global .f32 a[2] = {0f3F800000, 1.5};") ==
        ".global .f32 a[2] = {0f3F800000, 0d3FF8000000000000};");
  CHECK(reprinted(".global .u32 v; .global .u64 a[4] = {v, v+4, generic(v), generic(v) + -8};") ==
        ".global .u32 v;\n.global .u64 a[4] = {v, v+4, generic(v), generic(v)+-8};");
  CHECK(reprinted(".global .u32 v; .global .u8 a[3] = {0xFF(v), 0xFF00(v+4), 0xff(generic(v))};") ==
        ".global .u32 v;\n.global .u8 a[3] = {0x00000000000000FF(v), 0x000000000000FF00(v+4), "
        "0x00000000000000FF(generic(v))};");
  const ptx::Module module = module_of(".global .v2 .u64 a = {0xffffffffffffffff, WARP_SZ};");
  CHECK(module.variables[0].initial[1].is_unsigned);
  CHECK(module.variables[0].initial[2].value == 32);
}

TEST_CASE("functions are read with all that they may have") {
  CHECK(reprinted(".visible .entry k { }") == ".visible .entry k()\n{\n}");
  CHECK(reprinted(
            ".entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[12], .param .u64 "
            ".ptr q)\n"
            ".maxntid 256, 2 .minnctapersm 2 .pragma \"a\"; .reqnctapercluster 2,1,1 { ret; }") ==
        ".entry k(\n    .param .u64 .ptr .global .align 16 p,\n    .param .align 8 .b8 s[12],\n    "
        ".param .u64 .ptr q\n)\n"
        ".maxntid 256, 2\n.minnctapersm 2\n.reqnctapercluster 2, 1, 1\n.pragma \"a\";\n{\n    "
        "ret;\n}");
  CHECK(reprinted(".extern .func (.param .b32 r) f (.param .b64 a, .param .b64 b) .noreturn;") ==
        ".extern .func (.param .b32 r) f(\n    .param .b64 a,\n    .param .b64 b\n)\n.noreturn;");
  CHECK(
      reprinted(".func (.reg .u32 r) f (.reg .u32 a, .reg .v2 .f32 v) { add.u32 r, a, 1; ret; }") ==
      ".func (.reg .u32 r) f(\n    .reg .u32 a,\n    .reg .v2 .f32 v\n)\n{\n    add.u32 r, a, 1;\n "
      "   ret;\n}");
  CHECK(reprinted(".weak .func f; .func f { ret; }") ==
        ".weak .func f();\n.func f()\n{\n    ret;\n}");
  const ptx::Module module = module_of(".func (.reg .u32 r) f (.reg .u32 a) { ret; }");
  CHECK(module.functions[0].returns[0].decl.value == 0);
  CHECK(module.functions[0].parameters[0].decl.value == 1);
}

TEST_CASE("the declaration of a function may end without a semicolon") {
  const ptx::Module module = module_of(
      ".extern .func (.param .b32 r) f(.param .b32 a)\n.extern .func g .noreturn\n.global .u32 x;\n"
      ".func h()\n.visible .entry k() { ret; }\n");
  REQUIRE(module.functions.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) CHECK(module.functions[i].declaration);
  CHECK(module.functions[1].directives.size() == 1);
  CHECK_FALSE(module.functions[3].declaration);
  CHECK(lost(module).empty());
  CHECK(module_error(".extern .entry q()\n.entry k() { ret; }\n").starts_with("5:1: expected"));
  CHECK(module_error(".func f() ret;").starts_with("4:11: expected '{' or ';'"));
}

TEST_CASE("texts below 2.3 are printed without .address_size") {
  const auto printed_head = [](std::string_view version) {
    const std::string text = ptx::print(
        ptx::parse(".version " + std::string(version) + "\n.target sm_20\n.entry k() { ret; }\n"));
    return text.substr(0, text.find(".entry"));
  };
  CHECK(printed_head("2.2") == ".version 2.2\n.target sm_20\n\n");
  CHECK(printed_head("2.3") == ".version 2.3\n.target sm_20\n.address_size 64\n\n");
}

TEST_CASE("variables in bodies are read") {
  CHECK(printed(".local .align 8 .b8 d[16], e; .param .b32 q<3>; .extern .shared .b8 x[]; .shared "
                ".u32 i = 3;") ==
        ".local .align 8 .b8 d[16]; .local .align 8 .b8 e; .param .b32 q<3>; .extern .shared .b8 "
        "x[]; "
        ".shared .u32 i = 3;");
}

TEST_CASE("files, pragmas and aliases are read") {
  CHECK(reprinted(".file 1 \"a b.cu\" .file 2 \"c\\\"d\", 1700000000, 42 .pragma \"x\", \"y\";\n"
                  ".func f { ret; } .alias g, f;") ==
        ".file 1 \"a b.cu\"\n.file 2 \"c\\\"d\", 1700000000, 42\n.pragma \"x\";\n.pragma \"y\";\n"
        ".func f()\n{\n    ret;\n}\n\n.alias g, f;");
}

TEST_CASE("sections are kept as they are") {
  constexpr std::string_view kBraced =
      ".section\t.debug_str\n\t{\ninfo: // }\n.b8 1, 2\n.b32 .debug_abbrev { } \"}\"\n\n\t}";
  CHECK(reprinted(kBraced) == kBraced);
  constexpr std::string_view kLines = ".section .debug_x\nlabel:\n.b8 1,2,\n 3\n.b32 label+4 - 2";
  CHECK(reprinted(std::string(kLines) + " // end\n.func f;") ==
        std::string(kLines) + "\n.func f();");
  CHECK(reprinted("@@DWARF .b8 1\r\n.func f;") == "@@DWARF .b8 1\n.func f();");
}

TEST_CASE("line ends, marks and ends of text of all kinds are read") {
  const auto reference = ptx::print(module_of(".func f { ret; }"));
  for (std::string text :
       {".version 8.0\r\n.target sm_90\r\n.address_size 64\r\n.func f {\r\n ret;\r\n}\r\n",
        "\xef\xbb\xbf.version 8.0\n.target sm_90\n.func f { ret; }",
        ".version 8.0\n# 5 \"x.cu\"\n.target sm_90\n  # 6\n.func f { ret; } // no end",
        ".version 8.0\f.target\vsm_90 .func f{ret;}/**/"}) {
    CHECK(ptx::print(ptx::parse(text)) == reference);
  }
  std::string with_nul = ".version 8.0\n.target sm_90\n.func f { ret; }";
  with_nul += std::string("\0\0", 2);
  CHECK(ptx::print(ptx::parse(with_nul)) == reference);
}

TEST_CASE("white space between words makes no difference") {
  rc::prop("blanks, newlines and comments may be between any two words", [] {
    const std::vector<std::string> words = {
        ".version", "8.0",  ".target", "sm_90", ",",   "debug",  ".visible", ".global", ".align",
        "8",        ".b8",  "v",       "[",     "4",   "]",      "=",        "{",       "1",
        ",",        "2",    "+",       "3",     "}",   ";",      ".func",    "(",       ".reg",
        ".b32",     "r",    ")",       "f",     "(",   ".param", ".b64",     "p",       ")",
        "{",        ".reg", ".pred",   "%p",    "<",   "3",      ">",        ";",       "L",
        ":",        "@",    "!",       "%p1",   "add", ".u32",   "r",        ",",       "r",
        ",",        "-",    "1",       ";",     "bra", "L",      ";",        "{",       "}",
        "ret",      ";",    "}"};
    std::string plain;
    std::string spaced;
    for (const std::string& word : words) {
      plain += word + " ";
      spaced += word + *rc::gen::element<std::string>(" ", "\n", "\t ", "\r\n", "/* c\n */",
                                                      " // c\n", " /**/ ");
    }
    RC_ASSERT(ptx::difference(ptx::parse(plain), ptx::parse(spaced)) == "");
  });
}
