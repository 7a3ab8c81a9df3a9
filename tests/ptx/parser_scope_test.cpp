// tests/ptx/parser_scope_test.cpp - names are bound by scope
#include <catch2/catch.hpp>

#include "parser_helpers.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using ptx::OperandKind;
using ptx::SymbolKind;

namespace {

const ptx::Operand& operand(const ptx::Function& f, std::size_t statement, std::size_t number) {
  return f.operands_of(f.body[statement])[number];
}

std::string labels_of_branches(const ptx::Module& module) {
  const ptx::Function& f = kernel(module);
  std::string text;
  for (const ptx::Instruction& statement : f.body) {
    if (!statement.is(ptx::Op::bra)) continue;
    const ptx::Label& label = f.labels[f.operands_of(statement)[0].id];
    text += std::string(module.text(label.name)) +
            (label.defined ? std::to_string(label.scope) : "?") + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("registers are declared in all forms") {
  const ptx::Module module = kernel_of(
      ".reg .b32 a, $b, _c, %d, n<4>, %one; .reg .align 4 .f32 x; .reg .b16 %big<4000000000>; .reg "
      ".b32 none<0>;");
  const ptx::Function& f = kernel(module);
  REQUIRE(f.registers.size() == 13);
  CHECK(module.text(f.registers[5].name) == "$b");
  CHECK(f.registers[8].numbered);
  CHECK(f.registers[8].count == 4);
  CHECK(f.registers[11].count == 4000000000u);
  CHECK(f.registers[12].count == 0);
  CHECK(lost(module).empty());
}

TEST_CASE("a register is the innermost declared with that name") {
  const ptx::Module module = kernel_of(
      ".reg .b32 a; mov.b32 a, 0; { .reg .b32 a; mov.b32 a, 1; { .reg .b32 a; mov.b32 a, 2; } "
      "mov.b32 a, 3; } "
      "mov.b32 a, 4;");
  const ptx::Function& f = kernel(module);
  std::string scopes;
  for (const ptx::Instruction& statement : f.body) {
    if (!statement.is(ptx::Op::mov)) continue;
    scopes += std::to_string(f.registers[f.operands_of(statement)[0].id].scope) + " ";
  }
  CHECK(scopes == "0 1 2 1 0 ");
  CHECK(lost(module).empty());
}

TEST_CASE("numbered registers and names that end in digits do not mix up") {
  const ptx::Module module = kernel_of(
      ".reg .b32 r<20>, q1<5>, r30; .reg .f32 r007; mov.b32 r12, q13; mov.b32 r30, r1; mov.b32 "
      "r007, q1; "
      "{ .reg .b32 r12; mov.b32 r12, r13; }");
  const ptx::Function& f = kernel(module);
  CHECK(operand(f, 0, 0).as_register() == ptx::Register{{4}, 12});
  CHECK(operand(f, 0, 1).as_register() == ptx::Register{{5}, 3});
  CHECK(operand(f, 1, 0).as_register() == ptx::Register{{6}, 0});
  CHECK(operand(f, 1, 1).as_register() == ptx::Register{{4}, 1});
  CHECK(operand(f, 2, 0).as_register() == ptx::Register{{7}, 0});
  CHECK(operand(f, 2, 1).kind == OperandKind::Symbol);
  CHECK(operand(f, 4, 0).as_register() == ptx::Register{{8}, 0});
  CHECK(operand(f, 4, 1).as_register() == ptx::Register{{4}, 13});
  CHECK(lost(module).empty());
}

TEST_CASE("what is not declared stays a name") {
  const ptx::Module module =
      kernel_of("mov.u32 %r16, %r15; mov.u32 %r1, %nope.x; mov.u32 %r1, %r99999999999;");
  const ptx::Function& f = kernel(module);
  for (const auto& [statement, number, text] :
       {std::tuple{0, 0, "%r16"}, std::tuple{1, 1, "%nope.x"}, std::tuple{2, 1, "%r99999999999"}}) {
    const ptx::Operand& o =
        operand(f, static_cast<std::size_t>(statement), static_cast<std::size_t>(number));
    REQUIRE(o.kind == OperandKind::Symbol);
    CHECK(module.symbols[o.id].kind == SymbolKind::Unresolved);
    CHECK(module.text(module.symbols[o.id].name) == text);
  }
  CHECK(operand(f, 0, 1).kind == OperandKind::Register);
}

TEST_CASE("a register that leaves its scope is gone") {
  const ptx::Module module =
      kernel_of("{ .reg .b32 inside; mov.u32 inside, 1; } mov.u32 %r1, inside;");
  CHECK(operand(kernel(module), 3, 1).kind == OperandKind::Symbol);
}

TEST_CASE("a declaration after a use of the same name is refused") {
  // In the module a block's registers are at its begin, where they would claim the use.
  CHECK(body_error("{ mov.u32 %r1, 1;\n.reg .b32 %r<4>; }") ==
        "8:11: expected the declaration of '%r' before the name is used in its block");
  CHECK(body_error("mov.u32 x, 1;\n.reg .b32 x;") ==
        "8:11: expected the declaration of 'x' before the name is used in its block");
  CHECK(body_error("mov.u32 x3, 1;\n.reg .b32 x<4>;") ==
        "8:11: expected the declaration of 'x' before the name is used in its block");
  CHECK(body_error("{ mov.u32 %r1, 1;\n.reg .b32 %r1; }") ==
        "8:11: expected the declaration of '%r1' before the name is used in its block");
  CHECK(body_error("mov.u32 %r1, %tid.x; .reg .b32 x, y<3>, %r16; mov.u32 x, y1; .reg .b32 z;") ==
        "read");
}

TEST_CASE("a name is the innermost variable, parameter, module variable or function") {
  const ptx::Module module = kernel_of(
      "mov.u64 %rd1, g; { .local .u32 g; mov.u64 %rd1, g; .shared .u32 p; mov.u64 %rd1, p; } "
      "mov.u64 %rd1, p; "
      "mov.u64 %rd1, h; mov.u64 %rd1, g;");
  const ptx::Function& f = kernel(module);
  std::vector<SymbolKind> kinds;
  for (const ptx::Instruction& statement : f.body) {
    if (statement.is(ptx::Op::mov))
      kinds.push_back(module.symbols[f.operands_of(statement)[1].id].kind);
  }
  CHECK(kinds == std::vector<SymbolKind>{SymbolKind::Variable, SymbolKind::FunctionVariable,
                                         SymbolKind::FunctionVariable, SymbolKind::Parameter,
                                         SymbolKind::Function, SymbolKind::Variable});
  CHECK(lost(module).empty());
}

TEST_CASE("names declared later are resolved") {
  const ptx::Module module = module_of(
      ".global .u64 table[3] = {f, v, missing}; .func k { call f; mov.u64 %x, v; ret; }\n"
      ".func f; .global .u32 v; .func f { call f; ret; }");
  std::string kinds;
  for (const ptx::Symbol& symbol : module.symbols) {
    const std::string name(module.text(symbol.name));
    if (name == "f")
      kinds += symbol.kind == SymbolKind::Function ? "f" + std::to_string(symbol.index) : "?";
    if (name == "v") kinds += symbol.kind == SymbolKind::Variable ? "v" : "?";
    if (name == "missing") kinds += symbol.kind == SymbolKind::Unresolved ? "u" : "?";
  }
  CHECK(kinds == "f2vu");  // one symbol for each name; f is the definition
  CHECK(lost(module).empty());
}

TEST_CASE("variables of a range are named one by one") {
  const ptx::Module module = kernel_of(".local .u32 l<3>; mov.u64 %rd1, l2; mov.u64 %rd1, l3;");
  const ptx::Function& f = kernel(module);
  CHECK(f.variables[0].range == 3);
  CHECK(module.symbols[operand(f, 1, 1).id].kind == SymbolKind::FunctionVariable);
  CHECK(module.symbols[operand(f, 2, 1).id].kind == SymbolKind::Unresolved);
  CHECK(lost(module).empty());
}

TEST_CASE("a label is the innermost one in the blocks around the branch") {
  CHECK(labels_of_branches(kernel_of("bra L; L: { bra L; { L: bra L; } bra L; }")) ==
        "L0 L0 L2 L0 ");
  CHECK(labels_of_branches(kernel_of("{ bra L; L: } { bra L; L: } bra L;")) == "L1 L2 L? ");
  CHECK(labels_of_branches(kernel_of("bra L; { L: ret; } { bra L; } bra M;")) == "L? L? M? ");
  CHECK(labels_of_branches(kernel_of(
            "{ { bra A; bra B; } A: { B: A: bra A; } bra B; } B: A: bra A;")) == "A1 B0 A3 B0 A0 ");
  for (const auto* text : {"bra L; L: { bra L; { L: bra L; } bra L; }",
                           "{ { bra A; bra B; } A: } B: A:", "bra L; { L: ret; } bra M;"}) {
    CHECK(lost(kernel_of(text)).empty());
  }
}

TEST_CASE("labels named like registers and variables are labels in branches") {
  const ptx::Module module = kernel_of("bra %r1; bra g; %r1: g: mov.u32 %r1, 1;");
  CHECK(operand(kernel(module), 0, 0).kind == OperandKind::Label);
  CHECK(operand(kernel(module), 1, 0).kind == OperandKind::Label);
  CHECK(lost(module).empty());
}

TEST_CASE("blocks are numbered in the order in which they begin") {
  const ptx::Module module = kernel_of("{ { } { } } { }");
  std::vector<std::uint32_t> scopes;
  for (const ptx::Instruction& statement : kernel(module).body) {
    if (statement.kind == ptx::StatementKind::ScopeBegin) scopes.push_back(statement.scope);
  }
  CHECK(scopes == std::vector<std::uint32_t>{1, 2, 3, 4});
  CHECK(kernel(module).scopes == 5);
}
