// src/capi/host_windows.hpp - host memory around pointers, mirrored on an emulated device
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"

namespace ptxgen::inline v0::capi {

/// Readable memory of this process around pointers whose sizes are not known, copied to a device
/// before a launch. After it the bytes that the launch changed are copied back, no others. A window
/// reaches from a little below a pointer to `reach` bytes above it, or to where memory ends;
/// windows that touch are one.
class HostWindows {
 public:
  /// Reads memory around the pointers. Those that point to no readable memory get no window. Throws
  /// `Error` (Stage::Launch, "host-memory") if the system does not let the process read its memory.
  HostWindows(std::span<const std::uint64_t> pointers, std::uint64_t reach);

  /// Allocates and writes them on the device, far from each other: an access that leaves a window
  /// is in no other.
  void mirror(emulator::Device& device);
  /// The device address of a host address in a window; any other number unchanged.
  [[nodiscard]] std::uint64_t device_address(std::uint64_t number) const noexcept;
  /// Whether some window ends because of `reach` and not because memory does.
  [[nodiscard]] bool cut() const noexcept;
  /// Copies changed bytes back. Throws `Error` ("host-memory") for memory that is read-only.
  void copy_back(const emulator::Device& device) const;

  /// A device with addresses for the distances between windows.
  [[nodiscard]] static ptx::Gpu with_addresses(ptx::Gpu gpu) noexcept;

 private:
  struct Window {
    std::uint64_t low = 0;  ///< host address
    std::vector<std::byte> bytes;
    bool cut_below = false;
    bool cut_above = false;
    std::uint64_t device = 0;
    [[nodiscard]] std::uint64_t high() const noexcept { return low + bytes.size(); }
  };
  void add(std::uint64_t pointer, std::uint64_t reach);
  static void extend(Window& window, std::uint64_t to);

  std::vector<Window> windows_;  ///< by address
};

}  // namespace ptxgen::inline v0::capi
