// tests/ptx/operand_mutation_test.cpp - wrong operands on every row are refused
#include <catch2/catch.hpp>
#include <iostream>
#include <map>
#include <set>

#include "ptx/op_line.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"

using namespace ptxgen;
using namespace ptxgen::ptx;
using ptxgen::test::OpLine;

namespace {

constexpr Type kSpare[] = {Type::pred, Type::b8,  Type::b16, Type::b32, Type::b64, Type::b128,
                           Type::u16,  Type::u32, Type::u64, Type::f16, Type::f32, Type::f64};

// All lines as one kernel, and a register of each type to put in wrong places.
class Mutator {
 public:
  Mutator() : module_(parse(test::module_with(test::op_lines(), "sm_90a", {9, 0}))) {
    function_ = module_.find_function("k");
    for (const Type type : kSpare) {
      RegisterDecl decl;
      decl.name = module_.names.intern("%spare_" + std::string(name(type)));
      decl.type = type;
      function_->registers.push_back(decl);
      spare_[type] =
          Operand::reg({{static_cast<std::uint32_t>(function_->registers.size() - 1)}, 0});
    }
  }

  void run() {
    const auto lines = test::op_lines();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      line_ = lines[i];
      const auto* s =
          test::statement_on(*function_, test::first_line() + static_cast<std::uint32_t>(i));
      if (s == nullptr || s->kind != StatementKind::Instruction) continue;
      statement_ = *s;
      const auto operands = function_->operands_of(*s);
      operands_.assign(operands.begin(), operands.end());
      mutate();
    }
  }

  std::map<std::string, int> refused;
  std::set<Op> rows;
  std::set<std::string> accepted;

 private:
  // The row's operands that this line has, in order.
  std::vector<OperandSpec> specs_here() const {
    std::vector<OperandSpec> here;
    const OpInfo& row = info(statement_.op);
    std::size_t left_out = 0;
    for (const OperandSpec& spec : row.operand_specs()) {
      if (spec.with == Field::Literal || statement_.has(spec.with)) here.push_back(spec);
      if (spec.with == Field::Literal && spec.optional) ++left_out;
    }
    // Which optional ones a line leaves out is not told apart here.
    if (here.size() != operands_.size() || (left_out > 1 && here.size() != operands_.size()))
      return {};
    return here;
  }

  void expect_refused(const std::string& kind, const std::vector<Operand>& operands) {
    Instruction changed = statement_;
    changed.first_operand = static_cast<std::uint32_t>(function_->operands.size());
    changed.operand_count = static_cast<decltype(changed.operand_count)>(operands.size());
    function_->operands.insert(function_->operands.end(), operands.begin(), operands.end());
    const InstructionFault fault = check_operands(module_, *function_, changed);
    if (fault.rule.empty()) {
      accepted.insert(kind + ": " + std::string(line_.text) + " as " +
                      print(module_, *function_, changed));
    } else {
      ++refused[kind];
      rows.insert(statement_.op);
    }
    function_->operands.resize(changed.first_operand);
  }

  void with(const std::string& kind, std::size_t position, const Operand& other) {
    std::vector<Operand> operands = operands_;
    const bool joined = operands[position].joined;
    operands[position] = other;
    operands[position].joined = joined;
    expect_refused(kind, operands);
  }

