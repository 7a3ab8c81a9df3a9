// src/emulator/decode/decode.cpp - operands, registers and lane-wise steps
#include <bit>

#include "emulator/decode/decoder.hpp"
#include "emulator/state/machine.hpp"
#include "emulator/vector/lane_steps.hpp"
#include "ptx/clock.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

constexpr std::uint32_t kFrameAlignment = 64;

std::uint32_t rounded_up(std::uint32_t value, std::uint32_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

unsigned lane_bytes_of(unsigned bits) {
  if (bits <= 32) return 4;
  return bits == 64 ? 8 : 16;
}

unsigned bits_of(ptx::Type type) {
  if (ptx::kind(type) == ptx::TypeKind::Predicate) return 1;
  const unsigned bits = ptx::bits(type);
  return bits == 0 ? 64 : bits;
}

std::uint64_t low_bits(std::uint64_t value, unsigned bits) {
  return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

}  // namespace

Decoder::Decoder(Image& image, const Placement& placement, Code& code)
    : image_(image), placement_(placement), code_(code) {
  code_.frame_bytes = sizeof(FrameHead);
  cfg_ = analysis::Cfg(function());
  register_index_ = analysis::RegisterIndex(function());
  registers_.assign(register_index_.size(), kNoIndex);
  undefined_ = analysis::maybe_undefined(function(), cfg_, register_index_);
  deciding_ = DecidingRegisters(function(), register_index_);
  alone_ = undefined_;
  for (const auto* variables : {&function().parameters, &function().returns}) {
    for (const ptx::Variable& variable : *variables) {
      if (variable.decl.value == ptx::kNone) continue;
      const std::uint32_t number = register_index_.find({variable.decl, 0});
      if (number != ptx::kNone) alone_.insert(number);
    }
  }
  shared_places_ = SharedPlaces(function(), cfg_, register_index_, alone_);
  local_offset_.assign(function().variables.size(), kNoIndex);
}

std::span<const ptx::Operand> Decoder::operands() const noexcept {
  return function().operands_of(*instruction_);
}

void Decoder::refuse(std::string_view reason) const {
  Error error(Stage::Load, "unsupported",
              format_text("the emulator does not run '{}': {}",
                          ptx::print(image_.module, function(), *instruction_), reason));
  error.kernel = std::string(image_.module.text(function().name));
  error.file = image_.module.file;
  error.line = instruction_->line;
  throw error.refresh();
}

std::uint32_t Decoder::grow_frame(unsigned bytes) {
  const std::uint32_t offset = rounded_up(code_.frame_bytes, bytes >= 64 ? kFrameAlignment : 4);
  // Offsets in a frame are 32 bits, far more than real kernels need.
  if (offset > 0x7fff0000u - bytes) {
    throw Error(Stage::Load, "unsupported",
                format_text("function '{}' uses more registers than the emulator can hold",
                            image_.module.text(function().name)));
  }
  code_.frame_bytes = offset + bytes;
  return offset;
}

std::uint32_t Decoder::register_bytes(ptx::Register reg) const {
  const ptx::RegisterDecl& decl = function().registers[reg.decl.value];
  if (ptx::kind(decl.type) == ptx::TypeKind::Predicate) return 4;
  return lane_bytes_of(bits_of(decl.type)) * kLanes * decl.vector;
}

void Decoder::place_registers() {
  shared_places_.go_to(
      statement_,
      [&](std::uint32_t number) {
        free_places_[register_bytes(register_index_[number])].push_back(registers_[number]);
      },
      [&](std::uint32_t number) {
        const std::uint32_t bytes = register_bytes(register_index_[number]);
        std::vector<std::uint32_t>& free = free_places_[bytes];
        if (free.empty()) {
          registers_[number] = grow_frame(bytes);
        } else {
          registers_[number] = free.back();
          free.pop_back();
        }
      });
}

void Decoder::note_register_places() {
  code_.register_places.reserve(registers_.size());
  for (std::uint32_t number = 0; number < registers_.size(); ++number) {
    code_.register_places.push_back({registers_[number], !alone_.contains(number)});
  }
}

Slot Decoder::declared_slot(ptx::Register reg) {
  const ptx::RegisterDecl& decl = function().registers[reg.decl.value];
  const bool predicate = ptx::kind(decl.type) == ptx::TypeKind::Predicate;
  const unsigned bits = bits_of(decl.type);
  Slot slot;
  slot.lane_bytes = static_cast<std::uint8_t>(predicate ? 0 : lane_bytes_of(bits));
  slot.bits = slot.register_bits = static_cast<std::uint8_t>(bits);
  // Of the thousands of declared numbered registers few are used.
  const std::uint32_t index = register_index_.find(reg);
  std::uint32_t& offset = registers_[index];
  if (offset == kNoIndex) {
    const std::uint32_t bytes = register_bytes(reg);
    const bool followed = undefined_.contains(index);
    offset = grow_frame(followed ? 2 * bytes : bytes);
    if (followed) {
      shadows_.emplace(offset, bytes);
      code_.shadows.push_back({offset + bytes, bytes, slot.lane_bytes});
    }
  }
  slot.offset = offset;
  return slot;
}

Slot Decoder::register_slot(const ptx::Operand& operand, ptx::Type type) {
  Slot slot = declared_slot(operand.as_register());
  if (operand.component > 0) {
    slot.offset += static_cast<std::uint32_t>(operand.component - 1) * slot.lane_bytes * kLanes;
  }
  slot.negated = operand.negated;
  if (type != ptx::Type::none && slot.lane_bytes != 0) {
    slot.bits = static_cast<std::uint8_t>(std::min<unsigned>(bits_of(type), slot.register_bits));
    slot.is_signed = ptx::kind(type) == ptx::TypeKind::Signed;
  }
  return slot;
}

Slot Decoder::frame_value(FrameValue::Kind kind, std::uint64_t value, std::uint8_t component,
                          unsigned bits) {
  const auto key = std::tuple(static_cast<int>(kind), value, static_cast<int>(component), bits);
  if (const auto found = values_.find(key); found != values_.end()) return found->second;
  Slot slot;
  slot.lane_bytes = static_cast<std::uint8_t>(bits == 1 ? 0 : lane_bytes_of(bits));
  slot.bits = slot.register_bits = static_cast<std::uint8_t>(bits);
  slot.offset = grow_frame(bits == 1 ? 4 : slot.lane_bytes * kLanes);
  code_.frame_values.push_back({kind, slot, component, value});
  values_.emplace(key, slot);
  return slot;
}

Slot Decoder::constant(std::uint64_t bits, unsigned width) {
  return frame_value(FrameValue::Kind::Constant, low_bits(bits, width), 0, width);
}

Slot Decoder::symbol_slot(const ptx::Operand& operand, ptx::Type type) {
  const unsigned width = bits_of(type);
  const ptx::Symbol& symbol = image_.module.symbols[operand.id];
  switch (symbol.kind) {
    case ptx::SymbolKind::Function:
      return constant(kFunctionWindow + 16 * std::uint64_t{symbol.index} + operand.value, width);
    case ptx::SymbolKind::Variable:
      return constant(placement_.module_variables[symbol.index] + operand.value, width);
    case ptx::SymbolKind::FunctionVariable: {
      const ptx::Variable& variable = function().variables[symbol.index];
      if (variable.space == ptx::Space::Local || variable.space == ptx::Space::Param) {
        return frame_value(FrameValue::Kind::LocalAddress,
                           local_offset_[symbol.index] + operand.value, 0, width);
      }
      const auto owner = static_cast<std::size_t>(code_.function - image_.module.functions.data());
      return constant(placement_.function_variables[owner][symbol.index] + operand.value, width);
    }
    case ptx::SymbolKind::Parameter:
      if (function().entry) {
        const auto& kernel = image_.kernels[code_.kernel];
        return constant(kernel.parameters[symbol.index].offset + operand.value, width);
      }
      return frame_value(FrameValue::Kind::LocalAddress,
                         code_.parameters[symbol.index].offset + operand.value, 0, width);
    case ptx::SymbolKind::Return:
      return frame_value(FrameValue::Kind::LocalAddress,
                         code_.returns[symbol.index].offset + operand.value, 0, width);
    case ptx::SymbolKind::Unresolved:
      break;
  }
  refuse(format_text("the symbol '{}' is not declared", image_.module.text(symbol.name)));
}

Slot Decoder::source(const ptx::Operand& operand, ptx::Type type) {
  switch (operand.kind) {
    case ptx::OperandKind::Register:
      return register_slot(operand, type);
    case ptx::OperandKind::Special: {
      const auto which = static_cast<ptx::SpecialRegister>(operand.id);
      const unsigned width = ptx::info(which).type == ptx::Type::pred
                                 ? 1
                                 : std::max(bits_of(type), bits_of(ptx::info(which).type));
      Slot slot = frame_value(FrameValue::Kind::Special, operand.id, operand.component, width);
      slot.bits = static_cast<std::uint8_t>(std::min(width, bits_of(type)));
      slot.negated = operand.negated;
      if (is_clock(which)) {
        Step tick = step();
        tick.run = &update_clock;
        tick.result = slot.offset;
        tick.immediate = operand.id;
        tick.detail = slot.lane_bytes;
        code_.steps.push_back(tick);
      }
      return slot;
    }
    case ptx::OperandKind::Integer:
      return constant(operand.value, bits_of(type));
    case ptx::OperandKind::Float32:
      if (ptx::bits(type) == 64) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(operand.value));
        return constant(std::bit_cast<std::uint64_t>(static_cast<double>(value)), 64);
      }
      return constant(operand.value, bits_of(type));
    case ptx::OperandKind::Float64:
      if (ptx::bits(type) == 32) {
        const auto value = static_cast<float>(std::bit_cast<double>(operand.value));
        return constant(std::bit_cast<std::uint32_t>(value), 32);
      }
      return constant(operand.value, bits_of(type));
    case ptx::OperandKind::Symbol:
      return symbol_slot(operand, type);
    default:
      refuse("it has an operand of an unknown kind");
  }
}

