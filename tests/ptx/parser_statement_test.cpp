// tests/ptx/parser_statement_test.cpp - instructions, operands and constants are read
#include <catch2/catch.hpp>

#include "parser_helpers.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using ptx::OperandKind;
using ptx::StatementKind;

namespace {

// The only operand of interest: the last one of the only statement.
ptx::Operand last_operand(std::string_view statement) {
  const ptx::Module module = kernel_of(statement);
  REQUIRE(kernel(module).body.size() == 1);
  const auto operands = kernel(module).operands_of(kernel(module).body[0]);
  REQUIRE_FALSE(operands.empty());
  return operands.back();
}

std::uint64_t constant(std::string_view expression) {
  const ptx::Operand operand = last_operand("mov.u64 %rd1, " + std::string(expression) + ";");
  REQUIRE(operand.kind == OperandKind::Integer);
  return operand.value;
}

std::string printed_constant(std::string_view expression) {
  const std::string text = printed("mov.b64 %rd1, " + std::string(expression) + ";");
  return text.substr(14, text.size() - 15);
}

}  // namespace

TEST_CASE("every kind of operand is read") {
  CHECK(printed("add.u32 %r1,%r2,%r3;") == "add.u32 %r1, %r2, %r3;");
  CHECK(printed("add.u32 %r1 , %r2,-3 ;") == "add.u32 %r1, %r2, -3;");
  CHECK(printed("mov.u32 %r1, %tid.x; mov.u32 %r1, %ctaid.r; mov.u32 %r1, %laneid;") ==
        "mov.u32 %r1, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r1, %laneid;");
  CHECK(printed("mov.u64 %rd1, g; mov.u64 %rd1, g+4*2; mov.u64 %rd1, g + -4;") ==
        "mov.u64 %rd1, g; mov.u64 %rd1, g+8; mov.u64 %rd1, g+-4;");
  CHECK(printed("ld.global.u32 %r1, [%rd1+8]; ld.global.u32 %r1, [ %rd1 + -8 ];") ==
        "ld.global.u32 %r1, [%rd1+8]; ld.global.u32 %r1, [%rd1+-8];");
  CHECK(printed("ld.global.u32 %r1, [g+4]; ld.local.u32 %r1, [16]; ld.param.u64 %rd1, [p];") ==
        "ld.global.u32 %r1, [g+4]; ld.local.u32 %r1, [16]; ld.param.u64 %rd1, [p];");
  CHECK(printed("ld.global.v4.f32 {%f0,_,%f2, %f3}, [%rd1];") ==
        "ld.global.v4.f32 {%f0, _, %f2, %f3}, [%rd1];");
  CHECK(printed("setp.lt.u32 %p0|%p1, %r1, 5; setp.lt.and.u32 %p0, %r1, 5, !%p2;") ==
        "setp.lt.u32 %p0|%p1, %r1, 5; setp.lt.and.u32 %p0, %r1, 5, !%p2;");
  CHECK(printed("mov.f32 %f1, 0f3F800000; mov.f64 %rd1, 0D3ff0000000000000; mov.f32 %f1, 1.5;") ==
        "mov.f32 %f1, 0f3F800000; mov.f64 %rd1, 0d3FF0000000000000; mov.f32 %f1, "
        "0d3FF8000000000000;");
  CHECK(printed("bra.uni L; L: ret;") == "bra.uni L; L: ret;");
  CHECK(last_operand("ld.global.u32 %r1, [%rd3+8];").base == OperandKind::Register);
  CHECK(last_operand("ld.global.u32 %r1, [g+8];").base == OperandKind::Symbol);
  CHECK(last_operand("ld.local.u32 %r1, [8];").base == OperandKind::Integer);
}

