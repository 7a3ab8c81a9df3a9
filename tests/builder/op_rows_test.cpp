// tests/builder/op_rows_test.cpp - every row of the table through KernelBuilder::emit
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <list>
#include <set>

#include "ptx/op_line.hpp"
#include "ptx/row_shape.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/builder/cluster.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/ptx/operand_specs.hpp"

using namespace ptxgen;
using ptxgen::test::OpLine;

namespace {

// Registers as the lines use them, made anew for each kernel.
class Builder {
 public:
  explicit Builder(std::string_view target)
      : k("k", target), wide_(k.undefined<u64>()), narrow_(k.undefined<u32>()) {}

  KernelBuilder k;

  // False for what only text can name: variables, call lists, tables, registers of 8 and 128 bits.
  // Addresses count in the state space `space`.
  bool translate(const ptx::Module& module, const ptx::Function& f, const ptx::Operand& o,
                 ptx::Modifier space, std::vector<Operand>& out) {
    using Kind = ptx::OperandKind;
    switch (o.kind) {
      case Kind::Register:
        return reg(f, o, out);
      case Kind::Integer:
        if (o.is_unsigned) {
          out.emplace_back(o.value);
        } else {
          out.emplace_back(o.offset());
        }
        break;
      case Kind::Float32:
        out.emplace_back(std::bit_cast<float>(static_cast<std::uint32_t>(o.value)));
        break;
      case Kind::Float64:
        out.emplace_back(std::bit_cast<double>(o.value));
        break;
      case Kind::Sink:
        out.push_back(Operand::sink());
        break;
      case Kind::Label: {
        const std::string_view name = module.text(f.labels[o.id].name);
        if (name != "L0" && name != "L1") return false;
        out.emplace_back(name == "L0" ? "L0" : "L1");
        break;
      }
      case Kind::Memory:
        if (o.base != Kind::Register) return false;
        return pointer(space, o.offset(), out);
      case Kind::Vector:
        if (!vector(module, f, o, out)) return false;
        break;
      default:
        return false;
    }
    if (o.joined) out.back() = out.back().joined();
    return true;
  }

  // False for parameters, which no pointer of the builder points to.
  bool pointer(ptx::Modifier space, std::int64_t offset, std::vector<Operand>& out) {
    switch (ptx::space_of(space)) {
      case ptx::Space::Generic:
        out.emplace_back(k.pointer<b32, Generic>(wide_).offset_bytes(offset));
        return true;
      case ptx::Space::Global:
        out.emplace_back(k.pointer<b32, Global>(wide_).offset_bytes(offset));
        return true;
      case ptx::Space::Const:
        out.emplace_back(k.pointer<b32, Const>(wide_).offset_bytes(offset));
        return true;
      case ptx::Space::Local:
        out.emplace_back(k.pointer<b32, Local>(narrow_).offset_bytes(offset));
        return true;
      case ptx::Space::Shared:
        if (space == ptx::Modifier::shared_cluster) {
          out.emplace_back(k.pointer<b32, ClusterShared>(narrow_).offset_bytes(offset));
        } else {
          out.emplace_back(k.pointer<b32, Shared>(narrow_).offset_bytes(offset));
        }
        return true;
      default:
        return false;
    }
  }

 private:
  bool reg(const ptx::Function& f, const ptx::Operand& o, std::vector<Operand>& out) {
    switch (f.type_of(o.as_register())) {
      case ptx::Type::pred: {
        const Pred p = k.undefined<pred>();
        out.emplace_back(o.negated ? !p : p);
        break;
      }
      case ptx::Type::b16:
        out.emplace_back(k.undefined<b16>());
        break;
      case ptx::Type::u16:
        out.emplace_back(k.undefined<u16>());
        break;
      case ptx::Type::b32:
        out.emplace_back(k.undefined<b32>());
        break;
      case ptx::Type::b64:
        out.emplace_back(k.undefined<b64>());
        break;
      case ptx::Type::f32:
        out.emplace_back(k.undefined<f32>());
        break;
      case ptx::Type::f64:
        out.emplace_back(k.undefined<f64>());
        break;
      default:
        return false;
    }
    if (o.joined) out.back() = out.back().joined();
    return true;
  }

  bool vector(const ptx::Module& module, const ptx::Function& f, const ptx::Operand& o,
              std::vector<Operand>& out) {
    std::vector<Operand>& elements = vectors_.emplace_back();
    for (const ptx::Operand& element : f.elements(o)) {
      if (!translate(module, f, element, ptx::Modifier::none, elements)) return false;
    }
    out.emplace_back(Vec(std::span<const Operand>(elements)));
    return true;
  }

  Value<u64> wide_;
  Value<u32> narrow_;
  std::list<std::vector<Operand>> vectors_;  // what the operands in braces point to
};

std::vector<ptx::Modifier> modifiers_of(const ptx::Instruction& s) {
  std::vector<ptx::Modifier> modifiers;
  for (const ptx::Modifier modifier : s.modifiers) {
    if (modifier != ptx::Modifier::none) modifiers.push_back(modifier);
  }
  return modifiers;
}

struct Line {
  explicit Line(const OpLine& line)
      : module(ptx::parse(test::module_with({&line, 1}, "sm_75", {9, 0}))) {
    statement = test::statement_on(function(), test::first_line());
    REQUIRE(statement != nullptr);
    lowest = test::lowest_target(function(), *statement);
    REQUIRE(lowest != nullptr);
  }
  [[nodiscard]] const ptx::Function& function() const { return *module.find_function("k"); }

