// src/qa/lines/snippets.hpp - PTX with known defects
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::qa {

extern const char* const kWideSharedLoad;   ///< one load of shared memory, generic 64-bit address
extern const char* const kWideSharedStore;  ///< one store, likewise
extern const char* const kInfiniteLoop;
extern const char* const kBranchToLoopEnd;  ///< the continuation of a loop is aimed at its end

/// A kernel with a defect of a class, and the same without it.
struct BugClass {
  std::string_view name;
  std::string_view rule;  ///< that reports the defect, and not its twin
  std::string wrong;
  std::string right;
};
[[nodiscard]] std::span<const BugClass> bug_class_fixtures();

/// The first shared load of the first function gets its address in a 64-bit register.
void widen_shared_address(ptx::Module& module);

}  // namespace ptxgen::qa