TEST_CASE("vector registers and their components are read") {
  CHECK(
      printed(".reg .v4 .f32 v; ld.global.v4.f32 v, [%rd1]; mov.f32 v.y, v.w; mov.f32 %f1, v.r;") ==
      "ld.global.v4.f32 v, [%rd1]; mov.f32 v.y, v.w; mov.f32 %f1, v.x;");
  const ptx::Module module = kernel_of(".reg .v2 .b32 pair, q<4>; mov.b32 q3.y, pair.x;");
  const ptx::Function& f = kernel(module);
  CHECK(f.registers[4].vector == 2);
  CHECK(f.registers[5].numbered);
  const auto operands = f.operands_of(f.body[0]);
  CHECK(operands[0].index == 3);
  CHECK(operands[0].component == 2);
  CHECK(lost(module).empty());
}

TEST_CASE("a list of one is the operand itself") {
  CHECK(printed("@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ]; st.shared.b32 [%r2], {%r1};") ==
        "@%p1 ld.global.b32 {%r1}, [%rd1+0]; st.shared.b32 [%r2], {%r1};");
  CHECK(printed("ldu.global.f32 {%f1}, [%rd1]; st.global.b32 [%rd1], {5};") ==
        "ldu.global.f32 {%f1}, [%rd1]; st.global.b32 [%rd1], {5};");
  // ptxas 13.0 crashes on braces around the source of a move.
  CHECK(printed("mov.b32 {%r1}, %r2; mov.b32 %r1, {%r2}; mov.b64 %rd1, {%rd2};") ==
        "mov.b32 %r1, %r2; mov.b32 %r1, %r2; mov.b64 %rd1, %rd2;");
  const ptx::Module module = kernel_of("ld.global.b32 {%r3}, [%rd1]; mov.b32 {%r4}, {%r3};");
  const ptx::Function& f = kernel(module);
  const ptx::Operand loaded = f.operands_of(f.body[0])[0];
  CHECK(loaded.kind == OperandKind::Register);
  CHECK(loaded.index == 3);
  CHECK(loaded.in_braces);
  CHECK(f.operands_of(f.body[1])[0].kind == OperandKind::Vector);
  CHECK(lost(module).empty());
  CHECK(ptx::difference(kernel_of("ld.global.b32 {%r3}, [%rd1];"),
                        kernel_of("ld.global.b32 %r3, [%rd1];")) != "");
}

TEST_CASE("an index counts elements, as ptxas 13.0 reads it") {
  constexpr std::string_view kArrays =
      ".shared .f32 a[8]; .shared .v4 .f32 v[4]; .shared .f32 m[4][8]; .shared .b64 w[2]; ";
  const auto read = [&](std::string_view statement) {
    const std::string text = printed(std::string(kArrays) + std::string(statement));
    return text.substr(text.rfind("; ", text.size() - 2) + 2);
  };
  CHECK(read("mov.u32 %r1, a[3];") == "mov.u32 %r1, a+12;");
  CHECK(read("mov.u32 %r1, w [ 1 + 1 ];") == "mov.u32 %r1, w+16;");
  CHECK(read("mov.u32 %r1, w[-1];") == "mov.u32 %r1, w+-8;");
  // The other dimensions and the length of a vector do not count.
  CHECK(read("mov.u32 %r1, m[3];") == "mov.u32 %r1, m+12;");
  CHECK(read("mov.u32 %r1, v[3];") == "mov.u32 %r1, v+12;");
  CHECK(read("mov.u64 %rd1, g[2];") == "mov.u64 %rd1, g+8;");
  CHECK(read("ld.shared.f32 %f1, a[2];") == "ld.shared.f32 %f1, [a+8];");
  CHECK(read("st.shared.f32 a[0], %f1;") == "st.shared.f32 [a], %f1;");
  CHECK(body_error("ld.global.u32 %r1, [g[2]];") ==
        "7:21: expected an address such as a+4, found an index in brackets; write g[n] without "
        "brackets around it");
}

