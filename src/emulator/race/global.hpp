// src/emulator/race/global.hpp - races in the global memory of a launch
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "emulator/race/sync.hpp"
#include "emulator/race/team.hpp"

namespace ptxgen::inline v0::emulator {

/// Whether a scope of a thread of block `a` includes the threads of another block `b`.
[[nodiscard]] bool reaches_blocks(const Grid& grid, ptx::Modifier scope, std::uint64_t a,
                                  std::uint64_t b);

/// The check of one worker's blocks. A cell keeps one write and one read exactly; of further reads
/// only whether they were by other lanes, warps or blocks than the first. Every reported race is
/// one; with several readers and synchronisation between blocks a race may be missed.
class GlobalRaces final : public Races {
 public:
  GlobalRaces(std::shared_ptr<RaceTeam> team, std::shared_ptr<RaceSink> sink);

  void access(Context& context, std::uint32_t statement, const RaceAccess& access) override;
  void synchronise(Context& context, std::uint32_t statement, const RaceAccess& access) override;
  void barrier_arrive(Context& context, std::uint32_t id, std::uint32_t lanes, bool wait) override;
  void barrier_complete(Cta& cta, std::uint32_t id) override;
  void warp_sync(Context& context, std::uint32_t lanes) override;
  void fence(Context& context, std::uint32_t lanes, ptx::Modifier order, ptx::Modifier scope,
             std::uint32_t statement) override;
  void release(Context& context, std::uint32_t lanes, std::uint64_t object,
               const Cta* owner) override;
  void acquire(Context& context, std::uint32_t lanes, std::uint64_t object,
               const Cta* owner) override;
  void forget(std::uint64_t object, const Cta& owner) override;
  void bulk_write(Context&, const BulkWrite&) override {}
  void bulk_observed(Context&, std::uint32_t, const BulkWrite&, std::uint64_t) override {}
  void async_complete(Context&, std::uint32_t, std::uint64_t) override {}
  void restart(const Cta&) override {}
  void block_begins(const Cta& cta) override;
  void block_ends(const Cta& cta) override;
  void block_leaves(Cta&) override {}
  [[nodiscard]] bool watches(std::uint64_t address) const noexcept override {
    return team_->watches(address);
  }
  void undo() noexcept override { team_->undo(); }
  [[nodiscard]] bool complete() const noexcept override { return !full_; }
  [[nodiscard]] std::uint64_t overhead_bytes() const noexcept override;

 private:
  // Info: thread, statement << 10, code << 26 (RunTable's; 3: only some bytes, or a list), flags.
  // Of strong reads codes 1 and 2 are units of 8 and 16 bytes; of whole strong writes the unit is
  // in the highest two bits (UnitCode).
  static constexpr std::uint32_t kOwner = 0x0c0003ffu;  ///< thread and code
  static constexpr std::uint32_t kPartial = 3u << 26;
  static constexpr std::uint32_t kStrong = 1u << 28;
  static constexpr std::uint32_t kUnitShift = 30;        ///< of a write
  static constexpr std::uint32_t kLanesFlag = 1u << 29;  ///< of reads: several lanes
  static constexpr std::uint32_t kWarpsFlag = 1u << 30;
  static constexpr std::uint32_t kBlocksFlag = 1u << 31;
  // Of a line: warp and the kind of run are in the place of thread and code. Kind 0: the granules
  // have infos of their own. Kinds 1, 2, 3: 4, 8, 16 bytes a lane, from the first granule of the
  // line on, of lanes that begin at a quarter of the warp.
  static constexpr std::uint32_t kLineKind = 3u << 26;
  static constexpr std::uint32_t kLineOwner = kLineKind | 0x3ffu;
  static constexpr std::uint32_t kSeveral = kLanesFlag | kWarpsFlag | kBlocksFlag;

  using Entry = RaceTeam::Entry;
  /// Maximum eras of a worker: 2 GiB.
  static constexpr std::size_t kMaxEras = std::size_t{1} << 27;

  /// The meaning of an id: a block and a tick.
  struct Era {
    std::uint64_t cta = 0;
    std::uint32_t block = 0;  ///< number in this launch
    Tick tick = 0;
  };
  /// A release without effect because its scope, or that of the acquire, is too narrow.
  struct Missed {
    Known known;
    std::uint32_t block = 0;
    ptx::Modifier scope{};
    std::uint32_t statement = kNoIndex;
    OtherParty releaser;
    bool own = false;  ///< the acquire is the narrow one
  };
  struct Block {
    Block(const Cta& cta, std::uint32_t number) : order(cta, number), lanes(cta.warps.size()) {}
    ThreadOrder order;
    std::vector<std::unique_ptr<LaneSync>> lanes;
    std::vector<Missed> missed;
    std::uint32_t era = 0;  ///< of `era_tick`
    Tick era_tick = 0;
  };
  /// An access being checked.
  struct Now {
    Context& context;
    std::uint32_t statement;
    const RaceAccess& access;
    Block& block;
    std::uint32_t warp;
    Mark mark;
    ptx::Modifier scope;  ///< of a strong access: cta, cluster, or none for all blocks
    std::uint8_t unit;    ///< bytes of an element
    std::uint32_t info;   ///< without thread and code
    std::uint32_t era;
    std::uint32_t reported_lane = kNoIndex;
    std::uint32_t reported_statement = kNoIndex;
  };
  struct Other {
    std::uint32_t era = 0;
    std::uint32_t warp = 0;
    std::uint32_t lanes = 0;
    std::uint32_t statement = kNoIndex;
    Mark mark{};
    ptx::Modifier scope = ptx::Modifier::none;  ///< as Now::scope
    bool vague = false;
    std::uint8_t unit = 0;  ///< of a strong access; 0: not known, 3: 1 or 2
  };
  [[nodiscard]] static Other weak_read(std::uint32_t era, std::uint32_t info,
                                       std::uint32_t lanes) noexcept {
    return {.era = era, .warp = info >> 5 & 31u, .lanes = lanes, .mark = Mark::WeakRead};
  }
  /// A strong access with scope cta or cluster, which a cell does not keep.
  struct ScopedAccess {
    Other access;
    std::uint8_t bytes = 0;
  };

