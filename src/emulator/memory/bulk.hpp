// src/emulator/memory/bulk.hpp - bulk copies under way, and those nobody has waited for
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/race/race.hpp"

namespace ptxgen::inline v0::emulator {

/// One bulk copy (or st.async) of one thread.
struct BulkCopy {
  enum class Kind : std::uint8_t {
    Load,   ///< global to shared memory, of several blocks with multicast
    Peer,   ///< shared memory of the block to that of one of the cluster
    Store,  ///< shared to global memory
    Value,  ///< st.async: bytes from registers
  };
  Kind kind = Kind::Load;
  std::uint64_t ticket = 0;
  std::uint64_t due = 0;  ///< Cta::turn of the issuer from which on it may be carried out
  const Step* step = nullptr;
  const MemoryDetail* detail = nullptr;
  std::uint32_t warp = 0;
  std::uint32_t lane = 0;
  std::uint32_t bytes = 0;
  const std::byte* from = nullptr;  ///< host address
  const std::uint64_t* from_written = nullptr;
  std::uint64_t from_first = 0;  ///< bit of `from_written`
  std::uint64_t to = 0;          ///< shared offset, or device address of a Store
  std::uint64_t barrier = 0;     ///< shared offset
  std::uint32_t blocks = 0;      ///< ranks that it writes, a bit each
  std::array<std::byte, 16> value{};
  bool committed = false;   ///< Store: of a group
  std::uint32_t group = 0;  ///< Store: which of its thread's
  bool done = false;        ///< Store: carried out, not waited for
};

/// The bulk copies that a block's threads have issued, and those that have come into its memory.
///
/// A copy is carried out some turns of the scheduler after it was issued, as the seed says: not at
/// once, and at the latest when nobody could go on without it. Stores are carried out when their
/// thread waits for them at the latest.
class BulkCopies {
 public:
  /// A copy that has come into the block's memory and that no thread has seen the end of.
  struct Arrived {
    BulkWrite write;
    std::uint64_t barrier = 0;  ///< shared offset
    bool phase_ended = false;   ///< the phase that counts it has
  };
  std::vector<BulkCopy> pending;
  std::vector<BulkCopy> stores;  ///< carried out and not waited for
  std::vector<Arrived> arrived;
  std::vector<std::uint32_t> groups;  ///< committed, by thread
  std::uint64_t tickets = 0;
};

/// Carries out what is due in this turn.
void deliver_due(Cta& cta);
/// Carries out the copy that is due first; false if none is under way.
bool deliver_next(Cta& cta);
/// All that is under way; the block has ended.
void deliver_all(Cta& cta);
[[nodiscard]] bool is_under_way(const Cta& cta) noexcept;
/// A phase of the mbarrier at `offset` has ended: who sees that has waited for the copies in it.
void phase_ended(Cta& owner, std::uint64_t offset);
/// A lane has seen the end of the phase `object` of the mbarrier at `offset` of its block.
void observe_copies(Context& context, unsigned lane, std::uint64_t offset, std::uint64_t object);
/// Reports copies that nobody has waited for; the block has ended.
void report_unfinished(Cta& cta);

}  // namespace ptxgen::inline v0::emulator
