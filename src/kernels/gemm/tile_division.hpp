// src/kernels/gemm/tile_division.hpp - tiles divided evenly among blocks (stream-K)
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "kernels/gemm/emit.hpp"

namespace ptxgen::inline v0::gemm {

/// How persistent workers, blocks or clusters, share the tiles of a matrix. Each tile is `units`
/// runs of terms. Of the first tiles, one to two for each worker, the units are divided evenly, in
/// their order; the others are not divided, every `workers`-th one for a worker. Where the workers
/// divide the number of tiles, none is; where there are fewer tiles than workers, all are divided.
/// Source: Osama et al., Stream-K, PPoPP 2023, the "two-tile" hybrid, with the division first.
///
/// Of `ranks` workers on an SM each has a rank of its own: an SM gets a second block when all have
/// one, so ranks are equal runs of workers. Rank r has up to `kTilesBefore` * r undivided tiles
/// first. So one rank adds sums of others while another one multiplies.
struct TileShares {
  /// A worker's divided tiles, at most two, and a tile's time for what it does beside products.
  static constexpr std::uint32_t kTilesBefore = 3;

  std::uint64_t tiles = 1;
  std::uint32_t workers = 1;
  std::uint32_t units = 1;
  std::uint32_t ranks = 1;

  [[nodiscard]] constexpr std::uint32_t workers_of_rank() const noexcept {
    return (workers + ranks - 1) / ranks;
  }

  [[nodiscard]] constexpr std::uint64_t divided() const noexcept {
    if (tiles % workers == 0) return 0;
    return tiles < workers ? tiles : tiles % workers + workers;
  }
  /// Undivided tiles of a worker, as many for each.
  [[nodiscard]] constexpr std::uint64_t undivided() const noexcept {
    return (tiles - divided()) / workers;
  }
  /// The share of a worker, in tiles; the first one's is the largest.
  [[nodiscard]] constexpr double of(std::uint64_t worker) const noexcept {
    return static_cast<double>(undivided()) + divided_of(worker);
  }
  [[nodiscard]] constexpr double divided_of(std::uint64_t worker) const noexcept {
    const std::uint64_t all = divided() * units;
    const std::uint64_t shared = all / workers + (worker < all % workers ? 1 : 0);
    return static_cast<double>(shared) / units;
  }
  /// Undivided tiles that workers of a rank have before divided ones. One at least is after them.
  [[nodiscard]] constexpr std::uint64_t before(std::uint32_t rank) const noexcept {
    const std::uint64_t max = undivided() == 0 ? 0 : undivided() - 1;
    return std::min<std::uint64_t>(std::uint64_t{kTilesBefore} * rank, max);
  }
  /// Workers that have units of one divided tile, at most.
  [[nodiscard]] constexpr std::uint64_t parts() const noexcept {
    const std::uint64_t shared = divided() * units / workers;
    return shared == 0 ? units : 1 + (units + shared - 2) / shared;
  }
};

/// A tile, or a run of its units, which one worker multiplies.
struct TilePiece {
  Value<u32> tile, first, units;
  Pred complete;
};

/// Workers that share a divided tile: that of its first unit and that of its last.
struct TileWorkers {
  Value<u32> first, last;
};

/// The division of the tiles of a matrix, computed by each thread.
class TileDivision {
 public:
  /// `shares` but for the number of tiles, which the launch has.
  TileDivision(KernelBuilder& k, const Value<u32>& tiles, const Value<u32>& worker,
               const TileShares& shares);

  /// Calls `body(piece)` for each of the worker's pieces, in a loop: divided tiles first, after
  /// those that its rank has before them.
  template <class Body>
  void for_each_piece(const Body& body) {
    const Value<u32> all_divided = divided();
    const Shares even = shares();
    auto unit = k_.var(first_unit(even, worker_));
    const Value<u32> end = first_unit(even, worker_ + 1u);
    auto next = k_.var(all_divided + worker_);
    const std::optional<Value<u32>> from = first_after(all_divided);
    const auto more = [&] {
      const Pred undivided = next < tiles_;
      return (unit < end) | undivided;
    };
    k_.while_(more, [&] {
      const Pred some = unit < end;
      const Pred divided = from ? some & (next >= *from) : some;
      const Value<u32> tile = unit / units_;
      const Value<u32> first = unit - k_.mul_lo(tile, units_);
      const Value<u32> left = end - unit;
      const Value<u32> units = k_.min(units_ - first, left);
      const Value<u32> undivided = next.read();
      const Value<u32> all = k_.constant<u32>(units_);
      unit += k_.selp(units, 0u, divided);
      next += k_.selp(k_.constant<u32>(0), workers_, divided);
      const Value<u32> of_piece = k_.selp(units, all, divided);
      const TilePiece piece{k_.selp(tile, undivided, divided), k_.selp(first, 0u, divided),
                            of_piece, of_piece == units_};
      body(piece);
    });
  }

