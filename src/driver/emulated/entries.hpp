// src/driver/emulated/entries.hpp - the functions of the emulated driver's table
#pragma once

#include "ptxgen/driver/api.hpp"

/// One function for each row of functions.def, by its field's name: what libcuda's symbol of that
/// row does. None throws.
namespace ptxgen::inline v0::driver::emulated::entries {

#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  CUresult field parameters;
#include "ptxgen/driver/functions.def"

}  // namespace ptxgen::inline v0::driver::emulated::entries
