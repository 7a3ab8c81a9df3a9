// src/emulator/memory/access.hpp - the way of one warp-level access to memory
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "emulator/machine/machine.hpp"
#include "emulator/race/race.hpp"
#include "emulator/report/report.hpp"

namespace ptxgen::inline v0::emulator {

/// Largest access of one lane, `.v8.b32` and `.v4.b64`.
inline constexpr unsigned kMaxLaneBytes = 32;

/// What a warp asks of memory. Order of events for each lane: bounds, alignment, read-only
/// (writes), written-bits (reads; set by writes), race hook, counters. The bytes themselves are
/// moved by the caller.
struct AccessRequest {
  ptx::Space space = ptx::Space::Generic;
  const std::uint64_t* addresses = nullptr;  ///< 32, as the instruction computes them
  std::uint32_t mask = 0;
  unsigned bytes = 4;  ///< of each lane, 1 to kMaxLaneBytes
  unsigned alignment = 4;
  bool reads = false;
  bool writes = false;
  RaceAccess::Kind kind = RaceAccess::Kind::Read;
  const std::byte* values = nullptr;  ///< see RaceAccess
  std::uint32_t value_stride = 0;
  std::uint64_t ticket = 0;  ///< see RaceAccess
  bool count = true;         ///< sectors and wavefronts
  bool mark = true;          ///< writes: the bytes are written now (cp.async: later)
  bool check_written = true;
  /// Loads: the bytes that matter, where not all do (MemoryDetail::RequiredBytes); 0: all.
  std::uint32_t used = 0;
  /// Bytes up to the last one that matters.
  [[nodiscard]] unsigned needed() const noexcept {
    return used == 0 ? bytes : static_cast<unsigned>(std::bit_width(used));
  }
};

/// Where the lanes of an access found memory.
struct Reach {
  std::uint32_t mask = 0;             ///< lanes that have a place; the others had a finding
  std::array<std::byte*, 32> host;    ///< for lanes of the mask
  std::uint32_t peers = 0;            ///< lanes that have reached another block of the cluster,
  std::array<std::uint8_t, 32> rank;  ///< and which
  /// The block whose shared memory a lane has reached.
  [[nodiscard]] Cta& owner(const Context& context, unsigned lane) const noexcept {
    return (peers >> lane & 1u) != 0 ? *context.cta->cluster->blocks[rank[lane]] : *context.cta;
  }
};

void reach(Context& context, const Step& step, const MemoryDetail& detail,
           const AccessRequest& request, Reach& out);

/// Takes the window, and the place of the block in its cluster, off an address of shared memory.
/// False, and nothing changed, if it is none of a block of the cluster.
[[nodiscard]] bool find_owner(const Context& context, std::uint64_t& address, Cta*& owner) noexcept;

/// The addresses of 32 lanes.
void compute_addresses(const Context& context, const AddressOperand& operand,
                       std::uint64_t addresses[32]);

/// Adds one request to the counters of the instruction, as `space` says.
void count_access(Context& context, const MemoryDetail& detail, ptx::Space space,
                  const std::uint64_t addresses[32], std::uint32_t mask, unsigned bytes);

/// Counters of the instruction, or nullptr where none are kept.
[[nodiscard]] AccessCounters* counters_of(Context& context, const MemoryDetail& detail);

/// Fills Worker::memory; called by the first access of a worker.
void make_memory_view(Context& context);

/// Which space a generic address lies in: Shared, Local, Param or Global.
[[nodiscard]] ptx::Space window_of(std::uint64_t address) noexcept;
/// The start of a space's window, 0 for global memory.
[[nodiscard]] std::uint64_t window_start(ptx::Space space) noexcept;

/// Orders what this host thread does to guest memory before and after, for all host threads.
void host_fence() noexcept;

// A kernel with a race is a kernel to run, not a fault of this program: two workers may touch the
// same guest bytes at the same time without order. These functions, and nothing else outside of
// vector/, touch guest bytes; the attribute keeps ThreadSanitizer from blaming the host for it.
// Sizes are constants so that no call of the (intercepted) library's memcpy is left.
__attribute__((no_sanitize("thread"))) void load_bytes(std::byte* to, const std::byte* from,
                                                       unsigned bytes) noexcept;
__attribute__((no_sanitize("thread"))) void store_bytes(std::byte* to, const std::byte* from,
                                                        unsigned bytes) noexcept;

/// Data of one lane's element of 1 to 8 bytes, extended as its destination wants it.
[[nodiscard]] std::uint64_t extended(std::uint64_t bits, unsigned element_bytes,
                                     const Slot& slot) noexcept;

/// Puts an element (`bytes` of 1, 2, 4, 8, 16) into a lane of a destination; nothing if absent.
void set_element(const Context& context, const Slot& slot, unsigned lane, const std::byte* data,
                 unsigned bytes) noexcept;
/// Takes an element from a lane of a source.
void get_element(const Context& context, const Slot& slot, unsigned lane, std::byte* data,
                 unsigned bytes) noexcept;

}  // namespace ptxgen::inline v0::emulator
