// src/kernels/attention/decode_merge.cpp - states of teams, warps and blocks merged
#include "kernels/attention/decode_emit.hpp"

#include "kernels/parts/words.hpp"

namespace ptxgen::inline v0::attention {

namespace {

// Maxima, then sums of the lanes of a warp that have the same place in their teams.
void merge_in_warp(const Kit& kit, HeadState& state) {
  KernelBuilder& k = kit.k;
  if (kit.layout.teams() == 1) return;
  Value<f32> peak = view(state.peak);
  for (std::uint32_t distance = 16; distance >= kit.layout.lanes; distance /= 2) {
    const Value<f32> other = k.shfl_bfly(peak, distance);
    peak.rebind(k.max(peak, other));
  }
  raise(kit, state, peak);
  const auto add = [&](Var<f32>& sum) {
    for (std::uint32_t distance = 16; distance >= kit.layout.lanes; distance /= 2) {
      const Value<f32> other = k.shfl_bfly(view(sum), distance);
      sum += other;
    }
  };
  add(state.sum);
  for (Var<f32>& output : state.output) add(output);
}

// Writes the warp's state of a head, by the lanes of its first team.
void share(const Kit& kit, std::uint32_t head, HeadState& state) {
  KernelBuilder& k = kit.k;
  const DecodeLayout& l = kit.layout;
  const Value<u32> index = k.mad_lo(kit.warp, kit.heads, head);
  const Value<u32> place = k.mad_lo(index, l.head_floats(), kit.lane_of_team << 2u);
  const Ptr<f32, Shared> to = kit.outputs + place;
  for (std::uint32_t i = 0; i < l.units; ++i) {
    for (std::uint32_t plane = 0; plane < l.planes(); ++plane) {
      const std::uint32_t first = i * l.unit + plane * 4;
      const auto value = [&](std::uint32_t e) { return view(state.output[first + e]); };
      k.st(to + (plane * l.plane_floats() + i * l.lanes * 4),
           std::array{value(0), value(1), value(2), value(3)});
    }
  }
  k.if_(kit.lane_of_team == 0u, [&] {
    k.st(kit.peaks + (index << 1u), std::array{view(state.peak), view(state.sum)});
  });
}

// A head of the block: its peak and sum, and the factor of each warp.
struct Merged {
  Value<f32> peak, sum;
  std::vector<Value<f32>> factors;
};

Merged merge_warps(const Kit& kit, const Value<u32>& head) {
  KernelBuilder& k = kit.k;
  std::vector<std::array<Value<f32>, 2>> warps;
  const Ptr<f32, Shared> first = kit.peaks + (head << 1u);
  for (std::uint32_t warp = 0; warp < kWarps; ++warp) {
    warps.push_back(k.ld<2>(first + warp * kit.heads * 2));
  }
  Value<f32> peak = warps[0][0];
  for (std::uint32_t warp = 1; warp < kWarps; ++warp) peak.rebind(k.max(peak, warps[warp][0]));
  std::vector<Value<f32>> factors;
  Value<f32> sum = k.constant<f32>(0.0f);
  for (const auto& warp : warps) {
    factors.push_back(kit.power(warp[0], peak));
    sum.rebind(k.fma(factors.back(), warp[1], sum));
  }
  return {peak, sum, factors};
}

// Four outputs of a head, from the warps in order.
std::vector<Value<f32>> merge_group(const Kit& kit, const Merged& merged, const Value<u32>& head,
                                    const Value<u32>& group) {
  KernelBuilder& k = kit.k;
  const DecodeLayout& l = kit.layout;
  Value<u32> place = k.mul_lo(head, l.head_floats());
  if (l.planes() == 1) {
    place.rebind(place + (group << 2u));
  } else {
    const Value<u32> unit = (group >> 1u) << 2u;
    place.rebind(place + k.mad_lo(group & 1u, l.plane_floats(), unit));
  }
  const Ptr<f32, Shared> from = kit.outputs + place;
  std::vector<Value<f32>> values;
  for (std::uint32_t warp = 0; warp < kWarps; ++warp) {
    const auto part = k.ld<4>(from + warp * kit.heads * l.head_floats());
    for (std::size_t e = 0; e < 4; ++e) {
      if (warp == 0) {
        values.push_back(merged.factors[0] * part[e]);
      } else {
        values[e].rebind(k.fma(merged.factors[warp], part[e], values[e]));
      }
    }
  }
  return values;
}

/// Of a head, and of four of its outputs.
using HeadBody = std::function<void(const Value<u32>& head, const Merged&)>;
using GroupBody = std::function<void(const Value<u32>& head, const Value<u32>& group, const Merged&,
                                     std::vector<Value<f32>>)>;

// A warp for each head in turn, a group of four values for each lane.
void for_each_group(const Kit& kit, const HeadBody& at_head, const GroupBody& at_group) {
  KernelBuilder& k = kit.k;
  k.for_(kit.warp, kit.heads, kWarps, [&](Value<u32> head) {
    const Merged merged = merge_warps(kit, head);
    at_head(head, merged);
    k.for_(kit.lane, kit.spec.head_size / 4, 32u, [&](Value<u32> group) {
      at_group(head, group, merged, merge_group(kit, merged, head, group));
    });
  });
}

// In a part planes of a head follow each other without a gap.
std::uint32_t part_plane_bytes(const Kit& kit) {
  return kit.spec.head_size / kit.layout.planes() * 4;
}

Value<u32> place_in_part(const Kit& kit, const Value<u32>& group) {
  KernelBuilder& k = kit.k;
  if (kit.layout.planes() == 1) return group << 4u;
  const Value<u32> unit = (group >> 1u) << 4u;
  return k.mad_lo(group & 1u, part_plane_bytes(kit), unit);
}

// Adds a head of a part, whose lane begins at `lane`, times `factor`.
void add_part(const Kit& kit, const Ptr<b8>& lane, const Value<f32>& factor, HeadState& state) {
  const DecodeLayout& l = kit.layout;
  const Load how{.cache = Cache::cg};  // past L1, which may have stale data
  for (std::uint32_t i = 0; i < l.units; ++i) {
    const std::optional<Pred> inside =
        unit_within(kit.lane_of_team, kit.spec.head_size / l.unit, l.lanes, i);
    for (std::uint32_t plane = 0; plane < l.planes(); ++plane) {
      const Ptr<b8> at = lane + (plane * part_plane_bytes(kit) + i * l.lanes * 16);
      const Floats four = inside ? load_floats_if(kit.k, at, ElementType::f32, 4, *inside, how)
                                 : load_floats(kit.k, at, ElementType::f32, 4, how);
      for (std::uint32_t e = 0; e < 4; ++e) {
        Var<f32>& output = state.output[i * l.unit + plane * 4 + e];
        output = kit.k.fma(factor, four.full[e], output);
      }
    }
  }
}

}  // namespace

void share_states(const Kit& kit, States& states) {
  KernelBuilder& k = kit.k;
  for (HeadState& state : states) merge_in_warp(kit, state);
  k.if_(kit.team == 0u, [&] {
    for (std::uint32_t head = 0; head < kit.heads; ++head) share(kit, head, states[head]);
  });
}

void store_output(const Kit& kit, const Ptr<b8>& out) {
  KernelBuilder& k = kit.k;
  const std::uint32_t size = bytes(kit.spec.type);
  for_each_group(
      kit, [](const Value<u32>&, const Merged&) {},
      [&](const Value<u32>& head, const Value<u32>& group, const Merged& merged,
          std::vector<Value<f32>> values) {
        // A row without positions has the sum 0, and zeros.
        const Value<f32> sum = k.selp(1.0f, merged.sum, merged.sum == 0.0f);
        for (Value<f32>& value : values) {
          value.rebind(k.div(value, sum, {.approx = !kit.spec.precise}));
        }
        const Ptr<b8> row = out + k.mul_wide(head, kit.spec.head_size * size);
        store_floats(k, row + k.mul_wide(group, 4 * size), kit.spec.type, values);
      });
}

void store_part(const Kit& kit, const Ptr<b8>& part) {
  KernelBuilder& k = kit.k;
  const Ptr<b8> peaks = part + kit.heads * kit.spec.head_size * 4;
  for_each_group(
      kit,
      [&](const Value<u32>& head, const Merged& merged) {
        k.if_(kit.lane == 0u, [&] {
          store_floats(k, peaks + k.mul_wide(head, 8u), ElementType::f32,
                       {merged.peak, merged.sum});
        });
      },
      [&](const Value<u32>& head, const Value<u32>& group, const Merged&,
          std::vector<Value<f32>> values) {
        const Ptr<b8> row = part + k.mul_wide(head, kit.spec.head_size * 4);
        store_floats(k, row + place_in_part(kit, group), ElementType::f32, values);
      });
}

void accumulate_parts(const Kit& kit, const Parts& parts, States& states) {
  KernelBuilder& k = kit.k;
  const DecodeLayout& l = kit.layout;
  const std::uint32_t head_bytes = kit.spec.head_size * 4;
  const Value<u32> first = k.mad_lo(kit.warp, l.teams(), kit.team);
  k.for_(0u, parts.count, kWarps * l.teams(), [&](Value<u32> base) {
    const Value<u32> number = base + first;
    const Pred valid = number < parts.count;
    const Value<u32> known = k.min(number, parts.count - 1u);
    const Ptr<b8> part = parts.first + k.mul_wide(known, part_floats(kit.spec) * 4);
    const Ptr<b8> peaks = part + kit.heads * head_bytes;
    const Ptr<b8> lane = part + k.mul_wide(kit.lane_of_team, 16u);
    for (std::uint32_t head = 0; head < kit.heads; ++head) {
      const Floats pair =
          load_floats(k, peaks + head * 8, ElementType::f32, 2, {.cache = Cache::cg});
      const Value<f32> other = k.selp(pair.full[0], -kInf, valid);
      const Value<f32> peak = k.max(view(states[head].peak), other);
      raise(kit, states[head], peak);
      const Value<f32> factor = kit.power(other, peak);
      states[head].sum = k.fma(factor, pair.full[1], states[head].sum);
      add_part(kit, lane + head * head_bytes, factor, states[head]);
    }
  });
}

}  // namespace ptxgen::inline v0::attention
