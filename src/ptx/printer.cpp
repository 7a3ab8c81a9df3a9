// src/ptx/printer.cpp - a module as PTX text
#include "ptxgen/ptx/printer.hpp"

#include <algorithm>

#include "ptxgen/support/text_buffer.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

constexpr std::string_view kIndent = "    ";

constexpr std::string_view kLinkageText[] = {"", ".visible ", ".extern ", ".weak ", ".common "};

class Printer {
 public:
  Printer(TextBuffer& out, const Module& module) : out_(out), module_(module) {}

  void module_text(LineMap* map) {
    map_ = map;
    if (map_ != nullptr) map_->lines.assign(module_.functions.size(), {});
    out_ << ".version ";
    out_.decimal(module_.version.major) << '.';
    out_.decimal(module_.version.minor);
    newline();
    out_ << ".target " << module_.target;
    for (const std::string& option : module_.target_options) out_ << ", " << option;
    newline();
    // Texts below 2.3 do not know the directive.
    if (!(module_.version < Version{2, 3}) || module_.address_size != Module{}.address_size) {
      out_ << ".address_size ";
      out_.decimal(module_.address_size);
      newline();
    }
    newline();
    for (const Item& item : module_.items) module_item(item);
  }

  void statement(const Function& function, const Instruction& s) {
    function_ = &function;
    switch (s.kind) {
      case StatementKind::Instruction:
        instruction(s);
        break;
      case StatementKind::Unknown:
        guard(s);
        out_ << module_.text(s.text) << ';';
        break;
      case StatementKind::Label:
        operand(operands(s)[0]);
        out_ << ':';
        break;
      case StatementKind::ScopeBegin:
        out_ << '{';
        break;
      case StatementKind::ScopeEnd:
        out_ << '}';
        break;
      case StatementKind::Variable:
        variable(function.variables[s.variable]);
        out_ << ';';
        break;
      case StatementKind::Location:
        location(s);
        break;
      case StatementKind::Pragma:
        out_ << ".pragma \"" << module_.text(s.text) << "\";";
        break;
      case StatementKind::BranchTargets:
        table(s, ".branchtargets ");
        break;
      case StatementKind::CallTargets:
        table(s, ".calltargets ");
        break;
      case StatementKind::CallPrototype:
        prototype(s);
        break;
    }
  }

  // What the module has no name for is a question mark: findings show statements that are not
  // valid.
  void register_name(const Function& function, Register reg) {
    if (reg.decl.value >= function.registers.size()) {
      out_ << '?';
      return;
    }
    const RegisterDecl& decl = function.registers[reg.decl.value];
    out_ << module_.text(decl.name);
    if (decl.numbered) out_.decimal(reg.index);
  }

 private:
  void newline() {
    out_ << '\n';
    ++line_;
  }

  void module_item(const Item& item) {
    switch (item.kind) {
      case Item::Kind::Variable:
        variable(module_.variables[item.index]);
        out_ << ';';
        newline();
        break;
      case Item::Kind::Function:
        function(item.index);
        break;
      case Item::Kind::File:
        file(module_.files[item.index]);
        break;
      case Item::Kind::Section: {
        const std::string_view text = module_.text(item.text);
        out_ << text;
        for (const char c : text) line_ += c == '\n' ? 1u : 0u;
        newline();
        break;
      }
      case Item::Kind::Pragma:
        out_ << ".pragma \"" << module_.text(item.text) << "\";";
        newline();
        break;
      case Item::Kind::Alias:
        out_ << ".alias " << module_.text(item.text) << ", " << module_.text(item.text2) << ';';
        newline();
        break;
    }
  }

  void file(const SourceFile& source) {
    out_ << ".file ";
    out_.decimal(source.number) << " \"" << module_.text(source.path) << '"';
    if (source.has_time) {
      out_ << ", ";
      out_.decimal(source.timestamp) << ", ";
      out_.decimal(source.size);
    }
    newline();
  }

