// src/check/shared_race/accesses.cpp - accesses to shared memory, and barriers between them
#include "check/shared_race/accesses.hpp"

#include <algorithm>
#include <bit>
#include <string_view>

#include "ptx/vector_elements.hpp"
#include "support/numbers.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;

namespace {

bool is_instruction(const Instruction& s) { return s.kind == StatementKind::Instruction; }

bool touches_memory(const Instruction& s) {
  return is_instruction(s) && has(info(s.op).flags, Flag::ReadsMemory | Flag::WritesMemory);
}

/// The space of the address that is the `number`-th of the instruction.
Space space_of_address(const Instruction& s, unsigned number) {
  return space_of(s.get(number == 0 ? Field::Space : Field::SourceSpace));
}

/// Whether the module has generic addresses of shared memory.
bool makes_shared_pointers(const Module& module) {
  for (const Function& function : module.functions) {
    for (const Instruction& s : function.body) {
      if (s.is(Op::cvta) && space_of(s.get(Field::Space)) == Space::Shared) return true;
    }
  }
  return false;
}

/// Accesses of a function to shared memory, without its calls.
constexpr std::uint8_t kReads = 1, kWrites = 2;
std::uint8_t touches_shared(const Function& function, bool pointers) {
  std::uint8_t found = 0;
  for (const Instruction& s : function.body) {
    if (!touches_memory(s) || has(info(s.op).flags, Flag::Call)) continue;
    const Space space = space_of(s.get(Field::Space));
    if (s.is(Op::tensormap_cp_fenceproxy)) found |= kReads;
    if (space != Space::Shared && !(pointers && space == Space::Generic)) continue;
    if (has(info(s.op).flags, Flag::ReadsMemory)) found |= kReads;
    if (has(info(s.op).flags, Flag::WritesMemory)) found |= kWrites;
  }
  return found;
}

/// The function that a call names, or nullptr.
const Function* callee_of(const Module& module, const Function& function, const Instruction& s) {
  for (const Operand& operand : function.operands_of(s)) {
    if (operand.kind != OperandKind::Symbol || operand.id >= module.symbols.size()) continue;
    const Symbol& symbol = module.symbols[operand.id];
    if (symbol.kind == SymbolKind::Function && symbol.index < module.functions.size())
      return &module.functions[symbol.index];
  }
  return nullptr;
}

/// Whether an mbarrier or a bulk group signals the completion of the access.
bool is_counted(const Instruction& s) {
  return has(info(s.op).flags, Flag::Asynchronous) && s.op != Op::cp_async &&
         s.op != Op::cp_async_src_size && s.op != Op::cp_async_ignore_src;
}

/// Whether the first address is written and the second one read.
bool is_copy(const Instruction& s) {
  return info(s.op).mnemonic == "cp" || s.is(Op::tensormap_cp_fenceproxy);
}

// The bound of shared memory, for bulk copies without a constant size.
constexpr std::uint32_t kMaxBytes = 1u << 20;

/// Whether it is a bulk copy from global memory with all its operands.
bool is_bulk_load(const Instruction& s) {
  return (s.is(Op::cp_async_bulk_load) || s.is(Op::cp_async_bulk_load_cta)) && s.operand_count > 3;
}

/// The bytes that a bulk copy writes.
SharedAccess bulk_copy(const Function& function, std::uint32_t statement) {
  const Operand& size = function.operands_of(function.body[statement])[2];
  const bool known = size.kind == OperandKind::Integer && size.value < kMaxBytes;
  return {.statement = statement,
          .writes = true,
          .done = SharedAccess::Done::Mbarrier,
          .bytes = known ? static_cast<std::uint32_t>(size.value) : kMaxBytes};
}

bool is_strong(const Instruction& s, std::string_view mnemonic) {
  if (mnemonic == "atom" || mnemonic == "red") return true;
  const Modifier order = s.get(Field::Order);
  return order != Modifier::none && order != Modifier::weak;
}

/// The numbers of `m16n16k16`.
std::array<std::uint32_t, 3> sizes_of(const Instruction& s) {
  std::string_view text = name(s.get(Field::MatrixShape));
  std::array<std::uint32_t, 3> sizes{};
  for (std::uint32_t& size : sizes) {
    if (text.empty()) break;
    text.remove_prefix(1);  // m, n, k
    size = take_number<std::uint32_t>(text).value_or(0);
  }
  return sizes;
}

/// The rectangle that wmma.load or wmma.store accesses: rows, or columns of a column-major matrix,
/// that are the stride apart, which is the third operand or the length of a row.
void describe_matrix(const Function& function, const Instruction& s, SharedAccess& access,
                     std::uint32_t number) {
  constexpr std::uint32_t kMaxStride = 1u << 20;
  const auto is = [&](Modifier word) { return std::ranges::count(s.modifiers, word) != 0; };
  const auto [m, n, k] = sizes_of(s);
  const std::uint32_t down = is(Modifier::b) ? k : m;
  const std::uint32_t across = is(Modifier::a) ? k : n;
  const bool columns = is(Modifier::col);
  const std::uint32_t length = columns ? down : across;
  const auto operands = function.operands_of(s);
  std::uint64_t stride = length;
  if (operands.size() > 2) {
    const bool known = operands[2].kind == OperandKind::Integer && operands[2].value < kMaxStride;
    access.anywhere = !known;
    stride = known ? operands[2].value : 0;
  }
  access.rows = columns ? across : down;
  access.bytes = length * bits(s.type()) / 8;
  access.pitch = static_cast<std::uint32_t>(stride * bits(s.type()) / 8);
  access.first_lane = number % 32;
  if (access.rows == 0 || access.rows > 32 || access.anywhere) {
    access.anywhere = true;
    access.rows = 0;
    return;
  }
  access.lanes = std::rotl(~0u >> (32 - access.rows), static_cast<int>(access.first_lane));
}

/// Sets the fields that depend on the kind of instruction. `before`: the matrices ahead of it.
void describe(const Function& function, const Instruction& s, SharedAccess& access,
              std::uint32_t before) {
  const std::string_view mnemonic = info(s.op).mnemonic;
  access.strong = is_strong(s, mnemonic);
  access.bytes = bytes(s.type()) * vector_elements(s);
  if (mnemonic == "cp") {
    access.done = SharedAccess::Done::Group;
    const auto operands = function.operands_of(s);
    const bool sized = operands.size() > 2 && operands[2].kind == OperandKind::Integer;
    access.bytes = sized ? static_cast<std::uint32_t>(operands[2].value) : 16;
  } else if (mnemonic == "ldmatrix" || mnemonic == "stmatrix") {
    // Eight lanes name the rows of a matrix, 16 bytes each.
    access.bytes = 16;
    if (s.get(Field::MatrixShape) != Modifier::m8n8) {
      access.anywhere = true;
    } else if (s.get(Field::MatrixCount) == Modifier::x1) {
      access.lanes = 0xff;
    } else if (s.get(Field::MatrixCount) == Modifier::x2) {
      access.lanes = 0xffff;
    }
  } else if (mnemonic == "mbarrier") {
    access.bytes = 8;
    // Uses of an mbarrier are ordered by it; its initialization is an ordinary write.
    access.strong = s.op != Op::mbarrier_init && s.op != Op::mbarrier_inval;
  } else if (mnemonic == "wmma") {
    describe_matrix(function, s, access, before);
  } else if (mnemonic == "tensormap") {
    access.bytes = 128;
    // One lane stands for the warp, which copies a map together.
    if (s.op == Op::tensormap_cp_fenceproxy) access.lanes = 1;
  } else if (mnemonic != "ld" && mnemonic != "st" && mnemonic != "atom" && mnemonic != "red" &&
             mnemonic != "ldu") {
    access.anywhere = true;
  }
  if (s.op == Op::st_bulk || access.bytes == 0) access.anywhere = true;
}

}  // namespace

