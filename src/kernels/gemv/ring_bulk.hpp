// src/kernels/gemv/ring_bulk.hpp - weights through a bulk-copy ring
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/gemv/emit.hpp"

namespace ptxgen::inline v0::gemv {

/// The full steps of all segments of a block, in order, `stages - 1` steps ahead. The first thread
/// issues the copies, one for each row of a step (layout T: rows of k, R: rows of outputs). Partial
/// steps bypass the ring.
class BulkRing {
 public:
  /// Declares and initialises; all threads of the block come here.
  explicit BulkRing(Kit& kit);
  /// Issues the copies of the first steps.
  void fill();
  /// Emits a loop over a segment's full steps. `before` is emitted before the wait for a step's
  /// weights, `body` after it. All threads execute it.
  void run(const Segment& segment, const std::function<void()>& before,
           const std::function<void()>& body);
  /// For `body`: the lane's load at `offset` bytes from its first load of a step.
  [[nodiscard]] Floats load(std::uint64_t offset) const;
  /// Full steps of a segment for the ring, whichever warp.
  [[nodiscard]] static Number steps_of(Kit& kit, const Segment& segment);

 private:
  using Place = Ptr<b8, Shared>;
  void request();
  void copy_step();

  Kit& kit_;
  BulkStages stages_;
  Pred producer_;
  Value<u32> own_;          ///< bytes from the start of a stage to the lane's first load
  Value<u32> begin_, end_;  ///< of the block's full units
  Var<u32> cursor_;         ///< the next full unit to copy
  std::optional<Place> now_;
};

}  // namespace ptxgen::inline v0::gemv