  void function(std::uint32_t number) {
    const Function& f = module_.functions[number];
    function_ = &f;
    out_ << kLinkageText[static_cast<std::size_t>(f.linkage)] << (f.entry ? ".entry " : ".func ");
    if (!f.returns.empty()) {
      parameter_list(f.returns);
      out_ << ' ';
    }
    out_ << module_.text(f.name) << '(';
    for (std::size_t i = 0; i < f.parameters.size(); ++i) {
      newline();
      out_ << kIndent;
      variable(f.parameters[i]);
      if (i + 1 < f.parameters.size()) out_ << ',';
    }
    if (!f.parameters.empty()) newline();
    out_ << ')';
    for (const Directive& directive : f.directives) {
      newline();
      out_ << '.' << info(directive.kind).text;
      for (std::size_t i = 0; i < directive.count; ++i) {
        out_ << (i == 0 ? " " : ", ");
        out_.decimal(directive.values[i]);
      }
    }
    for (const NameId pragma : f.pragmas) {
      newline();
      out_ << ".pragma \"" << module_.text(pragma) << "\";";
    }
    if (f.declaration) {
      out_ << ';';
      newline();
      return;
    }
    newline();
    out_ << '{';
    newline();
    body(f, number);
    out_ << '}';
    newline();
    newline();
  }

  void body(const Function& f, std::uint32_t number) {
    std::vector<std::uint32_t>* lines = map_ == nullptr ? nullptr : &map_->lines[number];
    if (lines != nullptr) lines->reserve(f.body.size());
    std::size_t depth = 1;
    order_declarations(f);
    register_declarations(f, 0, depth);
    for (const Instruction& s : f.body) {
      if (s.kind == StatementKind::ScopeEnd && depth > 1) --depth;
      if (s.kind != StatementKind::Label) indent(depth);
      if (lines != nullptr) lines->push_back(line_);
      statement(f, s);
      newline();
      if (s.kind == StatementKind::ScopeBegin) {
        ++depth;
        register_declarations(f, s.scope, depth);
      }
    }
  }

  void indent(std::size_t depth) {
    // Deeply nested input would otherwise print in quadratic size.
    constexpr std::size_t kDeepest = 16;
    for (std::size_t i = 0; i < depth && i < kDeepest; ++i) out_ << kIndent;
  }

  // Numbers of the declarations in the body, grouped by scope; order within one is kept.
  void order_declarations(const Function& f) {
    std::vector<bool> is_parameter(f.registers.size());
    for (const auto* list : {&f.returns, &f.parameters}) {
      for (const Variable& v : *list) {
        if (v.decl.value < is_parameter.size()) is_parameter[v.decl.value] = true;
      }
    }
    declarations_.clear();
    for (std::uint32_t i = 0; i < f.registers.size(); ++i) {
      if (!is_parameter[i]) declarations_.push_back(i);
    }
    std::stable_sort(declarations_.begin(), declarations_.end(),
                     [&](std::uint32_t x, std::uint32_t y) {
                       return f.registers[x].scope < f.registers[y].scope;
                     });
  }

  void register_declarations(const Function& f, std::uint32_t scope, std::size_t depth) {
    const auto first = std::lower_bound(
        declarations_.begin(), declarations_.end(), scope,
        [&](std::uint32_t decl, std::uint32_t wanted) { return f.registers[decl].scope < wanted; });
    for (auto at = first; at != declarations_.end(); ++at) {
      const RegisterDecl& decl = f.registers[*at];
      if (decl.scope != scope) break;
      indent(depth);
      out_ << ".reg ";
      if (decl.vector > 1) {
        out_ << ".v";
        out_.decimal(decl.vector) << ' ';
      }
      out_ << '.' << name(decl.type) << ' ' << module_.text(decl.name);
      if (decl.numbered) {
        out_ << '<';
        out_.decimal(decl.count) << '>';
      }
      out_ << ';';
      newline();
    }
  }

  void guard(const Instruction& s) {
    if (!s.guard.present()) return;
    out_ << (s.guard.negated ? "@!" : "@");
    register_name(*function_, s.guard.predicate);
    out_ << ' ';
  }

  std::span<const Operand> operands(const Instruction& s) const {
    return function_->operands_of(s);
  }

