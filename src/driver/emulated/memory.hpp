// src/driver/emulated/memory.hpp - lookup of addresses in a context
#pragma once

#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// Whether a number is an address of the emulated device, allocated or not. Host addresses never
/// are: the device's range is where no system maps memory.
[[nodiscard]] bool is_device_address(const CUctx_st& context, std::uint64_t address);
/// Of an allocation of so many bytes: drivers allocate full pages of 2 MiB if possible; smaller
/// blocks have the texture alignment.
[[nodiscard]] std::uint64_t alignment_of(std::uint64_t bytes);
/// Whether device memory has one address for the host and for kernels, which managed memory needs.
[[nodiscard]] bool is_unified(const CUctx_st& context);
/// The message for a call about managed memory, or what else needs that, where it is not.
[[nodiscard]] std::string no_managed_memory(const char* call, const char* what = "managed memory");
/// Whether a host address is in pinned or registered memory.
[[nodiscard]] bool is_pinned(CUctx_st& context, std::uint64_t address);
/// The allocation or module variable that holds a device address; 0 bytes if none does.
[[nodiscard]] emulator::Device::Extent extent_of(CUctx_st& context, CUdeviceptr address);
/// CUDA_ERROR_INVALID_VALUE with a line in the log unless the bytes are within one allocation.
[[nodiscard]] CUresult check_range(CUctx_st& context, const char* call, CUdeviceptr address,
                                   std::uint64_t bytes);

// copies.cpp ------------------------------------------------------------------------------------

/// Checks the device ranges of a copy or a fill at the call.
[[nodiscard]] CUresult check_copy(CUctx_st& context, const char* call, Copy& copy);
/// Checks and queues a copy, or captures it; complete at the return where CUDA says so.
[[nodiscard]] CUresult copy_later(const char* call, Copy copy, CUstream stream);
[[nodiscard]] CUresult check_fill(CUctx_st& context, const char* call, const Fill& fill);
/// A copy from cuGraphAddMemcpyNode's structure; INVALID_VALUE for what is inconsistent.
[[nodiscard]] CUresult copy_from(const CUDA_MEMCPY3D& parameters, Copy& copy);

}  // namespace ptxgen::inline v0::driver::emulated