  /// Of a divided tile. Computed where it is called, as all of this is: few registers are left
  /// beside the sums.
  [[nodiscard]] TileWorkers workers_of(const Value<u32>& tile);
  [[nodiscard]] const Value<u32>& worker() const noexcept { return worker_; }

 private:
  /// Units of a worker, and how many workers have one more.
  struct Shares {
    Value<u32> each, more;
  };
  [[nodiscard]] Value<u32> divided();  ///< tiles
  [[nodiscard]] Shares shares();
  [[nodiscard]] Value<u32> first_unit(const Shares& shares, const Value<u32>& worker);
  [[nodiscard]] Value<u32> worker_of(const Shares& shares, const Value<u32>& unit);
  /// From which undivided tile on the worker has divided ones; nothing where all begin with them.
  [[nodiscard]] std::optional<Value<u32>> first_after(const Value<u32>& all_divided);

  KernelBuilder& k_;
  Value<u32> tiles_, worker_;
  TileShares of_;
  std::uint32_t workers_, units_;
};

/// Where the sums of divided tiles are, for the threads that have them.
struct PartialSumsLayout {
  std::uint32_t blocks = 1;   ///< of a matrix
  std::uint32_t cluster = 1;  ///< blocks of a worker, which have tiles of their own
  std::uint32_t threads = 1;  ///< with sums
  std::uint32_t sums = 1;     ///< of a thread, a multiple of 4

  [[nodiscard]] constexpr std::uint64_t part_bytes() const noexcept {
    return std::uint64_t{4} * threads * sums;
  }
  /// Of all matrices, a multiple of 16.
  [[nodiscard]] constexpr std::uint64_t ticket_bytes(std::uint64_t matrices) const noexcept {
    return (matrix_tickets() * matrices * 4 + 15) / 16 * 16;
  }
  /// Each block has a part that is the first of its tile and one that is not, at most.
  [[nodiscard]] constexpr std::uint64_t matrix_bytes() const noexcept {
    return 2 * blocks * part_bytes();
  }
  /// One for each warp of a divided tile.
  [[nodiscard]] constexpr std::uint64_t matrix_tickets() const noexcept {
    return std::uint64_t{2} * blocks * (threads / 32);
  }
};

/// Adds the sums of divided tiles in the order of k, warp by warp: the warp of the tile's first
/// part keeps its sums in registers if all others have arrived, which is the rule, since workers
/// begin with the ends of tiles; otherwise it stores them, as the others do, and the last warp to
/// arrive adds all. No warp waits. The bits are the same either way.
class PartialSums {
 public:
  /// `thread` is the thread's number among those with sums.
  PartialSums(KernelBuilder& k, const PartialSumsLayout& layout, const Ptr<b8>& workspace,
              const Value<u32>& thread);
  /// By all lanes of a warp; whether the sums are then those of the complete tile, the same for all
  /// lanes.
  [[nodiscard]] Pred combine(const TilePiece& piece, TileDivision& division, const Value<u32>& rank,
                             std::span<Var<f32>> sums);

 private:
  [[nodiscard]] Ptr<b8> part(const Value<u32>& worker, const Value<u32>& rank, std::uint32_t which);
  void store(const Ptr<b8>& to, std::span<Var<f32>> sums);
  void load(const Ptr<b8>& from, std::span<Var<f32>> sums, std::size_t begin, std::size_t end,
            bool add);
  [[nodiscard]] Pred others_are_there(const Ptr<u32>& ticket, const Value<u32>& others);
  [[nodiscard]] Pred is_last(const Ptr<u32>& ticket, const Value<u32>& others, const Pred& stored);
  void add_parts(const TileWorkers& workers, const Value<u32>& rank, const Pred& all,
                 std::span<Var<f32>> sums);

  KernelBuilder& k_;
  PartialSumsLayout layout_;
  Ptr<b8> parts_;  ///< the thread's place in the matrix's first part
  Ptr<u32> tickets_;
  Pred one_lane_;
};

}  // namespace ptxgen::inline v0::gemm
