// src/driver/shim/shim.hpp - the recorder in front of a libcuda
#pragma once

#include <cstdint>

#include "driver/standin/standin.hpp"
#include "ptxgen/driver/table.hpp"

/// A shared library with libcuda's soname that calls another libcuda and records (PTXGEN_RECORD).
/// It has the stand-in's exports (src/driver/standin/exports.cpp) over its own table; what the
/// recorder does not know is forwarded.
namespace ptxgen::inline v0::driver::shim {

/// The functions of the other libcuda: PTXGEN_LIBCUDA_PATH, else the usual folders. If there is
/// none, each call says CUDA_ERROR_NO_DEVICE, and the reason is on standard error.
[[nodiscard]] const Table& real_table() noexcept;
/// A symbol of it, or null.
[[nodiscard]] void* real_symbol(const char* name) noexcept;
/// Finds the functions that are forwarded.
void find_forwarded() noexcept;

}  // namespace ptxgen::inline v0::driver::shim
