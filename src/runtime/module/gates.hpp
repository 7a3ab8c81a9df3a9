// src/runtime/module/gates.hpp - the gates before a load
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/support/log.hpp"
#include "ptxgen/support/trace.hpp"

namespace ptxgen::inline v0 {

/// Input of the gates.
struct GateInput {
  const ptx::Module& module;
  std::string_view kernel;  ///< used if a finding names none; or the file, or empty
  std::string_view text{};  ///< source of the module, for excerpts, or empty
};

/// Runs the gates in order until one finds an error. Throws `Error` (Stage::Verify) for the first
/// finding of severity error, with its rule as the code, PTX line, C++ call and all findings in the
/// log; lines of a built module are those of its printed text. Returns the warnings, one a line.
/// `trace` gets a span per gate.
std::string pass_gates(const GateInput& gated, const Trace& trace = {});

/// The same; logs the warnings.
void pass_gates(const GateInput& gated, const Log& log, const Trace& trace);

/// A built module whose statements have the lines of its printed text, which `text` becomes.
[[nodiscard]] ptx::Module with_lines(const ptx::Module& module, std::string& text);

/// Runs only the first gate, the verifier: for modules that are not loaded yet.
void refuse_illegal(const GateInput& gated);

}  // namespace ptxgen::inline v0
