// src/emulator/race/shared.hpp - races in one block's shared memory
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "emulator/race/sync.hpp"

namespace ptxgen::inline v0::emulator {

/// The shadow has a cell for each 4-byte granule: the last write and the reads since. A cell is
/// exact while accesses are weak and of whole granules (or runs of smaller ones), and the readers
/// are a set of lanes in each of a set of warps; warps that read at different times have a time and
/// a statement each. Otherwise the cell becomes a list of records, until a barrier or a write
/// simplifies it.
class SharedRaces final : public Races {
 public:
  SharedRaces(const Cta& cta, std::shared_ptr<RaceSink> sink);

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
  void bulk_write(Context& issuer, const BulkWrite& write) override;
  void bulk_observed(Context& context, std::uint32_t lane, const BulkWrite& write,
                     std::uint64_t object) override;
  std::uint32_t matrix_issue(Context& context, std::uint32_t statement,
                             std::span<const std::uint32_t> pieces, std::uint64_t number) override;
  void matrix_read(Context& context, std::uint32_t statement, std::span<const std::uint32_t> pieces,
                   std::uint64_t number, std::uint64_t object) override;
  void proxy_fence(Context& context, std::uint32_t lanes) override;
  std::uint32_t unfenced_store(Context& context, std::span<const std::uint32_t> pieces) override;
  void async_complete(Context& context, std::uint32_t lanes, std::uint64_t through) override;
  void restart(const Cta& cta) override;
  void block_begins(const Cta&) override {}
  void block_ends(const Cta&) override {}
  void block_leaves(Cta& cta) override;
  [[nodiscard]] std::uint64_t overhead_bytes() const noexcept override;

  /// For tests: advances time by `ticks`.
  void skip_time(Tick ticks);

 private:
  // A stamp: tick << 12 | code << 10 | warp << 5 | lane. See RunTable for the code.
  using Stamp = std::int32_t;
  static constexpr Tick kPendingTick = 0x7fffe;
  static constexpr Stamp kSlow = 0x7fffffff;  ///< the cell is records_[reader_warps_[granule]]
  static constexpr Tick kLastTick = 0x7ff00;
  static constexpr Tick kKeptTicks = 1u << 17;
  /// A code of `read_`: whole granules, and reader_times_ has the tick of each warp.
  static constexpr std::uint32_t kManyTimes = 3;
  struct Pending {
    std::uint32_t granule = 0;
    std::uint32_t lane = 0;
    std::uint64_t ticket = 0;
  };
  /// An access being checked.
  struct Now {
    Context& context;
    std::uint32_t statement;
    const RaceAccess& access;
    std::uint32_t warp;
    Mark mark;
    bool pending;
    ThreadOrder& order;     ///< of the block that accesses
    std::uint32_t block;    ///< its rank in the cluster
    std::uint8_t unit = 0;  ///< bytes of an element
    bool bulk = false;      ///< of the copy engine
    std::uint32_t reported_lane = kNoIndex;
    std::uint32_t reported_statement = kNoIndex;
  };

  [[nodiscard]] static Stamp stamp(Tick tick, std::uint32_t rest) noexcept {
    return static_cast<Stamp>(tick << 12 | rest);
  }
  /// The last access of an instruction of another block of the cluster to this block's memory.
  struct Visit {
    std::uint32_t block = 0;
    std::uint32_t warp = 0;
    std::uint32_t lanes = 0;
    std::uint32_t statement = kNoIndex;
    Tick tick = 0;
    Mark mark{};
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
  };
  /// Arrivals at the cluster barrier, of a phase of one parity.
  struct Arrivals {
    std::uint32_t lanes = 0;
    Tick first = 0;
  };

