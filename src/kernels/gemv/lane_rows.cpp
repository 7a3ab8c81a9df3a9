// src/kernels/gemv/lane_rows.cpp - rows of blocks, each multiplied by one lane
#include "kernels/gemv/blocks.hpp"

namespace ptxgen::inline v0::gemv {

namespace {

/// What a decoder multiplies: groups of x from `first` on; of each, one half or both.
struct Groups {
  std::uint32_t first, count;
  std::optional<std::uint32_t> half;
};

// Of unit `lane` of a block, the groups of the block.
Groups groups_of(ElementType type, std::uint32_t lane) {
  if (info(type).block_values == 32) return {0, 1, std::nullopt};
  if (type == ElementType::q6_k) return {(lane >> 1u) * 4, 4, lane & 1u};
  return {lane * 2, 2, std::nullopt};
}

XPart load_groups(KernelBuilder& k, const Ptr<b8, Shared>& x, const Groups& groups) {
  XPart part;
  for (std::uint32_t digit = 0; digit < 3; ++digit) {
    std::vector<Piece16>& pieces = part.digits.emplace_back();
    for (std::uint32_t group = groups.first; group < groups.first + groups.count; ++group) {
      for (std::uint32_t half = 0; half < 2; ++half) {
        if (groups.half && half != *groups.half) continue;
        pieces.push_back(k.ld<4>((x + (group * kGroupBytes + 32 * digit + 16 * half)).cast<u32>()));
      }
    }
  }
  for (std::uint32_t group = groups.first; group < groups.first + groups.count; ++group) {
    const Ptr<f32, Shared> floats = (x + (group * kGroupBytes + kGroupFloatsAt)).cast<f32>();
    if (groups.half) {
      part.scales.push_back(k.ld(floats));
      part.sums.push_back(k.ld(floats + (2 + *groups.half)));
    } else {
      const auto both = k.ld<2>(floats);
      part.scales.push_back(both[0]);
      part.sums.push_back(both[1]);
    }
  }
  return part;
}

/// The rows of a lane in one matrix.
class LaneRows {
 public:
  LaneRows(Kit& kit, const Value<u32>& first, std::uint32_t rows);
  [[nodiscard]] Sums multiply(const Ptr<b8, Shared>& x);

 private:
  [[nodiscard]] BlockPlace step_of(std::uint32_t row) const {
    const bool own = rows_.size() > 1;
    const std::uint64_t from = own ? 0 : std::uint64_t{row} * 32 * kit_.problem().row_bytes();
    return {rows_[own ? row : 0].view() + from, kit_.weight_load()};
  }
  void add_step(const Ptr<b8, Shared>& x);

  Kit& kit_;
  const BlockFormat& format_;
  std::vector<Var<Ptr<b8>>> rows_;  ///< one, from which the others are a constant distance, or all
  std::vector<BlockDecoder> decoders_;
  Sums sums_;
};

LaneRows::LaneRows(Kit& kit, const Value<u32>& first, std::uint32_t rows)
    : kit_(kit), format_(*block_format(kit.problem().weights, kit.problem().k)) {
  KernelBuilder& k = kit.k;
  const std::uint32_t n = kit.problem().n;
  const std::uint64_t pitch = kit.problem().row_bytes();
  const bool full = n % (32 * rows) == 0;
  for (std::uint32_t row = 0; row < (full ? 1 : rows); ++row) {
    // Lanes beyond the last row read it again.
    const Value<u32> own = full ? first : k.min(first + 32 * row, n - 1);
    rows_.push_back(k.var(moved(k, *kit.a, own, pitch)));
  }
  const std::uint32_t units = info(format_.type).block_values == 32 ? 1 : 4;
  for (std::uint32_t unit = 0; unit < units; ++unit) decoders_.emplace_back(k, format_, unit);
  for (std::uint32_t row = 0; row < rows; ++row) sums_.push_back(k.var<f32>(0.0f));
}

void LaneRows::add_step(const Ptr<b8, Shared>& x) {
  const std::uint32_t block = info(format_.type).block_values;
  for (std::uint32_t part = 0; part * block < lane_step(format_); ++part) {
    for (std::uint32_t unit = 0; unit < decoders_.size(); ++unit) {
      BlockDecoder& decoder = decoders_[unit];
      const Ptr<b8, Shared> of_block = x + part * (block / 32) * kGroupBytes;
      const XPart factors = load_groups(kit_.k, of_block, groups_of(format_.type, unit));
      for (std::uint32_t row = 0; row < sums_.size(); ++row) {
        decoder.set_row(step_of(row));
        decoder.add(decoder.decode(0, part), factors, sums_[row]);
      }
    }
  }
}

Sums LaneRows::multiply(const Ptr<b8, Shared>& x) {
  KernelBuilder& k = kit_.k;
  const std::uint32_t step = lane_step(format_);
  auto factors = k.var(x);
  repeat(k, kit_.problem().k / step, [&] {
    add_step(factors.view());
    factors += step / 32 * kGroupBytes;
    for (Var<Ptr<b8>>& row : rows_) row += bytes(format_.type, step);
  });
  return std::move(sums_);
}

}  // namespace

std::uint32_t lane_step(const BlockFormat& format) noexcept {
  return format.parts * info(format.type).block_values;
}

void emit_lane_strip(std::span<Kit* const> kits, const Value<u32>& block, std::uint32_t rows,
                     const FinishOutput& finish) {
  Kit& kit = *kits[0];
  KernelBuilder& k = kit.k;
  const std::uint32_t n = kit.problem().n;
  const std::uint32_t of_warp = 32 * rows;
  const std::uint32_t warps = kit.plan.threads() / 32;
  const Ptr<b8, Shared> x = k.dynamic_shared<b8>().base();
  stage_groups(kit, x);
  k.bar_sync();
  const Value<u32> warp = *kit.thread >> 5u;
  const Value<u32> begin = k.mul_lo(k.mad_lo(block, warps, warp), of_warp);
  const auto strip = [&] {
    const Value<u32> first = begin + *kit.lane;
    std::vector<Sums> sums;
    for (Kit* const one : kits) sums.push_back(LaneRows(*one, first, rows).multiply(x));
    for (std::uint32_t row = 0; row < rows; ++row) {
      const Value<u32> out = first + 32 * row;
      std::vector<Value<f32>> values;
      for (Sums& of : sums) values.emplace_back(of[row].core(), of[row].reg());
      std::optional<Pred> inside;
      if (n % of_warp != 0) inside.emplace(out < n);
      finish(out, std::move(values), inside);
    }
  };
  if (n % (of_warp * warps) == 0) return strip();
  k.if_(begin < n, strip);
}

}  // namespace ptxgen::inline v0::gemv
