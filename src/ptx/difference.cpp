// src/ptx/difference.cpp - the first difference of two modules
#include <algorithm>
#include <string>
#include <vector>

#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

// Thrown away at the first difference; carries the sentence.
struct Found {
  std::string text;
};

class Comparison {
 public:
  Comparison(const Module& a, const Module& b) : a_(a), b_(b) {}

  void modules() {
    require(a_.version == b_.version, ".version");
    require(a_.target == b_.target, ".target");
    require(a_.target_options == b_.target_options, "the options of .target");
    require(a_.address_size == b_.address_size, ".address_size");
    same_size(a_.items, b_.items, "things at module level");
    for (std::size_t i = 0; i < a_.items.size(); ++i) item(a_.items[i], b_.items[i]);
  }

 private:
  void require(bool same, std::string_view what) const {
    if (!same) throw Found{where_ + std::string(what) + " differs"};
  }

  template <typename T>
  void same_size(const T& a, const T& b, std::string_view what) const {
    if (a.size() != b.size()) {
      throw Found{where_ + "the number of " + std::string(what) +
                  " differs: " + std::to_string(a.size()) + " and " + std::to_string(b.size())};
    }
  }

  void name(NameId a, NameId b, std::string_view what) const {
    if (a_.text(a) != b_.text(b)) {
      throw Found{where_ + std::string(what) + " differs: '" + std::string(a_.text(a)) + "' and '" +
                  std::string(b_.text(b)) + "'"};
    }
  }

  void item(const Item& a, const Item& b) {
    where_.clear();
    require(a.kind == b.kind, "the kind of a thing at module level");
    switch (a.kind) {
      case Item::Kind::Variable:
        variable(a_.variables[a.index], b_.variables[b.index]);
        break;
      case Item::Kind::Function:
        function(a_.functions[a.index], b_.functions[b.index]);
        break;
      case Item::Kind::File: {
        const SourceFile& fa = a_.files[a.index];
        const SourceFile& fb = b_.files[b.index];
        require(fa.number == fb.number && fa.has_time == fb.has_time &&
                    fa.timestamp == fb.timestamp && fa.size == fb.size,
                ".file");
        name(fa.path, fb.path, "the path of a .file");
        break;
      }
      case Item::Kind::Section:
      case Item::Kind::Pragma:
      case Item::Kind::Alias:
        name(a.text, b.text, "a section, pragma or alias");
        name(a.text2, b.text2, "an aliasee");
        break;
    }
  }

  void variable(const Variable& a, const Variable& b) const {
    name(a.name, b.name, "the name of a variable");
    const auto same = [&](bool equal_fields, std::string_view field) {
      if (!equal_fields) {
        throw Found{where_ + std::string(field) + " of '" + std::string(a_.text(a.name)) +
                    "' differs"};
      }
    };
    same(a.space == b.space, "the space");
    same(a.type == b.type && a.vector == b.vector, "the type");
    same(a.linkage == b.linkage, "the linkage");
    same(a.managed == b.managed, "the managed attribute");
    same(a.pointer == b.pointer && a.pointer_space == b.pointer_space &&
             a.pointer_alignment == b.pointer_alignment,
         "the .ptr attribute");
    same(a.alignment == b.alignment, "the alignment");
    same(a.range == b.range, "the range");
    same(a.dimensions == b.dimensions, "the dimensions");
    name(a.unified, b.unified, "the unified attribute");
    same(a.initialised == b.initialised, "the presence of an initialiser");
    same_size(a.initial, b.initial, "initial values");
    for (std::size_t i = 0; i < a.initial.size(); ++i) {
      const InitialValue& va = a.initial[i];
      const InitialValue& vb = b.initial[i];
      same(va.kind == vb.kind && va.value == vb.value && va.mask == vb.mask &&
               va.is_unsigned == vb.is_unsigned && va.masked_generic == vb.masked_generic,
           "initial value " + std::to_string(i));
      symbol(va.symbol, vb.symbol);
    }
  }

  void variables(const std::vector<Variable>& a, const std::vector<Variable>& b,
                 std::string_view what) const {
    same_size(a, b, what);
    for (std::size_t i = 0; i < a.size(); ++i) variable(a[i], b[i]);
  }

  void symbol(SymbolId a, SymbolId b) const {
    if (a.value == kNone || b.value == kNone) {
      require(a.value == b.value, "a symbol");
      return;
    }
    name(a_.symbols[a.value].name, b_.symbols[b.value].name, "a symbol");
    require(a_.symbols[a.value].kind == b_.symbols[b.value].kind, "what a symbol refers to");
  }

