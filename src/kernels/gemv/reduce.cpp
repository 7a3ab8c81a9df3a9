// src/kernels/gemv/reduce.cpp - reduction of partial sums of lanes, warps, blocks
#include <algorithm>
#include <bit>

#include "kernels/gemv/emit.hpp"
#include "kernels/parts/cluster_reduce.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

Value<f32> read(Sums& sums, std::uint32_t i) { return Value<f32>(sums[i].core(), sums[i].reg()); }

std::vector<Value<f32>> read(Sums& sums, const Piece& piece) {
  std::vector<Value<f32>> values;
  for (std::uint32_t i = 0; i < piece.count; ++i) values.push_back(read(sums, piece.begin + i));
  return values;
}

// Two adjacent lanes with 8 outputs each (32 bytes as f32) swap halves: then their first store
// writes the 32 bytes of the first lane, the second store those of the second.
void swap_halves(Kit& kit, Outputs& outputs) {
  KernelBuilder& k = kit.k;
  const Value<u32> odd = *kit.lane & 1u;
  const Pred is_odd = odd != 0u;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Value<f32> low = read(outputs.sums, i);
    const Value<f32> high = read(outputs.sums, i + 4);
    const Value<f32> sent = k.selp(low, high, is_odd);
    const Value<f32> taken = k.shfl_bfly(sent, 1u);
    const Value<f32> first = k.selp(taken, low, is_odd);
    const Value<f32> second = k.selp(high, taken, is_odd);
    outputs.sums[i] = first;
    outputs.sums[i + 4] = second;
  }
  // 8 * (lane - odd) + 4 * odd.
  const Value<u32> back = odd << 2u;
  const Value<u32> out = *kit.out - back;
  outputs.pieces.push_back({out, 0, 4});
  outputs.pieces.push_back({out + 8u, 4, 4});
}

// Layout of sums in shared memory and in the workspace: not in the order of the outputs, but with
// consecutive lanes of a warp at consecutive units of up to 16 bytes.
struct SlotLayout {
  std::uint32_t floats;      ///< of a lane's unit
  std::uint32_t units;       ///< of a lane
  std::uint32_t unit_bytes;  ///< from one unit of a lane to its next
  Value<u32> offset;         ///< of the lane's first unit
};
SlotLayout slot_layout(Kit& kit) {
  KernelBuilder& k = kit.k;
  if (kit.rows_of_k()) return {1, 1, 0, *kit.out << 2u};
  const std::uint32_t floats = std::min(kit.v, 4u);
  return {floats, kit.v / floats, 32 * kit.plan.warps_out * floats * 4,
          k.mul_lo(*kit.across, floats * 4)};
}

// `Space` is that of the block or of its cluster.
template <class Space>
void store_slots(Kit& kit, const Ptr<f32, Space>& to, const SlotLayout& layout, Sums& sums) {
  KernelBuilder& k = kit.k;
  for (std::uint32_t u = 0; u < layout.units; ++u) {
    const Ptr<f32, Space> at = to.offset_bytes(u * layout.unit_bytes);
    const auto sum = [&](std::uint32_t i) { return read(sums, u * layout.floats + i); };
    if (layout.floats == 4) {
      k.st(at, std::array{sum(0), sum(1), sum(2), sum(3)});
    } else if (layout.floats == 2) {
      k.st(at, std::array{sum(0), sum(1)});
    } else {
      k.st(at, sum(0));
    }
  }
}

void add_slots(Kit& kit, const Ptr<f32, Shared>& from, const SlotLayout& layout, Sums& sums) {
  KernelBuilder& k = kit.k;
  for (std::uint32_t u = 0; u < layout.units; ++u) {
    const Ptr<f32, Shared> at = from.offset_bytes(u * layout.unit_bytes);
    std::vector<Value<f32>> part;
    if (layout.floats == 4) {
      for (const Value<f32>& value : k.ld<4>(at)) part.push_back(value);
    } else if (layout.floats == 2) {
      for (const Value<f32>& value : k.ld<2>(at)) part.push_back(value);
    } else {
      part.push_back(k.ld(at));
    }
    for (std::uint32_t i = 0; i < layout.floats; ++i) sums[u * layout.floats + i] += part[i];
  }
}

void store_part(Kit& kit, const Ptr<b8>& slot, const SlotLayout& layout, Sums& sums) {
  for (std::uint32_t u = 0; u < layout.units; ++u) {
    store_floats(kit.k, slot + u * layout.unit_bytes, ElementType::f32,
                 read(sums, {*kit.out, u * layout.floats, layout.floats}));
  }
}