  // Clusters, race/cluster.cpp.
  [[nodiscard]] SharedRaces& of_block(std::uint32_t rank) const noexcept;
  [[nodiscard]] SharedRaces& of(const Context& context) noexcept;
  /// The synchronisation objects of all blocks of the cluster.
  [[nodiscard]] SyncObjects& sync() noexcept;
  /// A tag for objects of each block's memory; 0 for global memory.
  [[nodiscard]] std::uint64_t tag_of(const Cta* owner) const noexcept;
  /// The tick up to which accesses of the block's threads are ordered before all later ones.
  [[nodiscard]] Tick forgotten(std::uint32_t block) const noexcept {
    return cluster_ == nullptr ? order_.floor() : of_block(block).cluster_floor_;
  }
  [[nodiscard]] std::uint32_t unordered(const Now& now, std::uint32_t lanes,
                                        const Record& at) const;
  [[nodiscard]] std::uint32_t unordered_with(const Now& now, std::uint32_t lane,
                                             const Record& at) const;
  void note_visit(const Now& now);
  void forget_cluster();
  void forget_all();

  [[nodiscard]] SyncObjects::Party party(Context& context, std::uint32_t statement);
  [[nodiscard]] bool read_broadcast(const Now& now, std::uint64_t address);
  [[nodiscard]] bool read_run(Now& now, std::uint32_t first, std::uint32_t count,
                              const RunTable& table);
  [[nodiscard]] bool write_run(Now& now, std::uint32_t first, std::uint32_t count,
                               const RunTable& table);
  void by_address(Now& now);
  [[nodiscard]] bool read_groups(const Now& now, const AddressGroups& groups);
  class FullReads;
  // Readers at different times, race/shared_readers.cpp.
  /// A warp that reads what others have read.
  struct Joining {
    enum class How : std::uint8_t { Not, Begins, SameTime, OtherTime };
    std::uint32_t warp = 0;
    std::uint32_t statement = kNoIndex;
    Tick now = 0;
    Tick floor = 0;
    Tick released = 0;
    Tick together = 0;
    std::uint32_t* times = nullptr;       ///< reader_times_ of the warp
    std::uint32_t* statements = nullptr;  ///< reader_statements_ of the warp
    /// Whether a read replaces the warp's own one of that time.
    [[nodiscard]] bool may_repeat(std::uint32_t time) const noexcept {
      return (time >> 1 <= together) | (((time & 1u) != 0) & (time >> 1 > released));
    }
  };
  [[nodiscard]] bool can_join(const Now& now) const noexcept;
  [[nodiscard]] Joining joining(const Now& now);
  /// A warp's array with an element for each granule.
  [[nodiscard]] std::uint32_t* of_warp(std::vector<std::vector<std::uint32_t>>& all,
                                       std::uint32_t warp);
  [[nodiscard]] Joining::How how_to_join(const Joining& who, std::uint32_t i,
                                         std::uint32_t lanes) const;
  void join(const Joining& who, std::uint32_t i, std::uint32_t lanes, Joining::How how);
  /// `lanes`: of each granule, `step` apart. False, with nothing changed, if one cannot be joined.
  [[nodiscard]] bool join_all(const Joining& who, std::uint32_t first, std::uint32_t count,
                              const std::uint32_t* lanes, std::uint32_t step);
  struct GroupedRead;
  [[nodiscard]] bool join_groups(const Joining& who, const GroupedRead& access);
  [[nodiscard]] bool join_run(const Now& now, std::uint32_t first, std::uint32_t count,
                              const RunTable& table);
  void separate(std::uint32_t granule);
  void add_readers(std::uint32_t granule, Records& records) const;
  /// Whether the readers since the last barrier have a time each.
  [[nodiscard]] bool has_many_times(std::uint32_t granule) const noexcept {
    return (read_[granule] & 3u) == kManyTimes && read_[granule] >> 2 > forgotten(rank_);
  }
  void range(Now& now, std::uint32_t lanes, std::uint64_t address);
  void read_granule(Now& now, std::uint32_t granule, std::uint32_t lanes);
  void write_granule(Now& now, std::uint32_t granule, std::uint32_t lane);
  /// Whether these warps have released nothing since `tick`: their accesses of that time may then
  /// get a new stamp.
  [[nodiscard]] bool unreleased(std::uint32_t warps, Tick tick) const noexcept;
  void check_last_write(Now& now, std::uint32_t granule, std::uint32_t lanes);
  void slow(Now& now, std::uint32_t granule, std::uint32_t lanes, std::uint8_t bytes);
  [[nodiscard]] bool seen_by_atomic(const Now& now, const Records& records, std::size_t index,
                                    std::uint32_t lane, std::uint8_t bytes) const;
  void insert(Now& now, Records& records, std::uint32_t lanes, std::uint8_t bytes);
  Records& expand(std::uint32_t granule);
  void simplify(std::uint32_t granule);
  void release_records(std::uint32_t granule);
  void report(Now& now, std::uint32_t granule, std::uint32_t lane, std::uint8_t bytes,
              const Record& other, std::uint32_t other_lane);
  [[nodiscard]] bool same_value(const Now& now, std::uint32_t granule, std::uint32_t lane,
                                std::uint8_t bytes, const Record& other, std::uint32_t other_lane,
                                bool same_access) const;
  [[nodiscard]] bool wrote_already(const Now& now, std::uint32_t granule, std::uint32_t lane,
                                   std::uint8_t bytes, const Record& other,
                                   std::uint32_t other_lane) const;
  void complete_copy(const Pending& pending, std::uint32_t warp);
  /// Writes the bytes of a bulk copy at `tick`, by a separate thread.
  void finish_bulk(const BulkWrite& write, Tick tick, std::uint32_t warp, std::uint32_t lane);
  void rebase();

