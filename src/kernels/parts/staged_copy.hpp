// src/kernels/parts/staged_copy.hpp - copies to shared memory, several stages ahead
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/builder.hpp"
#include "ptxgen/builder/cluster.hpp"

namespace ptxgen::inline v0 {

/// The loads of a lane by `cp.async`, `stages - 1` steps ahead. A lane that reads its own data only
/// needs no barrier; where the lanes of a warp read each other's, `bar_warp_sync` after `take` is
/// enough. Call order: constructor, `add_load` for each load of a step, `run`.
class AsyncStages {
 public:
  struct Shape {
    std::uint32_t stages = 2;       ///< at least 2
    std::uint32_t load_bytes = 16;  ///< 4, 8 or 16
    std::uint32_t load_pitch = 0;   ///< bytes from a lane's load to its next in a stage
    std::uint64_t stage_bytes = 0;
    std::uint64_t step_bytes = 0;  ///< in global memory, from a step to the next
  };
  /// `first` is the lane's first load in shared memory, `from` in global memory; `from` is advanced
  /// with each step that is requested.
  AsyncStages(KernelBuilder& k, const Shape& shape, const Ptr<b8, Shared>& first,
              Var<Ptr<b8>>& from);
  /// A load at `offset` bytes from the start of the step.
  void add_load(std::uint64_t offset) {
    add_load(offset, loads_.size() * shape_.load_pitch, std::nullopt);
  }
  /// The same, to `place` bytes from the start of the stage, where `p` is true.
  void add_load(std::uint64_t offset, std::uint64_t place, const std::optional<Pred>& p) {
    loads_.push_back({offset, place, p});
  }
  /// Emits the loop; `body` is one step, which calls `take` once. `end` is a label that the kernel
  /// has not used. No copies are in flight after it.
  void run(const Value<u32>& steps, const std::string& end, const std::function<void()>& body);
  /// Waits for the step's data; where each load is.
  [[nodiscard]] std::vector<Ptr<b8, Shared>> take();
  /// Waits for it; bytes from the first stage to that of the step.
  [[nodiscard]] std::uint64_t take_stage();

 private:
  [[nodiscard]] Ptr<b8, Shared> place(std::uint32_t slot, std::size_t load) const;
  void copy(std::uint32_t slot, std::size_t load);
  void request(std::uint32_t slot, const Pred& more);

  KernelBuilder& k_;
  Shape shape_;
  Ptr<b8, Shared> first_;
  Var<Ptr<b8>>& from_;
  struct CopiedLoad {
    std::uint64_t offset, place;
    std::optional<Pred> condition;
  };
  std::vector<CopiedLoad> loads_;
  std::uint32_t slot_ = 0;  ///< that `take` reads
};

/// Stages in shared memory that a producer fills by bulk copies and all warps read. Each has two
/// mbarriers: "full" when its bytes have arrived, "empty" when all warps have read it.
///
/// The producer, one thread: `wait_empty`, `expect`, copies to `destination` counted by `barrier`,
/// `sent`. All warps: `wait_full`, reads from `source`, `release`, `received`.
class BulkStages {
 public:
  using Place = Ptr<b8, Shared>;

  /// Declares the mbarriers `full` and `empty`. The stages are `stages * stage_bytes` bytes from
  /// `memory` on, aligned to 16.
  BulkStages(KernelBuilder& k, const Place& memory, std::uint32_t stages,
             std::uint32_t stage_bytes);
  /// Initialises the mbarriers by the producer's thread, for `warps` readers. All threads of the
  /// block come here, once, before the other functions.
  void start(const Pred& producer, std::uint32_t warps);

  // Producer.
  void wait_empty();
  /// The mbarrier of the stage; emits its address.
  [[nodiscard]] Mbarrier barrier();
  [[nodiscard]] Place destination();
  void sent();

  // Readers.
  void wait_full();
  [[nodiscard]] Place source();
  /// By all lanes of a warp, after their last read.
  void release(const Value<u32>& lane);
  void received();

 private:
  [[nodiscard]] Mbarrier at(const Mbarrier& first, const Var<u32>& number) const;
  void advance(Var<u32>& number, Var<u32>& parity);

  KernelBuilder& k_;
  std::uint32_t stages_, stage_bytes_;
  Place memory_;
  Mbarrier full_, empty_;
  std::optional<Var<u32>> to_, free_;     ///< stage to fill, phase parity in which it was read
  std::optional<Var<u32>> from_, there_;  ///< the next stage to read, its phase parity
};

}  // namespace ptxgen::inline v0
