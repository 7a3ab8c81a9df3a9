// tests/ptx/parser_into_test.cpp - raw statements at the end of a body
#include <catch2/catch.hpp>

#include "parser_helpers.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

// Function 1 of kernel_of() is the kernel.
constexpr std::uint32_t kKernel = 1;

std::string appended(ptx::Module& module, std::string_view statements) {
  const std::size_t before = module.functions[kKernel].body.size();
  ptx::parse_into(module, kKernel, statements);
  std::string text;
  const ptx::Function& f = module.functions[kKernel];
  for (std::size_t i = before; i < f.body.size(); ++i) {
    if (!text.empty()) text += ' ';
    text += ptx::print(module, f, f.body[i]);
    CHECK(f.body[i].line == 0);
  }
  return text;
}

}  // namespace

TEST_CASE("raw statements see what the function has declared") {
  ptx::Module module = kernel_of(".local .u32 l; START: mov.u32 %r1, 1;");
  CHECK(appended(
            module,
            "@%p1 add.u32 %r1, %r2, 3; ld.param.u64 %rd1, [p]; mov.u64 %rd1, g; mov.u64 %rd1, l; "
            "call h; bra START;") ==
        "@%p1 add.u32 %r1, %r2, 3; ld.param.u64 %rd1, [p]; mov.u64 %rd1, g; mov.u64 %rd1, l; call "
        "h; bra START;");
  for (const ptx::Symbol& symbol : module.symbols)
    CHECK(symbol.kind != ptx::SymbolKind::Unresolved);
  const ptx::Function& f = kernel(module);
  CHECK(f.labels.size() == 1);
  CHECK(f.operands_of(f.body[3])[0].as_register() == ptx::Register{{1}, 1});
  CHECK(ptx::difference(module, ptx::parse(ptx::print(module))) == "");
}

TEST_CASE("raw statements equal the same statements read with the module") {
  constexpr std::string_view kFirst = ".reg .b32 t; mov.u32 t, 1; { .reg .b32 t; mov.u32 t, 2; }";
  constexpr std::string_view kRest =
      "mov.u32 t, 3; bra E; { .reg .f32 t; mov.f32 t, 0f00000000; E: bra E; } E: mov.u32 %unknown, "
      "t; frob x ;";
  ptx::Module module = kernel_of(kFirst);
  ptx::parse_into(module, kKernel, kRest);
  CHECK(ptx::difference(module, kernel_of(std::string(kFirst) + std::string(kRest))) == "");
}

TEST_CASE("raw statements are in the block that is open") {
  ptx::Module module = kernel_of("mov.u32 %r1, 1; { .reg .b32 inner; mov.u32 inner, 1; }");
  ptx::Function& f = module.functions[kKernel];
  f.body.pop_back();  // as the builder has it while it is inside
  CHECK(appended(module, "mov.u32 inner, 2; { } L: bra L;") == "mov.u32 inner, 2; { } L: bra L;");
  CHECK(f.labels[0].scope == 1);
  CHECK(f.scopes == 3);
}

TEST_CASE("a label that the builder has not placed yet can be named and placed") {
  ptx::Module module = kernel_of("bra LATER;");
  REQUIRE(kernel(module).labels.size() == 1);
  REQUIRE_FALSE(kernel(module).labels[0].defined);
  ptx::parse_into(module, kKernel, "bra LATER;");
  CHECK(kernel(module).labels.size() == 1);
  ptx::parse_into(module, kKernel, "LATER: ret;");
  CHECK(kernel(module).labels.size() == 1);
  CHECK(kernel(module).labels[0].defined);
  CHECK(ptx::difference(module, kernel_of("bra LATER; bra LATER; LATER: ret;")) == "");
}

TEST_CASE("refused raw statements leave the module as it was") {
  ptx::Module module = kernel_of("bra LATER;");
  const ptx::Module before = module;
  for (const auto* text :
       {"mov.u32 new_name, other; .reg .b32 x; .local .u32 v; L: LATER: { mov.u32 x, 1; add.u32 "
        "%r1 }",
        "{ ret;", "ret; }", "P: .callprototype _ (); call %rd1, (newer), P; bra NOWHERE; junk",
        "/*", "@", ".entry k { }"}) {
    CHECK_THROWS_AS(ptx::parse_into(module, kKernel, text), Error);
    CHECK(ptx::print(module) == ptx::print(before));
    CHECK(ptx::difference(module, before) == "");
    CHECK(module.names.size() == before.names.size());
    CHECK(module.symbols.size() == before.symbols.size());
    const ptx::Function& a = kernel(module);
    const ptx::Function& b = kernel(before);
    CHECK(a.operands.size() == b.operands.size());
    CHECK(a.variables.size() == b.variables.size());
    CHECK(a.prototypes.size() == b.prototypes.size());
    CHECK(a.labels.size() == b.labels.size());
    CHECK_FALSE(a.labels[0].defined);
    CHECK(a.scopes == b.scopes);
  }
}

TEST_CASE("errors in raw statements name the raw text") {
  ptx::Module module = kernel_of("");
  try {
    ptx::parse_into(module, kKernel, "ret;\nadd.u32 %r1 %r2;");
    FAIL("read");
  } catch (const Error& error) {
    CHECK(error.describe() ==
          "<raw PTX>:2:13: error: expected ',' or ';' after operand 1 of 'add.u32', found '%r2' "
          "[syntax]\n"
          "  2 | add.u32 %r1 %r2;\n"
          "    |             ^\n"
          "  stage verify, kernel k");
  }
  CHECK_THROWS_WITH(
      ptx::parse_into(module, kKernel, "{"),
      Catch::Contains(
          "expected '}' at the end of a block (its '{' is in line 1), found end of text"));
}
