// src/runtime/module/gates.hpp - what a module passes before it is loaded
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/support/log.hpp"
#include "ptxgen/support/trace.hpp"

namespace ptxgen::inline v0 {

/// What stands before the gates.
struct Gated {
  const ptx::Module& module;
  std::string_view kernel;  ///< named where a finding names none; or the file, or empty
  std::string_view text{};  ///< what the module was parsed from, for excerpts, or empty
};

/// Every gate that stands before a load, in order, until one finds an error. Throws `Error`
/// (Stage::Verify) for the first finding of severity error, with its rule as the code, PTX line,
/// C++ call and all findings in the log; lines of a built module are those of its printed text.
/// Returns the warnings, each as its text with a newline. `trace` gets a span for each gate.
std::string pass_gates(const Gated& gated, const Trace& trace = {});

/// The same with the warnings in the log.
void pass_gates(const Gated& gated, const Log& log, const Trace& trace);

/// The first gate only, the verifier: for what is read and not loaded yet.
void refuse_illegal(const Gated& gated);

}  // namespace ptxgen::inline v0
