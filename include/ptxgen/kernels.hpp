// ptxgen/kernels.hpp - the library's kernels
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/kernels/describe.hpp"
#include "ptxgen/kernels/description.hpp"
#include "ptxgen/kernels/element_type.hpp"
#include "ptxgen/kernels/elementwise/read_stream.hpp"
#include "ptxgen/kernels/gemv/gemv.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/kernels/gemv/models.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/kernels/host_values.hpp"
#include "ptxgen/kernels/kernel.hpp"
#include "ptxgen/kernels/model/errors.hpp"
#include "ptxgen/kernels/model/predict.hpp"
#include "ptxgen/kernels/model/rates.hpp"
#include "ptxgen/kernels/operand.hpp"
#include "ptxgen/kernels/view.hpp"

// The headers of the catalog's kernels.
#define PTXGEN_KERNEL(type)
#include "ptxgen/kernels/kernels.def"
#undef PTXGEN_KERNEL
