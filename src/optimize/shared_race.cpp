// src/optimize/shared_race.cpp - the gate shared_race
#include "ptxgen/optimize/gates.hpp"

namespace ptxgen::inline v0::optimize {

std::vector<Finding> shared_race(const ptx::Module&, const GateOptions&) { return {}; }

}  // namespace ptxgen::inline v0::optimize
