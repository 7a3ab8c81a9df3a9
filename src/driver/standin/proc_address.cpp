// src/driver/standin/proc_address.cpp - cuGetProcAddress of the stand-in
#include <algorithm>
#include <string_view>

#include "driver/standin/standin.hpp"

namespace ptxgen::inline v0::driver::standin {
namespace {

constexpr std::uint64_t kPerThreadDefaultStream = 2;
constexpr std::uint64_t kAllFlags = 3;

/// "cuMemAlloc_v2" without its suffix.
std::string_view base_name(std::string_view symbol) { return symbol.substr(0, symbol.rfind("_v")); }

}  // namespace

CUresult get_proc_address(const char* name, void** entry, int version, std::uint64_t flags,
                          CUdriverProcAddressQueryResult* status) noexcept {
  if (name == nullptr || entry == nullptr || (flags & ~kAllFlags) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *entry = nullptr;
  int own_version = 0;
  (void)table().driver_get_version(&own_version);
  if (version > own_version) return CUDA_ERROR_INVALID_VALUE;

  const Export* newest = nullptr;
  bool known = false;
  for (const Export& row : exports()) {
    if (base_name(row.symbol) != name) continue;
    known = true;
    if (row.since <= version && (newest == nullptr || row.since > newest->since)) newest = &row;
  }
  if (status != nullptr) {
    *status = newest != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : known           ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  if (newest == nullptr) return CUDA_SUCCESS;
  *entry = newest->entry;
  if ((flags & kPerThreadDefaultStream) != 0) {
    const auto own = std::ranges::find(per_thread_exports(), std::string_view(newest->symbol),
                                       &PerThreadExport::symbol);
    if (own != per_thread_exports().end()) *entry = own->entry;
  }
  return CUDA_SUCCESS;
}

}  // namespace ptxgen::inline v0::driver::standin
