// src/emulator/memory/bulk_queue.hpp - bulk copies of a block that are not finished
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/race/race.hpp"

namespace ptxgen::inline v0::emulator {

/// The box of a tensor that a copy moves.
struct TensorBox {
  /// Consecutive bytes of both memories.
  struct Run {
    std::uint64_t global = 0;  ///< 0: out of bounds
    std::uint32_t shared = 0;  ///< offset
    std::uint32_t bytes = 0;   ///< at most 16
  };
  std::vector<Run> runs;
  std::uint32_t span = 0;  ///< of shared memory, gaps included
  ptx::Type type = ptx::Type::none;
  bool flush = false;
  bool fill_nan = false;
  ptx::Modifier reduction = ptx::Modifier::none;
  AddressSpace* space = nullptr;
};

/// A bulk copy (or st.async) of one thread.
struct BulkCopy {
  BulkDetail::Kind kind = BulkDetail::Kind::Load;
  std::uint64_t ticket = 0;
  std::uint64_t due = 0;  ///< carried out when Cta::schedule_round of the issuer reaches this
  const Step* step = nullptr;
  const MemoryDetail* detail = nullptr;
  std::uint32_t warp = 0;
  std::uint32_t lane = 0;
  std::uint32_t bytes = 0;
  bool size_unknown = false;        ///< after a finding: completes all bytes that the phase expects
  const std::byte* from = nullptr;  ///< host address
  const std::uint64_t* from_written = nullptr;
  std::uint64_t from_first = 0;  ///< bit of `from_written`
  std::uint64_t to = 0;          ///< shared offset, or device address of a Store
  std::uint64_t barrier = 0;     ///< shared offset
  std::uint32_t blocks = 0;      ///< destination ranks, a bit each
  std::array<std::byte, 16> value{};
  std::shared_ptr<const TensorBox> tensor;  ///< of a tensor copy; then `from` is null
  bool committed = false;                   ///< Store: in a group
  std::uint32_t group = 0;                  ///< Store: index among its thread's groups
};

/// The unfinished bulk copies of a block.
///
/// A copy is carried out some scheduling rounds after it was issued, chosen by the seed, and at the
/// latest when no warp can proceed without it. Stores are carried out at the latest when their
/// thread waits for them.
struct BulkCopies {
  /// A copy that was written to the block's memory and that no thread has waited for.
  struct Arrived {
    BulkWrite write;
    std::uint64_t barrier = 0;  ///< shared offset
    bool phase_ended = false;   ///< of the phase that counts its bytes
  };
  std::vector<BulkCopy> pending;  ///< issued, not carried out
  std::vector<BulkCopy> stores;   ///< carried out, not waited for
  std::vector<Arrived> arrived;
  std::vector<std::uint32_t> groups;  ///< committed groups, by thread
  std::uint64_t tickets = 0;
};

[[nodiscard]] bool is_under_way(const Cta& cta) noexcept;
/// Marks the copies of the phase of the mbarrier at `offset` that has just ended.
void phase_ended(Cta& owner, std::uint64_t offset);
/// A lane has waited for the phase `object` of the mbarrier at `offset` of its block: it has waited
/// for the copies of that phase.
void observe_copies(Context& context, unsigned lane, std::uint64_t offset, std::uint64_t object);

}  // namespace ptxgen::inline v0::emulator
