// src/ptx/operand_check.cpp - operands of one instruction against its row
#include <algorithm>
#include <string>
#include <string_view>

#include "ptx/requirements.hpp"
#include "ptx/row_shape.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::ptx {

namespace {

bool is_integer(TypeKind k) {
  return k == TypeKind::Bits || k == TypeKind::Unsigned || k == TypeKind::Signed;
}

// "Type Information for Instructions and Operands" of the PTX ISA: widths agree, and so do the
// kinds, where untyped bits agree with everything and signedness does not matter. `relaxed`
// operands (ld, st, cvt) may be wider registers; ptxas 13.0 takes integer registers for floats too
// where `listed`, in the braces of ld, st and vector atomics.
bool fits(Type reg, Type wanted, bool relaxed, bool listed = false) {
  if (wanted == Type::none || reg == wanted) return true;
  const TypeKind reg_kind = kind(reg);
  const TypeKind wanted_kind = kind(wanted);
  if (reg_kind == TypeKind::Predicate || wanted_kind == TypeKind::Predicate) return false;
  if (reg_kind == TypeKind::Opaque || wanted_kind == TypeKind::Opaque) {
    return bits(reg) == bits(wanted);
  }
  const bool same_width = bits(reg) == bits(wanted);
  const bool wider = bits(reg) > bits(wanted);
  if (!same_width && !(relaxed && wider)) return false;
  switch (wanted_kind) {
    case TypeKind::Bits:
      return same_width || is_integer(reg_kind);
    case TypeKind::Unsigned:
    case TypeKind::Signed:
      return is_integer(reg_kind);
    case TypeKind::Float:
      // 16-bit floats live in any 16-bit register; nvcc, Triton and clang differ in which.
      return reg_kind == TypeKind::Bits || ((listed || bits(wanted) == 16) && is_integer(reg_kind));
    case TypeKind::Packed:
      return is_integer(reg_kind) || reg_kind == TypeKind::Packed ||
             (wanted == Type::tf32 && reg == Type::f32);
    default:
      return false;
  }
}

class OperandCheck {
 public:
  OperandCheck(const Module& module, const Function& function, const Instruction& instruction)
      : module_(module),
        function_(function),
        instruction_(instruction),
        row_(info(instruction.op)) {}

  InstructionFault run(const OperandSpecs& specs, bool modifiers) {
    const auto operands = function_.operands_of(instruction_);
    if (instruction_.guard.present() &&
        function_.type_of(instruction_.guard.predicate) != Type::pred) {
      return fault("type-mismatch", "the guard of " + opcode() + " must be a .pred register");
    }
    if (modifiers) {
      if (InstructionFault found = illegal_modifiers(); !found.rule.empty()) return found;
    }
    if (!specs.fit()) return wrong_count(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      InstructionFault found = operand(*specs[i], operands[i], i + 1);
      if (!found.rule.empty()) return found;
    }
    if (!judges_constants(instruction_.op)) return {};
    return row_.mnemonic == "wgmma" ? warpgroup_constants(specs, operands)
                                    : tensor_map_constants(specs, operands);
  }

 private:
  // wgmma: a and b may be negated and transposed, by constants (ptxas 13.0 refuses others).
  InstructionFault warpgroup_constants(const OperandSpecs& specs,
                                       std::span<const Operand> operands) const {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const OperandSpec& spec = *specs[i];
      if (spec.role != OperandRole::Immediate || spec.label[1] == 0) continue;
      const std::int64_t value = operands[i].offset();
      const bool scale = spec.label[0] == 's';
      if (scale ? value == 1 || value == -1 : value == 0 || value == 1) continue;
      return bad(i + 1, scale ? "1, or -1 to negate the matrix,"
                              : "0, or 1 for a matrix whose rows are contiguous along m or n,");
    }
    return {};
  }

