// src/kernels/gemv/layout_repacked.cpp - sums over repacked rows of blocks
#include <map>
#include <utility>

#include "kernels/gemv/block_warp.hpp"
#include "ptxgen/kernels/quantization/repacked_rows.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

/// The lane's places in the arrays of its first row, for the steps of a window.
class Arrays {
 public:
  Arrays(Kit& kit, const Segment& window);

  /// The first `blocks` blocks of a step of the lane's row `row`. In the last of a warp's rows, the
  /// upper half of the warp may have none.
  [[nodiscard]] RepackedUnit load(std::uint32_t row, std::uint32_t step, std::uint32_t blocks,
                                  bool lower_half);
  /// Prefetches what `load` loads.
  void request(std::uint32_t row, std::uint32_t step, bool lower_half);
  void next();
  /// Conditions of loads are computed once until then.
  void forget_conditions() { conditions_.clear(); }

 private:
  [[nodiscard]] Value<u32> place_of(std::size_t field) const;
  [[nodiscard]] Ptr<b8> at(std::size_t field, std::uint32_t row, std::uint32_t step) const;
  [[nodiscard]] std::optional<Pred> active(std::uint32_t lanes, bool lower_half);
  [[nodiscard]] Piece16 piece(const Ptr<b8>& from, const std::optional<Pred>& p) const;
  [[nodiscard]] std::vector<Value<u32>> words(const Ptr<b8>& from, std::uint32_t count,
                                              const std::optional<Pred>& p) const;
  [[nodiscard]] Value<f32> half(const Ptr<b8>& from, const std::optional<Pred>& p) const;
  void load_scales(RepackedUnit& unit, const Ptr<b8>& from, const std::optional<Pred>& p) const;
  [[nodiscard]] std::uint32_t step_blocks() const { return format_.parts * format_.part_blocks(); }

  Kit& kit_;
  const BlockFormat& format_;
  std::span<const BlockField> fields_;
  std::vector<Var<Ptr<b8>>> places_;  ///< of each field
  std::map<std::pair<std::uint32_t, bool>, Pred> conditions_;
};

Arrays::Arrays(Kit& kit, const Segment& window)
    : kit_(kit), format_(*kit.blocks), fields_(repacked_fields(kit.blocks->type)) {
  KernelBuilder& k = kit.k;
  const Ptr<b8> row = moved(k, *kit.weights, window.strip, kit.plan.strip_outputs() * kit.pitch);
  const std::uint64_t piece = std::uint64_t{kit.plan.unroll} * step_blocks();
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    const std::uint64_t bytes = fields_[field].bytes;
    const std::uint64_t start = repacked_offset(format_.type, kit.problem().k, field);
    Ptr<b8> from = (row + start).offset_bytes(k.cvt<u64>(place_of(field)));
    if (kit.warp_k) from.rebind(moved(k, from, *kit.warp_k, piece * bytes));
    from.rebind(moved(k, from, window.first, piece * kit.plan.warps_k * bytes));
    places_.push_back(k.var(from));
  }
}

// Bytes from the beginning of a step's array to the lane's.
Value<u32> Arrays::place_of(std::size_t field) const {
  KernelBuilder& k = kit_.k;
  const Value<u32>& lane = kit_.repacked->lane();
  const bool six = format_.type == ElementType::q6_k;
  if (six && field == 0) {
    // The low bits of a half of 128 weights, 64 bytes; of the lower or upper 16 of each 32.
    const Value<u32> half = lane >> 1u;
    return k.mad_lo(half, 64u, (lane & 1u) << 4u);
  }
  if (field == 0 || (six && field == 1)) return k.mul_lo(lane, 16u);
  // The half's scales.
  if (six && field == 2) return (lane >> 1u) << 3u;
  const Value<u32> block = kit_.repacked->exchanges() ? lane : kit_.repacked->block(0);
  return k.mul_lo(block, std::uint32_t{fields_[field].bytes});
}

Ptr<b8> Arrays::at(std::size_t field, std::uint32_t row, std::uint32_t step) const {
  const std::uint64_t rows = std::uint64_t{row} * (32 / format_.lanes) * kit_.pitch;
  const std::uint64_t steps = std::uint64_t{step} * step_blocks() * fields_[field].bytes;
  return places_[field].view() + (rows + steps);
}

