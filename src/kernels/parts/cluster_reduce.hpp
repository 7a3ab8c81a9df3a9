// src/kernels/parts/cluster_reduce.hpp - partial results of a cluster's blocks in one
#pragma once

#include <cstdint>
#include <optional>

#include "ptxgen/builder.hpp"
#include "ptxgen/builder/cluster.hpp"

namespace ptxgen::inline v0 {

/// Blocks of a cluster that have a partial result each.
struct ClusterParts {
  std::uint32_t blocks;  ///< of the cluster
  Value<u32> rank;       ///< of this block
  /// The same in each block, of which the first's is used: a slot for each other block.
  Ptr<f32, Shared> slots;
  std::uint32_t pitch;         ///< bytes from a block's slot to the next
  std::optional<Pred> owners;  ///< the threads that have a result; without it all
};

/// Combines the results in the order of the ranks, ((r0 + r1) + r2) + .., in the first block:
/// `store(slot)` writes the thread's result to the slot of its block in the first block's memory,
/// `add(slot)` adds one to that of the first block's thread. True in the first block. The kernel
/// has called `cluster_arrive` once before, when the block began, so that the slots exist.
template <class Store, class Add>
[[nodiscard]] Pred cluster_reduce(KernelBuilder& k, const ClusterParts& parts, const Store& store,
                                  const Add& add) {
  cluster_wait(k);
  Pred writes = parts.rank != 0u;
  if (parts.owners) writes.rebind(writes & *parts.owners);
  k.if_(writes, [&] {
    const Value<u32> place = k.mul_lo(parts.rank - 1u, parts.pitch);
    store(map_rank(k, parts.slots.offset_bytes(place), 0));
  });
  cluster_sync(k);
  const Pred first = parts.rank == 0u;
  const Pred adds = parts.owners ? first & *parts.owners : first;
  k.if_(adds, [&] {
    for (std::uint32_t other = 1; other < parts.blocks; ++other) {
      add(parts.slots.offset_bytes((other - 1) * parts.pitch));
    }
  });
  return first;
}

}  // namespace ptxgen::inline v0
