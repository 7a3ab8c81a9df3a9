// src/driver/symbols.cpp - symbols of the driver, looked up by version
#include "driver/symbols.hpp"

namespace ptxgen::inline v0::driver {

const Symbol* find_symbol(std::span<const Symbol> symbols, std::string_view name, int version,
                          CUdriverProcAddressQueryResult& status) noexcept {
  const Symbol* newest = nullptr;
  status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  for (const Symbol& symbol : symbols) {
    if (base_name(symbol.symbol) != name) continue;
    if (newest == nullptr) status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    if (symbol.since > version || (newest != nullptr && symbol.since <= newest->since)) continue;
    newest = &symbol;
    status = CU_GET_PROC_ADDRESS_SUCCESS;
  }
  return newest;
}

}  // namespace ptxgen::inline v0::driver
