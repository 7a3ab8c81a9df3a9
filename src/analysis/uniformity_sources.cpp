// src/analysis/uniformity_sources.cpp - uniformity of special registers, loads and results
#include "analysis/uniformity_sources.hpp"

#include "ptxgen/ptx/limits.hpp"

namespace ptxgen::inline v0::analysis {

using namespace ptx;

std::array<std::uint32_t, 3> block_shape(const Function& function,
                                         const UniformityOptions& options) noexcept {
  std::array<std::uint32_t, 3> shape{};
  if (options.block[0] != 0) {
    shape = {options.block[0], std::max(1u, options.block[1]), std::max(1u, options.block[2])};
  } else {
    for (const Directive& directive : function.directives) {
      if (directive.kind != DirectiveKind::reqntid || directive.count == 0) continue;
      shape = {1, 1, 1};
      for (std::size_t i = 0; i < directive.count && i < 3; ++i) shape[i] = directive.values[i];
      break;
    }
  }
  return possible_block(shape) ? shape : std::array<std::uint32_t, 3>{};
}

bool possible_block(const std::array<std::uint32_t, 3>& shape) noexcept {
  const Limits limits;
  std::uint64_t threads = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    if (shape[i] == 0 || shape[i] > limits.block[i]) return false;
    threads *= shape[i];
  }
  return threads <= limits.threads_per_block;
}

std::array<std::uint32_t, 3> largest_block(const std::array<std::uint32_t, 3>& bounds) noexcept {
  const Limits limits;
  std::array<std::uint32_t, 3> shape{1, 1, 1};
  std::uint32_t left = limits.threads_per_block;
  for (std::size_t i = 0; i < 3; ++i) {
    shape[i] = std::clamp(bounds[i], 1u, std::min(limits.block[i], left));
    left /= shape[i];
  }
  return shape;
}

Agreement of_special(SpecialRegister reg, unsigned component,
                     const std::array<std::uint32_t, 3>& block) noexcept {
  const bool known = block[0] != 0;
  switch (reg) {
    case SpecialRegister::tid:
      // A warp is 32 threads, x first. The fourth component reads as 0.
      if (component == 4) return Agreement::Grid;
      if (!known) return Agreement::None;
      if (component >= 1 && component <= 3 && block[component - 1] == 1) return Agreement::Grid;
      if (component == 2 && block[0] % 32 == 0) return Agreement::Warp;
      if (component == 3 && std::uint64_t{block[0]} * block[1] % 32 == 0) return Agreement::Warp;
      return Agreement::None;
    case SpecialRegister::warpid:
      return Agreement::Warp;
    case SpecialRegister::ctaid:
    case SpecialRegister::clusterid:
    case SpecialRegister::cluster_ctaid:
      return component == 4 ? Agreement::Grid : Agreement::Block;
    case SpecialRegister::cluster_ctarank:
      return Agreement::Block;
    case SpecialRegister::ntid:
    case SpecialRegister::nctaid:
    case SpecialRegister::nwarpid:
    case SpecialRegister::nsmid:
    case SpecialRegister::gridid:
    case SpecialRegister::is_explicit_cluster:
    case SpecialRegister::nclusterid:
    case SpecialRegister::cluster_nctaid:
    case SpecialRegister::cluster_nctarank:
    case SpecialRegister::reserved_smem_offset_begin:
    case SpecialRegister::reserved_smem_offset_end:
    case SpecialRegister::reserved_smem_offset_cap:
    case SpecialRegister::reserved_smem_offset_0:
    case SpecialRegister::reserved_smem_offset_1:
    case SpecialRegister::total_smem_size:
    case SpecialRegister::aggr_smem_size:
    case SpecialRegister::dynamic_smem_size:
    case SpecialRegister::current_graph_exec:
      return Agreement::Grid;
    default:
      return reg >= SpecialRegister::envreg0 && reg <= SpecialRegister::envreg31 ? Agreement::Grid
                                                                                 : Agreement::None;
  }
}

namespace {

const Symbol* symbol_at(const Module& module, std::uint32_t id) noexcept {
  return id < module.symbols.size() ? &module.symbols[id] : nullptr;
}

Agreement of_space(Space space) noexcept {
  switch (space) {
    case Space::Global:
    case Space::Const:
    case Space::Texture:
      return Agreement::Grid;
    case Space::Shared:
      return Agreement::Block;
    default:
      return Agreement::None;
  }
}

// Whether a load from .param reads what the kernel was launched with.
bool reads_kernel_parameter(const Module& module, const Function& function,
                            const Operand& address) noexcept {
  if (!function.entry) return false;
  if (address.base == OperandKind::Symbol) {
    const Symbol* symbol = symbol_at(module, address.id);
    return symbol != nullptr && symbol->kind == SymbolKind::Parameter;
  }
  // Through a register it may also be the parameter of a call that the kernel makes.
  return std::none_of(function.variables.begin(), function.variables.end(),
                      [](const Variable& v) { return v.space == Space::Param; });
}

}  // namespace