std::optional<Pred> Arrays::active(std::uint32_t lanes, bool lower_half) {
  if (lanes >= format_.lanes && !lower_half) return std::nullopt;
  const auto found = conditions_.find({lanes, lower_half});
  if (found != conditions_.end()) return found->second;
  Pred p = kit_.repacked->lane() < lanes;
  if (lower_half) p.rebind(lanes >= format_.lanes ? !*kit_.upper : p & !*kit_.upper);
  return conditions_.emplace(std::pair(lanes, lower_half), p).first->second;
}

Piece16 Arrays::piece(const Ptr<b8>& from, const std::optional<Pred>& p) const {
  if (!p) return kit_.k.ld<4>(from.cast<u32>(), kit_.weight_load());
  const std::vector<Value<u32>> words = load_words_if(kit_.k, from, 4, *p, kit_.weight_load());
  return {words[0], words[1], words[2], words[3]};
}
std::vector<Value<u32>> Arrays::words(const Ptr<b8>& from, std::uint32_t count,
                                      const std::optional<Pred>& p) const {
  if (p) return load_words_if(kit_.k, from, count, *p, kit_.weight_load());
  if (count == 1) return {kit_.k.ld(from.cast<u32>(), kit_.weight_load())};
  const auto [first, second] = kit_.k.ld<2>(from.cast<u32>(), kit_.weight_load());
  return {first, second};
}
Value<f32> Arrays::half(const Ptr<b8>& from, const std::optional<Pred>& p) const {
  KernelBuilder& k = kit_.k;
  const Floats loaded = p ? load_floats_if(k, from, ElementType::f16, 1, *p, kit_.weight_load())
                          : load_floats(k, from, ElementType::f16, 1, kit_.weight_load());
  return expand(k, loaded, 1)[0];
}

// From the last array: d of a part, or d and the minimum.
void Arrays::load_scales(RepackedUnit& unit, const Ptr<b8>& from,
                         const std::optional<Pred>& p) const {
  if (fields_.back().bytes == 2) {
    unit.d.push_back(half(from, p));
    return;
  }
  const Value<u32> both = words(from, 1, p)[0];
  const std::vector<Value<f32>> values = expand(kit_.k, {ElementType::f16, {}, {both}}, 2);
  unit.d.push_back(values[0]);
  unit.min.emplace(values[1]);
}

RepackedUnit Arrays::load(std::uint32_t row, std::uint32_t step, std::uint32_t blocks,
                          bool lower_half) {
  RepackedUnit unit;
  const std::size_t last = fields_.size() - 1;
  const std::uint32_t lanes_of_block = format_.lanes / format_.part_blocks();
  for (std::uint32_t part = 0; part * format_.part_blocks() < blocks; ++part) {
    const std::uint32_t first = part * format_.part_blocks();
    const std::optional<Pred> p = active(lanes_of_block * (blocks - first), lower_half);
    unit.integers.push_back(piece(at(0, row, step) + part * format_.lanes * 16, p));
    if (format_.type == ElementType::q6_k) {
      unit.integers.push_back(piece(at(0, row, step) + 32, p));
      unit.high.emplace(piece(at(1, row, step), p));
      unit.scales = words(at(2, row, step), 2, p);
    } else if (last == 2) {
      unit.bits.emplace(words(at(1, row, step), 1, p)[0]);
    }
    if (kit_.repacked->exchanges()) continue;
    load_scales(unit, at(last, row, step) + first * fields_[last].bytes, p);
  }
  if (kit_.repacked->exchanges()) {
    load_scales(unit, at(last, row, step), active(blocks, lower_half));
  }
  return unit;
}

void Arrays::request(std::uint32_t row, std::uint32_t step, bool lower_half) {
  const std::optional<Pred> p = active(format_.lanes, lower_half);
  const auto ask = [&](const Ptr<b8>& from) {
    if (p) {
      kit_.k.guarded(*p, [&] { prefetch(kit_.k, from); });
    } else {
      prefetch(kit_.k, from);
    }
  };
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    ask(at(field, row, step));
    if (field == 0 && format_.type == ElementType::q6_k) ask(at(0, row, step) + 32);
    if (format_.parts == 1 || (field != 0 && kit_.repacked->exchanges())) continue;
    const std::uint32_t bytes = field == 0 ? 16 * format_.lanes : format_.part_blocks() * 2;
    ask(at(field, row, step) + bytes);
  }
}

