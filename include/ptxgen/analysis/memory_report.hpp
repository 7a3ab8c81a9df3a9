// ptxgen/analysis/memory_report.hpp - memory traffic of each access
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/analysis/affine.hpp"
#include "ptxgen/support/source_location.hpp"

namespace ptxgen::inline v0::analysis {

struct MemoryReportOptions {
  /// Threads of a block in x, y, z; zeros if unknown (then `.reqntid` is used).
  std::array<std::uint32_t, 3> block{0, 0, 0};
  /// Assumed alignment in bytes of pointer parameters without `.ptr .align`: that of the driver's
  /// allocations. Variables have the alignment of their declaration.
  std::uint32_t pointer_alignment = 256;
};

enum class AccessPattern : std::uint8_t {
  Coalesced,  ///< no more sectors than the bytes need, no more wavefronts than phases
  Broadcast,  ///< all lanes of a warp address the same bytes
  Strided,    ///< more sectors (global, local), wavefronts (shared) or words (constant)
  Unknown,    ///< see `reason`
};
/// `coalesced` `broadcast` `strided` `unknown`.
[[nodiscard]] std::string_view to_string(AccessPattern pattern) noexcept;

/// How the bytes of an access are moved.
enum class CopyKind : std::uint8_t {
  None,   ///< a load, store or atomic
  Lanes,  ///< `cp.async`: each lane copies its part
  Bulk,   ///< `cp.async.bulk`: the copy engine, one copy per thread
};
/// `none` `lanes` `bulk`.
[[nodiscard]] std::string_view to_string(CopyKind kind) noexcept;

/// The range over all unknown bases that the lanes share.
struct Spread {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};

/// One load, store or atomic, or one side of an asynchronous copy. Figures are those of one
/// request: one execution by a warp whose lanes are all active (not if `masked`) and copy their
/// full size (not if `shortened`).
///
/// `cp.async` is two accesses of one statement: a read of global memory and a write of shared
/// memory. For a bulk copy only the access to global memory is listed, with the figures of one
/// copy; the cost in shared memory is not modelled.
struct MemoryAccess {
  std::uint32_t statement = 0;
  std::uint32_t line = 0;  ///< of the PTX text, 0 for built statements
  SourceLocation cpp;      ///< the builder call
  std::string opcode;      ///< with modifiers: `ld.global.f32`
  /// Global, Shared, Local or Const. A generic address is resolved if possible; a pointer parameter
  /// is assumed to point to global memory.
  ptx::Space space = ptx::Space::Generic;
  bool reads = false;
  bool writes = false;  ///< both: an atomic
  CopyKind copy = CopyKind::None;
  std::uint32_t bytes = 0;   ///< per lane; 0 if not constant or unknown
  std::string size_text;     ///< size of a bulk copy if not constant: `4*n`
  std::uint32_t vector = 1;  ///< elements per lane
  /// Lanes of the request; fewer in a block smaller than a warp, 1 for a bulk copy.
  std::uint32_t lanes = 32;
  std::uint32_t depth = 0;  ///< number of enclosing loops
  bool masked = false;      ///< a guard or branch may disable lanes of the warp
  /// `cp.async` whose src-size or ignore-src is not constant: lanes may read fewer bytes.
  bool shortened = false;
  AffineForm address;
  std::string address_text;    ///< `a[4*tid.x + 4*n*i]`
  std::string lane_step;       ///< bytes between neighbouring lanes: `4*n`; empty if not affine
  bool apart_unknown = false;  ///< the distance of lanes is unknown and assumed to be large
  std::vector<std::string> assumptions;  ///< `tid.x + 256*ctaid.x as u32`: assumed not to wrap

  AccessPattern pattern = AccessPattern::Unknown;
  std::string reason;  ///< of Unknown: `depends on %r5, loaded at line 12`

