// src/driver/standin/exports.cpp - the symbols of the stand-in for libcuda
#include "driver/standin/standin.hpp"

namespace ptxgen::inline v0::driver {

using standin::OldKernelNodeParams;

namespace standin {
namespace {

template <class... Parameters>
CUresult call_per_thread(CUresult (*function)(Parameters...), Parameters... arguments) {
  return function(PerThread<Parameters>(arguments)...);
}

}  // namespace
}  // namespace standin

extern "C" {

/// find_libcuda recognises the stand-in by this symbol.
extern const char ptxgen_emulated_driver[];
const char ptxgen_emulated_driver[] = "ptxgen";

#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  CUresult symbol parameters { return standin::table().field arguments; }
#include "ptxgen/driver/functions.def"

// Defined for every function, because the parameter lists exist; only those of per_thread.def are
// exported.
#define PTXGEN_ARGUMENTS(...) __VA_OPT__(, ) __VA_ARGS__
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  __attribute__((visibility("hidden"))) CUresult per_thread_##symbol parameters {         \
    return standin::call_per_thread(standin::table().field PTXGEN_ARGUMENTS arguments);   \
  }
#include "ptxgen/driver/functions.def"
#undef PTXGEN_ARGUMENTS

#define PTXGEN_PER_THREAD(symbol, suffix) \
  extern decltype(symbol) symbol##suffix __attribute__((alias("per_thread_" #symbol)));
#include "driver/standin/per_thread.def"

#define PTXGEN_SAME(symbol, since, newer) \
  extern decltype(newer) symbol __attribute__((alias(#newer)));
#include "driver/standin/same.def"

#define PTXGEN_OLDER(symbol, since, parameters) CUresult symbol parameters;
#include "driver/standin/older.def"
}

namespace standin {
namespace {

template <class Function>
void* address(Function* function) noexcept {
  return reinterpret_cast<void*>(function);
}

const Symbol kSymbols[] = {
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  {#symbol, since, address(symbol)},
#include "ptxgen/driver/functions.def"
#define PTXGEN_SAME(symbol, since, newer) {#symbol, since, address(symbol)},
#include "driver/standin/same.def"
#define PTXGEN_OLDER(symbol, since, parameters) {#symbol, since, address(symbol)},
#include "driver/standin/older.def"
};

const PerThreadSymbol kPerThreadSymbols[] = {
#define PTXGEN_PER_THREAD(symbol, suffix) {#symbol, address(symbol##suffix)},
#include "driver/standin/per_thread.def"
};

}  // namespace

std::span<const Symbol> symbols() noexcept { return kSymbols; }
std::span<const PerThreadSymbol> per_thread_symbols() noexcept { return kPerThreadSymbols; }

}  // namespace standin
}  // namespace ptxgen::inline v0::driver
