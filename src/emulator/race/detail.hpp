// src/emulator/race/detail.hpp - common parts of shared and global race checks
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

/// As std::has_single_bit for non-zero values, without a call where popcnt is missing.
[[nodiscard]] constexpr bool one_bit(std::uint32_t bits) noexcept {
  return (bits & (bits - 1)) == 0;
}

/// Kinds of accesses: weak ones race with all overlapping ones, strong ones (atomic, volatile,
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
/// For overlapping accesses: strong ones of different width race like weak ones. Only those that
/// overlap completely are morally strong (PTX ISA, memory consistency model).
[[nodiscard]] constexpr bool mixes_widths(Mark a, std::uint8_t a_unit, Mark b,
                                          std::uint8_t b_unit) noexcept {
  return (is_write(a) || is_write(b)) && is_strong(a) && is_strong(b) && a_unit != b_unit;
}
/// Whether all accesses that conflict with `old` also conflict with `now`.
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

/// Two unordered accesses, or a synchronisation with too narrow a scope.
struct Conflict {
  Rule rule{};
  bool shared = true;
  std::uint32_t lane = 0;
  std::uint32_t bytes = 0;
  std::uint64_t address = 0;  ///< of the lane's access
  Mark own{};
  Mark theirs{};
  bool async = false;   ///< one of the two is a copy that no thread has waited for
  bool bulk = false;    ///< the other is a bulk copy; other threads have waited for its mbarrier
  bool matrix = false;  ///< the other is a read by wgmma
  bool same_access = false;  ///< two lanes of one execution of one instruction
  bool same_warp = false;
  bool same_block = true;
  bool same_thread = false;
  bool mixed = false;          ///< both are strong, with elements of different size
  const Cta* owner = nullptr;  ///< of shared memory of another block of the cluster, else null
  bool vague = false;          ///< a thread of the warp or block of `other`, not known which
  bool reversed = false;       ///< the finding is about the access of `other`
  ptx::Modifier scope = ptx::Modifier::none;  ///< ScopeTooNarrow: the scope
  OtherParty other;
};

/// Receives conflicts. Not thread-safe.
class RaceSink {
 public:
  virtual ~RaceSink() = default;
  virtual void found(Context& context, std::uint32_t statement, const Conflict& conflict) = 0;
  /// The current content of an address, or nullptr; for equal values.
  [[nodiscard]] virtual const std::byte* content(const Context& context, bool shared,
                                                 std::uint64_t address) = 0;
};

/// The text of a finding. `other_place`: of the other access ("at line 9"), or empty. `name`: the
/// memory of the address ("shared variable 'tile'"), or empty. `thread` and `other_thread`: "thread
/// (1,0,0) of block (0,0,0)".
[[nodiscard]] FindingText race_text(const Conflict& conflict, std::string_view thread,
                                    std::string_view other_thread, std::string_view other_place,
                                    std::string_view name);

[[nodiscard]] std::unique_ptr<Races> make_shared_races(const Cta& cta,
                                                       std::shared_ptr<RaceSink> sink);
class GlobalShadow;  // state/race_shadow.hpp
/// `space`: a provisional check copies its memory before a write; may be null for other plans.
[[nodiscard]] std::unique_ptr<Races> make_global_races(std::shared_ptr<GlobalShadow> shadow,
                                                       std::shared_ptr<RaceSink> sink,
                                                       AddressSpace* space = nullptr,
                                                       const RacePlan& plan = {});

/// An access, or equal accesses of lanes of a warp, to bytes of a 4-byte granule.
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

/// An exact list of accesses, for what a cell cannot represent.
using Records = std::vector<Record>;

/// Whether lanes 0 to `count` - 1 access bytes without gaps, from a multiple of 4 to one: the
/// common case, checked at once.
[[nodiscard]] bool is_run(const RaceAccess& access, std::uint32_t& count) noexcept;

/// Whether all 32 lanes access one address: a broadcast.
[[nodiscard]] bool all_equal(const RaceAccess& access) noexcept;

/// The distinct addresses of an access, and the lanes of each.
struct AddressGroups {
  std::array<std::uint64_t, kLanes> address;  ///< the first `count`
  std::array<std::uint32_t, kLanes> lanes;
  std::uint32_t count = 0;
};
[[nodiscard]] AddressGroups group_by_address(const RaceAccess& access) noexcept;

/// For runs of 1, 2, 4, 8 and 16 bytes a lane (index 0..4): the lanes of granule i. `code`: 0 one
/// lane; 1 two lanes with half each; 2 four lanes with a byte each.
struct RunTable {
  std::array<std::uint32_t, 128> first{};  ///< lane, with the code 10 bits up
  std::array<std::uint32_t, 128> lanes{};
  std::uint32_t code = 0;
};
[[nodiscard]] const RunTable& run_table(unsigned bytes) noexcept;

/// The lanes of a granule that access the bytes of a mask, and the bytes of lanes.
[[nodiscard]] constexpr std::uint8_t bytes_of_lane(std::uint32_t code,
                                                   std::uint32_t lane) noexcept {
  if (code == 0) return 0xf;
  if (code == 1) return static_cast<std::uint8_t>(3u << (lane % 2 * 2));
  return static_cast<std::uint8_t>(1u << (lane % 4));
}

}  // namespace ptxgen::inline v0::emulator
