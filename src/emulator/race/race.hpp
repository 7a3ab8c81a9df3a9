// src/emulator/race/race.hpp - who touched which byte last, and what orders them
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// One warp-level access. `addresses[lane]`: byte offset in shared memory, or a global address.
struct RaceAccess {
  enum class Kind : std::uint8_t { Read, Write, Atomic, AsyncRead, AsyncWrite };
  Kind kind = Kind::Read;
  ptx::Modifier order = ptx::Modifier::none;  ///< none and weak: plain; volatile counts as relaxed
  ptx::Modifier scope = ptx::Modifier::none;  ///< none: cta for shared, gpu for atomics
  std::uint32_t mask = 0;
  std::uint8_t bytes = 4;  ///< of each lane
  std::uint8_t unit = 0;   ///< bytes of an element, of which a vector has several; 0: `bytes`
  /// What is known of the addresses of all 32 lanes: each `bytes` behind the one before, or equal.
  enum class Shape : std::uint8_t { Unknown, Neighbours, Equal };
  Shape shape = Shape::Unknown;
  const std::uint64_t* addresses = nullptr;
  /// Writes: what each lane is about to store, `value_stride` bytes apart; called before memory is
  /// changed, so that what lies there is the last write's value. Null: not known.
  const std::byte* values = nullptr;
  std::uint32_t value_stride = 0;
  /// AsyncRead, AsyncWrite: grows with every group that is committed; see `async_complete`.
  std::uint64_t ticket = 0;
  /// Shared memory: whose it is; null for the block that accesses it.
  const Cta* owner = nullptr;
};

/// What a copy engine writes into a block's shared memory. `warp` and `lane` have issued it.
struct BulkWrite {
  const Cta* owner = nullptr;
  std::uint64_t offset = 0;  ///< a multiple of 4, as `bytes`
  std::uint64_t bytes = 0;
  std::uint32_t statement = kNoIndex;
  const Cta* issuer = nullptr;
  std::uint32_t warp = 0;
  std::uint32_t lane = 0;
};

/// The object of `Races::release` that stands for the barrier of a cluster; the lowest bit is the
/// parity of the phase. No mbarrier's is as large.
inline constexpr std::uint64_t kClusterBarrierObject = 0x8000'0000u;

/// How the global memory of a launch is checked.
struct RacePlan {
  unsigned workers = 1;
  bool all = true;  ///< all memory is watched
  /// Else: what the launch is expected to write. What no thread writes is in no race.
  std::vector<Device::Extent> watched;
  /// Whether the check may turn out not to be exact. Then it throws `Replay`.
  [[nodiscard]] bool provisional() const noexcept { return workers > 1 || !all; }
};

/// Thrown by a provisional check: workers have met a race, which one alone is to describe, since
/// what is reported does not depend on their number; or memory is written that is not watched. The
/// launch is to be undone and run again.
struct Replay {
  bool unwatched = false;
};

/// Happens-before in one block's shared memory, or in the global memory of a launch.
/// Warps have vector clocks; barriers, mbarriers and release/acquire pairs join them.
class Races {
 public:
  /// For the shared memory of one block. The rules are `shared-race` and `race-same-value`.
  static std::unique_ptr<Races> for_shared(const Cta& cta);
  /// For a launch. The rules are `global-race` and `scope-too-narrow`. Thread-safe as far as each
  /// worker (Context::worker, Cta::worker) has its own blocks, and blocks of different workers do
  /// not synchronise with each other.
  static std::unique_ptr<Races> for_global(AddressSpace& space, const RacePlan& plan);
  virtual ~Races() = default;

  /// Checks and records an access; reports what races with it, once for each pair of statements.
  virtual void access(Context& context, std::uint32_t statement, const RaceAccess& access) = 0;

  /// A strong access (atomic, volatile, relaxed, acquire, release) to the memory that the other of
  /// the two objects watches: what it synchronises holds here too.
  virtual void synchronise(Context& context, std::uint32_t statement, const RaceAccess& access) = 0;

  /// A CTA barrier (`id` 0..15): `lanes` of the warp arrive; with `wait` they go on only after
  /// `barrier_complete`, which orders all that arrived before all that waited.
  virtual void barrier_arrive(Context& context, std::uint32_t id, std::uint32_t lanes,
                              bool wait) = 0;
  virtual void barrier_complete(Cta& cta, std::uint32_t id) = 0;
  /// bar.warp.sync: orders the lanes of the mask among each other.
  virtual void warp_sync(Context& context, std::uint32_t lanes) = 0;
  /// fence.* and membar.* by these lanes. `statement` names it where its scope is too narrow.
  virtual void fence(Context& context, std::uint32_t lanes, ptx::Modifier order,
                     ptx::Modifier scope, std::uint32_t statement = kNoIndex) = 0;
  /// Release into, or acquire from, a synchronisation object of its own. For an mbarrier: twice its
  /// address plus the parity of the phase, so that early arrivals for the next phase are not
  /// mistaken for this one's. `owner`: the block in whose memory it lies, null for that of the
  /// lanes.
  virtual void release(Context& context, std::uint32_t lanes, std::uint64_t object,
                       const Cta* owner = nullptr) = 0;
  virtual void acquire(Context& context, std::uint32_t lanes, std::uint64_t object,
                       const Cta* owner = nullptr) = 0;
  /// The object is another one from now on.
  virtual void forget(std::uint64_t object, const Cta& owner) = 0;
  /// A copy engine begins to write shared memory: until somebody has seen it done, whoever touches
  /// the bytes races with it. To be told of the owner's object (shared only).
  virtual void bulk_write(Context& issuer, const BulkWrite& write) = 0;
  /// A lane of the owner has seen, by the end of a phase of an mbarrier (`object`), that it is
  /// done; who else acquires the object knows so too.
  virtual void bulk_observed(Context& context, std::uint32_t lane, const BulkWrite& write,
                             std::uint64_t object) = 0;
  /// The asynchronous accesses that these lanes have issued with a ticket up to `through` are
  /// complete and visible to them. Until then they are ordered with nothing that comes later, not
  /// even of the same thread.
  virtual void async_complete(Context& context, std::uint32_t lanes,
                              std::uint64_t through = ~std::uint64_t{0}) = 0;
  /// The next block takes over the memory of one that has ended (shared only): cheaper than a new
  /// object, nothing is cleared. Not with another number of bytes of shared memory.
  virtual void restart(const Cta& cta) = 0;
  /// A block begins or has ended (global only).
  virtual void block_begins(const Cta& cta) = 0;
  virtual void block_ends(const Cta& cta) = 0;
  /// All threads of a block of a cluster have left: reports accesses of other blocks to its memory
  /// that are not ordered before that (shared only).
  virtual void block_leaves(Cta& cta) = 0;
  /// Whether accesses to memory at this address are to be told (global only). A write of other
  /// memory throws `Replay`.
  [[nodiscard]] virtual bool watches(std::uint64_t) const noexcept { return true; }
  /// Makes global memory what it was before the launch (provisional checks only).
  virtual void undo() noexcept {}
  /// False if it has given up: more than it can keep.
  [[nodiscard]] virtual bool complete() const noexcept { return true; }
  [[nodiscard]] virtual std::uint64_t overhead_bytes() const = 0;
};

}  // namespace ptxgen::inline v0::emulator