// Adds the parts in order with several loads in flight. Bypasses L1, which may have stale data.
void sum_parts(Kit& kit, const Parts& parts, const Ptr<b8>& first, const SlotLayout& layout,
               Sums& sums) {
  KernelBuilder& k = kit.k;
  const std::uint64_t pitch = slot_bytes(kit.plan);
  const Load past_l1{.cache = Cache::cg};
  const std::uint32_t group = kPartsAtOnce / layout.units;
  auto from = k.var(first);
  const auto add_group = [&](std::uint32_t count,
                             const std::function<Floats(const Ptr<b8>&, std::uint32_t)>& load) {
    std::vector<Floats> loaded;
    for (std::uint32_t p = 0; p < count; ++p) {
      for (std::uint32_t u = 0; u < layout.units; ++u) {
        loaded.push_back(load(from.view() + (p * pitch + u * layout.unit_bytes), p));
      }
    }
    for (std::uint32_t i = 0; i < loaded.size(); ++i) {
      const std::uint32_t begin = i % layout.units * layout.floats;
      for (std::uint32_t f = 0; f < layout.floats; ++f) sums[begin + f] += loaded[i].full[f];
    }
  };
  const auto always = [&](const Ptr<b8>& at, std::uint32_t) {
    return load_floats(k, at, ElementType::f32, layout.floats, past_l1);
  };
  for (Var<f32>& sum : sums) sum = 0.0f;
  if (const std::uint32_t* count = known(parts.count)) {
    repeat(k, *count / group, [&] {
      add_group(group, always);
      from += group * pitch;
    });
    if (*count % group != 0) add_group(*count % group, always);
    return;
  }
  const Value<u32> count = value(k, parts.count);
  k.for_(0u, count, group, [&](Value<u32> base) {
    const Value<u32> left = count - base;
    add_group(group, [&](const Ptr<b8>& at, std::uint32_t p) {
      return p == 0 ? always(at, 0)
                    : load_floats_if(k, at, ElementType::f32, layout.floats,
                                     k.setp(Comparison::gt, left, p), past_l1);
    });
    from += group * pitch;
  });
}

// Whether this block is the last of the strip to arrive, broadcast to all its threads.
Value<u32> arrive(Kit& kit, const Segment& segment, const Parts& parts) {
  KernelBuilder& k = kit.k;
  k.bar_sync();
  k.if_(*kit.thread == 0u, [&] {
    const Ptr<b8> ticket = moved(k, *kit.workspace, segment.strip, 4);
    const Value<u32> limit = value(k, subtract(k, parts.count, 1u));
    // The last arriver resets it to 0. Releases the writes of the block before the barrier, and
    // acquires those of other blocks.
    const Value<u32> before =
        k.atom_inc(ticket.cast<u32>(), limit, Atomic{Order::acq_rel, Scope::gpu});
    const Pred is_last = before == limit;
    const Value<u32> one = k.constant<u32>(1u);
    const Value<u32> last = k.selp(one, 0u, is_last);
    k.st_shared(kit.verdict->base(), last);
  });
  k.bar_sync();
  return k.ld_shared(kit.verdict->base());
}

void if_owner(Kit& kit, const Outputs& outputs, const std::function<void()>& body) {
  if (outputs.owner) {
    kit.k.if_(*outputs.owner, [&] { body(); });
  } else {
    body();
  }
}

// Stores the block's sums to the workspace; the last block of the strip reads them all.
Value<u32> exchange_parts(Kit& kit, const Segment& segment, Outputs& outputs) {
  KernelBuilder& k = kit.k;
  const Parts parts = parts_of(kit, segment);
  const SlotLayout layout = slot_layout(kit);
  const Ptr<b8> places = kit.workspace->offset_bytes(kit.plan.ticket_bytes()) + layout.offset;
  if_owner(kit, outputs, [&] {
    store_part(kit, moved(k, places, parts.slot, slot_bytes(kit.plan)), layout, outputs.sums);
  });
  const Value<u32> last = arrive(kit, segment, parts);
  k.if_(last != 0u, [&] {
    if_owner(kit, outputs, [&] {
      const Ptr<b8> first = moved(k, places, parts.first_slot, slot_bytes(kit.plan));
      sum_parts(kit, parts, first, layout, outputs.sums);
    });
  });
  return last;
}

// The sums of all rows by one butterfly: at each distance a lane keeps half of its rows and gives
// the other half away, until it has one. The same tree as if each row had a butterfly of its own.
// Row i is where the upper bits of the lane in its part of the warp are i.
Value<f32> butterfly(Kit& kit, Sums& sums) {
  KernelBuilder& k = kit.k;
  std::vector<Value<f32>> rows;
  for (std::uint32_t i = 0; i < sums.size(); ++i) rows.push_back(read(sums, i));
  for (std::uint32_t distance = kit.upper ? 8 : 16; distance != 0; distance /= 2) {
    const std::size_t kept_rows = std::max<std::size_t>(1, std::bit_ceil(rows.size()) / 2);
    std::optional<Pred> high;
    if (rows.size() > 1) high.emplace((*kit.lane & distance) != 0u);
    std::vector<Value<f32>> kept;
    for (std::size_t i = 0; i < kept_rows; ++i) {
      const Value<f32>& low = rows[i];
      const bool pair = i + kept_rows < rows.size();
      const Value<f32> own = pair ? k.selp(rows[i + kept_rows], low, *high) : low;
      const Value<f32> sent = pair ? k.selp(low, rows[i + kept_rows], *high) : low;
      const Value<f32> taken = k.shfl_bfly(sent, distance);
      kept.push_back(own + taken);
    }
    rows = std::move(kept);
  }
  return rows[0];
}