  [[nodiscard]] Block& block_of(const Cta& cta);
  [[nodiscard]] SyncObjects::Party party(Context& context, std::uint32_t statement);
  [[nodiscard]] std::uint32_t era_of(Block& block, const Cta& cta);
  /// nullptr for a block of another worker, which is never ordered with this one's.
  [[nodiscard]] const Era* era(std::uint32_t id) const noexcept {
    const std::uint32_t number = id - first_id_;
    const std::uint32_t chunk = number / RaceTeam::kIds;
    if (chunk >= chunks_.size() || chunks_[chunk] == kNoIndex) return nullptr;
    return &eras_[std::size_t{chunks_[chunk]} * RaceTeam::kIds + number % RaceTeam::kIds];
  }
  /// An access of `count` lanes without gaps. False if it must be checked by granule.
  [[nodiscard]] bool run(Now& now, std::uint32_t count);
  [[nodiscard]] std::uint32_t short_statement(std::uint32_t statement);
  [[nodiscard]] std::uint32_t long_statement(std::uint32_t info) const noexcept;

  /// Whole lines at once. False, with nothing changed, if that is not possible.
  [[nodiscard]] bool read_lines(Now& now, std::uint64_t first, std::uint32_t count);
  [[nodiscard]] bool write_lines(Now& now, std::uint64_t first, std::uint32_t count);
  /// Makes the infos of the granules valid.
  void open_reads(std::uint64_t line);
  void open_writes(std::uint64_t line);
  [[nodiscard]] bool read_run(Now& now, std::uint64_t first, std::uint32_t count,
                              const RunTable& table);
  [[nodiscard]] bool write_run(Now& now, std::uint64_t first, std::uint32_t count,
                               const RunTable& table);
  /// Whether the lanes' reads are ordered after all writes of the granules. `flat`: the code and
  /// the warp of the run, as in an info.
  [[nodiscard]] bool writes_settled(const Now& now, std::uint64_t first, std::uint32_t count,
                                    const RunTable& table, std::uint32_t flat) const noexcept;
  /// Whether no thread of this block can race with accesses of that id any more.
  [[nodiscard]] bool settled(const Now& now, std::uint32_t id) const noexcept;
  void range(Now& now, std::uint32_t lanes, std::uint64_t address);
  void note_read(Now& now, std::uint64_t granule, std::uint32_t lanes, std::uint8_t bytes);
  void check_vague(Now& now, std::uint64_t granule, std::uint32_t lanes, std::uint8_t bytes,
                   Other other);
  void write_granule(Now& now, std::uint64_t granule, std::uint32_t lanes, std::uint8_t bytes);
  void check_writes(Now& now, std::uint64_t granule, std::uint32_t lanes, std::uint8_t bytes);
  void check_reads(Now& now, std::uint64_t granule, std::uint32_t lanes, std::uint8_t bytes);
  /// Checks a strong access against those of narrow scopes, and keeps it if it is one.
  void check_scopes(Now& now, std::uint64_t granule, std::uint32_t lanes, std::uint8_t bytes);
  void keep_scoped(Now& now, std::vector<ScopedAccess>& all, std::uint32_t lanes,
                   std::uint8_t bytes);
  std::vector<Entry>& list(Now& now, std::uint64_t granule);
  /// Lanes of `now.warp` that are not ordered after the other access.
  [[nodiscard]] std::uint32_t unordered(const Now& now, std::uint32_t lanes,
                                        const Other& other) const;
  void check(Now& now, std::uint64_t granule, std::uint32_t lanes, std::uint8_t bytes,
             const Other& other);
  void report(Now& now, std::uint64_t granule, std::uint32_t lane, std::uint8_t bytes,
              const Other& other, std::uint32_t other_lane, Rule rule);
  [[nodiscard]] bool same_value(const Now& now, std::uint64_t granule, std::uint32_t lane,
                                std::uint8_t bytes, std::uint32_t other_lane,
                                bool same_access) const;

  std::shared_ptr<RaceTeam> team_;
  GlobalShadow* shadow_;
  std::shared_ptr<RaceSink> sink_;
  SyncObjects sync_;
  std::uint32_t first_id_;
  std::uint32_t next_id_ = 0;  ///< next unused id
  std::uint32_t ids_left_ = 0;
  std::vector<Era> eras_;              ///< in the order in which ids were taken
  std::vector<std::uint32_t> chunks_;  ///< by (id - first_id_) / kIds: where they are in `eras_`
  bool full_ = false;
  std::unordered_map<std::uint64_t, std::unique_ptr<Block>> blocks_;  ///< by Cta::linear
  std::vector<std::unique_ptr<Block>> idle_;
  const Cta* last_cta_ = nullptr;
  Block* last_block_ = nullptr;
  std::uint32_t block_count_ = 0;
  std::unordered_map<std::uint64_t, std::vector<ScopedAccess>> scoped_;  ///< by granule
  std::vector<std::uint16_t> short_statements_;
  std::vector<std::uint32_t> long_statements_;
};

}  // namespace ptxgen::inline v0::emulator
