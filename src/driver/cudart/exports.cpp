// src/driver/cudart/exports.cpp - the symbols that both versions of libcudart have
#include "driver/cudart/exports.hpp"

#include "support/format.hpp"

namespace ptxgen::inline v0::driver::cudart {

cudaError_t refuse_call(const char* symbol) noexcept {
  return call([&] {
    return refuse(cudaErrorNotSupported,
                  format_text("{}: the emulated CUDA runtime has no such function", symbol));
  });
}

extern "C" {

#define PTXGEN_CUDART_FUNCTION(symbol, parameters, arguments) \
  PTXGEN_CUDART_EXPORT(symbol, parameters, arguments)
#include "driver/cudart/functions.def"

#define PTXGEN_CUDART_FUNCTION(symbol, parameters, arguments) \
  PTXGEN_CUDART_PER_THREAD(symbol, parameters, arguments)
#include "driver/cudart/functions.def"

#define PTXGEN_PER_THREAD(symbol, suffix) PTXGEN_CUDART_ALIAS(symbol, suffix)
#include "driver/cudart/per_thread.def"

#define PTXGEN_REFUSED(symbol) PTXGEN_CUDART_REFUSE(symbol)
#include "driver/cudart/refused.def"
}

}  // namespace ptxgen::inline v0::driver::cudart
