// src/emulator/state/windows.hpp - state spaces of generic addresses
#pragma once

#include <cstdint>

#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

[[nodiscard]] constexpr bool in_window(std::uint64_t address, std::uint64_t window) noexcept {
  return address - window < kWindowBytes;
}

/// The space of a generic address: Shared, Local, Param or Global.
[[nodiscard]] inline ptx::Space window_of(std::uint64_t address) noexcept {
  if (in_window(address, kSharedWindow)) return ptx::Space::Shared;
  if (in_window(address, kLocalWindow)) return ptx::Space::Local;
  if (in_window(address, kParamWindow)) return ptx::Space::Param;
  return ptx::Space::Global;
}
/// The start of a space's window, 0 for global memory.
[[nodiscard]] std::uint64_t window_start(ptx::Space space) noexcept;

/// Finds the block of a shared address, and makes the address an offset in its memory. False, with
/// nothing changed, if no block of the cluster has it.
[[nodiscard]] bool find_owner(const Context& context, std::uint64_t& address, Cta*& owner) noexcept;

}  // namespace ptxgen::inline v0::emulator
