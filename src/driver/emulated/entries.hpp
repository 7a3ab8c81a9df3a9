// src/driver/emulated/entries.hpp - the functions of the emulated driver's table
#pragma once

#include "ptxgen/driver/api.hpp"

/// One function per row of functions.def, named after its field, that implements the row's symbol.
/// None throws.
namespace ptxgen::inline v0::driver::emulated::entries {

#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  CUresult field parameters;
#include "ptxgen/driver/functions.def"

}  // namespace ptxgen::inline v0::driver::emulated::entries
