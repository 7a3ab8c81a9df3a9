// src/kernels/parts/last_block.hpp - merging the results of a row's blocks
#pragma once

#include "kernels/parts/block_vote.hpp"
#include "ptxgen/builder.hpp"
#include "ptxgen/kernels/kernel.hpp"

namespace ptxgen::inline v0 {

/// For kernels with `blocks` in the grid's x for each row, which is the grid's y: a ticket a row,
/// then `part_bytes` a block.
[[nodiscard]] constexpr WorkspaceNeed row_workspace(std::uint64_t rows, std::uint64_t blocks,
                                                    std::uint64_t part_bytes) noexcept {
  const auto round_up = [](std::uint64_t bytes) { return (bytes + 15) / 16 * 16; };
  return {round_up(4 * rows), round_up(rows * blocks * part_bytes)};
}

/// The workspace in the kernel.
struct RowWorkspace {
  KernelBuilder& k;
  Ptr<b8> workspace;

  /// The parts of all blocks of this row, `part_bytes` each.
  [[nodiscard]] Ptr<b8> parts(const Value<u32>& part_bytes) const {
    const Value<u32> rows = k.nctaid_y();
    const Value<u64> tickets = (k.mul_wide(rows, 4u) + std::uint64_t{15}) & ~std::uint64_t{15};
    const Value<u32> row = k.ctaid_y();
    const Value<u64> blocks_before = k.mul_wide(row, k.nctaid_x());
    const Value<u64> before = blocks_before * k.convert<u64>(part_bytes);
    return workspace.offset_bytes(tickets + before);
  }
  /// Whether this block is the last of its row to arrive, the same for all its threads, which all
  /// execute it: it then reads what the others stored before they arrived. Leaves the ticket 0.
  [[nodiscard]] Pred arrive() const {
    k.bar_sync();
    auto last = k.var<u32>(0u);
    k.if_(k.tid_x() == 0u, [&] {
      const Ptr<u32> ticket = workspace.cast<u32>() + k.ctaid_y();
      const Value<u32> limit = k.nctaid_x() - 1u;
      const Value<u32> before = k.atom_inc(ticket, limit, Atomic{Order::acq_rel, Scope::gpu});
      last = one_if(k, before == limit);
    });
    return block_any(k, last != 0u);
  }
};

}  // namespace ptxgen::inline v0