  // Reads by wgmma, race/warpgroup.cpp.
  /// `ordered`: the last stamp of a write that was found ordered before this access; a copy gives
  /// all its granules one stamp.
  void check_issue(Now& now, std::uint32_t granule, std::uint32_t& ordered);
  void record_engine_read(const Now& now, std::uint32_t granule, std::uint32_t warp,
                          std::uint32_t lane);
  void check_matrices(Now& now, std::uint64_t address, std::uint64_t bytes, std::uint32_t lane);
  void check_matrices(Now& now);
  void forget_matrices();
  /// A wgmma that has not been carried out.
  struct MatrixRead {
    std::uint64_t number = 0;
    std::uint32_t statement = kNoIndex;
    std::uint32_t thread = 0;  ///< of the warp that issued it first
  };

  std::shared_ptr<RaceSink> sink_;
  ThreadOrder order_;
  SyncObjects sync_;
  std::vector<std::unique_ptr<LaneSync>> lane_sync_;  ///< by warp
  std::vector<std::vector<Pending>> pending_;         ///< by warp
  std::vector<BulkWrite> bulk_;                       ///< whose end no thread has observed
  std::unordered_map<std::uint32_t, std::uint32_t>
      bulk_threads_;  ///< issuing threads, by statement
  std::uint64_t bytes_ = 0;
  const Cluster* cluster_ = nullptr;  ///< null: of one block
  std::uint32_t rank_ = 0;
  Tick cluster_floor_ = 0;              ///< see `forgotten`
  std::array<Arrivals, 2> arrivals_{};  ///< by parity of the phase
  std::vector<Visit> visits_;
  std::vector<MatrixRead> matrix_reads_;      ///< issued, not carried out
  std::vector<std::uint64_t> matrix_number_;  ///< by granule: the last such read; empty: none yet
  /// Stores up to these ticks were followed by fence.proxy.async.
  Known fenced_;
  Tick first_tick_ = 0;  ///< accesses up to it are of blocks before
  // By granule.
  std::vector<Stamp> written_;
  std::vector<std::uint32_t> read_;  ///< tick << 2 | code; kManyTimes: the latest tick
  std::vector<std::uint32_t> reader_warps_;
  std::vector<std::uint32_t> reader_lanes_;
  std::vector<std::uint32_t> write_statement_;
  std::vector<std::uint32_t> read_statement_;
  /// By warp, for cells with kManyTimes: tick << 1, and 1 if the warp came after the first ones.
  std::vector<std::vector<std::uint32_t>> reader_times_;
  std::vector<std::vector<std::uint32_t>> reader_statements_;  ///< of the same cells
  std::vector<Records> records_;
  std::vector<std::uint32_t> free_records_;
};

}  // namespace ptxgen::inline v0::emulator
