// src/runtime/gates.hpp - what a module passes before it is loaded
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::inline v0 {

/// What the gates found that stops nothing, one finding a line; empty if nothing.
struct GateReport {
  std::string warnings;
};

/// Every gate in order. Throws `Error` (Stage::Verify) for the first finding of severity error,
/// with its rule as the code, PTX line, C++ call and all findings in the log.
GateReport pass_gates(const ptx::Module& module, std::string_view kernel);

}  // namespace ptxgen::inline v0