Slot Decoder::destination(const ptx::Operand& operand, ptx::Type type) {
  if (operand.kind == ptx::OperandKind::Sink) {
    Slot none;
    none.bits = static_cast<std::uint8_t>(bits_of(type));
    none.lane_bytes = static_cast<std::uint8_t>(none.bits == 1 ? 0 : lane_bytes_of(none.bits));
    return none;
  }
  if (operand.kind != ptx::OperandKind::Register) refuse("the destination is not a register");
  return register_slot(operand, type);
}

void Decoder::sources(const ptx::Operand& operand, ptx::Type type, std::vector<Slot>& out) {
  if (operand.kind == ptx::OperandKind::Vector) {
    for (const ptx::Operand& element : function().elements(operand)) sources(element, type, out);
    return;
  }
  // A vector register means all its components.
  if (operand.kind == ptx::OperandKind::Register && operand.component == 0) {
    const unsigned vector = function().registers[operand.id].vector;
    if (vector > 1) {
      for (unsigned i = 1; i <= vector; ++i) {
        ptx::Operand part = operand;
        part.component = static_cast<std::uint8_t>(i);
        out.push_back(source(part, type));
      }
      return;
    }
  }
  out.push_back(source(operand, type));
}

void Decoder::destinations(const ptx::Operand& operand, ptx::Type type, std::vector<Slot>& out) {
  if (operand.kind == ptx::OperandKind::Vector) {
    for (const ptx::Operand& element : function().elements(operand)) {
      destinations(element, type, out);
    }
    return;
  }
  if (operand.kind == ptx::OperandKind::Register && operand.component == 0) {
    const unsigned vector = function().registers[operand.id].vector;
    if (vector > 1) {
      for (unsigned i = 1; i <= vector; ++i) {
        ptx::Operand part = operand;
        part.component = static_cast<std::uint8_t>(i);
        out.push_back(destination(part, type));
      }
      return;
    }
  }
  out.push_back(destination(operand, type));
}

