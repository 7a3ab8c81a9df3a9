// src/driver/symbols.hpp - symbols of the driver, looked up by version
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ptxgen/driver/api.hpp"

namespace ptxgen::inline v0::driver {

/// A symbol, the CUDA version that brought it, and its function.
struct Symbol {
  const char* symbol;  ///< "cuMemAlloc_v2"
  int since;
  void* entry;
};

/// "cuMemAlloc_v2" as "cuMemAlloc": cuGetProcAddress takes names without the suffix and chooses by
/// version.
[[nodiscard]] constexpr std::string_view base_name(std::string_view symbol) noexcept {
  return symbol.substr(0, symbol.rfind("_v"));
}

/// Implements cuGetProcAddress over `symbols`: the newest symbol of that name for programs of
/// `version`; else null, with the reason in `status`.
[[nodiscard]] const Symbol* find_symbol(std::span<const Symbol> symbols, std::string_view name,
                                        int version,
                                        CUdriverProcAddressQueryResult& status) noexcept;

/// Flags of cuGetProcAddress.
inline constexpr std::uint64_t kLegacyStream = 1;
inline constexpr std::uint64_t kPerThreadDefaultStream = 2;

}  // namespace ptxgen::inline v0::driver
