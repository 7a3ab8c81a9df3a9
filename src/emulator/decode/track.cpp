// src/emulator/decode/track.cpp - steps that track undefined registers
#include "emulator/machine/track.hpp"
#include "emulator/decode/decoder.hpp"
#include "emulator/machine/warp_steps.hpp"
#include "emulator/state/support_table.hpp"
#include "emulator/vector/lane_steps.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using Kind = TrackDetail::Kind;
using ptx::Op;

std::string_view role_of(const ptx::Instruction& instruction, const ptx::OperandSpec* spec) {
  const ptx::Flag flags = ptx::info(instruction.op).flags;
  if (spec == nullptr) {
    return ptx::has(flags, ptx::Flag::Branch) ? "decides a branch"
                                              : "decides whether this is executed";
  }
  if (spec->role == ptx::OperandRole::Memory) return "is an address";
  if (spec->role == ptx::OperandRole::Callee) return "is the address of a function";
  if (instruction.op == Op::brx_idx) return "decides a branch";
  return {};
}

bool may_store_to_global(const ptx::Instruction& instruction) {
  if (!ptx::has(ptx::info(instruction.op).flags, ptx::Flag::WritesMemory)) return false;
  const ptx::Space space = ptx::space_of(instruction.get(ptx::Field::Space));
  return space == ptx::Space::Global || space == ptx::Space::Generic;
}

bool is_integer(ptx::Type type) {
  const ptx::TypeKind kind = ptx::kind(type);
  return kind == ptx::TypeKind::Bits || kind == ptx::TypeKind::Unsigned ||
         kind == ptx::TypeKind::Signed || kind == ptx::TypeKind::Predicate;
}

unsigned elements_of(ptx::Type type) {
  const std::string_view name = ptx::name(type);
  if (name.ends_with("x2")) return 2;
  return name.ends_with("x4") ? 4 : 1;
}

/// Converts a lop3 table from the first input highest to the first input lowest.
std::uint8_t reversed_table(std::uint64_t table) {
  unsigned result = 0;
  for (unsigned row = 0; row < 8; ++row) {
    const unsigned other = (row & 1u) << 2 | (row & 2u) | row >> 2;
    result |= static_cast<unsigned>(table >> other & 1u) << row;
  }
  return static_cast<std::uint8_t>(result);
}

bool choose_logic(const ptx::Instruction& instruction, const ptx::Operand* table,
                  TrackDetail& detail) {
  const std::string_view row = ptx::info(instruction.op).mnemonic;
  detail.kind = Kind::Logic;
  if (row == "and") {
    detail.table = 0x8;
  } else if (row == "or") {
    detail.table = 0xe;
  } else if (row == "xor") {
    detail.table = 0x6;
  } else if (row == "not") {
    detail.table = 0x1;
  } else if (row == "lop3" && detail.results.size() == 1 && table != nullptr &&
             table->kind == ptx::OperandKind::Integer && detail.sources.size() == 4) {
    detail.sources.pop_back();
    detail.table = reversed_table(table->value);
  } else {
    return false;
  }
  return true;
}

/// The moved sources of rows that only move bits; the other sources select where.
std::uint64_t moved_sources(const LaneOp& op) {
  switch (op.op) {
    case Op::shl:
    case Op::shr:
    case Op::bfe:
    case Op::brev:
      return 0x1;
    default:
      break;
  }
  const std::string_view row = ptx::info(op.op).mnemonic;
  if (row == "mov") return ~std::uint64_t{0};
  if (row == "shf" || row == "bfi" || row == "prmt") return 0x3;
  if (row == "shl" || row == "shr" || row == "bfe" || row == "brev") return 0x1;
  const bool narrows = row == "cvt" && is_integer(op.type) && is_integer(op.type2) &&
                       op.source_count == 1 && !op.sat && !op.satfinite;
  return narrows ? 0x1 : 0;
}