  // Figures of the least efficient warp.
  /// Global and local: 32-byte sectors moved, and the minimum for the distinct bytes.
  Spread sectors;
  std::uint64_t ideal_sectors = 0;
  std::uint64_t bytes_wanted = 0;  ///< distinct bytes; 32 bytes are moved per sector
  /// Shared: wavefronts, and their minimum `ideal_wavefronts`; constant: distinct words.
  Spread wavefronts;
  std::uint64_t ideal_wavefronts = 0;
  /// Sectors, wavefronts or words over all warps of the block.
  Spread any_warp;

  [[nodiscard]] bool affine() const noexcept { return pattern != AccessPattern::Unknown; }
  /// Sectors (or wavefronts) relative to the minimum, at the best alignment.
  [[nodiscard]] double factor() const noexcept;
};

/// Totals; each access counts once, regardless of loops.
struct MemoryTotals {
  std::uint32_t accesses = 0;
  std::uint32_t unknown = 0;
  std::uint32_t unsized = 0;       ///< bulk copies of unknown size, not counted in the bytes
  std::uint64_t bytes_wanted = 0;  ///< global and local
  Spread bytes_moved;              ///< likewise
  std::uint64_t bank_conflicts = 0;
};

struct MemoryReport {
  std::string function;
  std::array<std::uint32_t, 3> block{};  ///< block shape of the figures
  /// The shape is unknown; assumed are the maximum of `.maxntid`, or one row of 1024 threads.
  bool block_assumed = false;
  std::vector<MemoryAccess> accesses;  ///< in the order of the text
  MemoryTotals total;
};

/// The report of a function with a body; near-linear in it. Not included are parameters, mbarriers,
/// prefetches and bulk copies between the shared memories of blocks. Matrix loads and stores,
/// `st.async`, `red.async` and `st.bulk` are listed as Unknown. For `cp.async` with a constant
/// src-size the bytes read are counted; a side that reads none is omitted. Counts like the
/// emulator (counters.hpp).
[[nodiscard]] MemoryReport memory_report(const ptx::Module& module, const ptx::Function& function,
                                         const MemoryReportOptions& options = {});
/// The same for the block shape of `affine`; ignores `options.block`.
[[nodiscard]] MemoryReport memory_report(const Affine& affine,
                                         const MemoryReportOptions& options = {});

/// `strided: lanes are 4*n_dim bytes apart, 32 sectors for 128 bytes wanted, 8 times what is
/// needed`: a summary of the access.
[[nodiscard]] std::string verdict(const MemoryAccess& access);
/// Two lines per access (location, opcode and address; verdict), then the total.
[[nodiscard]] std::string to_text(const MemoryReport& report);

/// The launch to count accesses for.
struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  /// The parameter buffer, each parameter at its offset.
  std::span<const std::byte> parameters;
};

/// Counts of one access over all warps of a launch. A bulk copy is a request of one lane. A
/// `cp.async` whose lanes read different numbers of bytes is one request per number.
struct AccessCounts {
  std::uint32_t statement = 0;
  bool exact = false;
  std::string reason;  ///< if it is not exact
  std::uint64_t requests = 0;
  std::uint64_t sectors = 0, ideal_sectors = 0;        ///< global and local
  std::uint64_t wavefronts = 0, ideal_wavefronts = 0;  ///< shared
  std::uint64_t bytes = 0;                             ///< requested by lanes
};

struct LaunchCounts {
  bool complete = false;  ///< control flow was followed to the end
  std::string reason;     ///< if not complete; then no count is exact
  std::vector<AccessCounts> accesses;
};

/// Executes the affine forms of every thread of a launch and counts the requests of the accesses of
/// `report`. Guards, branches and loops may depend on indices and parameters only. Lanes of a warp
/// at the same block run together, the lowest block first.
///
/// Variables are assumed to be aligned to 32 bytes. Not complete after `max_steps` (basic blocks
/// executed by a warp), or if a branch depends on something else; `reason` then names the branch.
[[nodiscard]] LaunchCounts count_accesses(const Affine& affine, const MemoryReport& report,
                                          const LaunchShape& launch,
                                          std::uint64_t max_steps = 1'000'000);

}  // namespace ptxgen::inline v0::analysis