  void mutate() {
    const OpInfo& row = info(statement_.op);
    if (has(row.flags, Flag::Call)) return;
    counts(row);
    const std::vector<OperandSpec> specs = specs_here();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const OperandSpec& spec = specs[i];
      switch (spec.role) {
        case OperandRole::Memory: {
          with("a register in place of an address", i, spare_[Type::b64]);
          Operand o = operands_[i];
          o.base = OperandKind::Register;
          o.index = 0;
          o.id = spare_[Type::b16].id;
          with("an address in a narrow register", i, o);
          o.id = spare_[Type::f64].id;
          with("an address in a float register", i, o);
          break;
        }
        case OperandRole::Label:
        case OperandRole::Table:
          with("a register in place of a label", i, spare_[Type::b32]);
          break;
        case OperandRole::Callee:
        case OperandRole::Returns:
        case OperandRole::Arguments:
          break;
        default:
          value(spec, i);
          break;
      }
    }
  }

  void counts(const OpInfo& row) {
    std::size_t min = 0;
    std::size_t max = 0;
    for (const OperandSpec& spec : row.operand_specs()) {
      const bool tied = spec.with != Field::Literal;
      if (tied && !statement_.has(spec.with)) continue;
      ++max;
      if (tied || !spec.optional) ++min;
    }
    std::vector<Operand> operands = operands_;
    if (min > 0) {
      operands.resize(min - 1);
      expect_refused("an operand too few", operands);
    }
    operands = operands_;
    while (operands.size() <= max) operands.push_back(spare_[Type::b32]);
    expect_refused("an operand too many", operands);
  }

  Type wanted(const OperandSpec& spec) const {
    switch (spec.type_source) {
      case TypeSource::Fixed:
        return spec.fixed;
      case TypeSource::Slot:
      case TypeSource::Bits:
        return statement_.type(spec.index);
      default:
        return Type::none;
    }
  }

  void value(const OperandSpec& spec, std::size_t i) {
    with("an address in place of a value", i, Operand::memory(spare_[Type::b64].as_register()));
    if (spec.role == OperandRole::Immediate) {
      with("a register in place of a constant", i, spare_[Type::b32]);
      return;
    }
    if (spec.role == OperandRole::Destination) {
      with("a constant written", i, Operand::integer(1));
      with("a special register written", i, Operand::special(SpecialRegister::tid, 1));
    }
    if (!spec.sink || spec.vector != 0) with("a sink read", i, Operand::sink());
    const Type type = wanted(spec);
    if (type == Type::none) return;
    if (operands_[i].kind == OperandKind::Vector) {
      Operand shorter = operands_[i];
      --shorter.index;
      with("too short a list in braces", i, shorter);
      return with("one register in place of a list", i, spare_[Type::b32]);
    }
    if (type == Type::pred) {
      with("data in place of a predicate", i, spare_[Type::b32]);
      return with("a float in place of a predicate", i, spare_[Type::f32]);
    }
    with("a predicate in place of data", i, spare_[Type::pred]);
    Operand negated = operands_[i];
    negated.negated = true;
    with("a negated value", i, negated);
    width(spec, type, i);
    type_class(spec, type, i);
  }

  void width(const OperandSpec& spec, Type type, std::size_t i) {
    const bool packed = kind(type) == TypeKind::Packed && bits(type) < 8;
    if (packed) return;
    constexpr Type kWidths[] = {Type::b8, Type::b16, Type::b32, Type::b64, Type::b128};
    for (const Type other : kWidths) {
      if (bits(other) == bits(type) || (spec.relaxed && bits(other) > bits(type))) continue;
      with(bits(other) < bits(type) ? "too narrow a register" : "too wide a register", i,
           spare_[other]);
    }
  }

  void type_class(const OperandSpec& spec, Type type, std::size_t i) {
    if (spec.type_source == TypeSource::Bits) return;
    if (type == Type::f32) with("an integer in place of a float", i, spare_[Type::u32]);
    if (type == Type::f64) with("an integer in place of a float", i, spare_[Type::u64]);
    if (kind(type) != TypeKind::Unsigned && kind(type) != TypeKind::Signed) return;
    if (bits(type) == 32) with("a float in place of an integer", i, spare_[Type::f32]);
    if (bits(type) == 64) with("a float in place of an integer", i, spare_[Type::f64]);
    if (bits(type) == 16) with("a float in place of an integer", i, spare_[Type::f16]);
    if (spec.role == OperandRole::Source) {
      with("a float constant in place of an integer", i, Operand::f32(1.0f));
    }
  }

  Module module_;
  Function* function_ = nullptr;
  std::map<Type, Operand> spare_;
  OpLine line_;
  Instruction statement_;
  std::vector<Operand> operands_;
};

}  // namespace

TEST_CASE("wrong operands of every row are refused") {
  Mutator mutator;
  mutator.run();
  int total = 0;
  for (const auto& [kind, count] : mutator.refused) {
    std::cout << "refused " << count << " times " << kind << "\n";
    CHECK(count > 5);
    total += count;
  }
  std::cout << "refused in all: " << total << " on " << mutator.rows.size() << " rows of "
            << op_table().size() << "\n";
  std::string text;
  std::size_t shown = 0;
  for (const std::string& line : mutator.accepted) {
    if (++shown <= 60) text += line + "\n";
  }
  INFO(mutator.accepted.size() << " wrong operands accepted:\n" << text);
  CHECK(mutator.accepted.empty());
  CHECK(mutator.refused.size() >= 20);
  // `call` is tested in verifier_test.cpp.
  std::string missed;
  for (const OpInfo& row : op_table()) {
    if (mutator.rows.count(row.op) == 0 && !has(row.flags, Flag::Call))
      missed += " " + std::string(row.id);
  }
  INFO("rows without a refusal:" << missed);
  CHECK(missed.empty());
}