/// Integer rows in which an undefined bit affects only the higher bits of the result.
bool spreads_upwards(const LaneOp& op) {
  if (!is_integer(op.type) || op.carry_out || op.sat) return false;
  const std::string_view row = ptx::info(op.op).mnemonic;
  if (row == "add" || row == "sub" || row == "neg") return !reads_carry(op.op);
  const bool low_half = op.mode == ptx::Modifier::lo || op.mode == ptx::Modifier::wide;
  return (row == "mul" || row == "mad") && low_half;
}

bool goes_by_elements(const LaneOp& op, TrackDetail& detail) {
  const unsigned elements = elements_of(op.type);
  if (elements == 1 || detail.results.size() != 1) return false;
  detail.elements = static_cast<std::uint8_t>(elements);
  const bool converts = ptx::info(op.op).mnemonic == "cvt";
  if (converts && elements_of(op.type2) == 1) {
    if (detail.sources.size() != elements) return false;
    detail.kind = Kind::Pack;
    return true;
  }
  const unsigned width = detail.results[0].slot.bits;
  for (const TrackDetail::Value& source : detail.sources) {
    if (!converts && source.slot.bits != width) return false;
    if (converts && (detail.sources.size() != 1 || elements_of(op.type2) != elements)) return false;
  }
  detail.kind = Kind::Elements;
  return true;
}

}  // namespace

void choose_track(const ptx::Instruction& instruction, std::span<const ptx::Operand> operands,
                  TrackDetail& detail) {
  if (instruction.op == Op::selp) {
    detail.kind = Kind::Select;
  } else if (choose_logic(instruction, operands.empty() ? nullptr : &operands.back(), detail)) {
    return;
  } else if (const std::uint64_t data = moved_sources(detail.op); data != 0) {
    detail.kind = Kind::Moves;
    detail.data = data;
  } else if (spreads_upwards(detail.op)) {
    detail.kind = Kind::Carries;
  } else if (!goes_by_elements(detail.op, detail)) {
    detail.kind = Kind::Any;
  }
}

Slot Decoder::shadow_of(const Slot& slot) const {
  Slot shadow;
  if (!slot.present() || shadows_.empty()) return shadow;
  auto found = shadows_.upper_bound(slot.offset);
  if (found == shadows_.begin()) return shadow;
  --found;
  if (slot.offset >= found->first + found->second) return shadow;
  shadow = slot;
  shadow.offset += found->second;
  shadow.negated = false;
  return shadow;
}

TrackDetail::Value Decoder::tracked(const Slot& slot) const { return {slot, shadow_of(slot)}; }

void Decoder::add_track(TrackDetail&& detail, bool guard_first) {
  Step result = step();
  result.run = &track;
  result.detail = static_cast<std::uint32_t>(code_.tracks.size());
  result.immediate = guard_first ? 1 : 0;
  code_.tracks.push_back(std::move(detail));
  add(result);
}

Slot Decoder::guard_shadow() {
  if (!instruction_->guard.present()) return {};
  return shadow_of(declared_slot(instruction_->guard.predicate));
}

void Decoder::track_lane(const LaneDetail& lane) {
  if (undefined_.count() == 0) return;
  TrackDetail detail;
  bool reads = false;
  bool writes = false;
  for (const Slot& slot : lane.sources) {
    // The carry flag is not tracked.
    if (slot.offset == offsetof(FrameHead, carry)) continue;
    detail.sources.push_back(tracked(slot));
    reads |= detail.sources.back().shadow.present();
  }
  for (const Slot& slot : lane.results) {
    detail.results.push_back(tracked(slot));
    writes |= detail.results.back().shadow.present();
  }
  if (!writes) return;
  detail.guard = guard_shadow();
  if (reads && lane.function != nullptr) {
    detail.op = lane.op;
    detail.function = lane.function;
    choose_track(*instruction_, operands(), detail);
  }
  add_track(std::move(detail), false);
}