  void function(const Function& a, const Function& b) {
    name(a.name, b.name, "the name of a function");
    fa_ = &a;
    fb_ = &b;
    const std::string here = "in '" + std::string(a_.text(a.name)) + "': ";
    where_ = here;
    require(a.entry == b.entry && a.declaration == b.declaration && a.linkage == b.linkage,
            "the kind or linkage of the function");
    variables(a.returns, b.returns, "return values");
    variables(a.parameters, b.parameters, "parameters");
    require(a.directives == b.directives, "a directive");
    same_size(a.pragmas, b.pragmas, "pragmas");
    for (std::size_t i = 0; i < a.pragmas.size(); ++i) name(a.pragmas[i], b.pragmas[i], "a pragma");
    same_size(a.registers, b.registers, "register declarations");
    const auto order_a = order_of(a);
    const auto order_b = order_of(b);
    rank_a_ = rank_of(order_a);
    rank_b_ = rank_of(order_b);
    for (std::size_t i = 0; i < a.registers.size(); ++i) {
      const RegisterDecl& ra = a.registers[order_a[i]];
      const RegisterDecl& rb = b.registers[order_b[i]];
      name(ra.name, rb.name, "the name of a register");
      require(ra.type == rb.type && ra.vector == rb.vector && ra.numbered == rb.numbered &&
                  ra.count == rb.count && ra.scope == rb.scope,
              "the declaration of register '" + std::string(a_.text(ra.name)) + "'");
    }
    same_size(a.body, b.body, "statements");
    for (std::size_t i = 0; i < a.body.size(); ++i) {
      where_ = here;
      statement(a.body[i], b.body[i]);
    }
  }

  // A declaration's place in the text: by scope, and within one as declared.
  static std::vector<std::uint32_t> order_of(const Function& f) {
    std::vector<std::uint32_t> order(f.registers.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) {
      return f.registers[x].scope < f.registers[y].scope;
    });
    return order;
  }

  static std::vector<std::uint32_t> rank_of(const std::vector<std::uint32_t>& order) {
    std::vector<std::uint32_t> rank(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
    return rank;
  }

  void registers(Register a, Register b, std::string_view what) const {
    require(rank_a_[a.decl.value] == rank_b_[b.decl.value] && a.index == b.index, what);
  }

  void statement(const Instruction& a, const Instruction& b) {
    if (a.kind == b.kind && a.op == b.op && a.modifiers == b.modifiers) {
      where_ += "statement '" + print(a_, *fa_, a) + "': ";
    } else {
      throw Found{where_ + "statements differ: '" + print(a_, *fa_, a) + "' and '" +
                  print(b_, *fb_, b) + "'"};
    }
    require(a.guard.present() == b.guard.present() && a.guard.negated == b.guard.negated,
            "the guard");
    if (a.guard.present()) {
      registers(a.guard.predicate, b.guard.predicate, "the guard's register");
    }
    name(a.text, b.text, "the text");
    require(a.scope == b.scope, "the scope");
    operands(fa_->operands_of(a), fb_->operands_of(b));
    if (a.kind == StatementKind::Variable) {
      variable(fa_->variables[a.variable], fb_->variables[b.variable]);
    }
    if (a.kind == StatementKind::CallPrototype) {
      const Prototype& pa = fa_->prototypes[a.variable];
      const Prototype& pb = fb_->prototypes[b.variable];
      require(pa.noreturn == pb.noreturn, ".noreturn");
      variables(pa.returns, pb.returns, "return values");
      variables(pa.parameters, pb.parameters, "parameters");
    }
  }

  void operands(std::span<const Operand> a, std::span<const Operand> b) const {
    same_size(a, b, "operands");
    for (std::size_t i = 0; i < a.size(); ++i) operand(a[i], b[i]);
  }

  void operand(const Operand& a, const Operand& b) const {
    require(a.kind == b.kind && a.base == b.base && a.component == b.component &&
                a.negated == b.negated && a.joined == b.joined && a.is_unsigned == b.is_unsigned &&
                a.zero_offset == b.zero_offset && a.in_braces == b.in_braces && a.value == b.value,
            "an operand");
    const OperandKind names = a.kind == OperandKind::Memory ? a.base : a.kind;
    switch (names) {
      // Declarations have been compared one by one, so equal ranks are equal registers.
      case OperandKind::Register:
        registers({{a.id}, a.index}, {{b.id}, b.index}, "a register");
        break;
      case OperandKind::Special:
        require(a.id == b.id, "a special register");
        break;
      case OperandKind::Symbol:
        symbol({a.id}, {b.id});
        break;
      case OperandKind::Label:
        name(fa_->labels[a.id].name, fb_->labels[b.id].name, "a label");
        require(fa_->labels[a.id].scope == fb_->labels[b.id].scope, "the scope of a label");
        break;
      case OperandKind::Vector:
      case OperandKind::List:
        operands(fa_->elements(a), fb_->elements(b));
        break;
      default:
        break;
    }
  }

  const Module& a_;
  const Module& b_;
  const Function* fa_ = nullptr;
  const Function* fb_ = nullptr;
  std::vector<std::uint32_t> rank_a_;
  std::vector<std::uint32_t> rank_b_;
  std::string where_;
};

}  // namespace

std::string difference(const Module& a, const Module& b) {
  try {
    Comparison(a, b).modules();
  } catch (const Found& found) {
    return found.text;
  }
  return {};
}

}  // namespace ptxgen::inline v0::ptx
