// src/cli/args/module_kernels.hpp - the kernels of a parsed module
#pragma once

#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::cli {

/// Name, parameters and required sizes of each entry, as the emulator has them; also of modules
/// that it cannot run.
[[nodiscard]] std::vector<emulator::Program::Kernel> kernels_of(const ptx::Module& module);

}  // namespace ptxgen::cli
