// src/optimize/analyze.cpp - the gate analyze
#include "ptxgen/optimize/gates.hpp"

namespace ptxgen::inline v0::optimize {

std::vector<Finding> analyze(const ptx::Module&, const GateOptions&) { return {}; }

}  // namespace ptxgen::inline v0::optimize
