// src/emulator/memory/access.hpp - checks and targets of a warp-level memory access
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "emulator/memory/access_counts.hpp"
#include "emulator/memory/request.hpp"
#include "emulator/report/report.hpp"
#include "emulator/state/windows.hpp"

namespace ptxgen::inline v0::emulator {

/// The host memory of the lanes of an access.
struct AccessTargets {
  std::uint32_t mask = 0;             ///< lanes without a finding
  std::array<std::byte*, 32> host;    ///< for lanes of the mask
  std::uint32_t peers = 0;            ///< lanes in another block's shared memory,
  std::array<std::uint8_t, 32> rank;  ///< and its rank
  /// The block whose shared memory a lane accesses.
  [[nodiscard]] Cta& owner(const Context& context, unsigned lane) const noexcept {
    return (peers >> lane & 1u) != 0 ? *context.cta->cluster->blocks[rank[lane]] : *context.cta;
  }
};

/// Checks an access in this order: bounds, alignment, read-only (writes), written bits (reads; set
/// by writes), races, counters. The caller moves the bytes.
void resolve_access(Context& context, const Step& step, const MemoryDetail& detail,
                    const AccessRequest& request, AccessTargets& out);

/// The addresses of 32 lanes.
void compute_addresses(const Context& context, const AddressOperand& operand,
                       std::uint64_t addresses[32]);

/// Adds one request in `space` to the counters of the instruction.
void count_access(Context& context, const MemoryDetail& detail, ptx::Space space,
                  const std::uint64_t addresses[32], std::uint32_t mask, unsigned bytes);

/// Adds one request of `bytes` bytes.
void add_request(MemoryCounters& counters, const SectorCount& count, std::uint64_t bytes) noexcept;
void add_request(SharedCounters& counters, const WavefrontCount& count,
                 std::uint64_t bytes) noexcept;

/// Counters of the instruction, or nullptr if it has none.
[[nodiscard]] AccessCounters* counters_of(Context& context, const MemoryDetail& detail);

/// Fills Worker::memory; called by the first access of a worker.
void make_memory_view(Context& context);

/// A full barrier for the guest memory accesses of this host thread.
void host_fence() noexcept;

// A race in a kernel is no error of this program: two workers may access the same guest bytes
// unordered. Only these functions and vector/ access guest bytes; the attribute keeps
// ThreadSanitizer from reporting them. Constant sizes avoid calls of memcpy, which ThreadSanitizer
// intercepts.
__attribute__((no_sanitize("thread"))) void load_bytes(std::byte* to, const std::byte* from,
                                                       unsigned bytes) noexcept;
__attribute__((no_sanitize("thread"))) void store_bytes(std::byte* to, const std::byte* from,
                                                        unsigned bytes) noexcept;

/// An element of 1 to 8 bytes, extended to its destination register.
[[nodiscard]] std::uint64_t extended(std::uint64_t bits, unsigned element_bytes,
                                     const Slot& slot) noexcept;

/// Stores an element (`bytes` of 1, 2, 4, 8, 16) to a lane of a destination, if present.
void set_element(const Context& context, const Slot& slot, unsigned lane, const std::byte* data,
                 unsigned bytes) noexcept;
/// Loads an element from a lane of a source.
void get_element(const Context& context, const Slot& slot, unsigned lane, std::byte* data,
                 unsigned bytes) noexcept;

}  // namespace ptxgen::inline v0::emulator