// Of the butterfly's results, lane i gets that of output i of the warp.
Value<f32> row_of_lane(Kit& kit, const Value<f32>& sum, std::size_t rows) {
  const unsigned bits = static_cast<unsigned>(std::countr_zero(std::bit_ceil(rows)));
  if (!kit.upper) {
    if (rows == 1) return sum;
    const Value<u32> from = *kit.lane << (5u - bits);
    return kit.k.shfl_idx(sum, from);
  }
  // The halves of the warp have a row each.
  const Value<u32> half = (*kit.lane & 1u) << 4u;
  if (rows == 1) return kit.k.shfl_idx(sum, half);
  const Value<u32> from = (*kit.lane >> 1u) << (4u - bits);
  return kit.k.shfl_idx(sum, half | from);
}

}  // namespace

Outputs finish_warp(Kit& kit, Sums sums) {
  KernelBuilder& k = kit.k;
  Outputs outputs;
  if (!kit.rows_of_k()) {
    outputs.sums = std::move(sums);
    if (kit.v == 8 && kit.problem().y == ElementType::f32) {
      swap_halves(kit, outputs);
    } else {
      outputs.pieces.push_back({*kit.out, 0, kit.v});
    }
    if (kit.warp_k) outputs.owner.emplace(*kit.warp_k == 0u);
    return outputs;
  }
  outputs.sums.push_back(k.var(row_of_lane(kit, butterfly(kit, sums), sums.size())));
  outputs.pieces.push_back({*kit.out, 0, 1});
  const Pred lane = *kit.lane < kit.plan.warp_outputs();
  outputs.owner.emplace(kit.warp_k ? lane & (*kit.warp_k == 0u) : lane);
  return outputs;
}

void add_stack(Kit& kit, Outputs& outputs) {
  if (!kit.warp_k) return;
  KernelBuilder& k = kit.k;
  const SlotLayout layout = slot_layout(kit);
  const Ptr<f32, Shared> base = kit.stack->base().offset_bytes(layout.offset);
  const std::uint32_t pitch = static_cast<std::uint32_t>(slot_bytes(kit.plan));
  Pred writes = *kit.warp_k != 0u;
  if (kit.rows_of_k()) writes.rebind(writes & (*kit.lane < kit.plan.warp_outputs()));
  k.if_(writes, [&] {
    const Value<u32> last = k.mul_lo(*kit.warp_k - 1u, pitch);
    store_slots(kit, base.offset_bytes(last), layout, outputs.sums);
  });
  k.bar_sync();
  k.if_(*outputs.owner, [&] {
    for (std::uint32_t warp = 1; warp < kit.plan.warps_k; ++warp) {
      add_slots(kit, base.offset_bytes((warp - 1) * pitch), layout, outputs.sums);
    }
  });
  // The next segment's sums use the same memory.
  if (may_loop(kit.plan)) k.bar_sync();
}

void begin_cluster(Kit& kit) { cluster_arrive(kit.k); }

Pred add_cluster(Kit& kit, Outputs& outputs) {
  KernelBuilder& k = kit.k;
  const SlotLayout layout = slot_layout(kit);
  const Ptr<f32, Shared> base = kit.ranks->base().offset_bytes(layout.offset);
  const std::uint32_t pitch = static_cast<std::uint32_t>(slot_bytes(kit.plan));
  const Value<u32> block = k.ctaid_x();
  const Value<u32> clusters = quotient(k, block, kit.plan.blocks, kit.plan.cluster);
  const Value<u32> rank = remainder(k, block, clusters, kit.plan.cluster);
  return cluster_reduce(
      k, {kit.plan.cluster, rank, base, pitch, outputs.owner},
      [&](const Ptr<f32, ClusterShared>& slot) { store_slots(kit, slot, layout, outputs.sums); },
      [&](const Ptr<f32, Shared>& slot) { add_slots(kit, slot, layout, outputs.sums); });
}

void add_parts(Kit& kit, const Segment& segment, Outputs& outputs,
               const std::function<void()>& then) {
  KernelBuilder& k = kit.k;
  if (!uses_workspace(kit.plan)) {
    then();
    return;
  }
  const auto steps = static_cast<std::uint32_t>(kit.plan.steps());
  if (kit.plan.chunk_steps != 0 || known(segment.count) != nullptr || !may_loop(kit.plan)) {
    const Value<u32> last = exchange_parts(kit, segment, outputs);
    k.if_(last != 0u, [&] { then(); });
    return;
  }
  auto last = k.var<u32>(1u);
  k.if_(value(k, segment.count) != steps, [&] { last = exchange_parts(kit, segment, outputs); });
  k.if_(last != 0u, [&] { then(); });
}

}  // namespace ptxgen::inline v0::gemv
