// tests/driver/fake_driver_versions.cpp - the cuGetProcAddress of a fake driver
#include <string>

#include "ptxgen/driver/api.hpp"

#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace ptxgen::driver {
namespace {

// Found by version: every function returns CUDA_ERROR_NOT_READY.
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  CUresult field parameters { return CUDA_ERROR_NOT_READY; }
#include "ptxgen/driver/functions.def"

struct Row {
  const char* symbol;
  int since;
  void* entry;
};
const Row kRows[] = {
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  {#symbol, since, reinterpret_cast<void*>(&field)},
#include "ptxgen/driver/functions.def"
};

}  // namespace

/// Stricter than a real one: only the name without a suffix, only the version that brought exactly
/// this symbol. Knows nothing of cuStreamQuery.
extern "C" CUresult cuGetProcAddress_v2(const char* name, void** entry, int version,
                                        std::uint64_t flags,
                                        CUdriverProcAddressQueryResult* status) {
  for (const Row& row : kRows) {
    const std::string symbol = row.symbol;
    if (symbol != "cuStreamQuery" && symbol.substr(0, symbol.rfind("_v")) == name &&
        row.since == version && flags == 1) {
      *entry = row.entry;
      *status = CU_GET_PROC_ADDRESS_SUCCESS;
      return CUDA_SUCCESS;
    }
  }
  *entry = nullptr;
  *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

}  // namespace ptxgen::driver
