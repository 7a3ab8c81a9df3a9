// ptxgen/analysis/memory_report.hpp - what each memory access asks of the memory system
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
  /// Threads of a block in x, y, z; zeros if it is not known. `.reqntid` says it too.
  std::array<std::uint32_t, 3> block{0, 0, 0};
  /// Bytes that a pointer in a parameter is a multiple of, unless `.ptr .align` says other; what
  /// the driver's allocations are. Variables are taken to lie as their declaration says.
  std::uint32_t pointer_alignment = 256;
};

enum class AccessPattern : std::uint8_t {
  Coalesced,  ///< no more sectors than the bytes fill, or than wavefronts than phases
  Broadcast,  ///< all lanes of a warp address the same bytes
  Strided,    ///< more sectors (global, local), wavefronts (shared) or words (constant)
  Unknown,    ///< `reason` says why
};
/// `coalesced` `broadcast` `strided` `unknown`.
[[nodiscard]] std::string_view to_string(AccessPattern pattern) noexcept;

/// Who moves the bytes of an access.
enum class CopyKind : std::uint8_t {
  None,   ///< a load, store or atomic
  Lanes,  ///< `cp.async`: each lane has its part copied
  Bulk,   ///< `cp.async.bulk`: a copy engine, for each thread by itself
};
/// `none` `lanes` `bulk`.
[[nodiscard]] std::string_view to_string(CopyKind kind) noexcept;

/// Over what is not known of the address that lanes share.
struct Spread {
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};

/// One load, store or atomic of the text, or one side of an asynchronous copy. Figures are those of
/// one request: one execution by a warp all of whose lanes take part (`masked` says that some may
/// not) and copy in full (`shortened` says that they may not).
///
/// `cp.async` is two accesses of one statement: global memory is read, shared memory is written. Of
/// a bulk copy there is the side in global memory alone, and figures are those of one copy: its
/// engine moves whole ranges, and what that costs in shared memory is nobody's to count.
struct MemoryAccess {
  std::uint32_t statement = 0;
  std::uint32_t line = 0;  ///< of the PTX text, 0 for built statements
  SourceLocation cpp;      ///< the builder call
  std::string opcode;      ///< with modifiers: `ld.global.f32`
  /// Where the address points: Global, Shared, Local, Const; of a generic one as far as it is
  /// known, a pointer in a parameter being taken for one to global memory.
  ptx::Space space = ptx::Space::Generic;
  bool reads = false;
  bool writes = false;  ///< both: an atomic
  CopyKind copy = CopyKind::None;
  std::uint32_t bytes = 0;   ///< of one lane; 0 if that is no constant, or not known
  std::string size_text;     ///< of a bulk copy whose size is no constant: `4*n`
  std::uint32_t vector = 1;  ///< elements of one lane
  /// Of the request; fewer in a block of less than a warp, 1 of a bulk copy.
  std::uint32_t lanes = 32;
  std::uint32_t depth = 0;  ///< of loops around it
  bool masked = false;      ///< a guard or a branch may keep lanes of the warp from it
  /// `cp.async` with a src-size or ignore-src that is no constant: lanes may read fewer bytes.
  bool shortened = false;
  AffineForm address;
  std::string address_text;  ///< `a[4*tid.x + 4*n*i]`
  std::string lane_step;     ///< bytes between neighbouring lanes: `4*n`; empty if that is no form
  bool apart_unknown = false;  ///< lanes are apart by something not known, taken to be large
  std::vector<std::string> assumptions;  ///< `tid.x + 256*ctaid.x as u32`: taken not to wrap

  AccessPattern pattern = AccessPattern::Unknown;
  std::string reason;  ///< of Unknown: `depends on %r5, loaded at line 12`

  // Of the warp that wastes most.
  /// Global and local: 32-byte sectors moved, and how many the distinct bytes fill at least.
  Spread sectors;
  std::uint64_t ideal_sectors = 0;
  std::uint64_t bytes_wanted = 0;  ///< distinct ones; moved are 32 bytes a sector
  /// Shared: wavefronts, of which `ideal_wavefronts` cannot be saved; constant: distinct words.
  Spread wavefronts;
  std::uint64_t ideal_wavefronts = 0;
  /// Sectors, wavefronts or words of any warp of the block.
  Spread any_warp;

