// ptxgen/analysis/registers.hpp - which registers a function reads and writes, and where
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ptxgen/analysis/cfg.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/operand_specs.hpp"

namespace ptxgen::inline v0::analysis {

/// Operand position of the predicate in front of an instruction.
inline constexpr std::size_t kGuardPosition = static_cast<std::size_t>(-1);

/// One use of a register by an instruction.
struct RegisterAccess {
  ptx::Register reg;
  bool write = false;
  std::uint8_t component = 0;  ///< 1..4 for `.x .y .z .w` of a vector register, else 0
  std::size_t operand = 0;     ///< 0 the first that is written, or kGuardPosition
};

/// Calls `fn(const RegisterAccess&)` for every register that the instruction names, reads and
/// writes according to the op table: destinations and results of a call are written; sources,
/// arguments, guards, addresses and the target of an indirect call are read. Elements of vectors
/// and lists belong to their operand. The guard comes first, then the operands as written; reads
/// may come after writes. Other statements have no registers. If the operands do not fit the row
/// (the verifier refuses that), all of them are reads.
template <class Fn>
void for_each_access(const ptx::Function& function, const ptx::Instruction& instruction, Fn&& fn) {
  using ptx::OperandKind;
  if (instruction.kind != ptx::StatementKind::Instruction) return;
  if (instruction.guard.present())
    fn(RegisterAccess{instruction.guard.predicate, false, 0, kGuardPosition});
  const auto operands = function.operands_of(instruction);
  const ptx::OperandSpecs specs(function, instruction);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ptx::Operand& operand = operands[i];
    const bool group = operand.kind == OperandKind::Vector || operand.kind == OperandKind::List;
    const bool memory =
        operand.kind == OperandKind::Memory && operand.base == OperandKind::Register;
    if (memory) {
      fn(RegisterAccess{operand.as_register(), false, operand.component, i});
    } else if (group || operand.kind == OperandKind::Register) {
      const ptx::OperandSpec* spec = specs[i];
      const bool write = spec != nullptr && (spec->role == ptx::OperandRole::Destination ||
                                             spec->role == ptx::OperandRole::Returns);
      if (!group) {
        fn(RegisterAccess{operand.as_register(), write, operand.component, i});
        continue;
      }
      const bool updates = write && spec->updates;
      for (const ptx::Operand& element : function.elements(operand)) {
        if (element.kind != OperandKind::Register) continue;
        if (updates) fn(RegisterAccess{element.as_register(), false, element.component, i});
        fn(RegisterAccess{element.as_register(), write, element.component, i});
      }
    }
  }
}

/// The same as `fn(ptx::Register, bool is_write, std::size_t operand)`.
template <class Fn>
void for_each_register(const ptx::Function& function, const ptx::Instruction& instruction,
                       Fn&& fn) {
  for_each_access(function, instruction,
                  [&](const RegisterAccess& a) { fn(a.reg, a.write, a.operand); });
}

/// A RegisterAccess with the register's number in a RegisterIndex.
struct NumberedAccess {
  std::uint32_t reg = 0;
  bool write = false;
  std::uint8_t component = 0;
  std::size_t operand = 0;
  friend constexpr bool operator==(const NumberedAccess&, const NumberedAccess&) = default;
};

/// Dense numbers 0 .. size()-1 for the registers that a function's instructions use and for its
/// register parameters and results. Ordered by declaration, then by number. Keeps no reference to
/// the function.
class RegisterIndex {
 public:
  RegisterIndex() = default;
  explicit RegisterIndex(const ptx::Function& function);

  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(registers_.size());
  }
  /// ptx::kNone if no instruction uses it.
  [[nodiscard]] std::uint32_t find(ptx::Register reg) const noexcept {
    if (places_.empty()) return search(reg);
    if (reg.decl.value + std::size_t{1} >= first_place_.size()) return ptx::kNone;
    const std::size_t place = first_place_[reg.decl.value] + reg.index;
    return place < first_place_[reg.decl.value + std::size_t{1}] ? places_[place] : ptx::kNone;
  }
  [[nodiscard]] ptx::Register operator[](std::uint32_t index) const noexcept {
    return registers_[index];
  }
  /// The accesses of a statement, in the order of `for_each_access`, as of the construction of the
  /// index; without undeclared registers.
  [[nodiscard]] std::span<const NumberedAccess> accesses(std::uint32_t statement) const noexcept {
    return {accesses_.data() + first_access_[statement],
            accesses_.data() + first_access_[statement + 1]};
  }
  /// Updates the index after these statements, in the order of the body, were erased and nothing
  /// else was changed.
  void erase(const ptx::Function& function, std::span<const std::uint32_t> statements);
  friend bool operator==(const RegisterIndex&, const RegisterIndex&) = default;

 private:
  void number(std::vector<ptx::Register> named, const ptx::Function& function);
  [[nodiscard]] std::uint32_t search(ptx::Register reg) const noexcept;
  std::vector<ptx::Register> registers_;
  // By declaration, then by number: the index, or kNone. Empty if the numbers have large gaps.
  std::vector<std::uint32_t> places_;
  std::vector<std::size_t> first_place_;     // by declaration, and one more
  std::vector<std::uint32_t> first_access_;  // of each statement, and one more
  std::vector<NumberedAccess> accesses_;
};

/// A set of registers by their numbers in a RegisterIndex.
class RegisterSet {
 public:
  RegisterSet() = default;
  explicit RegisterSet(std::uint32_t size) : size_(size), words_((std::size_t{size} + 63) / 64) {}
  [[nodiscard]] bool contains(std::uint32_t index) const noexcept {
    return index < size_ && (words_[index / 64] >> (index % 64) & 1) != 0;
  }
  void insert(std::uint32_t index) noexcept {
    words_[index / 64] |= std::uint64_t{1} << (index % 64);
  }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }  ///< of the index
  [[nodiscard]] std::uint32_t count() const noexcept;

 private:
  std::uint32_t size_ = 0;
  std::vector<std::uint64_t> words_;
};

/// All accesses of a function by register, ordered by statement; reads of a statement come before
/// its writes.
class RegisterUses {
 public:
  struct Use {
    std::uint32_t statement = 0;
    bool write = false;
    bool full = true;      ///< not just one component of a vector register
    bool guarded = false;  ///< under a guard (the guard itself: false)
  };
  RegisterUses() = default;
  RegisterUses(const ptx::Function& function, const RegisterIndex& index);
  [[nodiscard]] std::span<const Use> of(std::uint32_t reg) const noexcept {
    return {uses_.data() + first_[reg], first_[reg + 1] - first_[reg]};
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<Use> uses_;
};

/// The registers that may hold undefined bits: those that may be read before they are written, and
/// those computed from them. Memory is assumed to be defined.
///
/// Guarded writes and writes of a single component do not define a register. Register parameters of
/// a device function and register results of calls are in the set, since the other function may not
/// have written them. Register results of the function are read where it returns. Guards, branches
/// and memory are not data flow here.
[[nodiscard]] RegisterSet maybe_undefined(const ptx::Function& function, const Cfg& cfg,
                                          const RegisterIndex& index);
[[nodiscard]] RegisterSet maybe_undefined(const ptx::Function& function);

/// The names in the set, separated by spaces.
[[nodiscard]] std::string to_text(const RegisterSet& set, const RegisterIndex& index,
                                  const ptx::Module& module, const ptx::Function& function);

}  // namespace ptxgen::inline v0::analysis
