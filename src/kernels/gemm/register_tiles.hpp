// src/kernels/gemm/register_tiles.hpp - gemm_tiled with several outputs of a thread in registers
#pragma once

#include "kernels/gemm/emit.hpp"
#include "ptxgen/kernels/gemm/tiled.hpp"

namespace ptxgen::inline v0::gemm {

/// The code after the parameters, for tiles of 64 and 128.
void emit_register_tiles(Kit& kit, const GemmTiled& kernel);

}  // namespace ptxgen::inline v0::gemm
