// src/emulator/race/detail.hpp - parts that both kinds of race check use
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "emulator/race/order.hpp"
#include "emulator/race/race.hpp"
#include "emulator/report/report.hpp"

namespace ptxgen::inline v0::emulator {

/// A thread number in its block from warp and lane, and back.
[[nodiscard]] constexpr std::uint32_t thread_of(std::uint32_t warp, std::uint32_t lane) noexcept {
  return warp * kLanes + lane;
}

/// As std::has_single_bit of what is not zero; that one is a call without a popcnt instruction.
[[nodiscard]] constexpr bool one_bit(std::uint32_t bits) noexcept {
  return (bits & (bits - 1)) == 0;
}

/// How an access counts: weak ones race with all that overlap them, strong ones (atomics, volatile,
/// relaxed, acquire, release) not with each other.
enum class Mark : std::uint8_t { WeakRead, WeakWrite, StrongRead, StrongWrite };

[[nodiscard]] constexpr bool is_write(Mark mark) noexcept {
  return mark == Mark::WeakWrite || mark == Mark::StrongWrite;
}
[[nodiscard]] constexpr bool is_strong(Mark mark) noexcept {
  return mark == Mark::StrongRead || mark == Mark::StrongWrite;
}
/// For accesses that overlap completely.
[[nodiscard]] constexpr bool conflict(Mark a, Mark b) noexcept {
  return (is_write(a) || is_write(b)) && !(is_strong(a) && is_strong(b));
}
/// For accesses that overlap: strong ones of different width race as weak ones do, since only those
/// that overlap completely are morally strong (PTX ISA, memory consistency model).
[[nodiscard]] constexpr bool mixes_widths(Mark a, std::uint8_t a_unit, Mark b,
                                          std::uint8_t b_unit) noexcept {
  return (is_write(a) || is_write(b)) && is_strong(a) && is_strong(b) && a_unit != b_unit;
}
/// Whether all that conflicts with `old` conflicts with `now` too.
[[nodiscard]] constexpr bool covers(Mark now, Mark old) noexcept {
  return now == Mark::WeakWrite || now == old || old == Mark::StrongRead;
}
static_assert(covers(Mark::WeakRead, Mark::StrongRead));
static_assert(!covers(Mark::StrongWrite, Mark::WeakRead));

[[nodiscard]] bool is_strong(const RaceAccess& access) noexcept;
[[nodiscard]] Mark mark_of(const RaceAccess& access) noexcept;
/// Bytes of an element.
[[nodiscard]] constexpr std::uint8_t unit_of(const RaceAccess& access) noexcept {
  return access.unit != 0 ? access.unit : access.bytes;
}
[[nodiscard]] bool acquires(ptx::Modifier order) noexcept;
[[nodiscard]] bool releases(ptx::Modifier order) noexcept;

/// Two accesses that nothing orders, or a synchronisation that does not reach.
struct Conflict {
  Rule rule{};
  bool shared = true;
  std::uint32_t lane = 0;
  std::uint32_t bytes = 0;
  std::uint64_t address = 0;  ///< of the lane's access
  Mark mine{};
  Mark theirs{};
  bool async = false;        ///< one of the two is a copy that nobody has waited for
  bool bulk = false;         ///< the other is a bulk copy, whose mbarrier others have waited for
  bool same_access = false;  ///< two lanes of one execution of one instruction
  bool same_warp = false;
  bool same_block = true;
  bool same_thread = false;
  bool mixed = false;          ///< both are strong, with elements of different size
  const Cta* owner = nullptr;  ///< of shared memory, where it is another block of the cluster
  bool vague = false;  ///< another thread of the same warp or block than `other`, which one is lost
  bool reversed = false;  ///< the finding is about `other`, met by the thread that acts now
  ptx::Modifier scope = ptx::Modifier::none;  ///< ScopeTooNarrow: what it is
  OtherParty other;
};

/// Where conflicts go. Not thread-safe.
class RaceSink {
 public:
  virtual ~RaceSink() = default;
  virtual void found(Context& context, std::uint32_t statement, const Conflict& conflict) = 0;
  /// What lies at an address now, or nullptr: to tell equal values.
  [[nodiscard]] virtual const std::byte* content(const Context& context, bool shared,
                                                 std::uint64_t address) = 0;
};

/// The text of a finding. `other_line`: PTX line of the other party. `name`: what the address lies
/// in ("shared variable 'tile'"), or empty. `thread` and `other_thread`: "thread (1,0,0) of block
/// (0,0,0)".
[[nodiscard]] FindingText race_text(const Conflict& conflict, std::string_view thread,
                                    std::string_view other_thread, std::uint32_t other_line,
                                    std::string_view name);

[[nodiscard]] std::unique_ptr<Races> make_shared_races(const Cta& cta,
                                                       std::shared_ptr<RaceSink> sink);
class GlobalShadow;  // race_shadow.hpp
/// `space` holds what is to be copied before a provisional check lets it be written; may be null
/// where a plan is not provisional.
[[nodiscard]] std::unique_ptr<Races> make_global_races(std::shared_ptr<GlobalShadow> shadow,
                                                       std::shared_ptr<RaceSink> sink,
                                                       AddressSpace* space = nullptr,
                                                       const RacePlan& plan = {});

/// One access, or several equal ones by lanes of a warp, to some of the 4 bytes of a granule.
struct Record {
  std::uint32_t lanes = 0;
  Tick tick = 0;
  std::uint32_t statement = kNoIndex;
  std::uint8_t warp = 0;
  std::uint8_t block = 0;  ///< rank in the cluster
  std::uint8_t bytes = 0;  ///< a bit each
  Mark mark{};
  bool pending = false;   ///< asynchronous and not waited for
  bool atomic = false;    ///< a read-modify-write
  std::uint8_t unit = 0;  ///< of a strong access: bytes of an element
};

/// What a cell cannot hold: a list of accesses, exact.
using Records = std::vector<Record>;

/// Whether lanes 0 to `count` - 1 access bytes without gaps, beginning at a multiple of 4 and
/// ending at one; the usual case, which is looked at as a whole.
[[nodiscard]] bool is_run(const RaceAccess& access, std::uint32_t& count) noexcept;

/// Whether all 32 lanes access one address: a value that is broadcast.
[[nodiscard]] bool all_equal(const RaceAccess& access) noexcept;

/// The distinct addresses of an access, and the lanes of each.
struct AddressGroups {
  std::array<std::uint64_t, kLanes> address;  ///< the first `count`
  std::array<std::uint32_t, kLanes> lanes;
  std::uint32_t count = 0;
};
[[nodiscard]] AddressGroups group_by_address(const RaceAccess& access) noexcept;

/// For runs of 1, 2, 4, 8 and 16 bytes a lane (index 0..4): which lanes granule i belongs to.
/// `code`: 0 one lane has it whole; 1 two lanes have halves; 2 four lanes have a byte each.
struct RunTable {
  std::array<std::uint32_t, 128> first{};  ///< lane, with the code 10 bits up
  std::array<std::uint32_t, 128> lanes{};
  std::uint32_t code = 0;
};
[[nodiscard]] const RunTable& run_table(unsigned bytes) noexcept;

/// Which of the lanes of a granule of some code have the byte mask's bytes, and the other way
/// round.
[[nodiscard]] constexpr std::uint8_t bytes_of_lane(std::uint32_t code,
                                                   std::uint32_t lane) noexcept {
  if (code == 0) return 0xf;
  if (code == 1) return static_cast<std::uint8_t>(3u << (lane % 2 * 2));
  return static_cast<std::uint8_t>(1u << (lane % 4));
}

}  // namespace ptxgen::inline v0::emulator