TEST_CASE("an index in a register becomes the arithmetic that ptxas 13.0 makes of it") {
  const auto with = [](std::string_view index, std::string_view rest) {
    return std::string(index) +
           " mov.u64 %element_address, g; cvt.u64.u32 %element_wide_offset, %element_offset; "
           "add.u64 %element_address, %element_address, %element_wide_offset; " +
           std::string(rest);
  };
  constexpr std::string_view kScale = "mul.lo.u32 %element_offset, %element_offset, 4;";
  CHECK(printed("ld.global.u32 %r2, g[%r1];") ==
        with("mul.lo.u32 %element_offset, %r1, 4;", "ld.global.u32 %r2, [%element_address];"));
  CHECK(printed("st.global.u32 g [ %r1 + -1 ], %r2;") ==
        with("add.u32 %element_offset, %r1, 4294967295; " + std::string(kScale),
             "st.global.u32 [%element_address], %r2;"));
  CHECK(printed("mov.u64 %rd1, g[%rd2];") ==
        with("cvt.u32.u64 %element_offset, %rd2; " + std::string(kScale),
             "mov.u64 %rd1, %element_address;"));
  for (const auto& [type, conversion] : {std::pair("s16", "cvt.s32.s16"),
                                         {"b16", "cvt.u32.u16"},
                                         {"s8", "cvt.s32.s8"},
                                         {"u8", "cvt.u32.u8"}}) {
    CHECK(printed(".reg ." + std::string(type) + " i; cvta.global.u64 %rd1, g[i];") ==
          with(std::string(conversion) + " %element_offset, i; " + std::string(kScale),
               "cvta.global.u64 %rd1, %element_address;"));
  }
  // What computes the address runs where the instruction does.
  CHECK(printed("@!%p1 ld.global.u32 %r2, g[%r1];") ==
        "@!%p1 mul.lo.u32 %element_offset, %r1, 4; @!%p1 mov.u64 %element_address, g; "
        "@!%p1 cvt.u64.u32 %element_wide_offset, %element_offset; "
        "@!%p1 add.u64 %element_address, %element_address, %element_wide_offset; "
        "@!%p1 ld.global.u32 %r2, [%element_address];");
  const ptx::Module narrow = ptx::parse(
      ".version 8.0\n.target sm_90\n.address_size 32\n.global .u16 t[4];\n.entry k()\n"
      "{ .reg .b32 %r<3>; .reg .b16 %h; ld.global.u16 %h, t[%r1]; }\n");
  CHECK(ptx::print(narrow, kernel(narrow), kernel(narrow).body[2]) ==
        "add.u32 %element_address, %element_address, %element_offset;");
}

TEST_CASE("registers for addresses of elements have names that no text has") {
  const ptx::Module module = kernel_of(
      ".reg .u32 %element_offset; mov.u32 %element_offset, 1; { .reg .b32 %element__address; "
      "ld.global.u32 %r2, g[%r1]; } ld.global.u32 %r3, g[%element_offset]; // %element___");
  const ptx::Function& f = kernel(module);
  REQUIRE(f.registers.size() == 9);
  CHECK(module.text(f.registers[6].name) == "%element____offset");
  CHECK(f.registers[6].scope == 0);
  CHECK(lost(module).empty());
  // The next raw statements of a function that has such registers already.
  ptx::Module built = kernel_of("ld.global.u32 %r2, g[%r1];");
  ptx::parse_into(built, 1, "ld.global.u32 %r3, g[%r2];");
  REQUIRE(kernel(built).registers.size() == 10);
  CHECK(built.text(kernel(built).registers[9].name) == "%element__address");
  CHECK(lost(built).empty());
}

