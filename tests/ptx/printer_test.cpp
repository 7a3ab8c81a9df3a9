// tests/ptx/printer_test.cpp - modules built by hand, printed
#include "ptxgen/ptx/printer.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "ptxgen/support/text_buffer.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;

namespace {

// A module with one kernel `k`, filled by hand.
class Hand {
 public:
  Hand() {
    module.functions.emplace_back();
    f().name = module.names.intern("k");
    f().entry = true;
    f().linkage = Linkage::Visible;
    Item item;
    item.kind = Item::Kind::Function;
    module.items.push_back(item);
  }

  Function& f() { return module.functions[0]; }

  Register reg(std::string_view name, Type type, std::uint32_t count = 0, std::uint32_t scope = 0) {
    RegisterDecl decl;
    decl.name = module.names.intern(name);
    decl.type = type;
    decl.numbered = count != 0;
    decl.count = count == 0 ? 1 : count;
    decl.scope = scope;
    f().registers.push_back(decl);
    return {{static_cast<std::uint32_t>(f().registers.size() - 1)}, 0};
  }

  Instruction& add(StatementKind kind, std::initializer_list<Operand> operands) {
    Instruction s;
    s.kind = kind;
    s.first_operand = static_cast<std::uint32_t>(f().operands.size());
    s.operand_count = static_cast<decltype(s.operand_count)>(operands.size());
    f().operands.insert(f().operands.end(), operands);
    f().body.push_back(s);
    return f().body.back();
  }

  Instruction& add(Op op, Modifier type, std::initializer_list<Operand> operands) {
    Instruction& s = add(StatementKind::Instruction, operands);
    s.op = op;
    const OpInfo& row = info(op);
    for (std::size_t i = 0; i < row.slot_count; ++i) {
      if (!row.slots[i].optional) s.modifiers[i] = allowed_modifiers(row.slots[i])[0];
    }
    if (type != Modifier::none) REQUIRE(s.set(Field::Type, type));
    return s;
  }

  std::string last() { return print(module, f(), f().body.back()); }

  Module module;
};

}  // namespace

TEST_CASE("a module built by hand prints line by line, and the map knows the lines") {
  Hand hand;
  hand.module.version = {7, 8};
  hand.module.target = "sm_89";
  const Register r = hand.reg("%r", Type::b32, 4);
  const Register p = hand.reg("%p", Type::pred, 2);
  Label label;
  label.name = hand.module.names.intern("done");
  label.defined = true;
  hand.f().labels.push_back(label);
  hand.add(Op::add, Modifier::type_u32, {Operand::reg(r), Operand::reg(r), Operand::integer(-5)});
  Instruction& bra = hand.add(Op::bra, Modifier::none, {Operand::label({0})});
  bra.guard.predicate = p;
  bra.guard.negated = true;
  hand.add(StatementKind::ScopeBegin, {}).scope = 1;
  hand.f().scopes = 2;
  const Register inner = hand.reg("%r", Type::f32, 1, 1);
  hand.add(Op::add_f32, Modifier::type_f32,
           {Operand::reg(inner), Operand::reg(inner), Operand::f32(1.0f)});
  hand.add(StatementKind::ScopeEnd, {});
  hand.add(StatementKind::Label, {Operand::label({0})});
  hand.add(Op::ret, Modifier::none, {});
  LineMap map;
  CHECK(print(hand.module, &map) ==
        ".version 7.8\n"
        ".target sm_89\n"
        ".address_size 64\n"
        "\n"
        ".visible .entry k()\n"
        "{\n"
        "    .reg .b32 %r<4>;\n"
        "    .reg .pred %p<2>;\n"
        "    add.u32 %r0, %r0, -5;\n"
        "    @!%p0 bra done;\n"
        "    {\n"
        "        .reg .f32 %r<1>;\n"
        "        add.f32 %r0, %r0, 0f3F800000;\n"
        "    }\n"
        "done:\n"
        "    ret;\n"
        "}\n"
        "\n");
  REQUIRE(map.lines.size() == 1);
  CHECK(map.lines[0] == std::vector<std::uint32_t>{9, 10, 11, 13, 14, 15, 16});
  TextBuffer out;
  out << "// before\n";
  print(out, hand.module);
  CHECK(out.view() == "// before\n" + print(hand.module));
}

