// tests/kernels/gemv_operands.hpp - which operand of a GEMV an instruction accesses
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ptxgen/ptx/ir.hpp"

namespace ptxgen::test {

/// For each line of the text of a kernel's module that accesses global memory (or may) the
/// parameter that its address is computed from: "a", "x", "workspace". "?" where that are several
/// or none.
[[nodiscard]] std::map<std::uint32_t, std::string> operands_of_lines(const ptx::Module& module);

}  // namespace ptxgen::test
