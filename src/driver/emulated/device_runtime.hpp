// src/driver/emulated/device_runtime.hpp - the part of libcudadevrt that kernels link with
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "driver/emulated/link.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// Whether the bytes are an archive with CUDA's device runtime (libcudadevrt.a).
[[nodiscard]] bool is_device_runtime(std::span<const std::byte> bytes) noexcept;

/// Whether an input of a link declares a function of `device_runtime` without defining it. The
/// texts must be valid PTX.
[[nodiscard]] bool needs_device_runtime(std::span<const LinkInput> inputs);

/// The functions of cooperative groups as PTX: cudaCGGetIntrinsicHandle, cudaCGSynchronize,
/// cudaCGSynchronizeGrid, cudaCGGetSize, cudaCGGetRank. The handle of a grid is its workspace
/// (%envreg1, %envreg2). Without a workspace, in a launch that is not cooperative, the
/// synchronisation traps; the emulator's finding says why.
[[nodiscard]] std::string_view device_runtime() noexcept;

}  // namespace ptxgen::inline v0::driver::emulated