void Decoder::check_elements(const ptx::Operand& operand, const ptx::OperandSpec& spec) const {
  const auto width = [&](const ptx::Operand& each) -> unsigned {
    if (each.kind != ptx::OperandKind::Register || each.component != 0) return 1;
    return std::max<unsigned>(function().registers[each.id].vector, 1);
  };
  bool fits = width(operand) == 1 || width(operand) == ptx::operand_elements(*instruction_, spec);
  if (operand.kind == ptx::OperandKind::Vector) {
    for (const ptx::Operand& element : function().elements(operand)) fits &= width(element) == 1;
  }
  if (!fits) refuse("it has a vector operand of the wrong width");
}

Decoder::Address Decoder::address(const ptx::Operand& operand) {
  if (operand.kind != ptx::OperandKind::Memory) refuse("it expects an address in brackets");
  Address address;
  address.offset = operand.value;
  if (operand.base == ptx::OperandKind::Register) {
    ptx::Operand base = operand;
    base.kind = ptx::OperandKind::Register;
    address.base = register_slot(base, ptx::Type::none);
    if (address.base.lane_bytes != 4 && address.base.lane_bytes != 8) {
      refuse("its address register does not have 32 or 64 bits");
    }
  } else if (operand.base != ptx::OperandKind::Integer) {
    symbol_address(image_.module.symbols[operand.id], address);
  }
  return address;
}