TEST_CASE("the line map counts every line before a statement") {
  Hand hand;
  Item section;
  section.kind = Item::Kind::Section;
  section.text = hand.module.names.intern(".section .debug_x\n{\n.b8 1\n}");
  hand.module.items.insert(hand.module.items.begin(), section);
  Variable parameter;
  parameter.name = hand.module.names.intern("p");
  parameter.space = Space::Param;
  parameter.type = Type::u64;
  hand.f().parameters = {parameter, parameter};
  Directive directive;
  directive.kind = DirectiveKind::maxntid;
  directive.count = 2;
  directive.values = {32, 4, 0};
  hand.f().directives.push_back(directive);
  hand.f().pragmas.push_back(hand.module.names.intern("nounroll"));
  hand.add(Op::ret, Modifier::none, {});
  LineMap map;
  const std::string text = print(hand.module, &map);
  std::size_t at = 0;
  for (std::uint32_t line = 1; line < map.lines[0][0]; ++line) at = text.find('\n', at) + 1;
  CHECK(text.substr(at, 8) == "    ret;");
  CHECK(text.find(".maxntid 32, 4\n.pragma \"nounroll\";\n{") != std::string::npos);
}

TEST_CASE("operands print as assemblers read them") {
  Hand hand;
  const Register r = hand.reg("%r", Type::b32, 4);
  const Register d = hand.reg("%rd", Type::b64, 4);
  const Register f = hand.reg("%f", Type::f32, 4);
  const Register g = hand.reg("%fd", Type::f64, 4);
  Symbol symbol;
  symbol.name = hand.module.names.intern("data");
  hand.module.symbols.push_back(symbol);
  const auto load = [&](const Operand& address) {
    hand.add(Op::ld, Modifier::type_b32, {Operand::reg(r), address});
    return hand.last();
  };
  CHECK(load(Operand::memory(d)) == "ld.b32 %r0, [%rd0];");
  CHECK(load(Operand::memory(d, 16)) == "ld.b32 %r0, [%rd0+16];");
  CHECK(load(Operand::memory(d, -16)) == "ld.b32 %r0, [%rd0+-16];");
  CHECK(load(Operand::memory(SymbolId{0}, -4)) == "ld.b32 %r0, [data+-4];");
  CHECK(load(Operand::memory(SymbolId{0}, 4)) == "ld.b32 %r0, [data+4];");
  Operand absolute = Operand::integer(64);
  absolute.kind = OperandKind::Memory;
  absolute.base = OperandKind::Integer;
  CHECK(load(absolute) == "ld.b32 %r0, [64];");
  hand.add(Op::mov, Modifier::type_f32, {Operand::reg(f), Operand::f32(-0.0f)});
  CHECK(hand.last() == "mov.f32 %f0, 0f80000000;");
  hand.add(Op::mov, Modifier::type_f32,
           {Operand::reg(f), Operand::f32(std::numeric_limits<float>::quiet_NaN())});
  CHECK(hand.last() == "mov.f32 %f0, 0f7FC00000;");
  hand.add(Op::mov, Modifier::type_f64, {Operand::reg(g), Operand::f64(0.1)});
  CHECK(hand.last() == "mov.f64 %fd0, 0d3FB999999999999A;");
  hand.add(Op::mov, Modifier::type_u64,
           {Operand::reg(d), Operand::unsigned_integer(std::numeric_limits<std::uint64_t>::max())});
  CHECK(hand.last() == "mov.u64 %rd0, 18446744073709551615;");
  hand.add(Op::mov, Modifier::type_s64,
           {Operand::reg(d), Operand::integer(std::numeric_limits<std::int64_t>::min())});
  CHECK(hand.last() == "mov.s64 %rd0, -9223372036854775808;");
  hand.add(Op::mov, Modifier::type_u32,
           {Operand::reg(r), Operand::special(SpecialRegister::tid, 2)});
  CHECK(hand.last() == "mov.u32 %r0, %tid.y;");
  hand.add(Op::mov, Modifier::type_u64, {Operand::reg(d), Operand::symbol({0}, 8)});
  CHECK(hand.last() == "mov.u64 %rd0, data+8;");
}

