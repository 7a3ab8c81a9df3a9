// src/optimize/target_limits.cpp - the gate target_limits
#include "ptxgen/optimize/gates.hpp"

namespace ptxgen::inline v0::optimize {

std::vector<Finding> target_limits(const ptx::Module&, const GateOptions&) { return {}; }

}  // namespace ptxgen::inline v0::optimize
