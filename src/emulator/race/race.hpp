// src/emulator/race/race.hpp - happens-before checks of memory accesses
#pragma once

#include <cstdint>
#include <memory>
#include <span>
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
  /// The addresses of the lanes, for masks without gaps from lane 0 on: each `bytes` after the one
  /// before, equal, or each at least `bytes` after the one before.
  enum class Shape : std::uint8_t { Unknown, Neighbours, Equal, Ascending };
  Shape shape = Shape::Unknown;
  const std::uint64_t* addresses = nullptr;
  /// Writes: the value of each lane, `value_stride` bytes apart. Memory still has the old value.
  /// Null: unknown.
  const std::byte* values = nullptr;
  std::uint32_t value_stride = 0;
  /// AsyncRead, AsyncWrite: increases with every copy; see `async_complete`.
  std::uint64_t ticket = 0;
  /// Shared memory: its block; null: the accessing block.
  const Cta* owner = nullptr;
};

/// A write of the copy engine to a block's shared memory. `warp` and `lane` issued it.
struct BulkWrite {
  const Cta* owner = nullptr;
  std::uint64_t offset = 0;  ///< a multiple of 4, as `bytes`
  std::uint64_t bytes = 0;
  std::uint32_t statement = kNoIndex;
  const Cta* issuer = nullptr;
  std::uint32_t warp = 0;
  std::uint32_t lane = 0;
};

/// The object of `Races::release` for the cluster barrier; the lowest bit is the parity of the
/// phase. Objects of mbarriers are smaller.
inline constexpr std::uint64_t kClusterBarrierObject = 0x8000'0000u;

/// The objects of reads by wgmma: this one and those after it, one for each warpgroup.
inline constexpr std::uint64_t kWarpgroupObject = 0x8000'0010u;

/// How the global memory of a launch is checked.
struct RacePlan {
  unsigned workers = 1;
  bool all = true;  ///< checks all memory
  /// Else: the memory that the launch is expected to write. Memory without writes has no races.
  std::vector<Device::Extent> watched;
  /// Whether the check may be inexact and throw `Replay`.
  [[nodiscard]] bool provisional() const noexcept { return workers > 1 || !all; }
};

/// Thrown by a provisional check when several workers found a race, or unwatched memory is written.
/// The launch must be undone and run again by one worker: reports do not depend on the number of
/// workers.
struct Replay {
  bool unwatched = false;
};

/// Happens-before in one block's shared memory, or in the global memory of a launch.
/// Warps have vector clocks; barriers, mbarriers and release/acquire pairs join them.
class Races {
 public:
  /// For the shared memory of one block. The rules are `shared-race` and `race-same-value`.
  static std::unique_ptr<Races> for_shared(const Cta& cta);
  /// For a launch. The rules are `global-race` and `scope-too-narrow`. Thread-safe if each worker
  /// (Context::worker, Cta::worker) has its own blocks, and blocks of different workers do not
  /// synchronise with each other.
  static std::unique_ptr<Races> for_global(AddressSpace& space, const RacePlan& plan);
  virtual ~Races() = default;

  /// Checks and records an access; reports accesses that race with it, once for each pair of
  /// statements.
  virtual void access(Context& context, std::uint32_t statement, const RaceAccess& access) = 0;

  /// A strong access (atomic, volatile, relaxed, acquire, release) to memory that the other check
  /// covers: applies its synchronisation to this one.
  virtual void synchronise(Context& context, std::uint32_t statement, const RaceAccess& access) = 0;

