// src/driver/shim/proc_address.cpp - cuGetProcAddress of the shim
#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>

#include "driver/shim/shim.hpp"

namespace ptxgen::inline v0::driver::standin {
namespace {

/// The newest version whose functions the table knows.
constexpr int kKnownVersion = 13000;

/// Older symbols with arguments of their own that lead to what is recorded.
constexpr std::array<std::string_view, 7> kRecordedOlder = {"cuGetProcAddress",
                                                            "cuStreamBeginCapture",
                                                            "cuGraphInstantiate",
                                                            "cuGraphInstantiate_v2",
                                                            "cuGraphExecUpdate",
                                                            "cuGraphAddKernelNode",
                                                            "cuGraphExecKernelNodeSetParams"};

void* exported(std::string_view symbol) {
  const auto found = std::ranges::find(
      symbols(), symbol, [](const Symbol& one) { return std::string_view(one.symbol); });
  return found != symbols().end() ? found->entry : nullptr;
}

/// What this library exports in place of the driver's.
const std::set<void*>& recorded_entries() {
  static const std::set<void*> entries = [] {
    std::set<void*> built;
    const Table& real = shim::real_table();
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  if (table().field != real.field) built.insert(exported(#symbol));
#include "ptxgen/driver/functions.def"
    for (const std::string_view symbol : kRecordedOlder) built.insert(exported(symbol));
    return built;
  }();
  return entries;
}

CUresult ask_real(const char* name, void** entry, int version, std::uint64_t flags,
                  CUdriverProcAddressQueryResult* status) {
  const Table& real = shim::real_table();
  if (real.get_proc_address != nullptr) {
    return real.get_proc_address(name, entry, version, flags, status);
  }
  *entry = shim::real_symbol(name);
  *status = *entry != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

/// Whether the driver has a newer function of that name than the table's.
bool is_newer(const char* name, void* entry, int version, std::uint64_t flags) {
  if (version <= kKnownVersion) return false;
  void* known = nullptr;
  CUdriverProcAddressQueryResult ignored{};
  const CUresult result = ask_real(name, &known, kKnownVersion, flags, &ignored);
  return result != CUDA_SUCCESS || known != entry;
}

}  // namespace

CUresult get_proc_address(const char* name, void** entry, int version, std::uint64_t flags,
                          CUdriverProcAddressQueryResult* status) noexcept {
  if (name == nullptr || entry == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdriverProcAddressQueryResult answered{};
  const CUresult result = ask_real(name, entry, version, flags, &answered);
  if (status != nullptr) *status = answered;
  // A driver that lacks it, or has a newer one, is not recorded there.
  if (result != CUDA_SUCCESS || *entry == nullptr) return result;
  CUdriverProcAddressQueryResult ignored{};
  const Symbol* const own = find_symbol(symbols(), name, version, ignored);
  if (own == nullptr || recorded_entries().count(own->entry) == 0) return result;
  if (is_newer(name, *entry, version, flags)) {
    std::fprintf(stderr, "ptxgen: calls of %s are not recorded: the driver's is newer\n", name);
    return result;
  }
  *entry = own->entry;
  if ((flags & kPerThreadDefaultStream) == 0) return result;
  const auto variant = std::ranges::find(per_thread_symbols(), std::string_view(own->symbol),
                                         &PerThreadSymbol::symbol);
  if (variant != per_thread_symbols().end()) *entry = variant->entry;
  return result;
}

}  // namespace ptxgen::inline v0::driver::standin
