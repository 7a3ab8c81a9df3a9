// src/kernels/gemv/ring_async.hpp - weights through a cp.async ring
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/gemv/emit.hpp"

namespace ptxgen::inline v0::gemv {

/// The loads of a lane's steps, `stages - 1` steps ahead. Each lane copies its own data, so no
/// barrier is needed. A stage of the ring has one load per thread of the block, consecutively. Call
/// order: constructor, `add_load` for each load of a step, `run`.
class Ring {
 public:
  /// `steps` steps of weights from `weights` on, `step_bytes` apart in memory; `weights` then
  /// points after the last.
  Ring(Kit& kit, Number steps, std::uint64_t step_bytes, Var<Ptr<b8>>& weights);
  /// A load at `offset` bytes from the start of the step.
  void add_load(std::uint64_t offset) { offsets_.push_back(offset); }
  /// Emits the loop; `body` is one step, which calls `take` once.
  void run(const std::function<void()>& body);
  /// Waits for the step's weights and reads them, load by load.
  [[nodiscard]] std::vector<Floats> take();

 private:
  [[nodiscard]] Ptr<b8, Shared> place(std::uint32_t slot, std::size_t load) const;
  void request(std::uint32_t slot, const Pred* p);

  Kit& kit_;
  Number steps_;
  std::uint64_t step_bytes_;
  Var<Ptr<b8>>& weights_;
  std::vector<std::uint64_t> offsets_;
  std::uint32_t slot_ = 0;  ///< that `take` reads
};

}  // namespace ptxgen::inline v0::gemv