  [[nodiscard]] bool affine() const noexcept { return pattern != AccessPattern::Unknown; }
  /// How many times more than needed is moved, or taken in turns: at the best alignment.
  [[nodiscard]] double factor() const noexcept;
};

/// Each access once, whatever the loops around it.
struct MemoryTotals {
  std::uint32_t accesses = 0;
  std::uint32_t unknown = 0;
  std::uint32_t unsized = 0;  ///< bulk copies of a size that is no constant: in none of the bytes
  std::uint64_t bytes_wanted = 0;  ///< global and local
  Spread bytes_moved;              ///< likewise
  std::uint64_t bank_conflicts = 0;
};

struct MemoryReport {
  std::string function;
  std::array<std::uint32_t, 3> block{};  ///< the shape that figures are for
  /// It is not known, but what `.maxntid` admits at most, or one row of 1024 threads.
  bool block_assumed = false;
  std::vector<MemoryAccess> accesses;  ///< in the order of the text
  MemoryTotals total;
};

/// For a function with a body; near-linear in it. Parameters are left out, and so are mbarriers,
/// prefetches and bulk copies from shared memory to that of another block. Loads and stores of
/// matrices, `st.async`, `red.async` and `st.bulk` are listed as Unknown. Of `cp.async` with a
/// constant src-size the bytes read are counted, and a side that reads none is left out. Counts as
/// the emulator does (counters.hpp).
[[nodiscard]] MemoryReport memory_report(const ptx::Module& module, const ptx::Function& function,
                                         const MemoryReportOptions& options = {});
/// The same for blocks as `affine` was made for, `options.block` not counted.
[[nodiscard]] MemoryReport memory_report(const Affine& affine,
                                         const MemoryReportOptions& options = {});

/// `strided: lanes are 4*n_dim bytes apart, 32 sectors for 128 bytes wanted, 8 times what is
/// needed`: the access in words.
[[nodiscard]] std::string verdict(const MemoryAccess& access);
/// Two lines for each access (place, opcode and address; verdict), then the total.
[[nodiscard]] std::string to_text(const MemoryReport& report);

/// A launch that accesses are counted for.
struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  /// Each parameter at its place, as a driver takes them.
  std::span<const std::byte> parameters;
};

/// What one access does in a launch, all warps together. Bulk copies are requests of one lane each.
/// Lanes that read different numbers of bytes by one `cp.async` are a request for each number.
struct AccessCounts {
  std::uint32_t statement = 0;
  bool exact = false;
  std::string reason;  ///< if it is not exact
  std::uint64_t requests = 0;
  std::uint64_t sectors = 0, ideal_sectors = 0;        ///< global and local
  std::uint64_t wavefronts = 0, ideal_wavefronts = 0;  ///< shared
  std::uint64_t bytes = 0;                             ///< that lanes asked for
};

struct LaunchCounts {
  bool complete = false;  ///< control flow could be followed to the end
  std::string reason;     ///< if it could not: nothing is exact then
  std::vector<AccessCounts> accesses;
};

/// Follows every thread of a launch through the function by its affine forms, and counts what the
/// accesses of `report` ask for: guards, branches and loops included that depend on indices and
/// parameters only. Lanes of a warp that are at the same place go on together, the one that is
/// furthest behind first.
///
/// Variables are taken to lie at multiples of 32 bytes. Not complete beyond `max_steps` (blocks of
/// statements executed by a warp), or where a branch depends on something else; then the branch is
/// named.
[[nodiscard]] LaunchCounts count_accesses(const Affine& affine, const MemoryReport& report,
                                          const LaunchShape& launch,
                                          std::uint64_t max_steps = 1'000'000);

}  // namespace ptxgen::inline v0::analysis
