// src/driver/emulated/emulated_table.cpp - the emulated driver's table
#include "driver/emulated/entries.hpp"
#include "ptxgen/driver/emulated.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

constexpr Table kTable = {
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  &entries::field,
#include "ptxgen/driver/functions.def"
};

}  // namespace

const Table& table() noexcept { return kTable; }

}  // namespace ptxgen::inline v0::driver::emulated
