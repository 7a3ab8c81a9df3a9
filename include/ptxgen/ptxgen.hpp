// ptxgen/ptxgen.hpp - the whole library in one include
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/analysis.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/check.hpp"
#include "ptxgen/driver.hpp"
#include "ptxgen/emulator.hpp"
#include "ptxgen/frames.hpp"
#include "ptxgen/kernels.hpp"
#include "ptxgen/model.hpp"
#include "ptxgen/optimize.hpp"
#include "ptxgen/ptx.hpp"
#include "ptxgen/runtime.hpp"
#include "ptxgen/support.hpp"
#include "ptxgen/tile.hpp"
#include "ptxgen/version.hpp"
