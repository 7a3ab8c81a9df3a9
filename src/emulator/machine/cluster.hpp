// src/emulator/machine/cluster.hpp - cluster barriers and deadlocks
#pragma once

#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// Whether a warp can run, or has splits that wait for the rest of the warp.
[[nodiscard]] bool can_run(const Warp& warp) noexcept;
/// Whether a block has a split that does not wait.
[[nodiscard]] bool can_run(const Cta& cta) noexcept;

/// The split executes barrier.cluster.arrive or .wait with all its lanes.
void reach_cluster_barrier(Warp& warp, std::size_t split);
/// Rechecks the cluster barrier after lanes have exited.
void recheck_cluster_barrier(Cluster& cluster);
/// Threads that have arrived at the cluster barrier, and threads that have not exited.
struct ClusterArrivals {
  std::uint32_t arrived = 0;
  std::uint32_t threads = 0;
};
[[nodiscard]] ClusterArrivals arrivals_of(const Cluster& cluster) noexcept;

/// Whether all remaining threads of a cluster wait at barriers or poll mbarriers, and no copy under
/// way could complete one.
[[nodiscard]] bool only_polls(const Cluster& cluster) noexcept;
/// Reports that as a deadlock, with the state of the mbarriers, and ends the cluster.
void end_polling(Cluster& cluster);
/// No warp of a cluster can proceed: reports why, and releases a split or ends the cluster.
void resolve_deadlock(Cluster& cluster);

}  // namespace ptxgen::inline v0::emulator