TEST_CASE("lists, sinks and joined operands print in their places") {
  Hand hand;
  const Register r = hand.reg("%r", Type::b32, 4);
  const Register d = hand.reg("%rd", Type::b64, 2);
  const Register p = hand.reg("%p", Type::pred, 2);
  hand.f().operands = {Operand::reg(r), Operand::sink()};
  Operand list;
  list.kind = OperandKind::Vector;
  list.index = 2;
  hand.add(Op::mov_unpack_b64_2, Modifier::none, {list, Operand::reg(d)});
  CHECK(hand.last() == "mov.b64 {%r0, _}, %rd0;");
  Operand joined = Operand::reg(p);
  joined.joined = true;
  Operand negated = Operand::reg({p.decl, 1});
  negated.negated = true;
  hand.add(Op::lop3_bool, Modifier::none,
           {Operand::sink(), joined, Operand::reg(r), Operand::reg(r), Operand::reg(r),
            Operand::integer(150), negated});
  CHECK(hand.last() == "lop3.or.b32 _|%p0, %r0, %r0, %r0, 150, !%p1;");
  list.kind = OperandKind::List;
  Operand empty;
  empty.kind = OperandKind::List;
  Symbol callee;
  callee.name = hand.module.names.intern("f");
  hand.module.symbols.push_back(callee);
  hand.f().operands[1] = Operand::reg({r.decl, 3});
  hand.add(Op::call, Modifier::none, {empty, Operand::symbol({0}), list});
  CHECK(hand.last() == "call f, (%r0, %r3);");
  hand.add(Op::call, Modifier::none, {list, Operand::symbol({0}), empty});
  CHECK(hand.last() == "call (%r0, %r3), f;");
  hand.add(Op::call, Modifier::none, {empty, Operand::symbol({0}), empty});
  CHECK(hand.last() == "call f;");
}

TEST_CASE("deep scopes are indented no further than sixteen steps") {
  Hand hand;
  constexpr std::uint32_t kDepth = 500;
  for (std::uint32_t i = 1; i <= kDepth; ++i) hand.add(StatementKind::ScopeBegin, {}).scope = i;
  for (std::uint32_t i = 0; i < kDepth; ++i) hand.add(StatementKind::ScopeEnd, {});
  hand.f().scopes = kDepth + 1;
  const std::string text = print(hand.module);
  CHECK(text.size() < 2 * kDepth * 80);
  CHECK(std::count(text.begin(), text.end(), '{') == kDepth + 1);
  CHECK(std::count(text.begin(), text.end(), '}') == kDepth + 1);
}

TEST_CASE("equal modules give equal bytes however they were built") {
  Hand a;
  Hand b;
  // Names that are interned in another order have other numbers.
  static_cast<void>(b.module.names.intern("something else"));
  for (Hand* hand : {&a, &b}) {
    const Register r = hand->reg("%r", Type::b32, 2);
    hand->add(Op::add, Modifier::type_u32, {Operand::reg(r), Operand::reg(r), Operand::integer(1)});
    hand->add(Op::ret, Modifier::none, {});
  }
  CHECK(difference(a.module, b.module) == "");
  CHECK(print(a.module) == print(b.module));
  b.f().operands[2] = Operand::integer(2);
  CHECK(difference(a.module, b.module) ==
        "in 'k': statement 'add.u32 %r0, %r0, 1;': an operand differs");
}
