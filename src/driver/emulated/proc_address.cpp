// src/driver/emulated/proc_address.cpp - cuGetProcAddress of the emulated driver
#include "driver/emulated/entries.hpp"
#include "driver/symbols.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

const Symbol kSymbols[] = {
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  {#symbol, since, reinterpret_cast<void*>(entries::field)},
#include "ptxgen/driver/functions.def"
};

}  // namespace

/// All threads share one per-thread stream, and stream 0 is the legacy stream. The stand-in library
/// has the variants for per-thread default streams.
CUresult entries::get_proc_address(const char* symbol, void** entry, int version,
                                   std::uint64_t flags,
                                   CUdriverProcAddressQueryResult* symbol_status) {
  if (symbol == nullptr || entry == nullptr ||
      (flags & ~(kLegacyStream | kPerThreadDefaultStream)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *entry = nullptr;
  int own_version = 0;
  (void)driver_get_version(&own_version);
  if (version > own_version) return CUDA_ERROR_INVALID_VALUE;
  CUdriverProcAddressQueryResult ignored{};
  const Symbol* const found =
      find_symbol(kSymbols, symbol, version, symbol_status != nullptr ? *symbol_status : ignored);
  if (found != nullptr) *entry = found->entry;
  return CUDA_SUCCESS;
}

}  // namespace ptxgen::inline v0::driver::emulated