SharedAccesses::SharedAccesses(const Module& module)
    : module_(module), pointers_(makes_shared_pointers(module)) {
  const auto& functions = module.functions;
  touches_.resize(functions.size());
  std::vector<std::vector<std::size_t>> callers(functions.size());
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    touches_[i] = touches_shared(functions[i], pointers_);
    for (const Instruction& s : functions[i].body) {
      if (!is_instruction(s) || !has(info(s.op).flags, Flag::Call)) continue;
      if (const Function* callee = callee_of(module, functions[i], s))
        callers[static_cast<std::size_t>(callee - functions.data())].push_back(i);
    }
    if (touches_[i] != 0) open.push_back(i);
    if (!functions[i].entry) touched_by_any_ |= touches_[i];
  }
  while (!open.empty()) {
    const std::size_t changed = open.back();
    open.pop_back();
    for (const std::size_t caller : callers[changed]) {
      const std::uint8_t both = touches_[caller] | touches_[changed];
      if (both == touches_[caller]) continue;
      touches_[caller] = both;
      open.push_back(caller);
    }
  }
}

std::uint8_t SharedAccesses::touched_by(const Function& function, const Instruction& call) const {
  const Function* callee = callee_of(module_, function, call);
  // An indirect call may call any function. A function without a body belongs to the system, which
  // does not access shared memory, or to another module.
  return callee == nullptr ? touched_by_any_
                           : touches_[static_cast<std::size_t>(callee - module_.functions.data())];
}

