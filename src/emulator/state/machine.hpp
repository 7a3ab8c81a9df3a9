// src/emulator/state/machine.hpp - warps, blocks and workers while a launch runs
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/state/code.hpp"

namespace ptxgen::inline v0::emulator {

class AsyncCopies;        // memory/async.hpp
class Observation;        // machine/observe.hpp
struct BulkCopies;        // memory/bulk_queue.hpp
class WarpgroupMatrices;  // memory/warpgroup.hpp
class ChangedMaps;        // memory/tensor_maps.hpp
class Races;              // race/race.hpp
class Reporter;           // report/report.hpp
struct Cta;
struct Warp;
struct Worker;
struct Grid;

// Generic addresses outside of these windows are global. The bases are the emulator's own;
// hardware has others, which differ between drivers.
/// The first device address, far above null and small integers.
inline constexpr std::uint64_t kGlobalBase = 0x0000'0100'0000'0000;
inline constexpr std::uint64_t kSharedWindow = 0x0000'7000'0000'0000;
inline constexpr std::uint64_t kLocalWindow = 0x0000'7100'0000'0000;
inline constexpr std::uint64_t kParamWindow = 0x0000'7200'0000'0000;  ///< kernel parameters
inline constexpr std::uint64_t kWindowBytes = 0x0000'0001'0000'0000;
/// Shared memory of the blocks of a cluster, in the shared window: that of rank r begins at
/// (r + 1) * kPeerBytes; the block's own is below kPeerBytes.
inline constexpr std::uint64_t kPeerBytes = std::uint64_t{1} << 24;
/// Maximum blocks of a cluster; every device with clusters supports `kPortableCluster`.
inline constexpr std::uint32_t kMaxCluster = 16;
inline constexpr std::uint32_t kPortableCluster = 8;
/// Addresses of functions (`mov` of a function): kFunctionWindow + 16 * index in Module::functions.
inline constexpr std::uint64_t kFunctionWindow = 0x0000'7300'0000'0000;

/// One activation of a function by some lanes of a warp.
struct Frame {
  const Code* code = nullptr;
  std::byte* registers = nullptr;  ///< code->frame_bytes, 64-byte aligned
  Frame* caller = nullptr;
  std::uint32_t return_segment = 0;  ///< in the caller
  std::uint32_t call_detail = 0;     ///< the caller's ControlDetail
  std::uint32_t lanes = 0;           ///< in this activation or in one that it called
  std::uint32_t local_base = 0;      ///< start of its local variables in each thread's local memory
  std::uint32_t depth = 0;
  std::uint64_t filled_for = ~std::uint64_t{0};  ///< Cta::order of its special register values
  Frame() = default;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame();
};

/// Lanes of a warp that are at the same place in the code.
struct Split {
  enum class State : std::uint8_t {
    Ready,
    Barrier,    ///< waits at a barrier, or, if not `arrived`, for the rest of its warp
    WarpSync,   ///< waits for the lanes of its member mask
    Warpgroup,  ///< waits for the other warps of its warpgroup to issue a wgmma
  };
  Frame* frame = nullptr;
  std::uint32_t segment = 0;  ///< to execute next
  std::uint32_t mask = 0;
  std::uint32_t penalty = 0;  ///< grows while it spins, so that other splits run
  std::uint32_t back_edges = 0;
  State state = State::Ready;
  bool polled = false;        ///< has polled memory since the last back edge
  bool arrived = false;       ///< Barrier: already counted
  std::uint32_t barrier = 0;  ///< Barrier: id, or kClusterBarrier
  bool forced = false;        ///< continues at a sync without the missing lanes
};

struct Warp {
  Cta* cta = nullptr;
  std::uint32_t index = 0;                  ///< in the block
  std::uint32_t lanes = 0;                  ///< existing lanes (the last warp may be partial)
  std::uint32_t exited = 0;                 ///< lanes that have exited
  std::uint32_t exit_statement = kNoIndex;  ///< of the last exit
  /// Lanes that have run a Segment::follows_barrier since the warp last reconverged.
  std::uint32_t passed_barrier = 0;
  std::uint32_t first_thread = 0;  ///< 32 * index
  std::uint64_t instructions = 0;
  std::uint64_t seen_instructions = 0;  ///< at the scheduler's last check
  /// The last failed poll of an mbarrier. `consecutive` counts failed polls without an access in
  /// between that another thread could notice, or that could end the wait.
  struct FailedPoll {
    std::uint32_t consecutive = 0;
    std::uint32_t statement = kNoIndex;
    std::uint32_t lane = 0;
    std::uint64_t object = 0;        ///< shared offset
    std::uint64_t instructions = 0;  ///< Warp::instructions at the poll
    bool parity = false;             ///< of the awaited phase
  } failed_poll;
  std::vector<Split> splits;  ///< of lanes that have not exited
  std::deque<Frame> frames;
  std::vector<Frame*> free_frames;
  [[nodiscard]] bool done() const noexcept { return exited == lanes; }
  /// Lanes that have not exited.
  [[nodiscard]] std::uint32_t live() const noexcept { return lanes & ~exited; }
};

inline constexpr unsigned kBarriers = 16;  ///< of a block
/// Split::barrier of splits at the cluster barrier.
inline constexpr std::uint32_t kClusterBarrier = kBarriers;

/// One CTA barrier. It counts threads; as on hardware, a warp counts as 32 even if it has fewer.
struct BarrierState {
  std::uint32_t arrived = 0;
  std::uint32_t expected = 0;          ///< 0: no arrival yet
  bool all = false;                    ///< expects every thread of the block
  std::uint32_t statement = kNoIndex;  ///< of the first arrival
  std::vector<std::uint32_t> lanes;    ///< by warp: arrived lanes
  std::uint32_t set = 0;               ///< .red: threads with a true predicate
  std::uint32_t voted = 0;             ///< .red: threads that gave a predicate
};

/// Blocks that run together on one worker; a single block in a launch without clusters.
struct Cluster {
  Dim3 id{0, 0, 0};
  std::vector<Cta*> blocks;  ///< by rank
  /// The cluster barrier, by warp (rank * warps of a block + warp): lanes that have arrived in the
  /// current phase, and lanes whose phase is complete but that have not waited yet.
  struct Arrivals {
    std::uint32_t arrived = 0;
    std::uint32_t open = 0;
  };
  std::vector<Arrivals> warps;
  std::uint64_t phase = 0;  ///< completed phases
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
  std::unique_ptr<Races> races;        ///< of shared memory; null if not checked
  std::shared_ptr<AsyncCopies> async;  ///< made by the first cp.async
  std::shared_ptr<BulkCopies> bulk;    ///< made by the first cp.async.bulk
  std::shared_ptr<WarpgroupMatrices> matrices;  ///< made by the first wgmma
  std::shared_ptr<ChangedMaps> changed_maps;    ///< made by the first change of a tensor map
  std::uint64_t schedule_round = 0;             ///< in which each warp of the block runs once
  std::array<BarrierState, kBarriers> barriers;
  bool killed = false;  ///< a fault has ended it
  std::string printed;
};

/// Whether all threads of a block have exited, or a fault has ended it.
[[nodiscard]] inline bool has_left(const Cta& cta) noexcept {
  if (cta.killed) return true;
  for (const Warp& warp : cta.warps) {
    if (!warp.done()) return false;
  }
  return true;
}

/// The allocation that a memory instruction accessed last; plain data for vector/memory_hot.cpp.
struct LastAllocation {
  std::uint64_t start = 0;
  std::uint64_t bytes = 0;  ///< 0: none yet
  std::uint64_t generation = 0;
  bool writable = false;
  bool watched = false;  ///< by the global race check
};

/// Counters of one memory instruction.
struct AccessCounters {
  MemoryCounters memory;  ///< global
  MemoryCounters local;
  SharedCounters shared;
  LastAllocation last;
  BulkCounters bulk;
  PeerCounters peer;
};

/// The part of a worker that handlers of one instruction set use. Plain data: inline functions of
/// the standard library must not be instantiated there. Filled by the first access.
struct MemoryView {
  AccessCounters* counters = nullptr;  ///< Worker::memory_counters; null: not filled yet
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

/// A launch while it runs; read-only for workers unless noted.
struct Grid {
  const Image* image = nullptr;
  const Program::Kernel* kernel = nullptr;
  const Image::KernelImage* kernel_image = nullptr;
  const Code* code = nullptr;
  AddressSpace* space = nullptr;
  Reporter* reporter = nullptr;  ///< has its own lock
  Options options;
  Dim3 grid, block, cluster;
  bool explicit_cluster = false;  ///< requested by the kernel or the launch
  bool cooperative = false;
  std::uint32_t sms = 1;
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<std::byte> parameters;
  std::uint32_t local_stride = 0;
  /// Memory that CUDA's cooperative groups expect: the two words of the grid barrier (address in
  /// %envreg1, the high half, and %envreg2), and a scratch area after the shared memory
  /// (%reserved_smem_offset_1). 0 where the kernel uses neither; the workspace is 0 too unless the
  /// launch is cooperative.
  std::uint64_t grid_workspace = 0;
  std::uint32_t reserved_shared_start = 0;
  std::uint32_t reserved_shared_bytes = 0;
  std::unique_ptr<Races> races;        ///< of global memory; null if not checked
  Observation* observation = nullptr;  ///< null: the launch has no observer
  /// Runs the steps of a segment; returns the last one, the control step.
  const Step* (*run_steps)(Context&, const Step*) = nullptr;
};

/// State that a handler works on.
struct Context {
  std::byte* frame = nullptr;  ///< registers of the current activation
  std::uint32_t active = 0;    ///< lanes of the running split
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

/// The end of the local memory of a thread's activations. A caller's memory is below its callee's.
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