/// `address.offset` is the offset from the symbol.
void Decoder::symbol_address(const ptx::Symbol& symbol, Address& address) {
  const ptx::Module& module = image_.module;
  const std::string_view name = module.text(symbol.name);
  const auto in_space = [&](ptx::Space space, std::uint64_t start) {
    address.space = space;
    address.offset += start;
    address.symbol = format_text("{} variable '{}'", ptx::name(space), name);
  };
  const auto in_frame = [&](ptx::Space space, std::uint64_t start, std::string_view kind) {
    address.space = space;
    address.function_param = space == ptx::Space::Param;
    address.base = frame_value(FrameValue::Kind::LocalAddress, 0, 0, 64);
    address.offset += start;
    address.symbol = format_text("{} '{}'", kind, name);
  };
  switch (symbol.kind) {
    case ptx::SymbolKind::Variable:
      return in_space(module.variables[symbol.index].space,
                      placement_.module_variables[symbol.index]);
    case ptx::SymbolKind::FunctionVariable: {
      const ptx::Space space = function().variables[symbol.index].space;
      if (space == ptx::Space::Local || space == ptx::Space::Param) {
        return in_frame(space, local_offset_[symbol.index],
                        space == ptx::Space::Param ? "parameter variable" : "local variable");
      }
      const auto owner = static_cast<std::size_t>(code_.function - module.functions.data());
      return in_space(space, placement_.function_variables[owner][symbol.index]);
    }
    case ptx::SymbolKind::Parameter:
      if (!function().entry) {
        return in_frame(ptx::Space::Param, code_.parameters[symbol.index].offset, "parameter");
      }
      address.space = ptx::Space::Param;
      address.offset += image_.kernels[code_.kernel].parameters[symbol.index].offset;
      address.symbol = format_text("parameter '{}'", name);
      return;
    case ptx::SymbolKind::Return:
      return in_frame(ptx::Space::Param, code_.returns[symbol.index].offset, "return value");
    case ptx::SymbolKind::Function:
    case ptx::SymbolKind::Unresolved:
      break;
  }
  refuse(format_text("the symbol '{}' has no address in memory", name));
}

Step Decoder::step() const {
  Step result;
  result.statement = code_.first_statement + statement_;
  const ptx::Guard& guard = instruction_->guard;
  if (guard.present()) {
    // decode_instruction() has placed the register.
    result.guard = registers_[register_index_.find(guard.predicate)];
    result.guard_flip = guard.negated ? 0xffffffffu : 0;
  }
  return result;
}

void Decoder::add(const Step& step) { code_.steps.push_back(step); }

