// src/driver/standin/driver_api.hpp - the functions of libcuda.so.1, for libraries beside it
#pragma once

#include "ptxgen/driver/api.hpp"

namespace ptxgen::inline v0::driver {
extern "C" {
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  CUresult symbol parameters;
#include "ptxgen/driver/functions.def"
/// A line in the stand-in's log.
void ptxgen_driver_log(CUlogLevel level, const char* text);
}
}  // namespace ptxgen::inline v0::driver
