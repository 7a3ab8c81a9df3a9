// src/driver/emulated/emulated_table.cpp - the table that the emulated driver fills
#include <array>

#include "driver/emulated/entries.hpp"
#include "driver/symbols.hpp"
#include "ptxgen/driver/emulated.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

constexpr Table kTable = {
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  &entries::field,
#include "ptxgen/driver/functions.def"
};

std::span<const Symbol> symbols() {
  static const auto the_symbols = std::to_array<Symbol>({
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  {#symbol, since, reinterpret_cast<void*>(&entries::field)},
#include "ptxgen/driver/functions.def"
  });
  return the_symbols;
}

}  // namespace

namespace entries {

CUresult get_proc_address(const char* symbol, void** entry, int version, std::uint64_t flags,
                          CUdriverProcAddressQueryResult* symbol_status) {
  if (symbol == nullptr || entry == nullptr ||
      (flags & ~(kLegacyStream | kPerThreadDefaultStream)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUdriverProcAddressQueryResult ignored{};
  const Symbol* const found =
      find_symbol(symbols(), symbol, version, symbol_status != nullptr ? *symbol_status : ignored);
  *entry = found != nullptr ? found->entry : nullptr;
  return CUDA_SUCCESS;
}

}  // namespace entries

const Table& table() noexcept { return kTable; }

}  // namespace ptxgen::inline v0::driver::emulated
