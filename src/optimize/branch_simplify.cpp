// src/optimize/branch_simplify.cpp - the pass branch_simplify
#include "ptxgen/optimize/passes.hpp"

namespace ptxgen::inline v0::optimize {

void branch_simplify(ptx::Function&, PassContext&) {}

}  // namespace ptxgen::inline v0::optimize
