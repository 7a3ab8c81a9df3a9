// src/emulator/machine/machine.hpp - warps, blocks and workers while a launch runs
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/decode/code.hpp"

namespace ptxgen::inline v0::emulator {

class AsyncCopies;  // memory_async.hpp
class BulkCopies;   // memory_bulk.hpp
class Races;        // race.hpp
class Reporter;     // report.hpp
struct Cta;
struct Warp;
struct Worker;
struct Grid;

// Generic addresses: what lies in these windows is shared and local memory, the rest is global.
// The bases are ours; the hardware's differ from one driver to the next.
/// The first device address. Far above null and everything a kernel may take for an address by
/// mistake.
inline constexpr std::uint64_t kGlobalBase = 0x0000'0100'0000'0000;
inline constexpr std::uint64_t kSharedWindow = 0x0000'7000'0000'0000;
inline constexpr std::uint64_t kLocalWindow = 0x0000'7100'0000'0000;
inline constexpr std::uint64_t kParamWindow = 0x0000'7200'0000'0000;  ///< kernel parameters
inline constexpr std::uint64_t kWindowBytes = 0x0000'0001'0000'0000;
/// Shared memory of the blocks of a cluster, in the shared window: that of rank r begins at
/// (r + 1) * kPeerBytes, and below kPeerBytes lies the block's own.
inline constexpr std::uint64_t kPeerBytes = std::uint64_t{1} << 24;
/// Blocks that a cluster may have; up to `kPortableCluster` on every device with clusters.
inline constexpr std::uint32_t kMaxCluster = 16;
inline constexpr std::uint32_t kPortableCluster = 8;
/// Addresses of functions, as taken by `mov`: kFunctionWindow + 16 * index in Module::functions.
inline constexpr std::uint64_t kFunctionWindow = 0x0000'7300'0000'0000;

/// One activation of a function by some lanes of a warp.
struct Frame {
  const Code* code = nullptr;
  std::byte* registers = nullptr;  ///< code->frame_bytes, 64-byte aligned
  Frame* caller = nullptr;
  std::uint32_t return_segment = 0;  ///< in the caller
  std::uint32_t call_detail = 0;     ///< the caller's ControlDetail
  std::uint32_t lanes = 0;           ///< that are in it or in something it called
  std::uint32_t local_base = 0;      ///< where its local variables begin, in each thread
  std::uint32_t depth = 0;
  std::uint64_t filled_for = ~std::uint64_t{0};  ///< Cta::order whose special registers it holds
  Frame() = default;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame();
};

/// Lanes of a warp that stand at the same place.
struct Split {
  enum class State : std::uint8_t {
    Ready,
    Barrier,   ///< waits at a CTA barrier; if it has not `arrived`, for the rest of its warp
    WarpSync,  ///< waits for the lanes of its member mask
  };
  Frame* frame = nullptr;
  std::uint32_t segment = 0;  ///< where it goes on
  std::uint32_t mask = 0;
  std::uint32_t penalty = 0;  ///< grows while it spins, so that others get their turn
  std::uint32_t back_edges = 0;
  State state = State::Ready;
  bool polled = false;        ///< has looked at memory others write, since the last back edge
  bool arrived = false;       ///< Barrier: counted already
  std::uint32_t barrier = 0;  ///< Barrier: which, or kClusterBarrier
  bool forced = false;        ///< goes on at a sync without the lanes that never come
};

struct Warp {
  Cta* cta = nullptr;
  std::uint32_t index = 0;                  ///< in the block
  std::uint32_t lanes = 0;                  ///< that exist (the last warp may be partial)
  std::uint32_t exited = 0;                 ///< that have left the kernel
  std::uint32_t exit_statement = kNoIndex;  ///< where the last of them did
  /// Lanes that have run a Segment::follows_barrier since the warp last reconverged.
  std::uint32_t passed_barrier = 0;
  std::uint32_t first_thread = 0;  ///< 32 * index
  std::uint64_t instructions = 0;
  std::uint64_t seen_instructions = 0;  ///< when the scheduler last asked
  /// The last wait for an mbarrier that was in vain, and how many there have been one behind the
  /// other with nothing else that others could notice, or that could end it, in between.
  struct VainWait {
    std::uint32_t in_a_row = 0;
    std::uint32_t statement = kNoIndex;
    std::uint32_t lane = 0;
    std::uint64_t object = 0;        ///< shared offset
    std::uint64_t instructions = 0;  ///< of the warp, then
    bool parity = false;             ///< that is waited for
  } vain;
  std::vector<Split> splits;  ///< without those that have exited
  std::deque<Frame> frames;
  std::vector<Frame*> free_frames;
  [[nodiscard]] bool done() const noexcept { return exited == lanes; }
  /// Lanes that have not left the kernel.
  [[nodiscard]] std::uint32_t live() const noexcept { return lanes & ~exited; }
};

inline constexpr unsigned kBarriers = 16;  ///< of a block
/// Split::barrier of those who wait for the barrier of the cluster.
inline constexpr std::uint32_t kClusterBarrier = kBarriers;

/// One CTA barrier. Arrivals are counted in threads; a whole warp counts as 32 however many
/// threads it has, as on hardware.
struct BarrierState {
  std::uint32_t arrived = 0;
  std::uint32_t expected = 0;          ///< 0: nobody has come yet
  bool all = false;                    ///< every thread of the block is expected
  std::uint32_t statement = kNoIndex;  ///< the first to come
  std::vector<std::uint32_t> lanes;    ///< by warp: lanes that have arrived
  std::uint32_t set = 0;               ///< .red: threads with a true predicate
  std::uint32_t voted = 0;             ///< .red: threads that gave a predicate
};

/// Blocks that run together, on one worker; one block where nobody asks for more.
struct Cluster {
  Dim3 id{0, 0, 0};
  std::vector<Cta*> blocks;  ///< by rank
  /// The barrier: of each warp (rank * warps of a block + warp) the lanes that have arrived in the
  /// phase that runs, and those whose phase is complete and that have not waited yet.
  struct Arrivals {
    std::uint32_t arrived = 0;
    std::uint32_t open = 0;
  };
  std::vector<Arrivals> warps;
  std::uint64_t phase = 0;  ///< completed so far
};

/// A block while it runs.
struct Cta {
  Grid* grid = nullptr;
  Worker* worker = nullptr;
  Cluster* cluster = nullptr;
  std::uint32_t rank = 0;    ///< in the cluster
  std::uint64_t linear = 0;  ///< x fastest
  std::uint64_t order = 0;   ///< position in the launch order of this schedule
  Dim3 id{0, 0, 0};
  std::uint32_t threads = 0;
  std::vector<Warp> warps;
  std::byte* shared = nullptr;  ///< static, then dynamic
  std::uint32_t shared_bytes = 0;
  std::uint32_t shared_slack = 0;           ///< bytes after it, of no variable
  std::uint64_t* shared_written = nullptr;  ///< a bit for each byte
  std::byte* local = nullptr;               ///< thread by thread, local_stride bytes each
  std::uint32_t local_stride = 0;
  std::uint64_t* local_written =
      nullptr;                         ///< a bit for each byte, local_stride / 64 words a thread
  std::unique_ptr<Races> races;        ///< shared memory; null if nobody asks
  std::shared_ptr<AsyncCopies> async;  ///< made by the first cp.async
  std::shared_ptr<BulkCopies> bulk;    ///< made by the first cp.async.bulk
  std::uint64_t turn = 0;              ///< of the scheduler
  std::array<BarrierState, kBarriers> barriers;
  bool killed = false;  ///< a fault has ended it
  std::string printed;
};

/// Whether all threads of a block have left the kernel, or a fault has ended it.
[[nodiscard]] inline bool has_left(const Cta& cta) noexcept {
  if (cta.killed) return true;
  for (const Warp& warp : cta.warps) {
    if (!warp.done()) return false;
  }
  return true;
}

/// The allocation that a memory instruction reached last; plain data for vector/memory_hot.cpp.
struct LastAllocation {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;  ///< 0: none yet
  std::uint64_t generation = 0;
  bool writable = false;
  bool watched = false;  ///< by the global race check
};

/// Counters of one memory instruction; of shared memory where it reached that.
struct AccessCounters {
  MemoryCounters memory;  ///< global
  MemoryCounters local;
  SharedCounters shared;
  LastAllocation last;
  BulkCounters bulk;
  PeerCounters peer;
};

/// What handlers that are compiled for one instruction set see of a worker: plain data, because
/// inline functions of the standard library must not be compiled there. Made by the first access.
struct MemoryView {
  AccessCounters* counters = nullptr;  ///< Worker::memory_counters; null: not made yet
  std::byte* global = nullptr;         ///< host address of kGlobalBase
  std::uint64_t* written = nullptr;    ///< AddressSpace::written
  const std::uint64_t* generation = nullptr;
  bool check_written = false;  ///< rule uninitialized-read
  bool check_aligned = false;  ///< rule misaligned
  bool global_races = false;
  bool shared_races = false;
};

/// A host thread that runs blocks, one warp at a time.
struct Worker {
  Grid* grid = nullptr;
  unsigned index = 0;
  std::vector<std::uint64_t> segment_executions;  ///< by Code::first_segment + segment
  std::vector<std::uint64_t> segment_lanes;
  std::vector<std::uint64_t> branch_divergent;  ///< by the same number
  std::vector<std::uint64_t> predicated_off;    ///< lanes, by statement
  std::vector<AccessCounters> memory_counters;  ///< by MemoryDetail::counter; never resized
  MemoryView memory;                            ///< of memory_counters and the grid
  std::uint64_t barriers = 0;                   ///< CTA barriers executed by warps
};

/// A launch while it runs; read-only for workers but where said.
struct Grid {
  const Image* image = nullptr;
  const Program::Kernel* kernel = nullptr;
  const Image::KernelImage* kernel_image = nullptr;
  const Code* code = nullptr;
  AddressSpace* space = nullptr;
  Reporter* reporter = nullptr;  ///< has its own lock
  Options options;
  Dim3 grid, block, cluster;
  bool explicit_cluster = false;  ///< asked for by the kernel or by the launch
  bool cooperative = false;
  std::uint32_t sms = 1;
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;
  std::uint32_t local_stride = 0;
  /// What CUDA's cooperative groups find beside a kernel's own memory: the two words by which the
  /// blocks of a grid meet (its address is in %envreg1, the high half, and %envreg2), and a scratch
  /// area behind the shared memory (%reserved_smem_offset_1). 0 where the kernel asks for neither;
  /// the workspace of a launch that is not cooperative, too.
  std::uint64_t grid_workspace = 0;
  std::uint32_t reserved_shared_start = 0;
  std::uint32_t reserved_shared_bytes = 0;
  std::unique_ptr<Races> races;  ///< global memory; null if nobody asks
};

/// What a handler sees.
struct Context {
  std::byte* frame = nullptr;  ///< registers of the current activation
  std::uint32_t active = 0;    ///< lanes of the split that runs
  bool counting = false;
  const Code* code = nullptr;
  Warp* warp = nullptr;
  Cta* cta = nullptr;
  Worker* worker = nullptr;
  Grid* grid = nullptr;
  Frame* activation = nullptr;
  Split* split = nullptr;

