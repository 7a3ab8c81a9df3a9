// src/kernels/attention/decode_scores.cpp - queries, scores and the online softmax
#include <cmath>
#include "kernels/attention/decode_emit.hpp"

namespace ptxgen::inline v0::attention {

namespace {

using Row = std::vector<Value<f32>>;  // a number for each position, or each value of a unit
using Rows = std::vector<Row>;

PackedRows rows_of(const Kit& kit) {
  const DecodeLayout& l = kit.layout;
  return {kit.k, {kit.spec.cache, kit.spec.head_size, l.unit, l.lanes, l.units}, kit.lane_of_team};
}

// The keys and values of the team's positions in a step.
struct Tile {
  std::vector<std::vector<PackedUnit>> keys, values;
  std::vector<Pred> valid;
};

// Positions beyond the end read the last one, and do not count.
Tile load_tile(const Kit& kit, const PackedRows& rows, const Span& span, const Value<u32>& first) {
  KernelBuilder& k = kit.k;
  Tile tile;
  const Value<u32> last = span.end - 1u;
  std::vector<Value<u64>> offsets;
  for (std::uint32_t p = 0; p < kit.layout.positions; ++p) {
    const Value<u32> position = first + p * kit.layout.teams();
    tile.valid.push_back(position < span.end);
    offsets.push_back(k.mul_wide(k.min(position, last), rows.pitch()));
  }
  for (const Value<u64>& offset : offsets) tile.keys.push_back(rows.load(span.k + offset));
  for (const Value<u64>& offset : offsets) tile.values.push_back(rows.load(span.v + offset));
  return tile;
}

// The lane's share of q . k for each head and position.
Rows products(const Kit& kit, const PackedRows& rows, const Query& query, const Tile& tile) {
  KernelBuilder& k = kit.k;
  Rows sums(kit.heads);
  for (std::uint32_t i = 0; i < kit.layout.units; ++i) {
    Rows keys;
    for (const auto& key : tile.keys) keys.push_back(rows.values(key[i]));
    std::vector<std::optional<Value<f32>>> steps;
    for (const auto& key : tile.keys) steps.push_back(rows.step(key[i]));
    for (std::uint32_t head = 0; head < kit.heads; ++head) {
      const Row q = query.unit(head, i);
      for (std::size_t p = 0; p < keys.size(); ++p) {
        const bool fresh = sums[head].size() == p;
        // The integers of a block share one step.
        std::optional<Value<f32>> sum;
        if (!fresh && !steps[p]) sum.emplace(sums[head][p]);
        for (std::size_t e = 0; e < q.size(); ++e) {
          sum.emplace(sum ? k.fma(keys[p][e], q[e], *sum) : keys[p][e] * q[e]);
        }
        if (steps[p]) sum.emplace(fresh ? *sum * *steps[p] : k.fma(*sum, *steps[p], sums[head][p]));
        if (fresh) {
          sums[head].push_back(*sum);
        } else {
          sums[head][p].rebind(*sum);
        }
      }
    }
  }
  return sums;
}

// The scores in units of log2; -inf for positions that do not count.
void finish_scores(const Kit& kit, const Tile& tile, const std::optional<Value<f32>>& cap,
                   Rows& sums) {
  KernelBuilder& k = kit.k;
  for (Row& row : sums) {
    for (std::size_t p = 0; p < row.size(); ++p) {
      for (std::uint32_t distance = kit.layout.lanes / 2; distance != 0; distance /= 2) {
        const Value<f32> other = k.shfl_bfly(row[p], distance);
        row[p].rebind(row[p] + other);
      }
      if (cap) row[p].rebind(*cap * tanh(row[p], Accuracy::Precise));
      row[p].rebind(k.selp(row[p], -kInf, tile.valid[p]));
    }
  }
}

// Raises the states to the step's largest scores; scores become powers of them.
void update(const Kit& kit, Rows& scores, States& states) {
  KernelBuilder& k = kit.k;
  Row peaks;
  std::optional<Pred> rises;
  for (std::size_t head = 0; head < states.size(); ++head) {
    const Value<f32> old = view(states[head].peak);
    Value<f32> peak(old);
    for (const Value<f32>& score : scores[head]) peak.rebind(k.max(peak, score));
    const Pred higher = peak > old;
    rises.emplace(rises ? *rises | higher : higher);
    peaks.push_back(peak);
  }
  // A factor of 1 changes nothing, so the warp skips it when no peak rises.
  k.if_(k.vote_any(*rises), [&] {
    for (std::size_t head = 0; head < states.size(); ++head) raise(kit, states[head], peaks[head]);
  });
  for (std::size_t head = 0; head < states.size(); ++head) {
    for (Value<f32>& score : scores[head]) {
      score.rebind(kit.power(score, view(states[head].peak)));
      states[head].sum += score;
    }
  }
}

void add_values(const Kit& kit, const PackedRows& rows, const Tile& tile, const Rows& powers,
                States& states) {
  KernelBuilder& k = kit.k;
  for (std::uint32_t i = 0; i < kit.layout.units; ++i) {
    for (std::size_t p = 0; p < tile.values.size(); ++p) {
      const Row values = rows.values(tile.values[p][i]);
      const std::optional<Value<f32>> step = rows.step(tile.values[p][i]);
      for (std::size_t head = 0; head < states.size(); ++head) {
        const Value<f32> weight = step ? powers[head][p] * *step : powers[head][p];
        for (std::uint32_t e = 0; e < kit.layout.unit; ++e) {
          Var<f32>& output = states[head].output[i * kit.layout.unit + e];
          output = k.fma(weight, values[e], output);
        }
      }
    }
  }
}

}  // namespace

Value<f32> Kit::power(const Value<f32>& x, const Value<f32>& peak) const {
  const Value<f32> safe = k.selp(0.0f, peak, peak == -kInf);
  return exp2(x - safe, accuracy());
}

States start_states(const Kit& kit) {
  States states;
  for (std::uint32_t head = 0; head < kit.heads; ++head) {
    HeadState state{kit.k.var<f32>(-kInf), kit.k.var<f32>(0.0f), {}};
    for (std::uint32_t e = 0; e < kit.layout.values(); ++e) {
      state.output.push_back(kit.k.var<f32>(0.0f));
    }
    states.push_back(std::move(state));
  }
  return states;
}

void raise(const Kit& kit, HeadState& state, const Value<f32>& peak) {
  const Value<f32> factor = kit.power(view(state.peak), peak);
  state.sum *= factor;
  for (Var<f32>& output : state.output) output *= factor;
  state.peak = peak;
}

Query::Query(const Kit& kit, const Ptr<b8>& from, const Value<f32>& factor) : kit_(kit) {
  if (kit.layout.query_in_registers) {
    load_registers(from, factor);
  } else {
    load_shared(from, factor);
  }
}

void Query::load_registers(const Ptr<b8>& from, const Value<f32>& factor) {
  KernelBuilder& k = kit_.k;
  const DecodeLayout& l = kit_.layout;
  const std::uint32_t size = bytes(kit_.spec.type);
  const Ptr<b8> lane = from + k.mul_wide(kit_.lane_of_team, l.unit * size);
  for (std::uint32_t head = 0; head < kit_.heads; ++head) {
    for (std::uint32_t i = 0; i < l.units; ++i) {
      const std::optional<Pred> inside =
          unit_within(kit_.lane_of_team, kit_.spec.head_size / l.unit, l.lanes, i);
      Row& unit = registers_.emplace_back();
      for (std::uint32_t plane = 0; plane < l.planes(); ++plane) {
        const std::uint32_t element = head * kit_.spec.head_size + i * l.lanes * l.unit + plane * 4;
        const Ptr<b8> at = lane + element * size;
        const Floats four = inside ? load_floats_if(k, at, kit_.spec.type, 4, *inside)
                                   : load_floats(k, at, kit_.spec.type, 4);
        for (const Value<f32>& value : expand(k, four, 4)) unit.push_back(value * factor);
      }
    }
  }
}

// One unit of a head for each lane, from `first` on.
void Query::share_units(const Ptr<b8>& row, const Ptr<f32, Shared>& to, const Value<f32>& factor,
                        std::uint32_t first) {
  KernelBuilder& k = kit_.k;
  const DecodeLayout& l = kit_.layout;
  const std::uint32_t size = bytes(kit_.spec.type);
  const Value<u32> unit = kit_.lane + first;
  const Pred inside = unit < kit_.spec.head_size / l.unit;
  const Ptr<b8> at = row + k.mul_wide(unit, l.unit * size);
  const Ptr<f32, Shared> place = to + (unit << 2u);
  for (std::uint32_t plane = 0; plane < l.planes(); ++plane) {
    const Ptr<b8> part = at + plane * 4 * size;
    Row four = expand(k, load_floats_if(k, part, kit_.spec.type, 4, inside), 4);
    for (Value<f32>& value : four) value.rebind(value * factor);
    k.st(place + plane * l.plane_floats(), std::array{four[0], four[1], four[2], four[3]});
  }
}

// A warp for each head, four heads at a time.
void Query::load_shared(const Ptr<b8>& from, const Value<f32>& factor) {
  KernelBuilder& k = kit_.k;
  const DecodeLayout& l = kit_.layout;
  const std::uint32_t head_bytes = kit_.spec.head_size * bytes(kit_.spec.type);
  const SharedArray<f32> all = k.shared<f32>(kit_.heads * l.head_floats(), "queries");
  for (std::uint32_t first_head = 0; first_head < kit_.heads; first_head += kWarps) {
    const Value<u32> head = kit_.warp + first_head;
    k.if_(head < kit_.heads, [&] {
      const Ptr<b8> row = from + k.mul_wide(head, head_bytes);
      const Ptr<f32, Shared> to = all + k.mul_lo(head, l.head_floats());
      for (std::uint32_t first = 0; first < l.lanes * l.units; first += 32) {
        k.if_(kit_.lane < l.lanes * l.units - first, [&] { share_units(row, to, factor, first); });
      }
    });
  }
  k.bar_sync();
  lane_start_.emplace(all + (kit_.lane_of_team << 2u));
}

std::vector<Value<f32>> Query::unit(std::uint32_t head, std::uint32_t i) const {
  const DecodeLayout& l = kit_.layout;
  if (!lane_start_) return registers_[head * l.units + i];
  Row values;
  for (std::uint32_t plane = 0; plane < l.planes(); ++plane) {
    const std::uint32_t place = head * l.head_floats() + plane * l.plane_floats() + i * l.lanes * 4;
    for (const Value<f32>& value : kit_.k.ld<4>(*lane_start_ + place)) values.push_back(value);
  }
  return values;
}

void accumulate(const Kit& kit, const Query& query, const Span& span,
                const std::optional<Value<f32>>& cap, States& states) {
  KernelBuilder& k = kit.k;
  const DecodeLayout& l = kit.layout;
  const PackedRows rows = rows_of(kit);
  const Value<u32> place = k.mad_lo(kit.warp, l.teams() * l.positions, kit.team);
  k.for_(span.begin, span.end, l.tile(), [&](Value<u32> base) {
    const Tile tile = load_tile(kit, rows, span, base + place);
    Rows scores = products(kit, rows, query, tile);
    finish_scores(kit, tile, cap, scores);
    update(kit, scores, states);
    add_values(kit, rows, tile, scores, states);
  });
}

}  // namespace ptxgen::inline v0::attention