Agreement of_symbol(const Module& module, const Function& function, std::uint32_t id) noexcept {
  const Symbol* symbol = symbol_at(module, id);
  if (symbol == nullptr) return Agreement::None;
  switch (symbol->kind) {
    case SymbolKind::Variable:
      return symbol->index < module.variables.size()
                 ? of_space(module.variables[symbol->index].space)
                 : Agreement::None;
    case SymbolKind::FunctionVariable:
      if (symbol->function >= module.functions.size() ||
          symbol->index >= module.functions[symbol->function].variables.size())
        return Agreement::None;
      return of_space(module.functions[symbol->function].variables[symbol->index].space);
    case SymbolKind::Function:
      return Agreement::Grid;
    case SymbolKind::Parameter:
      return function.entry ? Agreement::Grid : Agreement::None;
    default:
      return Agreement::None;
  }
}

ResultKind result_kind(const Module& module, const Function& function,
                       const Instruction& s) noexcept {
  switch (s.op) {
    case Op::vote:
    case Op::vote_ballot:
    case Op::vote_sync:
    case Op::vote_sync_ballot:
    case Op::match_all:
    case Op::redux:
    case Op::redux_bits:
    case Op::redux_f32:
      return ResultKind::Collective;
    case Op::bar_red_popc:
    case Op::bar_red:
    case Op::barrier_red_popc:
    case Op::barrier_red:
    case Op::bar_red_popc_count:
    case Op::bar_red_count:
    case Op::barrier_red_popc_count:
    case Op::barrier_red_count:
      return ResultKind::BlockWide;
    case Op::cvta:
      switch (space_of(s.get(Field::Space))) {
        case Space::Local:
          return ResultKind::Own;
        case Space::Shared:
          return ResultKind::Capped;
        default:
          return ResultKind::Computed;
      }
    default:
      break;
  }
  const OpInfo& row = info(s.op);
  constexpr Flag kBeyond = Flag::ReadsMemory | Flag::WritesMemory | Flag::Barrier |
                           Flag::Convergent | Flag::Call | Flag::Volatile | Flag::Fence |
                           Flag::Asynchronous;
  if (!has(row.flags, kBeyond) || reads_carry(s) || writes_carry(s)) return ResultKind::Computed;
  if ((row.mnemonic != "ld" && row.mnemonic != "ldu") || has(row.flags, Flag::Volatile) ||
      has(row.flags, Flag::Convergent))
    return ResultKind::Own;
  switch (space_of(s.get(Field::Space))) {
    case Space::Const:
      return ResultKind::Immutable;
    case Space::Param:
      for (const Operand& o : function.operands_of(s)) {
        if (o.kind == OperandKind::Memory)
          return reads_kernel_parameter(module, function, o) ? ResultKind::Immutable
                                                             : ResultKind::Own;
      }
      return ResultKind::Own;
    case Space::Global:
    case Space::Shared:
      return ResultKind::Loaded;
    default:
      // A generic address may be one of local memory, where each thread has its own.
      return ResultKind::Own;
  }
}

bool reads_carry(const Instruction& s) noexcept {
  return s.op == Op::addc || s.op == Op::subc || s.op == Op::madc;
}
bool writes_carry(const Instruction& s) noexcept { return s.has(Field::CarryOut); }

Agreement agreement(const Module& module, const Function& function, const RegisterIndex& index,
                    const Uniformity& uniformity, const Operand& o,
                    const UniformityOptions& options) {
  const OperandKind kind = o.kind == OperandKind::Memory ? o.base : o.kind;
  switch (kind) {
    case OperandKind::Register: {
      const std::uint32_t reg = index.find(o.as_register());
      return reg == kNone ? Agreement::None : uniformity.of(reg);
    }
    case OperandKind::Special:
      return of_special(static_cast<SpecialRegister>(o.id), o.component,
                        block_shape(function, options));
    case OperandKind::Symbol:
      return of_symbol(module, function, o.id);
    case OperandKind::Vector:
    case OperandKind::List: {
      Agreement all = Agreement::Grid;
      for (const Operand& element : function.elements(o))
        all = weaker(all, agreement(module, function, index, uniformity, element, options));
      return all;
    }
    default:
      return Agreement::Grid;
  }
}

}  // namespace ptxgen::inline v0::analysis