void Decoder::track_step() {
  if (undefined_.count() == 0) return;
  const ptx::Instruction& statement = *instruction_;
  LaneOp op;
  if (find_warp_row(statement.op) == nullptr &&
      (lane_function(statement, op) != nullptr || matrix_function(statement, op) != nullptr)) {
    return;  // lane_step() tracks it
  }
  TrackDetail detail;
  const Execution execution = execution_of(statement.op);
  const ptx::Flag flags = ptx::info(statement.op).flags;
  const bool guard_matters = ptx::has(flags, ptx::Flag::Branch) ||
                             execution == Execution::Control || execution == Execution::Barrier ||
                             execution == Execution::Memory;
  const auto name = [&](ptx::Register reg) { return ptx::name_of(image_.module, function(), reg); };
  bool guard_first = false;
  analysis::for_each_access(function(), statement, [&](const analysis::RegisterAccess& access) {
    if (!undefined_.contains(register_index_.find(access.reg))) return;
    const std::vector<Slot> slots = components(access.reg, access.component);
    if (access.write) {
      for (const Slot& slot : slots) detail.results.push_back(tracked(slot));
      return;
    }
    const bool is_guard = access.operand == analysis::kGuardPosition;
    const ptx::OperandSpec* spec =
        is_guard ? nullptr : ptx::operand_spec(function(), statement, access.operand);
    const std::string_view role = role_of(statement, spec);
    if (is_guard ? !guard_matters : role.empty()) return;
    for (const Slot& slot : slots) detail.uses.push_back({tracked(slot), name(access.reg), role});
    guard_first |= is_guard;
  });
  if (may_store_to_global(statement)) track_stored(detail);
  if (!guard_first) detail.guard = guard_shadow();
  if (detail.uses.empty() && detail.results.empty()) return;
  add_track(std::move(detail), guard_first);
}

std::vector<Slot> Decoder::components(ptx::Register reg, std::uint8_t component) {
  Slot slot = declared_slot(reg);
  const std::uint32_t stride = slot.lane_bytes * kLanes;
  const unsigned vector = std::max<unsigned>(function().registers[reg.decl.value].vector, 1);
  std::vector<Slot> all;
  for (unsigned i = 1; i <= vector; ++i, slot.offset += stride) {
    if (component == 0 || component == i) all.push_back(slot);
  }
  split_wide_slots(all);
  return all;
}

/// The values that an instruction may store to global memory.
void Decoder::track_stored(TrackDetail& detail) {
  bool any = false;
  const auto ops = operands();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const ptx::OperandSpec* spec = ptx::operand_spec(function(), *instruction_, i);
    if (spec == nullptr || spec->role == ptx::OperandRole::Memory ||
        spec->with == ptx::Field::CacheHint || spec->role == ptx::OperandRole::Destination ||
        ops[i].kind == ptx::OperandKind::Memory) {
      continue;
    }
    const auto elements = ops[i].kind == ptx::OperandKind::Vector ? function().elements(ops[i])
                                                                  : std::span(&ops[i], 1);
    for (const ptx::Operand& element : elements) {
      if (element.kind != ptx::OperandKind::Register ||
          !undefined_.contains(register_index_.find(element.as_register()))) {
        continue;
      }
      std::vector<Slot> slots;
      sources(element, ptx::operand_type(*instruction_, *spec), slots);
      split_wide_slots(slots);
      for (const Slot& slot : slots) {
        detail.uses.push_back({tracked(slot),
                               ptx::name_of(image_.module, function(), element.as_register()),
                               "is stored to global memory", true});
        any = true;
      }
    }
  }
  if (!any || ptx::space_of(instruction_->get(ptx::Field::Space)) == ptx::Space::Global) return;
  for (const ptx::Operand& operand : ops) {
    if (operand.kind != ptx::OperandKind::Memory) continue;
    const Address place = address(operand);
    detail.base = place.base;
    detail.offset = place.offset;
    break;
  }
}

}  // namespace ptxgen::inline v0::emulator
