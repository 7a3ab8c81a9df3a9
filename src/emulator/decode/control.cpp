// src/emulator/decode/control.cpp - segments, branches, calls, barriers, warp-wide rows
#include <algorithm>
#include <numeric>
#include <span>

#include "emulator/decode/decoder.hpp"
#include "emulator/machine/warp_steps.hpp"
#include "emulator/state/support_table.hpp"
#include "emulator/vector/lane_steps.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Op;

/// Loads, atomics and waits by which a thread can wait for another one.
bool polls_others(const ptx::Instruction& instruction) {
  const ptx::OpInfo& row = ptx::info(instruction.op);
  if (instruction.op == Op::nanosleep) return true;
  if (row.mnemonic == "atom" || row.mnemonic == "mbarrier") return true;
  if (row.mnemonic != "ld") return false;
  const ptx::Modifier order = instruction.get(ptx::Field::Order);
  return order != ptx::Modifier::none && order != ptx::Modifier::weak;
}

bool waits_for_lanes(const ptx::Instruction& instruction) {
  const ptx::Flag flags = ptx::info(instruction.op).flags;
  return ptx::has(flags, ptx::Flag::Barrier) || ptx::has(flags, ptx::Flag::Convergent);
}

/// Whether it is a step inside a segment.
bool is_straight_line(const ptx::Instruction& instruction) {
  const Execution execution = execution_of(instruction.op);
  return !waits_for_lanes(instruction) && execution != Execution::Control;
}

/// `.pragma "used_bytes_mask N"` (PTX ISA 8.3): the next instruction, if it is a load, needs only
/// the bytes whose bits are set. nvcc prints N in decimal.
void read_used_bytes(std::string_view pragma, std::uint32_t& mask) {
  constexpr std::string_view kName = "used_bytes_mask";
  if (!pragma.starts_with(kName)) return;
  pragma.remove_prefix(kName.size());
  while (pragma.starts_with(' ') || pragma.starts_with('\t')) pragma.remove_prefix(1);
  const bool hex = pragma.starts_with("0x") || pragma.starts_with("0X");
  if (hex) pragma.remove_prefix(2);
  const std::uint32_t value = parse_number<std::uint32_t>(pragma, hex ? 16 : 10).value_or(0);
  if (value != 0) mask = value;
}

bool in_shared(const ptx::Instruction& instruction) {
  return ptx::space_of(instruction.get(ptx::Field::Space)) == ptx::Space::Shared;
}

}  // namespace

/// Whether the access to global memory shows the order in which blocks execute it.
bool depends_on_block_order(const ptx::Function& function, const ptx::Instruction& instruction) {
  const ptx::OpInfo& row = ptx::info(instruction.op);
  if (instruction.op == Op::cp_reduce_async_bulk_tensor) return true;
  const bool atomic = row.mnemonic == "atom";
  if (!atomic && row.mnemonic != "red" && row.mnemonic != "ld" && row.mnemonic != "st") {
    return false;
  }
  if (in_shared(instruction)) return false;
  if (atomic || row.mnemonic == "red") {
    for (std::size_t i = 0; i < ptx::kMaxTypes; ++i) {
      const ptx::Type type = instruction.type(i);
      if (ptx::kind(type) == ptx::TypeKind::Float || ptx::kind(type) == ptx::TypeKind::Packed) {
        return true;
      }
    }
    const auto operands = function.operands_of(instruction);
    return atomic && (operands.empty() || operands[0].kind != ptx::OperandKind::Sink);
  }
  const ptx::Modifier order = instruction.get(ptx::Field::Order);
  return order != ptx::Modifier::none && order != ptx::Modifier::weak;
}

void Decoder::begin_segment() {
  Segment result;
  result.first = static_cast<std::uint32_t>(code_.steps.size());
  result.first_statement = static_cast<std::uint32_t>(code_.segment_statements.size());
  code_.segments.push_back(result);
  const auto statements = static_cast<std::uint32_t>(function().body.size());
  segment_blocks_.push_back(statement_ < statements ? cfg_.position(cfg_.block_of(statement_))
                                                    : statements);
  open_ = true;
}

