// src/check/barrier_safety/walk_state.hpp - progress of threads in a walk
#pragma once

#include <vector>

#include "check/barrier_safety/barrier_safety.hpp"

namespace ptxgen::inline v0::gates::barriers {

/// Threads that are about to execute one statement.
struct Group {
  std::uint32_t statement = 0;
  Threads threads;
};

/// A branch that some threads of a group took and the others did not.
struct DivergentBranch {
  std::uint32_t statement = 0;
  Threads taken, not_taken;
};

/// The divergent branches of a walk, oldest first.
class DivergentBranches {
 public:
  static constexpr std::size_t kMax = 4096;

  void add(std::uint32_t statement, const Threads& taken, const Threads& not_taken) {
    if (taken.none() || not_taken.none()) return;
    // Only the newest matter; an endless loop must not fill the memory.
    if (branches_.size() == kMax) branches_.erase(branches_.begin(), branches_.begin() + kMax / 2);
    branches_.push_back({statement, taken, not_taken});
  }
  /// The last branch at which two threads diverged, or null.
  [[nodiscard]] const DivergentBranch* last(std::uint32_t one, std::uint32_t other) const {
    for (auto branch = branches_.rbegin(); branch != branches_.rend(); ++branch) {
      if ((branch->taken[one] && branch->not_taken[other]) ||
          (branch->not_taken[one] && branch->taken[other]))
        return &*branch;
    }
    return nullptr;
  }

 private:
  std::vector<DivergentBranch> branches_;
};

/// Arrivals at one barrier since it was last completed.
struct BarrierArrivals {
  std::uint64_t expected = 0;  ///< threads; 0 if no thread has arrived
  std::uint32_t statement = ptx::kNone;
  bool all = false;  ///< for all threads of the block
  Threads threads;
};

/// Progress of each thread.
struct ThreadProgress {
  Threads all;                                   ///< of the block
  Threads waiting;                               ///< at a barrier, arrived or not
  Threads arrived;                               ///< of those the ones that have arrived
  Threads left;                                  ///< the kernel
  std::vector<std::uint32_t> waits_at, left_at;  ///< statements
  std::vector<std::uint32_t> barrier_of;         ///< arrived: the barrier's number
  std::vector<std::vector<Arrival>> traces;
  bool trace_too_long = false;

  explicit ThreadProgress(std::uint32_t threads)
      : waits_at(threads, ptx::kNone),
        left_at(threads, ptx::kNone),
        barrier_of(threads, 0),
        traces(threads) {
    for (std::uint32_t t = 0; t < threads; ++t) all.set(t);
  }
};

}  // namespace ptxgen::inline v0::gates::barriers
