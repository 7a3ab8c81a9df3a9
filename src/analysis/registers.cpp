// src/analysis/registers.cpp - register numbering and register uses
#include "ptxgen/analysis/registers.hpp"

#include <algorithm>
#include <bit>

namespace ptxgen::inline v0::analysis {

using namespace ptx;

namespace {

bool before(Register a, Register b) {
  return a.decl.value != b.decl.value ? a.decl.value < b.decl.value : a.index < b.index;
}

}  // namespace

RegisterIndex::RegisterIndex(const Function& function) {
  std::vector<Register> named;
  named.reserve(function.body.size() * 3);
  accesses_.reserve(function.body.size() * 3);
  first_access_.reserve(function.body.size() + 1);
  first_access_.push_back(0);
  for (const Instruction& s : function.body) {
    for_each_access(function, s, [&](const RegisterAccess& a) {
      if (a.reg.decl.value >= function.registers.size()) return;
      named.push_back(a.reg);
      accesses_.push_back({0, a.write, a.component, a.operand});
    });
    first_access_.push_back(static_cast<std::uint32_t>(accesses_.size()));
  }
  number(std::move(named), function);
}

void RegisterIndex::erase(const Function& function, std::span<const std::uint32_t> statements) {
  std::vector<Register> named;
  named.reserve(accesses_.size());
  std::uint32_t left = 0, begin = 0;  // statements that stay; where accesses of the next one begin
  for (std::uint32_t i = 0; i + 1 < first_access_.size(); ++i) {
    const std::uint32_t end = first_access_[i + 1];
    if (!statements.empty() && statements.front() == i) {
      statements = statements.subspan(1);
    } else {
      for (std::uint32_t a = begin; a < end; ++a) {
        accesses_[named.size()] = accesses_[a];
        named.push_back(registers_[accesses_[a].reg]);
      }
      first_access_[++left] = static_cast<std::uint32_t>(named.size());
    }
    begin = end;
  }
  first_access_.resize(left + std::size_t{1});
  accesses_.resize(named.size());
  number(std::move(named), function);
}

// `named`: what the accesses name, one by one. Each gets a place once, by declaration and number.
void RegisterIndex::number(std::vector<Register> named, const Function& function) {
  const std::size_t declarations = function.registers.size();
  for (const auto* list : {&function.returns, &function.parameters}) {
    for (const Variable& variable : *list) {
      const std::uint32_t decl = variable.decl.value;
      if (variable.space == Space::Register && decl < declarations) named.push_back({{decl}, 0});
    }
  }
  // Compilers number with few gaps: then a place for each number is all that it takes.
  first_place_.assign(declarations + 1, 0);
  for (const Register reg : named) {
    std::size_t& max = first_place_[reg.decl.value + 1];
    max = std::max(max, std::size_t{reg.index} + 1);
  }
  for (std::size_t i = 0; i < declarations; ++i) first_place_[i + 1] += first_place_[i];
  registers_.clear();
  places_.clear();
  if (first_place_[declarations] <= 4 * named.size()) {
    const auto place_of = [&](Register reg) { return first_place_[reg.decl.value] + reg.index; };
    places_.resize(first_place_[declarations], kNone);
    for (const Register reg : named) places_[place_of(reg)] = 0;
    registers_.reserve(std::min(places_.size(), named.size()));
    for (std::uint32_t decl = 0; decl < declarations; ++decl) {
      for (std::size_t p = first_place_[decl]; p < first_place_[decl + 1]; ++p) {
        if (places_[p] == kNone) continue;
        places_[p] = size();
        registers_.push_back({{decl}, static_cast<std::uint32_t>(p - first_place_[decl])});
      }
    }
    for (std::size_t i = 0; i < accesses_.size(); ++i)
      accesses_[i].reg = places_[place_of(named[i])];
  } else {
    registers_ = named;
    std::sort(registers_.begin(), registers_.end(), before);
    registers_.erase(std::unique(registers_.begin(), registers_.end()), registers_.end());
    registers_.shrink_to_fit();
    for (std::size_t i = 0; i < accesses_.size(); ++i) accesses_[i].reg = search(named[i]);
  }
}

std::uint32_t RegisterIndex::search(Register reg) const noexcept {
  const auto found = std::lower_bound(registers_.begin(), registers_.end(), reg, before);
  if (found == registers_.end() || *found != reg) return kNone;
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
