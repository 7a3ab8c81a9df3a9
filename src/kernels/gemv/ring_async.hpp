// src/kernels/gemv/ring_async.hpp - weights by way of cp.async and shared memory
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/gemv/emit.hpp"

namespace ptxgen::inline v0::gemv {

/// The loads of a lane's steps, `stages - 1` steps ahead. Each lane copies what it reads itself, so
/// that nobody waits for anybody else: a place in the ring is a load of each thread of the block,
/// side by side. In the order: constructor, `add_load` for each load of a step, `run`.
class Ring {
 public:
  /// `steps` steps of weights, `step_bytes` apart in memory, from where `weights` points; it points
  /// behind the last one afterwards.
  Ring(Kit& kit, Number steps, std::uint64_t step_bytes, Var<Ptr<b8>>& weights);
  /// A load `offset` bytes behind the step's begin.
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