void Decoder::end_segment(ControlDetail&& detail) {
  Segment& segment = code_.segments.back();
  Step last = detail.kind == Control::Next ? Step{} : step();
  if (detail.kind == Control::Next) last.statement = code_.first_statement + statement_;
  last.run = nullptr;
  if (detail.kind == Control::WarpSync && detail.together != nullptr) {
    // The step already has the operands.
    last = code_.steps.back();
    last.run = nullptr;
    code_.steps.pop_back();
  }
  segment.control = static_cast<std::uint32_t>(code_.steps.size());
  segment.detail = static_cast<std::uint32_t>(code_.controls.size());
  segment.kind = detail.kind;
  code_.steps.push_back(last);
  code_.controls.push_back(std::move(detail));
  open_ = false;
}

void Decoder::decode() {
  find_warpgroup_registers();
  segment_of_label_.assign(function().labels.size(), kNoIndex);
  const auto& body = function().body;
  for (statement_ = 0; statement_ < body.size(); ++statement_) {
    instruction_ = &body[statement_];
    place_registers();
    if (instruction_->kind == ptx::StatementKind::Label) {
      if (open_) end_segment({});
      begin_segment();
      segment_of_label_[operands()[0].id] = static_cast<std::uint32_t>(code_.segments.size() - 1);
      continue;
    }
    if (instruction_->kind == ptx::StatementKind::Unknown) {
      refuse("it is not in ptxgen's table of instructions");
    }
    if (instruction_->kind == ptx::StatementKind::Pragma) {
      read_used_bytes(image_.module.text(instruction_->text), used_bytes_);
    }
    if (instruction_->kind == ptx::StatementKind::Instruction) decode_instruction();
  }
  end_function();
  for (std::uint32_t s = 0; s < code_.segments.size(); ++s) code_.segments[s].next = s + 1;
  resolve_labels();
  mark_followers();
  order_segments();
  note_register_places();
}

void Decoder::decode_instruction() {
  // An instruction that waits for other lanes begins a segment, where diverged lanes reconverge; so
  // does a call through a register, which lanes that call another function execute again.
  if (open_ && (waits_for_lanes(*instruction_) || is_indirect_call()) &&
      code_.segments.back().instructions > 0) {
    end_segment({});
  }
  if (!open_) begin_segment();
  ++code_.segments.back().instructions;
  code_.segment_statements.push_back(statement_);
  if (instruction_->guard.present()) {
    static_cast<void>(declared_slot(instruction_->guard.predicate));
  }
  if (polls_others(*instruction_)) code_.segments.back().polls = true;
  if (execution_of(instruction_->op) == Execution::Refused) {
    refuse(refusal_reason(instruction_->op));
  }
  if (instruction_->guard.present() && is_straight_line(*instruction_)) {
    Step off = step();
    off.run = &count_predicated_off;
    add(off);
  }
  track_step();
  if (!warpgroup_registers_.empty()) warpgroup_access_step();
  control_step();
  used_bytes_ = 0xffffffffu;
}

/// Control that falls off the end returns.
void Decoder::end_function() {
  const auto& body = function().body;
  static const ptx::Instruction nothing{};
  instruction_ = &nothing;
  if (open_ && !body.empty()) {
    statement_ = static_cast<std::uint32_t>(body.size() - 1);
    end_segment({});
    statement_ = static_cast<std::uint32_t>(body.size());
  }
  begin_segment();
  statement_ = body.empty() ? 0 : static_cast<std::uint32_t>(body.size() - 1);
  ControlDetail fall;
  fall.kind = function().entry ? Control::Exit : Control::Return;
  end_segment(std::move(fall));
  code_.entry = 0;
}