  void instruction(const Instruction& s) {
    guard(s);
    const OpInfo& row = info(s.op);
    out_ << row.mnemonic;
    for (std::size_t i = 0; i < row.slot_count; ++i) {
      if (s.modifiers[i] != Modifier::none) out_ << '.' << name(s.modifiers[i]);
    }
    if (ptx::has(row.flags, Flag::Call)) {
      call_operands(s);
    } else {
      const auto all = operands(s);
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].joined) {
          if (i > 0 && all[i - 1].kind == OperandKind::Memory) continue;
          out_ << '|';
        } else {
          out_ << (i == 0 ? " " : ", ");
        }
        const bool more =
            all[i].kind == OperandKind::Memory && i + 1 < all.size() && all[i + 1].joined;
        operand(all[i], more ? &all[i + 1] : nullptr);
      }
    }
    out_ << ';';
  }

  // `call (results), callee, (arguments), table`, each part but the callee only if not empty.
  void call_operands(const Instruction& s) {
    const auto all = operands(s);
    bool first = true;
    for (const Operand& o : all) {
      if (o.kind == OperandKind::List && o.index == 0) continue;
      out_ << (first ? " " : ", ");
      operand(o);
      first = false;
    }
  }

  void list(const Operand& o, char open, char close) {
    out_ << open;
    bool first = true;
    for (const Operand& element : function_->elements(o)) {
      if (!first) out_ << ", ";
      operand(element);
      first = false;
    }
    out_ << close;
  }

  // `a+-4`: assemblers refuse `a-4`.
  void offset(std::int64_t value) {
    if (value == 0) return;
    out_ << '+';
    out_.decimal_signed(value);
  }

  // `coordinates`: printed within the brackets of a memory operand.
  // long because it is one switch over the kinds of operands, in the hot path of the printer
  void operand(const Operand& o, const Operand* coordinates = nullptr) {
    if (o.in_braces) {
      Operand inside = o;
      inside.in_braces = false;
      out_ << '{';
      operand(inside);
      out_ << '}';
      return;
    }
    if (o.negated) out_ << '!';
    switch (o.kind) {
      case OperandKind::None:
        break;
      case OperandKind::Register:
        register_name(*function_, o.as_register());
        break;
      case OperandKind::Special:
        out_ << '%' << info(static_cast<SpecialRegister>(o.id)).text;
        break;
      case OperandKind::Integer:
        if (o.is_unsigned) {
          out_.decimal(o.value);
        } else {
          out_.decimal_signed(o.offset());
        }
        break;
      case OperandKind::Float32:
        out_ << "0f";
        out_.hex(o.value, 8);
        break;
      case OperandKind::Float64:
        out_ << "0d";
        out_.hex(o.value, 16);
        break;
      case OperandKind::Symbol:
        symbol({o.id});
        offset(o.offset());
        break;
      case OperandKind::Memory:
        out_ << '[';
        if (o.base == OperandKind::Register) {
          register_name(*function_, {{o.id}, o.index});
          component(o);
          if (o.zero_offset) out_ << "+0";
          offset(o.offset());
        } else if (o.base == OperandKind::Symbol) {
          symbol({o.id});
          offset(o.offset());
        } else {
          out_.decimal_signed(o.offset());
        }
        if (coordinates != nullptr) {
          out_ << ", ";
          list(*coordinates, '{', '}');
        }
        out_ << ']';
        return;
      case OperandKind::Vector:
        list(o, '{', '}');
        break;
      case OperandKind::List:
        list(o, '(', ')');
        break;
      case OperandKind::Label:
        if (o.id < function_->labels.size())
          out_ << module_.text(function_->labels[o.id].name);
        else
          out_ << '?';
        break;
      case OperandKind::Sink:
        out_ << '_';
        break;
    }
    component(o);
  }

  void component(const Operand& o) {
    if (o.component != 0) out_ << '.' << "xyzw"[(o.component - 1) & 3];
  }

  void symbol(SymbolId id) {
    if (id.value < module_.symbols.size())
      out_ << module_.text(module_.symbols[id.value].name);
    else
      out_ << '?';
  }

  void location(const Instruction& s) {
    const auto all = operands(s);
    out_ << ".loc";
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == 3) out_ << ", function_name";
      if (i == 4) out_ << ", inlined_at";
      out_ << ' ';
      operand(all[i]);
    }
  }

  void table(const Instruction& s, std::string_view directive) {
    const auto all = operands(s);
    operand(all[0]);
    out_ << ": " << directive;
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (i > 1) out_ << ", ";
      operand(all[i]);
    }
    out_ << ';';
  }

  void prototype(const Instruction& s) {
    const Prototype& p = function_->prototypes[s.variable];
    operand(operands(s)[0]);
    out_ << ": .callprototype ";
    parameter_list(p.returns);
    out_ << " _ ";
    parameter_list(p.parameters);
    if (p.noreturn) out_ << " .noreturn";
    out_ << ';';
  }

  void parameter_list(const std::vector<Variable>& list) {
    out_ << '(';
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out_ << ", ";
      variable(list[i]);
    }
    out_ << ')';
  }

  void variable(const Variable& v) {
    out_ << kLinkageText[static_cast<std::size_t>(v.linkage)] << '.' << name(v.space);
    if (v.managed) out_ << " .attribute(.managed)";
    if (v.unified != NameId{}) {
      out_ << " .attribute(.unified(" << module_.text(v.unified) << "))";
    }
    // A pointer parameter's alignment belongs to `.ptr`, after the type.
    if (v.alignment != 0) {
      out_ << " .align ";
      out_.decimal(v.alignment);
    }
    if (v.vector > 1) {
      out_ << " .v";
      out_.decimal(v.vector);
    }
    out_ << " ." << name(v.type);
    if (v.pointer) {
      out_ << " .ptr";
      if (v.pointer_space != Space::Generic) out_ << " ." << name(v.pointer_space);
      if (v.pointer_alignment != 0) {
        out_ << " .align ";
        out_.decimal(v.pointer_alignment);
      }
    }
    out_ << ' ' << module_.text(v.name);
    if (v.range != 0) {
      out_ << '<';
      out_.decimal(v.range) << '>';
    }
    for (const std::uint64_t dimension : v.dimensions) {
      out_ << '[';
      if (dimension != 0) out_.decimal(dimension);
      out_ << ']';
    }
    if (v.initialised) {
      out_ << " = ";
      initialiser(v);
    }
  }

  void initialiser(const Variable& v) {
    using Kind = InitialValue::Kind;
    bool separate = false;
    for (const InitialValue& piece : v.initial) {
      if (piece.kind == Kind::Close) {
        out_ << '}';
        separate = true;
        continue;
      }
      if (separate) out_ << ", ";
      separate = piece.kind != Kind::Open;
      switch (piece.kind) {
        case Kind::Open:
          out_ << '{';
          break;
        case Kind::Close:
          break;
        case Kind::Integer:
          if (piece.is_unsigned) {
            out_.decimal(piece.value);
          } else {
            out_.decimal_signed(static_cast<std::int64_t>(piece.value));
          }
          break;
        case Kind::Float32:
          out_ << "0f";
          out_.hex(piece.value, 8);
          break;
        case Kind::Float64:
          out_ << "0d";
          out_.hex(piece.value, 16);
          break;
        case Kind::Symbol:
          symbol(piece.symbol);
          offset(static_cast<std::int64_t>(piece.value));
          break;
        case Kind::Generic:
          generic(piece);
          break;
        case Kind::Masked:
          out_ << "0x";
          out_.hex(piece.mask, 16);
          out_ << '(';
          if (piece.masked_generic) {
            generic(piece);
          } else {
            symbol(piece.symbol);
            offset(static_cast<std::int64_t>(piece.value));
          }
          out_ << ')';
          break;
      }
    }
  }

  void generic(const InitialValue& piece) {
    out_ << "generic(";
    symbol(piece.symbol);
    out_ << ')';
    offset(static_cast<std::int64_t>(piece.value));
  }

  TextBuffer& out_;
  const Module& module_;
  const Function* function_ = nullptr;
  LineMap* map_ = nullptr;
  std::vector<std::uint32_t> declarations_;
  std::uint32_t line_ = 1;
};

}  // namespace

std::string print(const Module& module, LineMap* lines) {
  TextBuffer out;
  print(out, module, lines);
  return out.take();
}

void print(TextBuffer& out, const Module& module, LineMap* lines) {
  Printer(out, module).module_text(lines);
}

std::string print(const Module& module, const Function& function, const Instruction& statement) {
  TextBuffer out(128);
  Printer(out, module).statement(function, statement);
  return out.take();
}

std::string name_of(const Module& module, const Function& function, Register reg) {
  if (reg.decl.value >= function.registers.size()) return "<no register>";
  TextBuffer out(32);
  Printer(out, module).register_name(function, reg);
  return out.take();
}

}  // namespace ptxgen::inline v0::ptx
