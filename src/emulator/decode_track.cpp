// src/emulator/decode_track.cpp - steps that follow undefined registers
#include "emulator/decoder.hpp"
#include "emulator/machine.hpp"
#include "emulator/memory_access.hpp"
#include "emulator/report.hpp"
#include "emulator/support_table.hpp"
#include "emulator/warp_steps.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// The part of `lanes` whose store goes to global memory.
std::uint32_t storing_to_global(const Context& context, const TrackDetail& detail,
                                std::uint32_t lanes) {
  if (!detail.base.present()) return lanes;
  std::uint32_t global = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    const std::uint64_t address = get_lane(context, detail.base, lane) + detail.offset;
    if (window_of(address) == ptx::Space::Global) global |= 1u << lane;
  });
  return global;
}

void track(Context& context, const Step& step) {
  const TrackDetail& detail = context.code->tracks[step.detail];
  const std::uint32_t lanes = context.mask(step);
  for (const TrackDetail::Use& use : detail.uses) {
    // A guard matters for all lanes that come here, what it guards only where it holds.
    const std::uint32_t concerned =
        step.immediate != 0 && &use == detail.uses.data() ? context.active : lanes;
    std::uint32_t undefined = concerned & ~context.predicate(use.mask);
    if (undefined != 0 && use.only_global) {
      undefined = storing_to_global(context, detail, undefined);
    }
    if (undefined == 0) continue;
    context.grid->reporter->report(context, step.statement, Rule::UninitializedRead,
                                   static_cast<unsigned>(std::countr_zero(undefined)), [&] {
                                     return FindingText{
                                         "register " + use.name + " " + std::string(use.role) +
                                             ", and the thread has never given it a value",
                                         {"give it a value on every path that leads here"}};
                                   });
    // Said once; what follows from it is not news.
    context.predicate(use.mask) |= undefined;
  }
  std::uint32_t defined = lanes;
  if (detail.kind == TrackDetail::Kind::Select) {
    const std::uint32_t chosen =
        context.predicate(detail.chooser.offset) ^ (detail.chooser.negated ? 0xffffffffu : 0u);
    const auto mask = [&](std::uint32_t offset) {
      return offset == kNoIndex ? 0xffffffffu : context.predicate(offset);
    };
    defined &= (chosen & mask(detail.chosen[0])) | (~chosen & mask(detail.chosen[1]));
  }
  if (detail.kind != TrackDetail::Kind::Defines) {
    for (const std::uint32_t source : detail.sources) defined &= context.predicate(source);
  }
  for (const std::uint32_t result : detail.results) {
    std::uint32_t& mask = context.predicate(result);
    mask = (mask & ~lanes) | defined;
  }
}

std::string_view role_of(const ptx::Instruction& instruction, const ptx::OperandSpec* spec) {
  const ptx::Flag flags = ptx::info(instruction.op).flags;
  if (spec == nullptr) {
    return ptx::has(flags, ptx::Flag::Branch) ? "decides a branch"
                                              : "decides whether this is executed";
  }
  if (spec->role == ptx::OperandRole::Memory) return "is an address";
  if (spec->role == ptx::OperandRole::Callee) return "is the address of a function";
  if (instruction.op == ptx::Op::brx_idx) return "decides a branch";
  return {};
}

bool may_store_to_global(const ptx::Instruction& instruction) {
  if (!ptx::has(ptx::info(instruction.op).flags, ptx::Flag::WritesMemory)) return false;
  const ptx::Space space = ptx::space_of(instruction.get(ptx::Field::Space));
  return space == ptx::Space::Global || space == ptx::Space::Generic;
}

}  // namespace

std::uint32_t Decoder::defined_mask(ptx::Register reg) {
  const std::uint32_t index = register_index_.find(reg);
  if (!undefined_.contains(index)) return kNoIndex;
  if (defined_masks_.size() <= index) defined_masks_.resize(index + 1, kNoIndex);
  std::uint32_t& mask = defined_masks_[index];
  if (mask == kNoIndex) {
    mask = grow_frame(4);
    code_.defined_masks.push_back(mask);
  }
  return mask;
}

void Decoder::track_step() {
  if (undefined_.count() == 0) return;
  const ptx::Instruction& statement = *instruction_;
  TrackDetail detail;
  const Execution execution = execution_of(statement.op);
  const ptx::Flag flags = ptx::info(statement.op).flags;
  const bool reads_memory = ptx::has(flags, ptx::Flag::ReadsMemory);
  if (execution == Execution::Warp || execution == Execution::Matrix || reads_memory ||
      ptx::has(flags, ptx::Flag::Call)) {
    detail.kind = TrackDetail::Kind::Defines;
  }
  if (statement.op == ptx::Op::selp) detail.kind = TrackDetail::Kind::Select;
  const auto name = [&](ptx::Register reg) { return ptx::name_of(image_.module, function(), reg); };
  bool touched = false;
  bool guard_first = false;
  analysis::for_each_access(function(), statement, [&](const analysis::RegisterAccess& access) {
    const std::uint32_t mask = defined_mask(access.reg);
    if (mask == kNoIndex) return;
    touched = true;
    if (access.write) {
      detail.results.push_back(mask);
      return;
    }
    const bool is_guard = access.operand == analysis::kGuardPosition;
    const ptx::OperandSpec* spec =
        is_guard ? nullptr : ptx::operand_spec(function(), statement, access.operand);
    const std::string_view role = role_of(statement, spec);
    if (is_guard && (ptx::has(flags, ptx::Flag::Branch) || execution == Execution::Control ||
                     execution == Execution::Barrier || execution == Execution::Memory)) {
      detail.uses.push_back({mask, name(access.reg), role, false});
      guard_first = true;
      return;
    }
    if (!is_guard && !role.empty()) {
      detail.uses.push_back({mask, name(access.reg), role, false});
      return;
    }
    if (spec != nullptr && may_store_to_global(statement)) {
      detail.uses.push_back({mask, name(access.reg), "is stored to global memory", true});
      return;
    }
    if (detail.kind == TrackDetail::Kind::Select && access.operand >= 1 && access.operand <= 2) {
      detail.chosen[access.operand - 1] = mask;
      return;
    }
    detail.sources.push_back(mask);
  });
  if (!touched) return;
  if (detail.kind == TrackDetail::Kind::Select) {
    detail.chooser = source(operands()[3], ptx::Type::pred);
    if (detail.chooser.lane_bytes != 0) detail.kind = TrackDetail::Kind::All;
  }
  for (const TrackDetail::Use& use : detail.uses) {
    if (!use.only_global || ptx::space_of(statement.get(ptx::Field::Space)) == ptx::Space::Global) {
      continue;
    }
    for (const ptx::Operand& operand : operands()) {
      if (operand.kind != ptx::OperandKind::Memory) continue;
      const Address place = address(operand);
      detail.base = place.base;
      detail.offset = place.offset;
      break;
    }
  }
  Step made = step();
  made.run = &track;
  made.detail = static_cast<std::uint32_t>(code_.tracks.size());
  made.immediate = guard_first ? 1 : 0;
  code_.tracks.push_back(std::move(detail));
  add(made);
}

}  // namespace ptxgen::inline v0::emulator
