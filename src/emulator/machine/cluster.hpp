// src/emulator/machine/cluster.hpp - blocks that run together, and when none goes on
#pragma once

#include "emulator/machine/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// Whether a warp could run: by itself, or because its lanes have still to be brought together.
[[nodiscard]] bool can_go_on(const Warp& warp) noexcept;
/// Whether a block has lanes that wait for nobody.
[[nodiscard]] bool can_go_on(const Cta& cta) noexcept;

/// barrier.cluster.arrive and .wait: the split has come there with all its lanes.
void reach_cluster_barrier(Warp& warp, std::size_t split);
/// Looks again at the barrier of the cluster, after lanes of it have left the kernel.
void recheck_cluster_barrier(Cluster& cluster);
/// Threads that are at the barrier of the cluster, and those that are still in the kernel.
struct ClusterArrivals {
  std::uint32_t arrived = 0;
  std::uint32_t threads = 0;
};
[[nodiscard]] ClusterArrivals arrivals_of(const Cluster& cluster) noexcept;

/// Whether all threads of a cluster that are left wait at barriers, or test mbarriers that nobody
/// can complete any more, with no copy under way.
[[nodiscard]] bool waits_in_vain(const Cluster& cluster) noexcept;
/// Reports that, with the state of the mbarriers, and ends the cluster.
void resolve_vain_wait(Cluster& cluster);
/// No warp of a cluster can go on: reports why and lets somebody go on, or ends the cluster.
void resolve_standstill(Cluster& cluster);

}  // namespace ptxgen::inline v0::emulator
