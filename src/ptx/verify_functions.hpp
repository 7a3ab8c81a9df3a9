// src/ptx/verify_functions.hpp - the verifier on some functions of a module
#pragma once

#include <vector>

#include "ptxgen/ptx/verifier.hpp"

namespace ptxgen::inline v0::ptx {

/// `verify`, but of the functions only those that are marked; what is around them is checked whole.
[[nodiscard]] std::vector<Finding> verify_functions(const Module& module,
                                                    const std::vector<bool>& which);

}  // namespace ptxgen::inline v0::ptx
