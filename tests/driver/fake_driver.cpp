// tests/driver/fake_driver.cpp - driver libraries that only say how they were found
#include "ptxgen/driver/api.hpp"

#pragma GCC diagnostic ignored "-Wunused-parameter"

// Found by symbol: every function returns FAKE_STATUS. With FAKE_OLD only the required ones exist.
namespace ptxgen::driver {
extern "C" {
#define PTXGEN_Required(symbol, parameters) \
  __attribute__((weak)) CUresult symbol parameters { return FAKE_STATUS; }
#ifdef FAKE_OLD
#define PTXGEN_Optional(symbol, parameters)
#else
#define PTXGEN_Optional(symbol, parameters) PTXGEN_Required(symbol, parameters)
#endif
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  PTXGEN_##need(symbol, parameters)
#include "ptxgen/driver/functions.def"
#undef PTXGEN_Required
#undef PTXGEN_Optional
}
}  // namespace ptxgen::driver