std::vector<SharedAccess> SharedAccesses::of(const Function& function) const {
  std::vector<SharedAccess> accesses;
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const Instruction& s = function.body[i];
    if (is_bulk_load(s)) accesses.push_back(bulk_copy(function, i));
    if (!touches_memory(s) || is_counted(s)) continue;
    const OpInfo& row = info(s.op);
    if (has(row.flags, Flag::Call)) {
      const std::uint8_t touched = touched_by(function, s);
      if (touched == 0) continue;
      accesses.push_back({.statement = i,
                          .reads = (touched & kReads) != 0,
                          .writes = (touched & kWrites) != 0,
                          .anywhere = true});
      continue;
    }
    const auto operands = function.operands_of(s);
    unsigned number = 0;
    for (std::uint32_t k = 0; k < operands.size(); ++k) {
      if (operands[k].kind != OperandKind::Memory) continue;
      const Space space = space_of_address(s, number++);
      const bool shared = space == Space::Shared || (space == Space::Generic && pointers_);
      if (!shared) continue;
      SharedAccess access;
      access.statement = i;
      access.operand = k;
      const bool copies = is_copy(s);
      access.reads = has(row.flags, Flag::ReadsMemory) && (!copies || number == 2);
      access.writes = has(row.flags, Flag::WritesMemory) && (!copies || number == 1);
      const auto matrices = std::ranges::count_if(
          accesses, [](const SharedAccess& earlier) { return earlier.rows != 0; });
      describe(function, s, access, static_cast<std::uint32_t>(matrices));
      accesses.push_back(access);
    }
  }
  return accesses;
}

namespace {

/// Barriers at which threads arrive without waiting; they do not order the block.
struct Arrivals {
  bool any = false;
  bool unknown = false;  ///< at a barrier whose number is no constant
  std::vector<std::uint64_t> ids;
};

Arrivals arrivals_of(const Function& function) {
  Arrivals found;
  for (const Instruction& s : function.body) {
    if (!s.is(Op::bar_arrive) && !s.is(Op::barrier_arrive)) continue;
    const auto operands = function.operands_of(s);
    found.any = true;
    if (operands.empty() || operands[0].kind != OperandKind::Integer)
      found.unknown = true;
    else
      found.ids.push_back(operands[0].value);
  }
  return found;
}

/// Whether a wait for the cluster directly follows the arrival: accesses between the two would not
/// be ordered.
bool follows_arrival(const Function& function, std::uint32_t statement) {
  if (statement == 0) return false;
  const Instruction& before = function.body[statement - 1];
  return is_instruction(before) && before.is(Op::barrier_cluster_arrive) &&
         !before.guard.present() && before.get(Field::Order) != Modifier::relaxed;
}

Orders orders(analysis::Facts& facts, std::uint32_t statement, std::uint64_t threads,
              const Arrivals& arrivals) {
  const Function& function = facts.function();
  const Instruction& s = function.body[statement];
  if (!is_instruction(s) || s.guard.present()) return Orders::Nothing;
  const auto operands = function.operands_of(s);
  std::size_t id = 0;     // the operand that is the barrier's number
  std::size_t count = 1;  // the operand that is how many threads it counts, if there is one
  switch (s.op) {
    case Op::bar_warp_sync: {
      const bool all = !operands.empty() && operands[0].kind == OperandKind::Integer &&
                       static_cast<std::uint32_t>(operands[0].value) == 0xffffffffu;
      return all ? Orders::Warp : Orders::Nothing;
    }
    case Op::barrier_cluster_wait:
      return follows_arrival(function, statement) ? Orders::Block : Orders::Nothing;
    case Op::bar_sync:
    case Op::barrier_sync:
      break;
    case Op::bar_red_popc:
    case Op::bar_red:
    case Op::barrier_red_popc:
    case Op::barrier_red:
      id = 1;
      count = operands.size();
      break;
    case Op::bar_red_popc_count:
    case Op::bar_red_count:
    case Op::barrier_red_popc_count:
    case Op::barrier_red_count:
      id = 1;
      count = 2;
      break;
    default:
      return Orders::Nothing;
  }
  if (id >= operands.size()) return Orders::Nothing;
  if (count < operands.size()) {
    const bool all = operands[count].kind == OperandKind::Integer && threads != 0 &&
                     operands[count].value == threads;
    if (!all) return Orders::Nothing;
  }
  if (arrivals.unknown) return Orders::Nothing;
  const bool arrived = operands[id].kind != OperandKind::Integer
                           ? arrivals.any
                           : std::find(arrivals.ids.begin(), arrivals.ids.end(),
                                       operands[id].value) != arrivals.ids.end();
  if (arrived) return Orders::Nothing;
  if (operands[id].kind == OperandKind::Register) {
    const analysis::Agreement agreed = analysis::agreement(
        facts.module(), function, facts.index(), facts.uniformity(), operands[id], facts.options());
    if (agreed < analysis::Agreement::Block) return Orders::Nothing;
  }
  return Orders::Block;
}

}  // namespace