  /// Lanes of a register; T of 4 or 8 bytes as its slot says.
  template <class T>
  [[nodiscard]] T* lanes(std::uint32_t offset) const noexcept {
    return reinterpret_cast<T*>(frame + offset);
  }
  [[nodiscard]] std::uint32_t& predicate(std::uint32_t offset) const noexcept {
    return *reinterpret_cast<std::uint32_t*>(frame + offset);
  }
  /// The lanes for which a step has an effect.
  [[nodiscard]] std::uint32_t mask(const Step& step) const noexcept {
    return active & (predicate(step.guard) ^ step.guard_flip);
  }
};

/// The 64-bit value of one lane of a slot (a predicate is 0 or 1, negation applied).
[[nodiscard]] inline std::uint64_t get_lane(const Context& context, const Slot& slot,
                                            unsigned lane) noexcept {
  switch (slot.lane_bytes) {
    case 0:
      return ((context.predicate(slot.offset) >> lane) & 1u) ^ (slot.negated ? 1u : 0u);
    case 4:
      return context.lanes<std::uint32_t>(slot.offset)[lane];
    case 8:
      return context.lanes<std::uint64_t>(slot.offset)[lane];
    default:
      return context.lanes<std::uint64_t>(slot.offset)[2 * lane];
  }
}

/// Stores the low bits of `value`; sign- or zero-extended by the caller.
inline void set_lane(const Context& context, const Slot& slot, unsigned lane,
                     std::uint64_t value) noexcept {
  switch (slot.lane_bytes) {
    case 0: {
      std::uint32_t& mask = context.predicate(slot.offset);
      mask = (mask & ~(1u << lane)) | (static_cast<std::uint32_t>(value & 1u) << lane);
      break;
    }
    case 4:
      context.lanes<std::uint32_t>(slot.offset)[lane] = static_cast<std::uint32_t>(value);
      break;
    case 8:
      context.lanes<std::uint64_t>(slot.offset)[lane] = value;
      break;
    default:
      context.lanes<std::uint64_t>(slot.offset)[2 * lane] = value;
      break;
  }
}

/// Where the local memory of the activations that a thread is in ends; what a caller has lies below
/// what its callee has.
[[nodiscard]] inline std::uint64_t local_end(const Context& context) noexcept {
  return std::uint64_t{context.activation->local_base} + context.code->local_bytes;
}

/// Calls `f(lane)` for every set bit, lowest first.
template <class F>
void for_each_lane(std::uint32_t mask, F&& f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<unsigned>(std::countr_zero(mask)));
}

/// Position of a thread of a block.
[[nodiscard]] inline Dim3 thread_position(const Dim3& block, std::uint32_t thread) noexcept {
  return {thread % block.x, thread / block.x % block.y, thread / (block.x * block.y)};
}

}  // namespace ptxgen::inline v0::emulator
