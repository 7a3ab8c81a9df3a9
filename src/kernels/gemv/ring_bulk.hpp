// src/kernels/gemv/ring_bulk.hpp - weights by way of bulk copies and shared memory
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/gemv/emit.hpp"

namespace ptxgen::inline v0::gemv {

/// The full steps of all of a block's segments, one after the other, `stages - 1` steps ahead. The
/// first warp asks for them: each lane copies some of a step's rows (layout T: rows of k, R: rows
/// of outputs). An mbarrier of each place says when its weights are there, another when all warps
/// have read them. Steps that are not full do not come by the ring.
class BulkRing {
 public:
  /// Declares and initialises; all threads of the block come here.
  explicit BulkRing(Kit& kit);
  /// Asks for the first steps.
  void fill();
  /// Emits a loop over a segment's full steps. `before` is emitted before the wait for a step's
  /// weights, `body` behind it. All threads come here.
  void run(const Segment& segment, const std::function<void()>& before,
           const std::function<void()>& body);
  /// For `body`: the lane's load `offset` bytes behind its first one of a step.
  [[nodiscard]] Floats load(std::uint64_t offset) const;
  /// Full steps of a segment for the ring, whichever warp.
  [[nodiscard]] static Number steps_of(Kit& kit, const Segment& segment);

 private:
  using Place = Ptr<b8, Shared>;
  /// An mbarrier or the weights of a place in the ring, by its number.
  [[nodiscard]] Place at(const Place& first, const Var<u32>& number, std::uint64_t bytes) const;
  void initialise();
  void request();
  void copy_step();
  void wait(const Place& barrier, const Var<u32>& parity);
  void advance(Var<u32>& number, Var<u32>& parity);

  Kit& kit_;
  Place ring_, full_, empty_;
  Pred producer_;
  Value<u32> mine_;         ///< bytes from a place's begin to the lane's first load
  Value<u32> begin_, end_;  ///< of the block's full units
  Var<u32> cursor_;         ///< the full unit that is asked for next
  Var<u32> to_, free_;      ///< its place, and the parity of the round in which that was read
  Var<u32> from_, there_;   ///< the place that is read next, and the parity of the round
  std::optional<Place> now_;
};

}  // namespace ptxgen::inline v0::gemv
