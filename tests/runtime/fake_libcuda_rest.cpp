// tests/runtime/fake_libcuda_rest.cpp - the driver functions that fake_libcuda.cpp leaves out
#include "ptxgen/driver/api.hpp"

#pragma GCC diagnostic ignored "-Wunused-parameter"

// A driver must have all required functions to be used. Weak: fake_libcuda.cpp's own go first.
namespace ptxgen::driver {
extern "C" {
#define PTXGEN_Required(symbol, parameters) \
  __attribute__((weak)) CUresult symbol parameters { return CUDA_ERROR_NOT_SUPPORTED; }
#define PTXGEN_Optional(symbol, parameters)
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  PTXGEN_##need(symbol, parameters)
#include "ptxgen/driver/functions.def"
#undef PTXGEN_Required
#undef PTXGEN_Optional
}
}  // namespace ptxgen::driver