  /// A CTA barrier (`id` 0..15): `lanes` of the warp arrive; with `wait` they wait for
  /// `barrier_complete`, which orders all arrivals before all waits.
  virtual void barrier_arrive(Context& context, std::uint32_t id, std::uint32_t lanes,
                              bool wait) = 0;
  virtual void barrier_complete(Cta& cta, std::uint32_t id) = 0;
  /// bar.warp.sync: orders the lanes of the mask.
  virtual void warp_sync(Context& context, std::uint32_t lanes) = 0;
  /// fence.* and membar.* by these lanes. `statement`: for findings about its scope.
  virtual void fence(Context& context, std::uint32_t lanes, ptx::Modifier order,
                     ptx::Modifier scope, std::uint32_t statement = kNoIndex) = 0;
  /// Release to, or acquire from, a synchronisation object. For an mbarrier: twice its address plus
  /// the parity of the phase, which keeps early arrivals for the next phase apart. `owner`: the
  /// block of the mbarrier, null: that of the lanes.
  virtual void release(Context& context, std::uint32_t lanes, std::uint64_t object,
                       const Cta* owner = nullptr) = 0;
  virtual void acquire(Context& context, std::uint32_t lanes, std::uint64_t object,
                       const Cta* owner = nullptr) = 0;
  /// Clears the object: its number is reused.
  virtual void forget(std::uint64_t object, const Cta& owner) = 0;
  /// The copy engine starts to write shared memory: until a thread has observed its end, accesses
  /// to the bytes race with it. Call it for the check of the owner (shared only).
  virtual void bulk_write(Context& issuer, const BulkWrite& write) = 0;
  /// A lane of the owner has observed the end of the write by a phase of an mbarrier (`object`).
  /// Threads that acquire the object observe it too.
  virtual void bulk_observed(Context& context, std::uint32_t lane, const BulkWrite& write,
                             std::uint64_t object) = 0;
  /// A warp issues a wgmma that reads these pieces of 16 bytes (offsets in shared memory): checks
  /// that their writes are ordered before. Until `matrix_read` with the same number, writes to them
  /// race with it. Writes by ordinary stores must also have been followed by a `proxy_fence`; if
  /// not, the statement of one is returned, else kNoIndex (shared only).
  virtual std::uint32_t matrix_issue(Context&, std::uint32_t /*statement*/,
                                     std::span<const std::uint32_t> /*pieces*/,
                                     std::uint64_t /*number*/) {
    return kNoIndex;
  }
  /// The wgmma has read the pieces. Threads that acquire `object` are ordered after that.
  virtual void matrix_read(Context&, std::uint32_t /*statement*/,
                           std::span<const std::uint32_t> /*pieces*/, std::uint64_t /*number*/,
                           std::uint64_t /*object*/) {}
  /// fence.proxy.async by these lanes.
  virtual void proxy_fence(Context&, std::uint32_t /*lanes*/) {}
  /// The statement of an ordinary store to these pieces that no `proxy_fence` has followed, or
  /// kNoIndex (shared only).
  [[nodiscard]] virtual std::uint32_t unfenced_store(Context&,
                                                     std::span<const std::uint32_t> /*pieces*/) {
    return kNoIndex;
  }
  /// The asynchronous accesses of these lanes with tickets up to `through` are complete and visible
  /// to them. Before, they are not ordered with later accesses, not even of the same thread.
  virtual void async_complete(Context& context, std::uint32_t lanes,
                              std::uint64_t through = ~std::uint64_t{0}) = 0;
  /// The next block reuses the memory of one that has ended (shared only): cheaper than a new
  /// check, since nothing is cleared. The size of shared memory must be the same.
  virtual void restart(const Cta& cta) = 0;
  /// A block begins or has ended (global only).
  virtual void block_begins(const Cta& cta) = 0;
  virtual void block_ends(const Cta& cta) = 0;
  /// All threads of a block of a cluster have exited: reports accesses of other blocks to its
  /// memory that are not ordered before that (shared only).
  virtual void block_leaves(Cta& cta) = 0;
  /// Whether accesses at this address must be checked (global only). A write to other memory throws
  /// `Replay`.
  [[nodiscard]] virtual bool watches(std::uint64_t) const noexcept { return true; }
  /// Restores global memory to its state before the launch (provisional checks only).
  virtual void undo() noexcept {}
  /// False if a limit was exceeded and the check has stopped.
  [[nodiscard]] virtual bool complete() const noexcept { return true; }
  [[nodiscard]] virtual std::uint64_t overhead_bytes() const = 0;
};

}  // namespace ptxgen::inline v0::emulator
