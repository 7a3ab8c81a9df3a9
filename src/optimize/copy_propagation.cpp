// src/optimize/copy_propagation.cpp - the pass copy_propagation
#include "ptxgen/optimize/passes.hpp"

namespace ptxgen::inline v0::optimize {

void copy_propagation(ptx::Function&, PassContext&) {}

}  // namespace ptxgen::inline v0::optimize
