// tests/ptx/module_generator.hpp - random legal PTX modules
#pragma once

#include <cstdint>
#include <iosfwd>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::test {

/// What to generate. Equal recipes give equal modules.
struct Recipe {
  std::uint64_t seed = 0;
  unsigned functions = 2;    ///< kernels and device functions together, at least one kernel
  unsigned statements = 30;  ///< about how many per function, declarations and calls apart
};

std::ostream& operator<<(std::ostream& out, const Recipe& recipe);

/// A module for a random target of the table, at the lowest version it needs or a newer one:
/// kernels and device functions, parameters of all kinds, registers, nested scopes that shadow
/// labels, registers and variables, variables of all spaces with initialisers, instructions of most
/// rows of the op table, branches, loops, guards, direct and indirect calls, branch tables and
/// directives. Built through the IR alone, without the parser. Meant to be printed and assembled,
/// not to be run.
[[nodiscard]] ptx::Module random_module(const Recipe& recipe);

}  // namespace ptxgen::test