TEST_CASE("an index in a register is allowed only where ptxas 13.0 accepts it") {
  constexpr std::string_view kWhere =
      "; an element that a register chooses can be an address (ld, st) or the source of mov and "
      "cvta";
  CHECK(body_error("add.u64 %rd1, g[%r1], 1;") ==
        "7:17: expected a constant index here, found '%r1'" + std::string(kWhere));
  CHECK(body_error("mov.b64 %rd1, {%r2, g[%r1]};") ==
        "7:23: expected a constant index here, found '%r1'" + std::string(kWhere));
  CHECK(body_error("ld.global.u32 %r1, g[%f1];") ==
        "7:22: expected a register of an integer or bit type as index, found '%f1'");
  CHECK(body_error("ld.global.u32 %r1, g[%r99];") ==
        "7:22: expected an integer or a declared register as index, found '%r99'");
  CHECK(body_error("ld.global.u32 %r1, g[%r1-1];") ==
        "7:25: expected ']' after the index, found '-'");
  CHECK(body_error("ld.global.u32 %r1, g[1+%r1];") ==
        "7:24: expected a constant after '+', found '%r1'");
  CHECK(body_error("ld.global.u32 %r1, [g[%r1]];").starts_with("7:21: expected an address"));
}

TEST_CASE("guards are read") {
  CHECK(printed("@%p1 ret; @!%p2 bra L; @ ! %p3 ret; L: ret;") ==
        "@%p1 ret; @!%p2 bra L; @!%p3 ret; L: ret;");
  CHECK(
      body_error("@%p9 ret;") ==
      "7:1: expected a declared predicate register after '@', found '%p9', which is not declared");
}

TEST_CASE("integer constants of all bases are read") {
  CHECK(constant("42") == 42);
  CHECK(constant("0") == 0);
  CHECK(constant("017") == 15);
  CHECK(constant("0x1F") == 31);
  CHECK(constant("0Xfu") == 15);
  CHECK(constant("0b101") == 5);
  CHECK(constant("0B11U") == 3);
  CHECK(constant("5U") == 5);
  CHECK(constant("123456789012345678") == 123456789012345678u);
  CHECK(constant("1234567890123456789") == 1234567890123456789u);
  CHECK(constant("18446744073709551615") == ~std::uint64_t{0});
  CHECK(constant("WARP_SZ") == 32);
  CHECK(constant("WARP_SZ*2-1") == 63);
}

TEST_CASE("the sign of a constant is kept") {
  CHECK(printed_constant("-1") == "-1");
  CHECK(printed_constant("0xffffffffffffffff") == "18446744073709551615");
  CHECK(printed_constant("-9223372036854775808") == "-9223372036854775808");
  CHECK(printed_constant("9223372036854775808") == "9223372036854775808");
  CHECK(printed_constant("(.s64) 0xffffffffffffffff") == "-1");
  CHECK(printed_constant("(.u64) -1") == "18446744073709551615");
  CHECK(printed_constant("~0") == "18446744073709551615");
}

TEST_CASE("constant expressions have all operators of PTX") {
  CHECK(constant("1+2*3") == 7);
  CHECK(constant("(1+2)*3") == 9);
  CHECK(constant("10-4-3") == 3);
  CHECK(constant("100/7%5") == 4);
  CHECK(constant("-7/2") == static_cast<std::uint64_t>(-3));
  CHECK(constant("1<<4|3") == 19);
  CHECK(constant("1 << 4 + 1") == 32);
  CHECK(constant("-16>>2") == static_cast<std::uint64_t>(-4));
  CHECK(constant("(.u64)-16>>60") == 15);
  CHECK(constant("1<<64") == 0);
  CHECK(constant("-1>>64") == ~std::uint64_t{0});
  CHECK(constant("6&3^1|8") == 11);
  CHECK(constant("5>3 && 2<=2") == 1);
  CHECK(constant("0 || 5!=5") == 0);
  CHECK(constant("-1<0") == 1);
  CHECK(constant("-1<0U") == 0);
  CHECK(constant("!5") == 0);
  CHECK(constant("!0+1") == 2);
  CHECK(constant("- - 5") == 5);
  CHECK(constant("1 ? 2 : 3") == 2);
  CHECK(constant("0 ? 2 : 0 ? 3 : 4") == 4);
  CHECK(constant("(.s64) (.u64) 7") == 7);
  CHECK(constant("-9223372036854775808 / -1") == std::uint64_t{1} << 63);
}

