// src/kernels/gemm/tile_division.cpp - tiles divided evenly among blocks (stream-K)
#include "kernels/gemm/tile_division.hpp"

#include <algorithm>

#include "kernels/parts/block_vote.hpp"

namespace ptxgen::inline v0::gemm {

namespace {

// What a warp has of a tile that it shares.
constexpr std::uint32_t kNothing = 0;
constexpr std::uint32_t kFirstPart = 1;  // in registers; the others are in the workspace
constexpr std::uint32_t kLastToArrive = 2;
// Loaded before they are added.
constexpr std::size_t kSumsAtATime = 64;

}  // namespace

TileDivision::TileDivision(KernelBuilder& k, const Value<u32>& tiles, const Value<u32>& worker,
                           const TileShares& shares)
    : k_(k),
      tiles_(tiles),
      worker_(worker),
      of_(shares),
      workers_(shares.workers),
      units_(shares.units) {}

// As TileShares::divided().
Value<u32> TileDivision::divided() {
  const Value<u32> over = tiles_ % workers_;
  const Pred few = tiles_ < workers_;
  const Value<u32> some = k_.selp(tiles_, over + workers_, few);
  const Pred even = over == 0u;
  return k_.selp(k_.constant<u32>(0), some, even);
}

// As TileShares::before(), compared with the worker's next undivided tile, which is `worker` and a
// multiple of `workers` after the divided ones. The last undivided tile of each is not reached.
std::optional<Value<u32>> TileDivision::first_after(const Value<u32>& all_divided) {
  if (of_.ranks == 1) return {};
  const Value<u32> rank = worker_ / of_.workers_of_rank();
  const Value<u32> wanted = k_.mad_lo(rank, TileShares::kTilesBefore * workers_, all_divided);
  return k_.min(wanted, k_.max(tiles_, workers_) - workers_);
}

TileDivision::Shares TileDivision::shares() {
  const Value<u32> all = k_.mul_lo(divided(), units_);
  const Value<u32> each = all / workers_;
  return {each, all - k_.mul_lo(each, workers_)};
}

Value<u32> TileDivision::first_unit(const Shares& shares, const Value<u32>& worker) {
  return k_.mad_lo(worker, shares.each, k_.min(worker, shares.more));
}

// Workers with one unit more come first.
Value<u32> TileDivision::worker_of(const Shares& shares, const Value<u32>& unit) {
  const Value<u32> larger = shares.each + 1u;
  const Value<u32> of_larger = k_.mul_lo(shares.more, larger);
  const Value<u32> smaller = k_.max(shares.each, 1u);
  const Value<u32> rest = (unit - of_larger) / smaller;
  const Pred has_larger = unit < of_larger;
  const Value<u32> after_larger = shares.more + rest;
  return k_.selp(unit / larger, after_larger, has_larger);
}

TileWorkers TileDivision::workers_of(const Value<u32>& tile) {
  const Shares even = shares();
  const Value<u32> from = k_.mul_lo(tile, units_);
  const Value<u32> first = worker_of(even, from);
  return {first, worker_of(even, from + (units_ - 1))};
}

namespace {

// The thread's part of the matrix's first sums, after the tickets of all matrices.
Ptr<b8> first_part(KernelBuilder& k, const PartialSumsLayout& layout, const Ptr<b8>& workspace,
                   const Value<u32>& thread) {
  const Value<u32> matrix = k.ctaid_z();
  const auto ticket_bytes = static_cast<std::uint32_t>(layout.matrix_tickets() * 4);
  const Value<u64> tickets =
      (k.mul_wide(k.nctaid_z(), ticket_bytes) + std::uint64_t{15}) & ~std::uint64_t{15};
  const Ptr<b8> parts = moved(k, workspace.offset_bytes(tickets), matrix, layout.matrix_bytes());
  return moved(k, parts, thread, 16);
}
// The warp's first ticket of the matrix.
Ptr<u32> first_ticket(KernelBuilder& k, const PartialSumsLayout& layout, const Ptr<b8>& workspace,
                      const Value<u32>& thread) {
  const Value<u32> warp = thread >> 5u;
  const Ptr<b8> tickets = moved(k, workspace, k.ctaid_z(), layout.matrix_tickets() * 4);
  return moved(k, tickets, warp, 4).cast<u32>();
}

}  // namespace

PartialSums::PartialSums(KernelBuilder& k, const PartialSumsLayout& layout,
                         const Ptr<b8>& workspace, const Value<u32>& thread)
    : k_(k),
      layout_(layout),
      parts_(first_part(k, layout, workspace, thread)),
      tickets_(first_ticket(k, layout, workspace, thread)),
      one_lane_((k.tid_x() & 31u) == 0u) {}

// Which: 0, the part at the end of a tile or inside of it; 1, that at its beginning.
Ptr<b8> PartialSums::part(const Value<u32>& worker, const Value<u32>& rank, std::uint32_t which) {
  const Value<u32> block = layout_.cluster == 1 ? worker : k_.mad_lo(worker, layout_.cluster, rank);
  return moved(k_, parts_, block, 2 * layout_.part_bytes())
      .offset_bytes(static_cast<std::int64_t>(which * layout_.part_bytes()));
}

void PartialSums::store(const Ptr<b8>& to, std::span<Var<f32>> sums) {
  for (std::size_t i = 0; i < sums.size(); i += 4) {
    const auto at = static_cast<std::int64_t>(std::uint64_t{4} * i * layout_.threads);
    k_.st(to.offset_bytes(at).cast<f32>(),
          std::array{sums[i].read(), sums[i + 1].read(), sums[i + 2].read(), sums[i + 3].read()});
  }
}

// Sums `begin` to `end`; past the L1, which may have what was there before.
void PartialSums::load(const Ptr<b8>& from, std::span<Var<f32>> sums, std::size_t begin,
                       std::size_t end, bool add) {
  for (std::size_t i = begin; i < end; i += 4) {
    const auto at = static_cast<std::int64_t>(std::uint64_t{4} * i * layout_.threads);
    const auto part = k_.ld<4>(from.offset_bytes(at).cast<f32>(), Load{.cache = Cache::cg});
    for (std::size_t j = 0; j < 4; ++j) {
      if (add) {
        sums[i + j] += part[j];
      } else {
        sums[i + j] = part[j];
      }
    }
  }
}

// The first part's warp looks whether the others are there, and takes the ticket back.
Pred PartialSums::others_are_there(const Ptr<u32>& ticket, const Value<u32>& others) {
  auto there = k_.var<u32>(0u);
  k_.if_(one_lane_, [&] {
    const Value<u32> seen = k_.atom_add(ticket, 0u, Atomic{Order::acquire, Scope::gpu});
    there = one_if(k_, seen == others);
    k_.if_(seen == others, [&] { k_.st(ticket, 0u); });
  });
  k_.bar_warp_sync();
  return k_.vote_any(there != 0u);
}

// After the warp's stores, if it stored. Leaves the ticket 0 when all have come.
Pred PartialSums::is_last(const Ptr<u32>& ticket, const Value<u32>& others, const Pred& stored) {
  auto last = k_.var<u32>(0u);
  k_.bar_warp_sync();
  k_.if_(one_lane_ & stored, [&] {
    last = one_if(k_, k_.atom_inc(ticket, others, Atomic{Order::acq_rel, Scope::gpu}) == others);
  });
  k_.bar_warp_sync();
  return k_.vote_any(last != 0u);
}

// The sums of the other parts; in front of them, for the last warp to arrive, those of the first.
// Half of a thread's sums at a time: more loads in flight have no registers beside 128 sums.
void PartialSums::add_parts(const TileWorkers& workers, const Value<u32>& rank, const Pred& all,
                            std::span<Var<f32>> sums) {
  k_.if_(all, [&] { load(part(workers.first, rank, 1), sums, 0, sums.size(), false); });
  const std::size_t some = std::min<std::size_t>(sums.size(), kSumsAtATime);
  for (std::size_t begin = 0; begin < sums.size(); begin += some) {
    auto from = k_.var(part(workers.first + 1u, rank, 0));
    k_.for_(workers.first, workers.last, 1u, [&] {
      load(from.view(), sums, begin, begin + some, true);
      from += static_cast<std::int64_t>(2 * layout_.cluster * layout_.part_bytes());
    });
  }
}

// Barriers of the warp are executed by all of them: which warp has the sums depends on the
// schedule.
Pred PartialSums::combine(const TilePiece& piece, TileDivision& division, const Value<u32>& rank,
                          std::span<Var<f32>> sums) {
  auto state = k_.var(k_.selp(k_.constant<u32>(kFirstPart), kNothing, piece.complete));
  k_.if_(!piece.complete, [&] {
    const Value<u32> tile =
        layout_.cluster == 1 ? piece.tile : k_.mad_lo(piece.tile, layout_.cluster, rank);
    const Ptr<u32> ticket =
        moved(k_, tickets_.cast<b8>(), tile, std::uint64_t{4} * (layout_.threads / 32)).cast<u32>();
    const TileWorkers workers = division.workers_of(piece.tile);
    const Value<u32> others = workers.last - workers.first;
    const Pred first = piece.first == 0u;
    k_.if_(first, [&] {
      const Pred there = others_are_there(ticket, others);
      state = k_.selp(k_.constant<u32>(kFirstPart), kNothing, there);
    });
    const Pred stored = state == kNothing;
    k_.if_(stored, [&] {
      const Ptr<b8> end = part(division.worker(), rank, 0);
      store(moved(k_, end, one_if(k_, first), layout_.part_bytes()), sums);
    });
    const Pred last = is_last(ticket, others, stored);
    state = k_.selp(k_.constant<u32>(kLastToArrive), state, last);
    k_.if_(state != kNothing, [&] { add_parts(workers, rank, last, sums); });
  });
  return state != kNothing;
}

}  // namespace ptxgen::inline v0::gemm
