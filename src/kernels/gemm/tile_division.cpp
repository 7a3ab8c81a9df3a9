// src/kernels/gemm/tile_division.cpp - tiles divided evenly among blocks (stream-K)
#include "kernels/gemm/tile_division.hpp"

#include "kernels/parts/block_vote.hpp"

namespace ptxgen::inline v0::gemm {

namespace {

// What a warp has of a tile that it shares.
constexpr std::uint32_t kNothing = 0;
constexpr std::uint32_t kFirstPart = 1;  // in registers; the others are in the workspace
constexpr std::uint32_t kLastToArrive = 2;

// Tiles that are divided, as TileShares::divided().
Value<u32> divided_tiles(KernelBuilder& k, const Value<u32>& tiles, std::uint32_t workers) {
  const Value<u32> over = tiles % workers;
  const Value<u32> some = k.selp(tiles, over + workers, tiles < workers);
  return k.selp(k.constant<u32>(0), some, over == 0u);
}

}  // namespace

TileDivision::TileDivision(KernelBuilder& k, const Value<u32>& tiles, const Value<u32>& worker,
                           std::uint32_t workers, std::uint32_t units)
    : k_(k),
      tiles_(tiles),
      worker_(worker),
      workers_(workers),
      units_(units),
      divided_(divided_tiles(k, tiles, workers)),
      each_(k.mul_lo(divided_, units) / workers),
      more_(k.mul_lo(divided_, units) % workers) {}

Value<u32> TileDivision::first_unit(const Value<u32>& worker) {
  return k_.mad_lo(worker, each_, k_.min(worker, more_));
}

// Workers with one unit more come first.
Value<u32> TileDivision::worker_of(const Value<u32>& unit) {
  const Value<u32> larger = each_ + 1u;
  const Value<u32> of_larger = k_.mul_lo(more_, larger);
  const Value<u32> rest = (unit - of_larger) / k_.max(each_, 1u);
  return k_.selp(unit / larger, more_ + rest, unit < of_larger);
}

PartialSums::PartialSums(KernelBuilder& k, const PartialSumsLayout& layout,
                         const Ptr<b8>& workspace, const Value<u32>& thread)
    : k_(k),
      layout_(layout),
      parts_(moved(
          k,
          moved(k,
                workspace.offset_bytes((k.mul_wide(k.nctaid_z(), static_cast<std::uint32_t>(
                                                                     layout.matrix_tickets() * 4)) +
                                        std::uint64_t{15}) &
                                       ~std::uint64_t{15}),
                k.ctaid_z(), layout.matrix_bytes()),
          thread, 16)),
      tickets_(
          moved(k, moved(k, workspace, k.ctaid_z(), layout.matrix_tickets() * 4), thread >> 5u, 4)
              .cast<u32>()),
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

// Past the L1, which may have what was there before.
void PartialSums::load(const Ptr<b8>& from, std::span<Var<f32>> sums, bool add) {
  for (std::size_t i = 0; i < sums.size(); i += 4) {
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
void PartialSums::arrive_first(const Ptr<u32>& ticket, const Value<u32>& others, Var<u32>& state) {
  auto seen = k_.var<u32>(0u);
  k_.if_(one_lane_, [&] {
    seen = k_.atom_add(ticket, 0u, Atomic{Order::acquire, Scope::gpu});
    k_.if_(seen == others, [&] { k_.st(ticket, 0u); });
  });
  const Value<u32> arrived = k_.shfl_idx(seen.read(), 0u);
  k_.bar_warp_sync();
  const Value<u32> first = k_.constant<u32>(kFirstPart);
  state = k_.selp(first, kNothing, arrived == others);
}

// After the warp's stores. Leaves the ticket 0 when all have come.
void PartialSums::leave(const Ptr<u32>& ticket, const Value<u32>& others, Var<u32>& state) {
  auto before = k_.var<u32>(0u);
  k_.bar_warp_sync();
  k_.if_(one_lane_, [&] {
    before = k_.atom_inc(ticket, others, Atomic{Order::acq_rel, Scope::gpu});
  });
  const Value<u32> arrived = k_.shfl_idx(before.read(), 0u);
  k_.bar_warp_sync();
  const Value<u32> last = k_.constant<u32>(kLastToArrive);
  state = k_.selp(last, kNothing, arrived == others);
}

Pred PartialSums::combine(const TilePiece& piece, const Value<u32>& worker, const Value<u32>& rank,
                          std::span<Var<f32>> sums) {
  auto state = k_.var(k_.selp(k_.constant<u32>(kFirstPart), kNothing, piece.whole));
  k_.if_(!piece.whole, [&] {
    const Value<u32> tile =
        layout_.cluster == 1 ? piece.tile : k_.mad_lo(piece.tile, layout_.cluster, rank);
    const Ptr<u32> ticket =
        moved(k_, tickets_.cast<b8>(), tile, std::uint64_t{4} * (layout_.threads / 32)).cast<u32>();
    const Value<u32> others = piece.last_worker - piece.first_worker;
    const Pred first = piece.first == 0u;
    k_.if_(first, [&] { arrive_first(ticket, others, state); });
    k_.if_(state == kNothing, [&] {
      store(moved(k_, part(worker, rank, 0), one_if(k_, first), layout_.part_bytes()), sums);
      leave(ticket, others, state);
    });
    k_.if_(state != kNothing, [&] {
      k_.if_(state == kLastToArrive, [&] { load(part(piece.first_worker, rank, 1), sums, false); });
      auto from = k_.var(part(piece.first_worker + 1u, rank, 0));
      k_.for_(piece.first_worker, piece.last_worker, 1u, [&] {
        load(from.view(), sums, true);
        from += static_cast<std::int64_t>(2 * layout_.cluster * layout_.part_bytes());
      });
    });
  });
  return state != kNothing;
}

}  // namespace ptxgen::inline v0::gemm
