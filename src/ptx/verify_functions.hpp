// src/ptx/verify_functions.hpp - verifier of selected functions
#pragma once

#include <vector>

#include "ptxgen/ptx/verifier.hpp"

namespace ptxgen::inline v0::ptx {

/// `verify`, but of the functions only those that are marked; what is around them is checked whole.
/// `before` is the module as it was when `verify` found no error in them: what the verdict on a
/// statement rests on is compared with it, and looked at again only where it is not the same.
[[nodiscard]] std::vector<Finding> verify_functions(const Module& module,
                                                    const std::vector<bool>& which,
                                                    const Module& before);

}  // namespace ptxgen::inline v0::ptx
