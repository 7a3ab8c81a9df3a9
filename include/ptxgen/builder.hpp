// ptxgen/builder.hpp - the typed kernel builder
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/builder/functions.hpp"
#include "ptxgen/builder/kernel.hpp"
#include "ptxgen/builder/kernel_builder.hpp"
#include "ptxgen/builder/math.hpp"
#include "ptxgen/builder/vector_loop.hpp"