  ptx::Module module;
  const ptx::Instruction* statement = nullptr;
  const ptx::Target* lowest = nullptr;
};

// The state space that the row gives the operand's address.
ptx::Modifier space_of_operand(const Line& line, std::size_t place) {
  const ptx::OperandSpecs specs(line.function(), *line.statement);
  if (specs[place] == nullptr) return ptx::Modifier::none;
  return line.statement->get(ptx::address_field(ptx::info(line.statement->op), *specs[place]));
}

// Emits the line's instruction, with a pointer into `elsewhere` as operand `place`. False if the
// builder has no operand for something in it.
bool emit(Builder& b, const Line& line, std::size_t place = ptx::kMaxOperands,
          ptx::Modifier elsewhere = ptx::Modifier::none) {
  std::vector<Operand> operands;
  for (const ptx::Operand& o : line.function().operands_of(*line.statement)) {
    const std::size_t i = operands.size();
    const ptx::Modifier space = i == place ? elsewhere : space_of_operand(line, i);
    if (!b.translate(line.module, line.function(), o, space, operands)) return false;
  }
  const auto modifiers = modifiers_of(*line.statement);
  const auto now = [&] { b.k.emit(line.statement->op, modifiers, operands); };
  if (line.statement->guard.present()) {
    const Pred p = b.k.undefined<pred>();
    b.k.guarded(line.statement->guard.negated ? !p : p, now);
  } else {
    now();
  }
  return true;
}

}  // namespace

TEST_CASE("every row is built by emit, printed, and parsed back equal") {
  std::set<ptx::Op> built;
  std::set<std::string> wrong;
  for (const OpLine& text : test::op_lines()) {
    const Line line(text);
    Builder b(line.lowest->name);
    try {
      if (!emit(b, line)) continue;
      // What the line branches to; a second `ret` ends the kernel whatever the line was.
      b.k.label("L0");
      b.k.label("L1");
      b.k.ret();
      const BuiltKernel kernel = b.k.build();
      const ptx::Function& f = kernel.module().functions[0];
      const auto same = [&](const ptx::Instruction& s) {
        return s.kind == ptx::StatementKind::Instruction && s.op == line.statement->op &&
               s.modifiers == line.statement->modifiers &&
               s.operand_count == line.statement->operand_count &&
               s.guard.present() == line.statement->guard.present();
      };
      if (std::none_of(f.body.begin(), f.body.end(), same)) {
        wrong.insert(std::string(text.text) + " is built as something else:\n" + kernel.ptx());
      }
      const std::string d = ptx::difference(kernel.module(), ptx::parse(kernel.ptx()));
      if (!d.empty()) wrong.insert(std::string(text.text) + ": " + d);
      built.insert(line.statement->op);
    } catch (const Error& error) {
      wrong.insert(std::string(text.text) + ": " + error.message);
    }
  }
  std::string list;
  for (const std::string& one : wrong) list += "\n" + one;
  INFO(wrong.size() << " lines wrong:" << list);
  CHECK(wrong.empty());
  // Rows whose every form names variables, call lists, tables, or registers of 8 or 128 bits.
  std::set<std::string> text_only;
  for (const ptx::OpInfo& row : ptx::op_table()) {
    if (built.count(row.op) == 0) text_only.insert(std::string(row.id));
  }
  list.clear();
  for (const std::string& one : text_only) list += " " + one;
  INFO("rows not built:" << list);
  CHECK(text_only.size() <= 40);
  CHECK(built.size() + text_only.size() == ptx::op_table().size());
}

TEST_CASE("emit refuses at the call what the target lacks") {
  std::size_t refused = 0;
  for (const OpLine& text : test::op_lines()) {
    const Line line(text);
    if (line.lowest->name == "sm_75") continue;
    Builder b("sm_75");
    try {
      if (!emit(b, line)) continue;
      FAIL_CHECK(text.text << " was built for sm_75, but needs " << line.lowest->name);
    } catch (const Error& error) {
      INFO(text.text << ": " << error.message);
      CHECK(error.code == "target-lacks");
      CHECK(error.stage == Stage::Build);
      CHECK(std::string_view(error.site.file).ends_with("op_rows_test.cpp"));
      ++refused;
    }
  }
  CHECK(refused > 300);
}

TEST_CASE("emit refuses pointers into another state space than the row's") {
  constexpr ptx::Modifier kSpaces[] = {ptx::Modifier::none,   ptx::Modifier::global,
                                       ptx::Modifier::shared, ptx::Modifier::shared_cluster,
                                       ptx::Modifier::local,  ptx::Modifier::const_};
  std::size_t refused = 0;
  for (const OpLine& text : test::op_lines()) {
    const Line line(text);
    const auto operands = line.function().operands_of(*line.statement);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].kind != ptx::OperandKind::Memory) continue;
      const ptx::Modifier own = space_of_operand(line, i);
      for (const ptx::Modifier space : kSpaces) {
        const bool same_memory = own == space || (ptx::space_of(own) == ptx::Space::Shared &&
                                                  space == ptx::Modifier::shared);
        if (same_memory) continue;
        Builder b(line.lowest->name);
        const std::size_t before = b.k.statement_count();
        try {
          if (!emit(b, line, i, space)) continue;
          FAIL_CHECK(text.text << ": operand " << i + 1 << " was taken as a pointer into "
                               << ptx::name(space));
        } catch (const Error& error) {
          INFO(text.text << ": " << error.message);
          CHECK(error.code == "space-mismatch");
          CHECK(error.message.starts_with("operand " + std::to_string(i + 1) + " of '"));
          CHECK(b.k.statement_count() == before);
          ++refused;
        }
      }
    }
  }
  CHECK(refused > 1500);
}
