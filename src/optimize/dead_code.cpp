// src/optimize/dead_code.cpp - the pass dead_code
#include "ptxgen/optimize/passes.hpp"

namespace ptxgen::inline v0::optimize {

void dead_code(ptx::Function&, PassContext&) {}

}  // namespace ptxgen::inline v0::optimize
