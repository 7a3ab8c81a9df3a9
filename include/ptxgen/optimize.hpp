// ptxgen/optimize.hpp - passes over the IR, and the gates
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/optimize/gates.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/optimize/passes.hpp"
#include "ptxgen/optimize/tile.hpp"