void Arrays::next() {
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    places_[field] +=
        std::uint64_t{kit_.plan.warps_k} * kit_.plan.unroll * step_blocks() * fields_[field].bytes;
  }
}

// The rows of a lane, and whether only the lower half of the warp has the last one.
template <class Body>
void for_lane_rows(const Kit& kit, std::uint32_t rows, const Body& body) {
  const std::uint32_t together = 32 / kit.blocks->lanes;
  for (std::uint32_t row = 0; row * together < rows; ++row) {
    body(row, rows - row * together < together);
  }
}

/// Of each step, the units of the lane's rows.
using Units = std::vector<std::vector<RepackedUnit>>;

// All loads of `steps` steps and `rest` blocks of one more, then what lanes exchange.
Units load_units(Kit& kit, Arrays& arrays, std::uint32_t rows, std::uint32_t steps,
                 std::uint32_t rest) {
  arrays.forget_conditions();
  const BlockFormat& format = *kit.blocks;
  Units units;
  for (std::uint32_t step = 0; step < steps + (rest != 0 ? 1 : 0); ++step) {
    const std::uint32_t blocks = step < steps ? format.parts * format.part_blocks() : rest;
    units.emplace_back();
    for_lane_rows(kit, rows, [&](std::uint32_t row, bool lower_half) {
      units.back().push_back(arrays.load(row, step, blocks, lower_half));
    });
  }
  if (!kit.repacked->exchanges()) return units;
  for (std::vector<RepackedUnit>& step : units) {
    for (RepackedUnit& unit : step) kit.repacked->exchange(unit);
  }
  return units;
}

}  // namespace

void add_repacked_rows(Kit& kit, const Segment& window, std::uint32_t rows, Sums& sums) {
  const BlockFormat& format = *kit.blocks;
  const Number steps = full_steps(kit, window);
  Arrays arrays(kit, window);
  BlockWarp warp(kit, rows, sums);
  const auto add = [&](std::uint32_t full, std::uint32_t rest) {
    const Units units = load_units(kit, arrays, rows, full, rest);
    for (std::uint32_t step = 0; step < units.size(); ++step) {
      const auto decode = [&](std::uint32_t row, std::uint32_t part) {
        return kit.repacked->decode(units[step][row], part);
      };
      if (step < full) {
        warp.add_step(step, decode);
      } else {
        warp.add_some(step, rest, decode);
      }
    }
  };
  // Where a step is one part, lanes beyond the row's end have nothing to do.
  const auto add_rest = [&](std::uint32_t step, std::uint32_t rest) {
    const Pred inside = kit.repacked->block(0) < rest;
    kit.k.if_(inside, [&] {
      arrays.forget_conditions();
      std::vector<RepackedUnit> units;
      for_lane_rows(kit, rows, [&](std::uint32_t row, bool lower_half) {
        units.push_back(arrays.load(row, step, format.part_blocks(), lower_half));
      });
      warp.add_step(step, [&](std::uint32_t row, std::uint32_t part) {
        return kit.repacked->decode(units[row], part);
      });
    });
  };
  repeat(kit.k, steps, [&] {
    add(kit.plan.unroll, 0);
    warp.next();
    arrays.next();
  });
  if_tail(kit, window, [&](std::uint32_t left) {
    const std::uint32_t step = format.step_weights();
    const std::uint32_t rest = left % step / info(format.type).block_values;
    const bool apart = rest != 0 && format.parts == 1;
    add(left / step, apart ? 0 : rest);
    if (apart) add_rest(left / step, rest);
  });
}

void request_repacked(Kit& kit, const Segment& segment) {
  for_rows(kit, segment, [&](std::uint32_t rows) {
    Arrays arrays(kit, segment);
    for (std::uint32_t step = 0; step < kit.plan.unroll; ++step) {
      for_lane_rows(kit, rows, [&](std::uint32_t row, bool lower_half) {
        arrays.request(row, step, lower_half);
      });
    }
  });
}

void place_repacked(Kit& kit) {
  KernelBuilder& k = kit.k;
  kit.weights.emplace(*kit.a);
  if (kit.blocks->lanes < 32) {
    kit.upper.emplace(*kit.lane >= kit.blocks->lanes);
    kit.weights->rebind(moved(k, *kit.a, *kit.lane >> 4u, kit.pitch));
  }
  kit.repacked.emplace(k, *kit.blocks, *kit.lane);
}

}  // namespace ptxgen::inline v0::gemv
