// src/emulator/race/store_targets.cpp - predicts the memory that a kernel writes
#include "emulator/race/store_targets.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "ptxgen/analysis/registers.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Space;
using ptx::SymbolKind;

/// Rows whose results are not addresses even if a source is.
constexpr std::array<std::string_view, 13> kNoAddress = {"mul",   "mul24", "shl", "shr",  "div",
                                                         "rem",   "setp",  "set", "popc", "clz",
                                                         "bfind", "bfe",   "brev"};

std::uint64_t word_bit(std::uint64_t offset) noexcept {
  const std::uint64_t word = offset / 8;
  return word < 59 ? std::uint64_t{1} << word : StoreTargets::kLaterWords;
}

/// A graph of values: registers of all functions of a kernel, and one node for values in memory and
/// of calls.
class Flow {
 public:
  Flow(const Image& image, std::uint32_t kernel)
      : module_(image.module),
        kernel_(image.kernels[kernel]),
        loaded_(image.kernel_images[kernel]) {
    origins_.push_back(0);  // kHandedOn
  }

  StoreTargets run() {
    for (std::size_t f = 0; f < module_.functions.size(); ++f) {
      if (loaded_.code_of_function[f] != kNoIndex) add(module_.functions[f]);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [from, to] : edges_) {
        const std::uint64_t more = origins_[from] & ~origins_[to];
        origins_[to] |= more;
        changed |= more != 0;
      }
    }
    for (const std::uint32_t node : targets_) result_.origins |= origins_[node];
    return result_;
  }

 private:
  static constexpr std::uint32_t kHandedOn = 0;

  [[nodiscard]] std::uint32_t node(ptx::Register reg) const noexcept {
    const std::uint32_t number = index_.find(reg);
    return number == ptx::kNone ? kNoIndex : base_ + number;
  }
  [[nodiscard]] bool holds_address(ptx::Register reg) const noexcept {
    const ptx::Type type = function_->type_of(reg);
    return ptx::bits(type) >= 64 && ptx::kind(type) != ptx::TypeKind::Float;
  }
  void edge(std::uint32_t from, std::uint32_t to) {
    if (from != kNoIndex && to != kNoIndex && from != to) edges_.emplace_back(from, to);
  }

  void add(const ptx::Function& function) {
    function_ = &function;
    index_ = analysis::RegisterIndex(function);
    base_ = static_cast<std::uint32_t>(origins_.size());
    origins_.resize(origins_.size() + index_.size());
    for (const auto* list : {&function.parameters, &function.returns}) {
      for (const ptx::Variable& variable : *list) {
        if (variable.decl.value == ptx::kNone) continue;
        edge(kHandedOn, node({variable.decl, 0}));
        edge(node({variable.decl, 0}), kHandedOn);
      }
    }
    for (std::size_t i = 0; i < function.body.size(); ++i) {
      const Instruction& statement = function.body[i];
      if (statement.kind != ptx::StatementKind::Instruction) continue;
      add(statement, static_cast<std::uint32_t>(i));
    }
  }

  void add(const Instruction& statement, std::uint32_t number) {
    const ptx::OpInfo& row = ptx::info(statement.op);
    if (has(row.flags, ptx::Flag::Call)) return call(statement, number);
    const Operand* memory = nullptr;
    for (const Operand& operand : function_->operands_of(statement)) {
      if (operand.kind != OperandKind::Memory) continue;
      memory = &operand;
      break;
    }
    const Space space = ptx::space_of(statement.get(ptx::Field::Space));
    if (has(row.flags, ptx::Flag::WritesMemory)) {
      const bool global = space == Space::Global || space == Space::Generic;
      if (global && memory != nullptr) written(*memory);
      if (space != Space::Global)
        each_source(number, [&](std::uint32_t from) { edge(from, kHandedOn); });
    }
    if (has(row.flags, ptx::Flag::ReadsMemory)) return load(statement, number, memory, space);
    if (std::ranges::find(kNoAddress, row.mnemonic) != kNoAddress.end()) return;
    const bool only_addend =
        row.mnemonic == "mad" || row.mnemonic == "mad24" || row.mnemonic == "madc";
    each_result(number, [&](std::uint32_t to) {
      for (const analysis::NumberedAccess& access : index_.accesses(number)) {
        if (access.write || access.operand == analysis::kGuardPosition) continue;
        if (only_addend && access.operand != 3) continue;
        if (holds_address(index_[access.reg])) edge(base_ + access.reg, to);
      }
      for (const Operand& operand : function_->operands_of(statement)) {
        if (operand.kind == OperandKind::Symbol) origins_[to] |= of_symbol(operand.id);
      }
    });
  }

  template <class F>
  void each_result(std::uint32_t number, F&& f) {
    for (const analysis::NumberedAccess& access : index_.accesses(number)) {
      if (access.write && holds_address(index_[access.reg])) f(base_ + access.reg);
    }
  }
  template <class F>
  void each_source(std::uint32_t number, F&& f) {
    for (const analysis::NumberedAccess& access : index_.accesses(number)) {
      if (!access.write && holds_address(index_[access.reg])) f(base_ + access.reg);
    }
  }

  [[nodiscard]] std::uint64_t of_symbol(std::uint32_t id) const noexcept {
    const ptx::Symbol& symbol = module_.symbols[id];
    const ptx::Variable* variable = nullptr;
    if (symbol.kind == SymbolKind::Variable) variable = &module_.variables[symbol.index];
    if (symbol.kind == SymbolKind::FunctionVariable) {
      variable = &module_.functions[symbol.function].variables[symbol.index];
    }
    return variable != nullptr && variable->space == Space::Global ? StoreTargets::kVariables : 0;
  }

  void written(const Operand& memory) {
    if (memory.base == OperandKind::Symbol) result_.origins |= of_symbol(memory.id);
    if (memory.base != OperandKind::Register) return;
    const std::uint32_t at = node(memory.as_register());
    if (at != kNoIndex) targets_.push_back(at);
  }

  void call(const Instruction& statement, std::uint32_t number) {
    for (const Operand& operand : function_->operands_of(statement)) {
      if (operand.kind != OperandKind::Symbol) continue;
      const ptx::Symbol& symbol = module_.symbols[operand.id];
      if (symbol.kind != SymbolKind::Function) continue;
      const std::string_view name = module_.text(module_.functions[symbol.index].name);
      result_.heap |= name == "malloc" || name == "free";
    }
    each_source(number, [&](std::uint32_t from) { edge(from, kHandedOn); });
    each_result(number, [&](std::uint32_t to) { edge(kHandedOn, to); });
  }

  void load(const Instruction& statement, std::uint32_t number, const Operand* memory,
            Space space) {
    if (space != Space::Param || memory == nullptr || memory->base != OperandKind::Symbol) {
      const bool own = space == Space::Local || space == Space::Shared || space == Space::Param;
      each_result(number, [&](std::uint32_t to) {
        if (!own) origins_[to] |= StoreTargets::kLoaded;
        if (space != Space::Global && space != Space::Const) edge(kHandedOn, to);
        // By an address: any of them.
        if (space == Space::Param && function_->entry) origins_[to] |= all_words();
      });
      return;
    }
    const ptx::Symbol& symbol = module_.symbols[memory->id];
    const bool of_kernel = symbol.kind == SymbolKind::Parameter && function_->entry;
    std::uint64_t offset = of_kernel ? kernel_.parameters[symbol.index].offset + memory->value : 0;
    for (const analysis::NumberedAccess& access : index_.accesses(number)) {
      if (!access.write) continue;
      if (!of_kernel) {
        edge(kHandedOn, base_ + access.reg);
      } else if (holds_address(index_[access.reg])) {
        origins_[base_ + access.reg] |= word_bit(offset);
      }
      offset += ptx::bits(statement.type()) / 8;
    }
  }

  [[nodiscard]] std::uint64_t all_words() const noexcept {
    std::uint64_t all = 0;
    for (std::uint64_t offset = 0; offset < kernel_.parameter_bytes; offset += 8) {
      all |= word_bit(offset);
    }
    return all;
  }

  const ptx::Module& module_;
  const Program::Kernel& kernel_;
  const Image::KernelImage& loaded_;
  const ptx::Function* function_ = nullptr;
  analysis::RegisterIndex index_;
  std::uint32_t base_ = 0;
  std::vector<std::uint64_t> origins_;  ///< by node
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::vector<std::uint32_t> targets_;  ///< addresses of writes
  StoreTargets result_;
};

}  // namespace

StoreTargets predict_stores(const Image& image, std::uint32_t kernel) {
  if (image.module.address_size != 64) return {StoreTargets::kLoaded, true};
  return Flow(image, kernel).run();
}

}  // namespace ptxgen::inline v0::emulator