  // tensormap.replace: ordinals, and numbers of types and modes (PTX ISA, "Tensormap new_val
  // validity"); a target may have fewer of them. Sizes are those of a map.
  InstructionFault tensor_map_constants(const OperandSpecs& specs,
                                        std::span<const Operand> operands) const {
    constexpr std::pair<Modifier, std::uint64_t> kLast[] = {
        {Modifier::elemtype, 15},     {Modifier::interleave_layout, 2},
        {Modifier::swizzle_mode, 4},  {Modifier::swizzle_atomicity, 3},
        {Modifier::fill_mode, 1},     {Modifier::box_dim, 4},
        {Modifier::global_dim, 4},    {Modifier::element_stride, 4},
        {Modifier::global_stride, 4},
    };
    const Modifier field = instruction_.get(Field::TensorMapField);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (specs[i]->role != OperandRole::Immediate) continue;
      const std::uint64_t value = operands[i].value;
      if (field == Modifier::none) {
        return value == 128 ? InstructionFault{} : bad(i + 1, "128, the size of a tensor map,");
      }
      for (const auto& [name, last] : kLast) {
        if (name != field || value <= last) continue;
        return bad(i + 1, format_text("0 to {}", last));
      }
    }
    return {};
  }

  static InstructionFault fault(std::string_view rule, std::string message) {
    return {rule, std::move(message)};
  }

  InstructionFault wrong_count(std::size_t count) const {
    std::size_t min = 0;
    std::size_t max = 0;
    for (const OperandSpec& spec : row_.operand_specs()) {
      if (spec.with != Field::Literal && !instruction_.has(spec.with)) continue;
      ++max;
      if (!spec.optional || spec.with != Field::Literal) ++min;
    }
    std::string wanted = count_text(max, "operand");
    if (max != min) wanted = format_text("{} to {}", min, wanted);
    return fault("bad-operand", format_text("{} takes {}, not {}", opcode(), wanted, count));
  }

  InstructionFault illegal_modifiers() const {
    for (std::size_t i = 0; i < row_.slot_count; ++i) {
      const ModifierSlot& slot = row_.slots[i];
      if (slot.with == Field::Literal) continue;
      const bool present = instruction_.modifiers[i] != Modifier::none;
      if (present == instruction_.has(slot.with)) continue;
      return fault("bad-operand",
                   present ? format_text("{}: '.{}' requires a modifier of {}", opcode(),
                                         name(instruction_.modifiers[i]), name(slot.with))
                           : format_text("{}: '.{}' requires a modifier of {}", opcode(),
                                         name(instruction_.get(slot.with)), name(slot.field)));
    }
    const Need* wrong = illegal_combination(instruction_);
    if (wrong == nullptr) return {};
    std::string text;
    for (const Modifier modifier : condition(*wrong)) {
      text += format_text("{}'.{}'", text.empty() ? "" : " and ", name(modifier));
    }
    return fault("bad-operand", format_text("{}: {} cannot be combined", opcode(), text));
  }

  std::string opcode() const {
    std::string text = "'" + std::string(row_.mnemonic);
    for (std::size_t i = 0; i < row_.slot_count; ++i) {
      if (instruction_.modifiers[i] != Modifier::none) {
        text += "." + std::string(name(instruction_.modifiers[i]));
      }
    }
    return text + "'";
  }

  InstructionFault bad(std::size_t position, std::string_view wanted) const {
    return fault("bad-operand",
                 format_text("{} expects {} as operand {}", opcode(), wanted, position));
  }

  InstructionFault wrong_type(Type expected, std::size_t position, std::string_view text,
                              Type actual) const {
    return fault("type-mismatch",
                 format_text("{} expects .{} as operand {}, but '{}' is .{}", opcode(),
                             name(expected), position, text, name(actual)));
  }

  InstructionFault operand(const OperandSpec& spec, const Operand& o, std::size_t position) const {
    if (o.negated && !may_be_negated(spec)) return bad(position, "an operand without '!'");
    switch (spec.role) {
      case OperandRole::Memory:
        return o.kind == OperandKind::Memory ? address(spec, o, position)
                                             : bad(position, "an address in brackets");
      case OperandRole::Label:
      case OperandRole::Table:
        return o.kind == OperandKind::Label || is_unresolved(o) ? InstructionFault{}
                                                                : bad(position, "a label");
      case OperandRole::Callee:
        return o.kind == OperandKind::Symbol || o.kind == OperandKind::Register
                   ? InstructionFault{}
                   : bad(position, "a function");
      case OperandRole::Returns:
      case OperandRole::Arguments:
        return o.kind == OperandKind::List ? InstructionFault{}
                                           : bad(position, "a list in parentheses");
      default:
        break;
    }
    const Type type = operand_type(instruction_, spec);
    const unsigned elements = operand_elements(instruction_, spec);
    if (elements != 0) return vector(spec, o, position, type, elements);
    if (o.kind == OperandKind::Vector || (o.in_braces && !takes_list_of_one(instruction_, spec))) {
      return bad(position, "one operand, not a list in braces");
    }
    return scalar(spec, o, position, type, o.in_braces);
  }

  // `xor.pred %p1, %p2, !%p3`: any operand that reads a predicate.
  bool may_be_negated(const OperandSpec& spec) const {
    if (spec.role == OperandRole::Predicate) return true;
    return (spec.role == OperandRole::Source || spec.role == OperandRole::Value) &&
           operand_type(instruction_, spec) == Type::pred;
  }

  InstructionFault vector(const OperandSpec& spec, const Operand& o, std::size_t position,
                          Type type, unsigned elements) const {
    if (elements > 1 && o.kind == OperandKind::Register && o.component == 0 &&
        function_.registers[o.id].vector == elements) {
      return scalar(spec, o, position, type, false);
    }
    if (o.kind != OperandKind::Vector || o.index != elements) {
      return bad(position, count_text(elements, "operand") + " in braces");
    }
    const auto all = function_.elements(o);
    if (std::all_of(all.begin(), all.end(),
                    [](const Operand& element) { return element.kind == OperandKind::Sink; })) {
      return bad(position, "a register among the operands in braces, not only '_',");
    }
    for (const Operand& element : all) {
      if (element.kind == OperandKind::Vector) return bad(position, "braces without inner braces");
      InstructionFault found = scalar(spec, element, position, type, true);
      if (!found.rule.empty()) return found;
    }
    return alike(o, position);
  }

  // Registers in braces have one width, and floats and integers are not mixed. Untyped registers
  // match both.
  InstructionFault alike(const Operand& o, std::size_t position) const {
    const Operand* typed = nullptr;
    const Operand* any = nullptr;
    for (const Operand& element : function_.elements(o)) {
      if (element.kind != OperandKind::Register) continue;
      const Type own = function_.type_of(element.as_register());
      const auto differs = [&](const Operand* other) {
        if (other == nullptr) return false;
        const Type before = function_.type_of(other->as_register());
        return bits(before) != bits(own) ||
               (typed == other &&
                (kind(before) == TypeKind::Float) != (kind(own) == TypeKind::Float) &&
                kind(own) != TypeKind::Bits);
      };
      const Operand* wrong = differs(any) ? any : differs(typed) ? typed : nullptr;
      if (wrong != nullptr) {
        return fault("type-mismatch",
                     format_text("{} expects registers of one type in the braces of operand {}, "
                                 "but {} and {}",
                                 opcode(), position, shown(*wrong), shown(element)));
      }
      any = &element;
      if (kind(own) != TypeKind::Bits) typed = &element;
    }
    return {};
  }

  std::string shown(const Operand& reg) const {
    return format_text("'{}' is .{}", name_of(module_, function_, reg.as_register()),
                       name(function_.type_of(reg.as_register())));
  }

  bool is_unresolved(const Operand& o) const {
    return o.kind == OperandKind::Symbol && module_.symbols[o.id].kind == SymbolKind::Unresolved;
  }

  InstructionFault scalar(const OperandSpec& spec, const Operand& o, std::size_t position,
                          Type type, bool listed) const {
    // An undeclared name is reported as such, not as an operand of the wrong kind.
    if (is_unresolved(o)) return {};
    switch (o.kind) {
      case OperandKind::Sink:
        // ptxas 13.0 allows `_` for elements of a load, not for all of it.
        return spec.sink && (!spec.vector_from_slot || (listed && !o.in_braces) ||
                             has(row_.flags, Flag::WritesMemory))
                   ? InstructionFault{}
                   : bad(position, "a register, not '_'");
      case OperandKind::Register: {
        if (spec.role == OperandRole::Immediate) return bad(position, "an integer constant");
        const Type own = function_.type_of(o.as_register());
        if (fits(own, type, spec.relaxed, listed && spec.vector_from_slot)) return {};
        return wrong_type(type, position, name_of(module_, function_, o.as_register()), own);
      }
      case OperandKind::Special: {
        // ptxas 13.0 reads them in mov and cvt, and in the braces of all but a vector move.
        const bool alone =
            spec.role == OperandRole::Value ||
            (spec.role == OperandRole::Source && spec.relaxed && !spec.vector_from_slot);
        const bool among = !spec.vector_from_slot || spec.relaxed;
        if (listed ? !among && !o.in_braces : !alone) {
          return bad(position, "an ordinary register (read special registers with mov)");
        }
        const SpecialInfo& special = info(static_cast<SpecialRegister>(o.id));
        if (fits(special.type, type, true) || type == Type::none ||
            (is_integer(kind(special.type)) && is_integer(kind(type)))) {
          return {};
        }
        return wrong_type(type, position, format_text("%{}", special.text), special.type);
      }
      case OperandKind::Integer:
      case OperandKind::Float32:
      case OperandKind::Float64:
        return constant(spec, o, position, type);
      case OperandKind::Symbol:
        return (spec.role == OperandRole::Value && !listed) || type == Type::none
                   ? InstructionFault{}
                   : bad(position, "a register or constant, not the name of a symbol");
      case OperandKind::Label:
        return spec.role == OperandRole::Value ? InstructionFault{}
                                               : bad(position, "a register, not a label");
      default:
        return bad(position, "a register");
    }
  }

  InstructionFault constant(const OperandSpec& spec, const Operand& o, std::size_t position,
                            Type type) const {
    const bool floating = o.kind != OperandKind::Integer;
    switch (spec.role) {
      case OperandRole::Destination:
      case OperandRole::RegisterSource:
        return bad(position, "a register, not a constant");
      case OperandRole::Immediate:
        return floating ? bad(position, "an integer constant") : InstructionFault{};
      default:
        break;
    }
    // A constant is converted if a float is expected; otherwise it is a bit pattern.
    const bool converted = type == Type::f32 || type == Type::f64;
    const unsigned width = o.kind == OperandKind::Float32 ? 32 : 64;
    const bool fine = !floating ? !converted
                                : converted || type == Type::none ||
                                      (kind(type) == TypeKind::Bits && bits(type) == width);
    if (fine) return {};
    if (floating && kind(type) == TypeKind::Bits) {
      return fault("type-mismatch",
                   format_text("{} expects .{} as operand {}, not a floating-point constant of {} "
                               "bits (a decimal one has 64)",
                               opcode(), name(type), position, width));
    }
    return fault("type-mismatch",
                 format_text("{} expects .{} as operand {}, not {} constant", opcode(), name(type),
                             position, floating ? "a floating-point" : "an integer"));
  }

  InstructionFault address(const OperandSpec& spec, const Operand& o, std::size_t position) const {
    if (o.base == OperandKind::Register) {
      const Type own = function_.type_of({{o.id}, o.index});
      if (!is_integer(kind(own)) || (bits(own) != 32 && bits(own) != 64)) {
        return fault("type-mismatch",
                     format_text("{} expects a 32- or 64-bit integer address as operand {}, but "
                                 "'{}' is .{}",
                                 opcode(), position, name_of(module_, function_, {{o.id}, o.index}),
                                 name(own)));
      }
      return {};
    }
    const Space space = space_of(instruction_.get(address_field(row_, spec)));
    if (o.base == OperandKind::Integer && space != Space::Local) {
      return bad(position, "a register or a variable as address (a number is one in .local only)");
    }
    if (o.base != OperandKind::Symbol) return {};
    return address_of_symbol(space, {o.id}, position);
  }

  // `ld.shared [x]` of an `x` in .global would read an unrelated location of shared memory.
  InstructionFault address_of_symbol(Space space, SymbolId id, std::size_t position) const {
    const Symbol& symbol = module_.symbols[id.value];
    Space own = Space::Generic;
    switch (symbol.kind) {
      case SymbolKind::Variable:
        own = module_.variables[symbol.index].space;
        break;
      case SymbolKind::FunctionVariable:
        own = module_.functions[symbol.function].variables[symbol.index].space;
        break;
      case SymbolKind::Parameter:
      case SymbolKind::Return:
        own = Space::Param;
        break;
      case SymbolKind::Function:
      case SymbolKind::Unresolved:
        return {};
    }
    if (space == Space::Generic || own == Space::Generic || space == own) return {};
    return fault("type-mismatch",
                 format_text("{} accesses .{}, but '{}' of operand {} is in .{}", opcode(),
                             name(space), module_.text(symbol.name), position, name(own)));
  }

  const Module& module_;
  const Function& function_;
  const Instruction& instruction_;
  const OpInfo& row_;
};

}  // namespace

bool judges_constants(Op op) noexcept {
  return (op >= Op::wgmma_fence && op <= Op::wgmma_s8_registers) ||
         (op >= Op::tensormap_replace_address && op <= Op::tensormap_cp_fenceproxy) ||
         op == Op::fence_proxy_tensormap_acquire;
}

InstructionFault check_operands(const Module& module, const Function& function,
                                const Instruction& instruction) {
  return check_operands(module, function, instruction, OperandSpecs(function, instruction), true);
}

InstructionFault check_operands(const Module& module, const Function& function,
                                const Instruction& instruction, const OperandSpecs& specs,
                                bool modifiers) {
  return OperandCheck(module, function, instruction).run(specs, modifiers);
}

}  // namespace ptxgen::inline v0::ptx
