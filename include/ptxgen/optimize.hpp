// ptxgen/optimize.hpp - passes over the IR
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/optimize/grid_wait.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/optimize/passes.hpp"
