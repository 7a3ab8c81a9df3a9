// src/capi/host_windows.cpp - host memory around pointers, mirrored on an emulated device
#include "capi/host_windows.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "emulator/state/address_space.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

#if defined(__linux__)
#include <sys/uio.h>
#include <unistd.h>
#endif

namespace ptxgen::inline v0::capi {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kChunk = std::uint64_t{1} << 20;
/// A window below a pointer is this part of the one above it: most kernels index upwards.
constexpr std::uint64_t kBelowPart = 256;
constexpr std::uint64_t kDistance = std::uint64_t{4} << 30;     ///< between windows on the device
constexpr std::uint64_t kAddresses = std::uint64_t{192} << 30;  ///< of the device

[[noreturn]] void refuse(std::string message) {
  throw Error(Stage::Launch, "host-memory", std::move(message));
}

#if defined(__linux__)

// The system copies, so that memory that another thread unmaps is an error and no fault.

iovec host_range(std::uint64_t address, std::size_t bytes) noexcept {
  return {reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), bytes};
}

/// The leading bytes of a range of this process that could be read.
std::uint64_t read_host(std::uint64_t from, std::span<std::byte> to) {
  std::uint64_t done = 0;
  while (done < to.size()) {
    const iovec local{to.data() + done, to.size() - done};
    const iovec remote = host_range(from + done, to.size() - done);
    const ssize_t count = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
    if (count < 0 && errno != EFAULT) {
      refuse(
          format_text("the system refuses process_vm_readv, by which ptx_run reads the memory of "
                      "its caller: {}; allow the call in the container's profile",
                      std::strerror(errno)));
    }
    if (count <= 0) break;
    done += static_cast<std::uint64_t>(count);
  }
  return done;
}

bool write_host(std::uint64_t to, std::span<const std::byte> bytes) noexcept {
  const iovec local{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const iovec remote = host_range(to, bytes.size());
  return ::process_vm_writev(::getpid(), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(bytes.size());
}

#else

std::uint64_t read_host(std::uint64_t, std::span<std::byte>) {
  refuse("ptx_run needs process_vm_readv, which only Linux has");
}
bool write_host(std::uint64_t, std::span<const std::byte>) noexcept { return false; }

#endif

/// Writes the differing bytes of one page. The first run is written by the system, which refuses
/// read-only memory; the rest of a page that is writable needs no call.
void put_page(std::uint64_t address, std::span<const std::byte> before,
              std::span<const std::byte> now) {
  bool writable = false;
  for (std::size_t i = 0; i < now.size();) {
    if (before[i] == now[i]) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < now.size() && before[end] != now[end]) ++end;
    const std::span<const std::byte> run = now.subspan(i, end - i);
    if (writable) {
      std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address + i)), run.data(),
                  run.size());
    } else if (!write_host(address + i, run)) {
      refuse(
          format_text("the kernel wrote {} at host address {:#x}, which is read-only or was "
                      "unmapped during the launch",
                      count_text(run.size(), "byte"), address + i));
    }
    writable = true;
    i = end;
  }
}

}  // namespace

HostWindows::HostWindows(std::span<const std::uint64_t> pointers, std::uint64_t reach) {
  std::vector<std::uint64_t> sorted(pointers.begin(), pointers.end());
  std::ranges::sort(sorted);
  for (const std::uint64_t pointer : sorted) add(pointer, reach);
}

void HostWindows::extend(Window& window, std::uint64_t to) {
  window.cut_above = true;
  while (window.high() < to) {
    const std::uint64_t from = window.high();
    const std::size_t old = window.bytes.size();
    const std::uint64_t wanted = std::min(to - from, kChunk);
    window.bytes.resize(old + static_cast<std::size_t>(wanted));
    const std::uint64_t got = read_host(from, std::span(window.bytes).subspan(old));
    window.bytes.resize(old + static_cast<std::size_t>(got));
    if (got < wanted) {
      window.cut_above = false;
      return;
    }
  }
}

void HostWindows::add(std::uint64_t pointer, std::uint64_t reach) {
  std::byte probe{};
  if (read_host(pointer, {&probe, 1}) == 0) return;
  const std::uint64_t below = std::max(reach / kBelowPart, kPage);
  const std::uint64_t wanted = (pointer - std::min(pointer, below)) / kPage * kPage;
  if (!windows_.empty()) {
    Window& last = windows_.back();
    if (wanted <= last.high() && last.cut_above) extend(last, pointer + reach);
    if (pointer < last.high()) return;
  }
  // Downwards page by page until memory ends: the window begins with the pointer's own page.
  const std::uint64_t floor =
      windows_.empty() ? wanted
                       : std::max(wanted, (windows_.back().high() + kPage - 1) / kPage * kPage);
  Window window;
  window.low = pointer / kPage * kPage;
  window.cut_below = true;
  while (window.low > floor) {
    if (read_host(window.low - kPage, {&probe, 1}) == 0) {
      window.cut_below = false;
      break;
    }
    window.low -= kPage;
  }
  extend(window, pointer + reach);
  windows_.push_back(std::move(window));
}

void HostWindows::mirror(emulator::Device& device) {
  for (Window& window : windows_) {
    window.device = device.space().allocate(
        window.bytes.size(), format_text("host memory {:#x} to {:#x}", window.low, window.high()),
        emulator::AllocationKind::Buffer, kDistance);
    device.write(window.device, window.bytes);
  }
}

std::uint64_t HostWindows::device_address(std::uint64_t number) const noexcept {
  for (const Window& window : windows_) {
    if (number >= window.low && number < window.high())
      return window.device + (number - window.low);
  }
  return number;
}

bool HostWindows::cut() const noexcept {
  return std::ranges::any_of(
      windows_, [](const Window& window) { return window.cut_below || window.cut_above; });
}

void HostWindows::copy_back(const emulator::Device& device) const {
  for (const Window& window : windows_) {
    const std::span<const std::byte> before(window.bytes);
    const std::span<const std::byte> now(device.space().host(window.device), before.size());
    for (std::size_t at = 0; at < before.size();) {
      const std::size_t bytes =
          std::min<std::size_t>(kPage - (window.low + at) % kPage, before.size() - at);
      if (std::memcmp(before.data() + at, now.data() + at, bytes) != 0) {
        put_page(window.low + at, before.subspan(at, bytes), now.subspan(at, bytes));
      }
      at += bytes;
    }
  }
}

ptx::Gpu HostWindows::with_addresses(ptx::Gpu gpu) noexcept {
  gpu.memory_bytes = kAddresses;
  return gpu;
}

}  // namespace ptxgen::inline v0::capi