/// Segment::follows_barrier.
void Decoder::mark_followers() {
  const auto& body = function().body;
  std::vector<std::uint32_t> barriers;  // statements
  for (const Segment& segment : code_.segments) {
    const ControlDetail& detail = code_.controls[segment.detail];
    if (detail.kind != Control::Barrier || !detail.barrier.present()) continue;
    barriers.push_back(code_.steps[segment.control].statement - code_.first_statement);
  }
  if (barriers.empty()) return;
  for (Segment& segment : code_.segments) {
    const auto statements =
        std::span(code_.segment_statements).subspan(segment.first_statement, segment.instructions);
    const auto stores = [&](std::uint32_t statement) {
      return ptx::has(ptx::info(body[statement].op).flags, ptx::Flag::WritesMemory);
    };
    if (std::ranges::none_of(statements, stores)) continue;
    const std::uint32_t block = cfg_.block_of(statements.front());
    segment.follows_barrier = std::ranges::any_of(barriers, [&](std::uint32_t barrier) {
      const std::uint32_t from = cfg_.block_of(barrier);
      return from == block ? barrier < statements.front()
                           : cfg_.post_dominators().dominates(block, from);
    });
  }
}

/// Numbers the segments in the order of blocks: running the lowest first reconverges lanes early.
void Decoder::order_segments() {
  const auto count = static_cast<std::uint32_t>(code_.segments.size());
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t s) { return segment_blocks_[s]; });
  std::vector<std::uint32_t> number(count + 1, count);
  for (std::uint32_t i = 0; i < count; ++i) number[order[i]] = i;
  std::vector<Segment> ordered;
  ordered.reserve(count);
  for (const std::uint32_t s : order) {
    ordered.push_back(code_.segments[s]);
    ordered.back().next = number[ordered.back().next];
  }
  code_.segments = std::move(ordered);
  code_.entry = number[0];
  for (std::uint32_t s = 0; s < count; ++s) {
    ControlDetail& detail = code_.controls[code_.segments[s].detail];
    if (detail.kind == Control::Branch) {
      detail.target = number[detail.target];
      detail.backward = detail.target <= s;
    } else if (detail.kind == Control::BranchTable) {
      for (std::uint32_t& target : detail.targets) {
        target = number[target];
        detail.backward |= target <= s;
      }
    }
  }
}

void Decoder::resolve_labels() {
  // Targets are labels so far.
  for (std::uint32_t s = 0; s < code_.segments.size(); ++s) {
    ControlDetail& detail = code_.controls[code_.segments[s].detail];
    if (detail.kind == Control::Branch) {
      detail.target = segment_of_label_[detail.target];
    } else if (detail.kind == Control::BranchTable) {
      for (std::uint32_t& target : detail.targets) {
        target = segment_of_label_[target];
      }
    }
  }
}

void Decoder::control_step() {
  ControlDetail detail;
  switch (instruction_->op) {
    case Op::bra:
      detail.kind = Control::Branch;
      detail.target = operands()[0].id;
      break;
    case Op::brx_idx:
      branch_table_step(detail);
      break;
    case Op::call:
      call_step(detail);
      break;
    case Op::ret:
      detail.kind = function().entry ? Control::Exit : Control::Return;
      break;
    case Op::exit:
      detail.kind = Control::Exit;
      break;
    case Op::trap:
    case Op::brkpt:
      detail.kind = Control::Trap;
      break;
    case Op::bar_sync:
    case Op::bar_arrive:
    case Op::bar_red_popc:
    case Op::bar_red_popc_count:
    case Op::bar_red:
    case Op::bar_red_count:
    case Op::barrier_sync:
    case Op::barrier_arrive:
    case Op::barrier_red_popc:
    case Op::barrier_red_popc_count:
    case Op::barrier_red:
    case Op::barrier_red_count:
      barrier_step(detail);
      break;
    case Op::barrier_cluster_arrive:
    case Op::barrier_cluster_wait:
      cluster_barrier_step(detail);
      break;
    default:
      warp_step();
      return;
  }
  end_segment(std::move(detail));
}

void Decoder::branch_table_step(ControlDetail& detail) {
  const auto ops = operands();
  detail.kind = Control::BranchTable;
  detail.index = source(ops[0], ptx::Type::u32);
  for (const ptx::Instruction& statement : function().body) {
    if (statement.kind != ptx::StatementKind::BranchTargets) continue;
    const auto table = function().operands_of(statement);
    if (table[0].id != ops[1].id) continue;
    for (const ptx::Operand& target : table.subspan(1)) detail.targets.push_back(target.id);
  }
  if (detail.targets.empty()) refuse("its table of targets is missing");
}

