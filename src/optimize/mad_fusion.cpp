// src/optimize/mad_fusion.cpp - the pass mad_fusion
#include "ptxgen/optimize/passes.hpp"

namespace ptxgen::inline v0::optimize {

void mad_fusion(ptx::Function&, PassContext&) {}

}  // namespace ptxgen::inline v0::optimize
