// src/optimize/loop_split.cpp - the pass loop_split
#include "ptxgen/optimize/passes.hpp"

namespace ptxgen::inline v0::optimize {

void loop_split(ptx::Function&, PassContext&) {}

}  // namespace ptxgen::inline v0::optimize
