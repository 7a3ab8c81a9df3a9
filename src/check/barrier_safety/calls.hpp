// src/check/barrier_safety/calls.hpp - what functions of a module do at barriers
#pragma once

#include <cstdint>
#include <vector>

#include "check/barrier_safety/barrier_safety.hpp"

namespace ptxgen::inline v0::gates::barriers {

/// The effects of calls, and the barrier numbers of the functions of a module. Refers to it.
class Calls {
 public:
  explicit Calls(const ptx::Module& module);

  /// A function with its barriers and calls; refers to `facts`, which are about it or a changed
  /// copy of function number `number`.
  [[nodiscard]] Subject subject_of(analysis::Facts& facts, std::size_t number) const;

 private:
  /// Facts about a function that do not depend on its callers.
  struct Summary {
    CallEffect effect;
    std::uint32_t numbers = 0;    ///< of its barriers, as bits, without those of one warp alone
    std::uint32_t elsewhere = 0;  ///< the same for related functions
  };

  [[nodiscard]] const ptx::Function* callee_of(const ptx::Function& function,
                                               const ptx::Instruction& s,
                                               std::uint32_t& number) const;
  /// What a call may do. A function without a body here is assumed to have no barriers.
  [[nodiscard]] CallEffect effect_of(const ptx::Function& function,
                                     const ptx::Instruction& s) const;
  void summarise();
  /// Whether every thread that enters reaches a barrier for the whole block.
  [[nodiscard]] bool always_waits(const ptx::Function& function) const;
  /// Threads of one block may use one barrier number in several functions at once.
  void find_numbers();
  [[nodiscard]] std::vector<std::uint32_t> callees_of(const ptx::Function& function) const;

  const ptx::Module& module_;
  std::vector<Summary> summaries_;  ///< by function
};

}  // namespace ptxgen::inline v0::gates::barriers
