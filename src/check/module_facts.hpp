// src/check/module_facts.hpp - what gates share about one module
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "analysis/facts.hpp"
#include "check/shared_race/check.hpp"
#include "ptxgen/check/gates.hpp"

namespace ptxgen::inline v0::gates {

/// The analyses of the functions of a module for one set of options, each computed when a gate
/// first asks for it. Refers to the module and to the texts of the options.
class ModuleFacts {
 public:
  ModuleFacts(const ptx::Module& module, const GateOptions& options)
      : module_(module), options_(options) {}
  ModuleFacts(const ModuleFacts&) = delete;
  ModuleFacts& operator=(const ModuleFacts&) = delete;

  [[nodiscard]] const ptx::Module& module() const noexcept { return module_; }
  [[nodiscard]] const GateOptions& options() const noexcept { return options_; }
  /// Of a function of the module. Kept for the next gate unless the module is large.
  [[nodiscard]] std::shared_ptr<analysis::Facts> of(const ptx::Function& function);
  /// Of an entry. Valid as long as this object.
  [[nodiscard]] const RaceCheck& races(const ptx::Function& entry);

 private:
  const ptx::Module& module_;
  GateOptions options_;
  std::map<const ptx::Function*, std::shared_ptr<analysis::Facts>> facts_;
  std::size_t statements_ = 0;  ///< of the functions in `facts_`
  std::optional<SharedAccesses> accesses_;
  std::map<const ptx::Function*, RaceCheck> races_;
};

std::vector<Finding> barrier_safety(ModuleFacts& facts);
std::vector<Finding> shared_race(ModuleFacts& facts);
std::vector<Finding> warpgroup_order(ModuleFacts& facts);
std::vector<Finding> analyze(ModuleFacts& facts);

}  // namespace ptxgen::inline v0::gates