void Decoder::place() {
  std::uint32_t offset = 0;
  const auto memory = [&](const ptx::Variable& variable) {
    const std::uint64_t bytes = ptx::size_in_bytes(variable);
    const std::uint32_t alignment = std::max<std::uint32_t>(ptx::natural_alignment(variable), 1);
    if (bytes > (1u << 24) || alignment > 4096) {
      throw Error(
          Stage::Load, "unsupported",
          format_text("variable '{}' of function '{}' is larger than the maximum local "
                      "memory of a thread (16 MiB)",
                      image_.module.text(variable.name), image_.module.text(function().name)));
    }
    offset = rounded_up(offset, alignment);
    const std::uint32_t place = offset;
    offset += static_cast<std::uint32_t>(bytes);
    if (offset > (1u << 24)) {
      throw Error(
          Stage::Load, "unsupported",
          format_text("the local variables of function '{}' are larger than the maximum local "
                      "memory of a thread (16 MiB)",
                      image_.module.text(function().name)));
    }
    return place;
  };
  const auto places = [&](const std::vector<ptx::Variable>& variables,
                          std::vector<ValuePlace>& out) {
    for (const ptx::Variable& variable : variables) {
      ValuePlace place;
      if (variable.decl.value != ptx::kNone) {
        place.slot = declared_slot({variable.decl, 0});
        place.shadow = shadow_of(place.slot);
        place.bytes = place.slot.lane_bytes == 0 ? 1u : place.slot.register_bits / 8u;
      } else {
        place.bytes = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(ptx::size_in_bytes(variable), 1u << 25));
        place.offset = memory(variable);
      }
      out.push_back(place);
    }
  };
  if (!function().entry) {
    places(function().returns, code_.returns);
    places(function().parameters, code_.parameters);
  }
  for (std::size_t i = 0; i < function().variables.size(); ++i) {
    const ptx::Variable& variable = function().variables[i];
    if (variable.space == ptx::Space::Local || variable.space == ptx::Space::Param) {
      local_offset_[i] = memory(variable);
    }
  }
  code_.local_bytes = rounded_up(offset, 16);
}

void Decoder::lane_step() {
  LaneDetail detail;
  detail.function = lane_function(*instruction_, detail.op);
  if (detail.function == nullptr) {
    detail.matrix = matrix_function(*instruction_, detail.op, image_.sm);
  }
  const auto ops = operands();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const ptx::OperandSpec* spec = ptx::operand_spec(function(), *instruction_, i);
    if (spec == nullptr) refuse("its operands do not match its row of the op table");
    const ptx::Type type = ptx::operand_type(*instruction_, *spec);
    check_elements(ops[i], *spec);
    if (spec->role == ptx::OperandRole::Destination) {
      destinations(ops[i], type, detail.results);
    } else {
      sources(ops[i], type, detail.sources);
    }
  }
  split_wide_slots(detail.sources);
  split_wide_slots(detail.results);
  if (detail.sources.size() > kMaxLaneWords || detail.results.size() > kMaxLaneWords) {
    refuse("it has more operands than the emulator supports");
  }
  detail.op.source_count = static_cast<std::uint8_t>(detail.sources.size());
  detail.op.result_count = static_cast<std::uint8_t>(detail.results.size());
  Slot carry;
  carry.offset = offsetof(FrameHead, carry);
  carry.lane_bytes = 0;
  carry.bits = carry.register_bits = 1;
  if (reads_carry(instruction_->op)) detail.sources.push_back(carry);
  if (detail.op.carry_out) detail.results.push_back(carry);
  if (instruction_->op == ptx::Op::div || instruction_->op == ptx::Op::rem) {
    Step check = step();
    check.run = &check_divisor;
    check.source[0] = detail.sources[1].offset;
    check.immediate = detail.sources[1].lane_bytes;
    add(check);
  }
  track_lane(detail);
  Step result = step();
  result.run = choose_lane_handler(detail, result);
  // Vector handlers, which most rows have, take all that they need from the step.
  if (reads_lane_detail(result.run)) {
    result.detail = static_cast<std::uint32_t>(code_.lanes.size());
    code_.lanes.push_back(std::move(detail));
  }
  add(result);
}

}  // namespace ptxgen::inline v0::emulator
