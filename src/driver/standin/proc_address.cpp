// src/driver/standin/proc_address.cpp - cuGetProcAddress of the stand-in
#include <algorithm>
#include <string_view>

#include "driver/standin/standin.hpp"

namespace ptxgen::inline v0::driver::standin {

CUresult get_proc_address(const char* name, void** entry, int version, std::uint64_t flags,
                          CUdriverProcAddressQueryResult* status) noexcept {
  if (name == nullptr || entry == nullptr ||
      (flags & ~(kLegacyStream | kPerThreadDefaultStream)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *entry = nullptr;
  int own_version = 0;
  (void)table().driver_get_version(&own_version);
  if (version > own_version) return CUDA_ERROR_INVALID_VALUE;

  CUdriverProcAddressQueryResult ignored{};
  const Symbol* const found =
      find_symbol(symbols(), name, version, status != nullptr ? *status : ignored);
  if (found == nullptr) return CUDA_SUCCESS;
  *entry = found->entry;
  if ((flags & kPerThreadDefaultStream) != 0) {
    const auto own = std::ranges::find(per_thread_symbols(), std::string_view(found->symbol),
                                       &PerThreadSymbol::symbol);
    if (own != per_thread_symbols().end()) *entry = own->entry;
  }
  return CUDA_SUCCESS;
}

}  // namespace ptxgen::inline v0::driver::standin