TEST_CASE("float constants and their expressions are read") {
  CHECK(printed_constant("1.") == "0d3FF0000000000000");
  CHECK(printed_constant(".5") == "0d3FE0000000000000");
  CHECK(printed_constant("-2.5e-3") == "0dBF647AE147AE147B");
  CHECK(printed_constant("1E3") == "0d408F400000000000");
  CHECK(printed_constant("1.0 / 3.0 + 2.0") == "0d4002AAAAAAAAAAAB");
  CHECK(printed_constant("1 ? 1.5 : 2") == "0d3FF8000000000000");
  CHECK(constant("1.5 < 2") == 1);
  CHECK(printed_constant("0f7FFFFFFF") == "0f7FFFFFFF");
}

TEST_CASE("calls of all forms are read") {
  constexpr std::string_view kDeclare =
      ".param .b32 a; .param .b32 o; P: .callprototype (.param .b32 _) _ (.param .b32 _); ";
  const auto call = [&](std::string_view text) {
    const std::string all = printed(std::string(kDeclare) + std::string(text));
    return all.substr(all.find("call"));
  };
  const auto rest = [&](std::string_view text) {
    const std::string all = call(text);
    return all.substr(all.find("call", 1));
  };
  CHECK(rest("call h;") == "call h;");
  CHECK(rest("call.uni h, ();") == "call.uni h;");
  CHECK(rest("call (), h, ();") == "call h;");
  CHECK(rest("call (o), h, (a, %r1, 3);") == "call (o), h, (a, %r1, 3);");
  CHECK(rest("call (_), h;") == "call (_), h;");
  CHECK(rest("call.uni (o),\n%rd1,\n(\na\n)\n, P;") == "call.uni (o), %rd1, (a), P;");
  CHECK(rest("call %rd1, P;") == "call %rd1, P;");
  CHECK(rest("call %rd1, (), P;") == "call %rd1, P;");
  const ptx::Module module = kernel_of("call h;");
  CHECK(kernel(module).body[0].operand_count == 3);
  CHECK(module.symbols[kernel(module).operands_of(kernel(module).body[0])[1].id].kind ==
        ptx::SymbolKind::Function);
}

TEST_CASE("the table of an indirect call may be a variable") {
  const ptx::Module module = kernel_of("call %rd1, (%r1), g;");
  CHECK(kernel(module).operands_of(kernel(module).body[0])[3].kind == OperandKind::Symbol);
  CHECK(lost(module).empty());
}

TEST_CASE("tables of labels, functions and prototypes are read") {
  CHECK(printed("T: .branchtargets A, B ,A; @%p1 brx.idx %r1, T; A: B: ret;") ==
        "T: .branchtargets A, B, A; @%p1 brx.idx %r1, T; A: B: ret;");
  CHECK(printed("T: .calltargets h, later; call %rd1, T;") ==
        "T: .calltargets h, later; call %rd1, T;");
  CHECK(printed("T: .callprototype _ (.param .align 8 .b8 _[12], .reg .u32 x) .noreturn;") ==
        "T: .callprototype () _ (.param .align 8 .b8 _[12], .reg .u32 x) .noreturn;");
  std::string many = "T: .branchtargets L";
  for (int i = 0; i < 1000; ++i) many += ", L";
  const ptx::Module module = kernel_of(many + "; brx.idx %r1, T; L: ret;");
  CHECK(kernel(module).body[0].operand_count == 1002);
  CHECK(lost(module).empty());
}

TEST_CASE("locations and pragmas are read") {
  CHECK(printed(".loc 1 20 5\nret; .loc 1 21 5, function_name F+4, inlined_at 2 30 9\nret;") ==
        ".loc 1 20 5 ret; .loc 1 21 5, function_name F+4, inlined_at 2 30 9 ret;");
  CHECK(printed(".loc 1 1 0, function_name F .pragma \"nounroll\", \"x\\\"y\";") ==
        ".loc 1 1 0, function_name F .pragma \"nounroll\"; .pragma \"x\\\"y\";");
}

