// src/analysis/registers.cpp - numbers for registers, and where they are used
#include "ptxgen/analysis/registers.hpp"

#include <algorithm>
#include <bit>

namespace ptxgen::inline v0::analysis {

using namespace ptx;

RegisterIndex::RegisterIndex(const Function& function) {
  const std::size_t declarations = function.registers.size();
  const auto add = [&](Register reg) {
    if (reg.decl.value < declarations) registers_.push_back(reg);
  };
  for (const auto* list : {&function.returns, &function.parameters}) {
    for (const Variable& variable : *list) {
      const std::uint32_t decl = variable.decl.value;
      if (variable.space == Space::Register && decl < declarations) add({{decl}, 0});
    }
  }
  const std::size_t beside = registers_.size();
  first_access_.reserve(function.body.size() + 1);
  first_access_.push_back(0);
  accesses_.reserve(function.body.size() * 3);
  registers_.reserve(beside + function.body.size() * 3);
  for (const Instruction& s : function.body) {
    for_each_access(function, s, [&](const RegisterAccess& a) {
      if (a.reg.decl.value >= declarations) return;
      registers_.push_back(a.reg);
      accesses_.push_back({0, a.write, a.component, a.operand});
    });
    first_access_.push_back(static_cast<std::uint32_t>(accesses_.size()));
  }

  const std::vector<Register> named = registers_;
  in_order(declarations);
  first_.assign(declarations + 1, 0);
  for (const Register reg : registers_) ++first_[reg.decl.value + 1];
  for (std::size_t i = 0; i < declarations; ++i) first_[i + 1] += first_[i];
  for (std::size_t i = 0; i < accesses_.size(); ++i) accesses_[i].reg = find(named[beside + i]);
}

// Each once, by declaration and number.
void RegisterIndex::in_order(std::size_t declarations) {
  // Compilers number without gaps: then a mark for each number is all that it takes.
  std::vector<std::size_t> first_mark(declarations + 1, 0);
  for (const Register reg : registers_) {
    std::size_t& most = first_mark[reg.decl.value + 1];
    most = std::max(most, std::size_t{reg.index} + 1);
  }
  for (std::size_t i = 0; i < declarations; ++i) first_mark[i + 1] += first_mark[i];
  if (first_mark[declarations] <= 4 * registers_.size()) {
    std::vector<bool> named(first_mark[declarations], false);
    for (const Register reg : registers_) named[first_mark[reg.decl.value] + reg.index] = true;
    registers_.clear();
    for (std::uint32_t decl = 0; decl < declarations; ++decl) {
      for (std::size_t m = first_mark[decl]; m < first_mark[decl + 1]; ++m) {
        if (named[m])
          registers_.push_back({{decl}, static_cast<std::uint32_t>(m - first_mark[decl])});
      }
    }
  } else {
    std::sort(registers_.begin(), registers_.end(), [](Register a, Register b) {
      return a.decl.value != b.decl.value ? a.decl.value < b.decl.value : a.index < b.index;
    });
    registers_.erase(std::unique(registers_.begin(), registers_.end()), registers_.end());
  }
  registers_.shrink_to_fit();
}

std::uint32_t RegisterIndex::find(Register reg) const noexcept {
  if (std::size_t{reg.decl.value} + 1 >= first_.size()) return kNone;
  const std::uint32_t begin = first_[reg.decl.value];
  const std::uint32_t end = first_[reg.decl.value + 1];
  if (begin == end || reg.index < registers_[begin].index) return kNone;
  // Compilers number without gaps: then the place is known.
  const std::uint32_t guess =
      begin + std::min(reg.index - registers_[begin].index, end - begin - 1);
  if (registers_[guess].index == reg.index) return guess;
  const auto found =
      std::lower_bound(registers_.begin() + begin, registers_.begin() + end, reg.index,
                       [](Register a, std::uint32_t index) { return a.index < index; });
  if (found == registers_.begin() + end || found->index != reg.index) return kNone;
  return static_cast<std::uint32_t>(found - registers_.begin());
}

std::uint32_t RegisterSet::count() const noexcept {
  std::uint32_t count = 0;
  for (const std::uint64_t word : words_) count += static_cast<std::uint32_t>(std::popcount(word));
  return count;
}

RegisterUses::RegisterUses(const Function& function, const RegisterIndex& index)
    : first_(index.size() + std::size_t{1}, 0) {
  struct Named {
    std::uint32_t reg;
    Use use;
  };
  std::vector<Named> all, writes;
  all.reserve(function.body.size() * 3);
  for (std::uint32_t i = 0; i < function.body.size(); ++i) {
    const Instruction& s = function.body[i];
    writes.clear();
    for (const NumberedAccess& a : index.accesses(i)) {
      ++first_[a.reg + 1];
      const bool guarded = s.guard.present() && a.operand != kGuardPosition;
      (a.write ? writes : all).push_back({a.reg, {i, a.write, a.component == 0, guarded}});
    }
    all.insert(all.end(), writes.begin(), writes.end());
  }
  for (std::uint32_t i = 0; i < index.size(); ++i) first_[i + 1] += first_[i];
  std::vector<std::size_t> place(first_.begin(), first_.end() - 1);
  uses_.resize(all.size());
  for (const Named& named : all) uses_[place[named.reg]++] = named.use;
}

std::string to_text(const RegisterSet& set, const RegisterIndex& index, const Module& module,
                    const Function& function) {
  std::string text;
  for (std::uint32_t i = 0; i < index.size(); ++i) {
    if (!set.contains(i)) continue;
    if (!text.empty()) text += " ";
    text += name_of(module, function, index[i]);
  }
  return text;
}

}  // namespace ptxgen::inline v0::analysis
