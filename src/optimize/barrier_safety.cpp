// src/optimize/barrier_safety.cpp - the gate barrier_safety
#include "ptxgen/optimize/gates.hpp"

namespace ptxgen::inline v0::optimize {

std::vector<Finding> barrier_safety(const ptx::Module&, const GateOptions&) { return {}; }

}  // namespace ptxgen::inline v0::optimize
