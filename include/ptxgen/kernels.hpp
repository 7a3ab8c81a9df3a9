// ptxgen/kernels.hpp - the library's kernels
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/kernels/elementwise.hpp"
#include "ptxgen/kernels/gemv.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/kernels/gemv/models.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/kernels/gemv_coalesced.hpp"
#include "ptxgen/kernels/gemv_strided.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/kernels/read_stream.hpp"
