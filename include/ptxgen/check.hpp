// ptxgen/check.hpp - gates and analyzers: what a module must pass
#pragma once

#include "ptxgen/support/language.hpp"

#include "ptxgen/check/gates.hpp"
#include "ptxgen/check/parity.hpp"
#include "ptxgen/check/sizes.hpp"
#include "ptxgen/check/tile.hpp"