TEST_CASE("an instruction outside the op table stays as written") {
  CHECK(printed("frobnicate.b32   %r1,\t{%r2, [x]} /* why */ , 3 // because\n ;") ==
        "frobnicate.b32 %r1, {%r2, [x]} , 3;");
  CHECK(printed("add.sideways.u32 %r1, %r2;") == "add.sideways.u32 %r1, %r2;");
  CHECK(printed("@!%p1 tex.cube.v4.f32.f32 {%f1,%f2}, [t, {%f3, %f4}];") ==
        "@!%p1 tex.cube.v4.f32.f32 {%f1,%f2}, [t, {%f3, %f4}];");
  // A sampler of its own, a coordinate without braces, an offset.
  for (const std::string_view text : {"tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [t,s,{%f3,%f4}];",
                                      "tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1,%r1];",
                                      "tex.1d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%rd1,{%f1}], {1};"}) {
    CHECK(printed(text) == text);
  }
  CHECK(printed("zork \"a;b  c\" ;") == "zork \"a;b  c\";");
  CHECK(printed("frob;") == "frob;");
  const ptx::Module module = kernel_of("@%p1 frob.x 1;");
  CHECK(kernel(module).body[0].kind == StatementKind::Unknown);
  CHECK(kernel(module).body[0].guard.present());
  CHECK(module.text(kernel(module).body[0].text) == "frob.x 1");
}

TEST_CASE("operands that the IR cannot hold make the instruction unknown, and leave no symbols") {
  const ptx::Module module =
      kernel_of("ld.global.u32 %r1, [never, {%r2, nor_me}]; mov.u64 %rd1, k[1];");
  CHECK(kernel(module).body[0].kind == StatementKind::Unknown);
  CHECK(kernel(module).body[1].kind == StatementKind::Unknown);
  for (const ptx::Symbol& symbol : module.symbols)
    CHECK(symbol.kind != ptx::SymbolKind::Unresolved);
  CHECK(kernel(module).operands.empty());
}

TEST_CASE("modifiers may be separated by blanks, and in another order") {
  CHECK(printed("add .u32 %r1, %r2, %r3;") == "add.u32 %r1, %r2, %r3;");
  CHECK(printed("mul.lo /* half */ .u32 %r1, %r2, %r3;") == "mul.lo.u32 %r1, %r2, %r3;");
  CHECK(printed("ld.u32.global %r1, [%rd1];") == "ld.global.u32 %r1, [%rd1];");
  CHECK(printed("fma.f32.rn %f1, %f1, %f1, %f1;") == "fma.rn.f32 %f1, %f1, %f1, %f1;");
}

TEST_CASE("the row is chosen by the operands") {
  const auto op = [](std::string_view statement) {
    const ptx::Module module = kernel_of(statement);
    return std::string(ptx::info(kernel(module).body[0].op).id);
  };
  CHECK(op("mov.b64 %rd1, %rd2;") == "mov");
  CHECK(op("mov.b64 %rd1, {%r1, %r2};") != "mov");
  CHECK(op("mov.b64 {%r1, %r2}, %rd1;") != op("mov.b64 %rd1, {%r1, %r2};"));
  // What fits no row is left to the verifier.
  CHECK(op("add.u32 %r1, %r2;") == "add");
  CHECK(op("add.u32 %r1, %r2, %r3, %r4;") == "add");
}

TEST_CASE("statements know their lines") {
  const ptx::Module module =
      kernel_of("add.u32\n%r1, %r1,\n1; /* a\nb */ ret;\nL:\nret;\n.loc 1 1 1\n{\n}");
  std::vector<std::uint32_t> lines;
  for (const ptx::Instruction& statement : kernel(module).body) lines.push_back(statement.line);
  CHECK(lines == std::vector<std::uint32_t>{7, 10, 11, 12, 13, 14, 15});
}