std::vector<Orders> orders_of(analysis::Facts& facts, std::uint64_t threads) {
  const Arrivals arrivals = arrivals_of(facts.function());
  std::vector<Orders> all;
  for (std::uint32_t i = 0; i < facts.function().body.size(); ++i)
    all.push_back(orders(facts, i, threads, arrivals));
  return all;
}

Segments::Segments(analysis::Facts& facts, const std::vector<Orders>& orders, bool warps) {
  const Function& function = facts.function();
  const analysis::Cfg& cfg = facts.cfg();
  segment_of_.resize(function.body.size());
  std::vector<std::uint32_t> together_after;   // segments after a barrier that all threads reach
  std::vector<std::uint32_t> divergent_after;  // ... that some threads may reach
  std::vector<std::uint32_t> last_of_block;
  for (std::uint32_t b = 0; b < cfg.blocks().size(); ++b) {
    const analysis::Block& block = cfg.blocks()[b];
    block_segment_.push_back(count());
    first_.push_back(block.first);
    for (std::uint32_t i = block.first; i < block.end; ++i) {
      segment_of_[i] = count() - 1;
      const Orders ordered = orders[i];
      if (ordered == Orders::Nothing || (ordered == Orders::Warp && !warps)) continue;
      end_.push_back(i + 1);
      first_.push_back(i + 1);
      if (!cfg.reachable(b)) continue;
      const bool together =
          facts.uniformity().of_control(b) >=
          (ordered == Orders::Block ? analysis::Agreement::Block : analysis::Agreement::Warp);
      (together ? together_after : divergent_after).push_back(count() - 1);
    }
    end_.push_back(block.end);
    last_of_block.push_back(count() - 1);
  }
  // Only the last segment of a block has successors.
  first_successor_.assign(count() + 1, 0);
  std::size_t b = 0;
  for (std::uint32_t segment = 0; segment < count(); ++segment) {
    first_successor_[segment] = static_cast<std::uint32_t>(successors_.size());
    if (b >= last_of_block.size() || last_of_block[b] != segment) continue;
    for (const std::uint32_t to : cfg.successors(static_cast<std::uint32_t>(b))) {
      if (to < cfg.blocks().size()) successors_.push_back(block_segment_[to]);
    }
    ++b;
  }
  first_successor_[count()] = static_cast<std::uint32_t>(successors_.size());
  starts_.push_back({0});
  for (const std::uint32_t segment : together_after) starts_.push_back({segment});
  if (!divergent_after.empty()) starts_.push_back(std::move(divergent_after));
}

}  // namespace ptxgen::inline v0::gates