void Decoder::cluster_barrier_step(ControlDetail& detail) {
  detail.kind = Control::Barrier;
  detail.op = instruction_->op;
  detail.aligned = instruction_->has(ptx::Field::Aligned);
  detail.arrive = instruction_->op == Op::barrier_cluster_arrive;
  detail.action = instruction_->get(ptx::Field::Order);
}

void Decoder::barrier_step(ControlDetail& detail) {
  detail.kind = Control::Barrier;
  detail.op = instruction_->op;
  const std::string_view mnemonic = ptx::info(instruction_->op).mnemonic;
  detail.aligned = mnemonic == "bar" || instruction_->has(ptx::Field::Aligned);
  detail.arrive = instruction_->op == Op::bar_arrive || instruction_->op == Op::barrier_arrive;
  detail.action = instruction_->get(ptx::Field::BoolOp);
  const auto ops = operands();
  std::size_t next = 0;
  const bool reduces = detail.action != ptx::Modifier::none;
  if (reduces) {
    detail.result = destination(
        ops[next++], detail.action == ptx::Modifier::popc ? ptx::Type::u32 : ptx::Type::pred);
  }
  detail.barrier = source(ops[next++], ptx::Type::u32);
  if (ops.size() - next > (reduces ? 1u : 0u)) detail.count = source(ops[next++], ptx::Type::u32);
  if (reduces) detail.predicate = source(ops[next], ptx::Type::pred);
}

ValuePlace Decoder::value_place(const ptx::Operand& operand, std::uint32_t bytes) {
  ValuePlace place;
  place.bytes = bytes;
  if (operand.kind == ptx::OperandKind::Symbol) {
    const ptx::Symbol& symbol = image_.module.symbols[operand.id];
    if (symbol.kind == ptx::SymbolKind::FunctionVariable &&
        local_offset_[symbol.index] != kNoIndex) {
      const ptx::Variable& variable = function().variables[symbol.index];
      place.offset = local_offset_[symbol.index];
      place.bytes = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(ptx::size_in_bytes(variable), 1u << 24));
      return place;
    }
    if (symbol.kind == ptx::SymbolKind::Parameter && !function().entry) {
      return code_.parameters[symbol.index];
    }
    if (symbol.kind == ptx::SymbolKind::Return) return code_.returns[symbol.index];
  }
  const ptx::Type type = operand.kind == ptx::OperandKind::Register
                             ? function().type_of(operand.as_register())
                             : ptx::untyped(8 * std::max(bytes, 1u));
  place.slot = source(operand, type);
  place.shadow = shadow_of(place.slot);
  if (place.bytes == 0) place.bytes = place.slot.lane_bytes;
  return place;
}

std::vector<ValuePlace> Decoder::call_values(const ptx::Operand* list,
                                             const std::vector<ptx::Variable>* declared) {
  std::vector<ValuePlace> values;
  if (list == nullptr) return values;
  const auto elements =
      list->kind == ptx::OperandKind::List ? function().elements(*list) : std::span(list, 1);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    std::uint32_t bytes = 0;
    if (declared != nullptr && i < declared->size()) {
      bytes = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(ptx::size_in_bytes((*declared)[i]), 1u << 24));
    }
    values.push_back(value_place(elements[i], bytes));
  }
  return values;
}

bool Decoder::is_indirect_call() const {
  if (instruction_->op != Op::call) return false;
  const auto ops = operands();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const ptx::OperandSpec* spec = ptx::operand_spec(function(), *instruction_, i);
    if (spec != nullptr && spec->role == ptx::OperandRole::Callee) {
      return ops[i].kind != ptx::OperandKind::Symbol;
    }
  }
  return false;
}

