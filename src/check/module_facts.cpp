// src/check/module_facts.cpp - what gates share about one module
#include "check/module_facts.hpp"

namespace ptxgen::inline v0::gates {

namespace {

// The facts about a statement take some hundred bytes.
constexpr std::size_t kMaxStatements = 100'000;

}  // namespace

std::shared_ptr<analysis::Facts> ModuleFacts::of(const ptx::Function& function) {
  if (const auto known = facts_.find(&function); known != facts_.end()) return known->second;
  statements_ += function.body.size();
  if (statements_ > kMaxStatements) {
    facts_.clear();
    statements_ = function.body.size();
  }
  const analysis::UniformityOptions options{.block = options_.block};
  auto result = std::make_shared<analysis::Facts>(module_, function, options);
  facts_.emplace(&function, result);
  return result;
}

const RaceCheck& ModuleFacts::races(const ptx::Function& entry) {
  if (const auto known = races_.find(&entry); known != races_.end()) return known->second;
  if (!accesses_) accesses_.emplace(module_);
  RaceCheck check = check_races(*of(entry), *accesses_, options_);
  return races_.emplace(&entry, std::move(check)).first->second;
}

}  // namespace ptxgen::inline v0::gates
