// src/analysis/diff/statements.hpp - what the statements of two functions do differently
#pragma once

#include <vector>

#include "ptxgen/analysis/diff.hpp"

namespace ptxgen::inline v0::analysis {

/// Appends the changes of the bodies, in the order of `a`; the kernel's name is that of `a`.
void compare_statements(const ptx::Module& module_a, const ptx::Function& a,
                        const ptx::Module& module_b, const ptx::Function& b,
                        std::vector<Change>& changes);

}  // namespace ptxgen::inline v0::analysis