void Decoder::call_step(ControlDetail& detail) {
  detail.kind = Control::Call;
  const ptx::Operand* callee = nullptr;
  const ptx::Operand* arguments = nullptr;
  const ptx::Operand* returns = nullptr;
  const auto ops = operands();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const ptx::OperandSpec* spec = ptx::operand_spec(function(), *instruction_, i);
    if (spec == nullptr) refuse("its operands do not match its row of the op table");
    if (spec->role == ptx::OperandRole::Callee) callee = &ops[i];
    if (spec->role == ptx::OperandRole::Returns) returns = &ops[i];
    if (spec->role == ptx::OperandRole::Arguments) arguments = &ops[i];
  }
  if (callee == nullptr) refuse("it does not name a function");

  const ptx::Function* target = nullptr;
  if (callee->kind == ptx::OperandKind::Symbol) {
    const ptx::Symbol& symbol = image_.module.symbols[callee->id];
    if (symbol.kind != ptx::SymbolKind::Function) {
      refuse(format_text("'{}' is not a function", image_.module.text(symbol.name)));
    }
    target = &image_.module.functions[symbol.index];
    const std::string name(image_.module.text(target->name));
    if (target->declaration) {
      if (!is_system_function(name)) {
        refuse(
            format_text("the function '{}' is declared but not defined; the emulator provides {}",
                        name, system_function_names()));
      }
      detail.kind = Control::CallSystem;
      detail.system = name;
    } else {
      detail.callee = image_.kernel_images[code_.kernel].code_of_function[symbol.index];
    }
  } else {
    detail.kind = Control::CallIndirect;
    detail.index = source(*callee, ptx::Type::u64);
  }
  detail.arguments = call_values(arguments, target != nullptr ? &target->parameters : nullptr);
  detail.returns = call_values(returns, target != nullptr ? &target->returns : nullptr);
  if (target != nullptr && (detail.arguments.size() != target->parameters.size() ||
                            detail.returns.size() != target->returns.size())) {
    refuse(format_text("it passes {} and takes {}, but the function has {} and {}",
                       count_text(detail.arguments.size(), "argument"),
                       count_text(detail.returns.size(), "result"), target->parameters.size(),
                       target->returns.size()));
  }
}

void Decoder::warp_step() {
  const ptx::OpInfo& row = ptx::info(instruction_->op);
  ControlDetail detail;
  detail.kind = Control::WarpSync;
  detail.op = instruction_->op;
  if (const WarpRow* warp = find_warp_row(instruction_->op)) {
    LaneDetail operands_of_row;
    static_cast<void>(lane_function(*instruction_, operands_of_row.op));
    const auto ops = operands();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const ptx::OperandSpec* spec = ptx::operand_spec(function(), *instruction_, i);
      if (spec == nullptr) refuse("its operands do not match its row of the op table");
      const ptx::Type type = ptx::operand_type(*instruction_, *spec);
      check_elements(ops[i], *spec);
      if (spec->role == ptx::OperandRole::Destination) {
        destinations(ops[i], type, operands_of_row.results);
      } else {
        sources(ops[i], type, operands_of_row.sources);
      }
    }
    Step result = step();
    result.run = warp->run;
    result.detail = static_cast<std::uint32_t>(code_.lanes.size());
    result.immediate = static_cast<std::uint64_t>(
        instruction_->get(row.mnemonic == "shfl"   ? ptx::Field::ShuffleMode
                          : row.mnemonic == "vote" ? ptx::Field::VoteMode
                                                   : ptx::Field::AtomicOp));
    if (warp->has_members) {
      detail.members = operands_of_row.sources.back();
      detail.together = warp->run;
    }
    code_.lanes.push_back(std::move(operands_of_row));
    add(result);
    if (warp->has_members) end_segment(std::move(detail));
    return;
  }
  LaneOp op;
  const bool is_matrix = matrix_function(*instruction_, op) != nullptr;
  if (is_matrix || lane_function(*instruction_, op) != nullptr) {
    lane_step();
  } else if (execution_of(instruction_->op) == Execution::NoEffect) {
    return;
  } else {
    memory_step();
  }
  // Rows that all lanes of a warp execute together synchronise first.
  if (ptx::has(row.flags, ptx::Flag::Convergent) && instruction_->op != Op::activemask) {
    detail.together = code_.steps.back().run;
    end_segment(std::move(detail));
  }
}

}  // namespace ptxgen::inline v0::emulator
