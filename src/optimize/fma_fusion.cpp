// src/optimize/fma_fusion.cpp - the pass fma_fusion
#include "ptxgen/optimize/passes.hpp"

namespace ptxgen::inline v0::optimize {

void fma_fusion(ptx::Function&, PassContext&) {}

}  // namespace ptxgen::inline v0::optimize
