// ptxgen/emulator/report/counters.hpp - exact counts of a hardware profiler's metrics
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/ptx/ops.hpp"

namespace ptxgen::inline v0::emulator {

/// Global and local memory. A request is one warp-level instruction with at least one lane whose
/// guard holds; an access of 8 or 16 bytes a lane is one request too.
struct MemoryCounters {
  std::uint64_t requests = 0;
  std::uint64_t sectors = 0;        ///< distinct 32-byte sectors, summed over requests
  std::uint64_t ideal_sectors = 0;  ///< ceil(distinct bytes / 32), summed over requests
  std::uint64_t bytes = 0;          ///< requested bytes, summed over lanes
  friend bool operator==(const MemoryCounters&, const MemoryCounters&) = default;
};

/// Shared memory. Wavefronts of an access of up to 4 bytes a lane: the maximum over 32 banks of the
/// distinct 4-byte words in a bank; of 8 bytes: the sum over the half warps; of 16 bytes: the sum
/// over the quarter warps. Equal words are broadcast. bank_conflicts = wavefronts -
/// ideal_wavefronts.
struct SharedCounters {
  std::uint64_t requests = 0;
  std::uint64_t wavefronts = 0;
  std::uint64_t ideal_wavefronts = 0;  ///< phases (1, 2, 4) in which a lane is active
  std::uint64_t bank_conflicts = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const SharedCounters&, const SharedCounters&) = default;
};

/// Bulk copies (cp.async.bulk). A copy engine makes them: no group of requests includes them.
/// Copies with a finding are not counted.
struct BulkCounters {
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;    ///< copied; a multicast counts once
  std::uint64_t sectors = 0;  ///< 32-byte sectors of global memory, summed over copies
  friend bool operator==(const BulkCounters&, const BulkCounters&) = default;
};

/// Shared memory of other blocks of the cluster. It does not use the block's own banks: no group of
/// shared memory includes it. A request has a lane that accesses another block; bytes are those of
/// such lanes.
struct PeerCounters {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const PeerCounters&, const PeerCounters&) = default;
};

/// One instruction of the PTX.
struct LineCounters {
  std::uint32_t line = 0;  ///< 1-based line of the PTX text
  std::string opcode;      ///< with modifiers: "ld.global.f32"
  std::string function;
  std::uint64_t executions = 0;         ///< by warps
  std::uint64_t thread_executions = 0;  ///< active lanes, whatever their guard
  std::uint64_t predicated_on = 0;      ///< active lanes whose guard is true
  std::uint64_t divergent = 0;          ///< divergent executions of a branch
  MemoryCounters memory;                ///< global or local accesses of this line
  SharedCounters shared;
  BulkCounters bulk;  ///< copies of this line
  PeerCounters peer;
};

/// Executions of a row of the op table, by warps.
struct OpCount {
  std::string mnemonic;
  std::uint64_t executions = 0;
};

/// The counters of a launch; zero if Options::counters is off.
struct Counters {
  std::uint64_t warp_instructions = 0;
  std::uint64_t thread_instructions = 0;  ///< active lanes, summed over warp instructions
  std::uint64_t branches = 0;             ///< executed by warps
  std::uint64_t divergent_branches = 0;
  std::uint64_t barriers = 0;  ///< CTA-wide barrier instructions executed by warps
  std::uint64_t atomics = 0;   ///< atom and red instructions executed by warps
  MemoryCounters global_load, global_store, local_load, local_store;
  SharedCounters shared_load, shared_store;
  BulkCounters bulk_load;   ///< global to shared memory
  BulkCounters bulk_store;  ///< shared to global memory, reductions too
  BulkCounters bulk_peer;   ///< shared memory to that of another block of the cluster; no sectors
  PeerCounters peer_load, peer_store;
  /// Minimum blocks on a multiprocessor: limited by threads, shared memory, and the registers that
  /// directives allow an assembler (255 without directives).
  std::uint32_t blocks_per_sm = 0;
  double waves = 0;                 ///< maximum: blocks of the launch / (blocks_per_sm * SMs)
  std::vector<OpCount> opcodes;     ///< by mnemonic (`add`, `ld`), in alphabetical order
  std::vector<LineCounters> lines;  ///< in the order of the PTX text

  /// thread_instructions / (32 * warp_instructions); 0 if nothing ran.
  [[nodiscard]] double warp_execution_efficiency() const noexcept;
  /// ideal_sectors / sectors of a group; 1 without sectors.
  [[nodiscard]] static double coalescing_efficiency(const MemoryCounters& group) noexcept;
};

}  // namespace ptxgen::inline v0::emulator
