// src/optimize/cleanup/cleanup.cpp - helpers of the cleanup passes
#include "optimize/cleanup/cleanup.hpp"

#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::inline v0::optimize {

using namespace ptx;

bool understood(const Function& function, PassContext& context) {
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    if (function.body[i].kind != StatementKind::Unknown) continue;
    context.decide(function, i, false, "unknown-instruction",
                   context.explains()
                       ? quoted(context, function, function.body[i]) +
                             " is not in the table of instructions and may read or write any "
                             "register, so the function stays as it is"
                       : std::string());
    return false;
  }
  return true;
}

bool only_computes(const Instruction& instruction) {
  if (instruction.kind != StatementKind::Instruction) return false;
  const unsigned flags = static_cast<unsigned>(info(instruction.op).flags);
  return (flags & ~static_cast<unsigned>(Flag::Commutative)) == 0;
}

Type move_type(Type reg) {
  const OpInfo& row = info(Op::mov);
  for (const Modifier modifier : allowed_modifiers(row.slots[row.type_slots[0]])) {
    if (modifier == as_modifier(reg)) return reg;
  }
  return untyped(bits(reg));
}

Operand constant_operand(Type type, std::uint64_t value) {
  Operand o;
  o.value = value;
  if (type == Type::f32) {
    o.kind = OperandKind::Float32;
    return o;
  }
  if (type == Type::f64) {
    o.kind = OperandKind::Float64;
    return o;
  }
  if (kind(type) == TypeKind::Predicate) return Operand::integer(value != 0 ? 1 : 0);
  if (kind(type) == TypeKind::Unsigned) return Operand::unsigned_integer(value);
  // Untyped bits read best as a signed number: -1 is all ones.
  const unsigned unused = 64 - bits(type);
  return Operand::integer(static_cast<std::int64_t>(value << unused) >> unused);
}

std::string quoted(const PassContext& context, const Function& function,
                   const Instruction& instruction) {
  std::string text = print(context.module(), function, instruction);
  if (!text.empty() && text.back() == ';') text.pop_back();
  return "'" + text + "'";
}

}  // namespace ptxgen::inline v0::optimize
