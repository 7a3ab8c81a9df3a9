// src/kernels/gemv/block_warp.cpp - a warp's products of steps of blocks
#include "kernels/gemv/block_warp.hpp"

namespace ptxgen::inline v0::gemv {

BlockWarp::BlockWarp(Kit& kit, std::uint32_t rows, Sums& sums)
    : kit_(kit),
      rows_(rows),
      sums_(sums),
      layout_(staged_x(*kit.blocks, kit.problem().x)),
      x_(kit.k.var(first_x())),
      floats_(kit.k.var(first_floats())) {}

void BlockWarp::add_step(std::uint32_t step, const Decode& decode) {
  for (std::uint32_t part = 0; part < kit_.blocks->parts; ++part) add_part(step, part, decode);
}

void BlockWarp::next() {
  x_ += distance();
  floats_ += distance();
}

void BlockWarp::add_some(std::uint32_t step, std::uint32_t blocks, const Decode& decode) {
  for (std::uint32_t part = 0; part < kit_.blocks->parts; ++part) {
    // Of repacked rows a part has consecutive blocks.
    if (kit_.blocks->repacked && part * kit_.blocks->part_blocks() >= blocks) continue;
    const Pred inside = kit_.products().block(part) < blocks;
    kit_.k.if_(inside, [&] { add_part(step, part, decode); });
  }
}

Ptr<b8, Shared> BlockWarp::first() const {
  if (!kit_.warp_k) return *kit_.staged;
  const std::uint32_t piece = kit_.plan.unroll * layout_.step_bytes();
  return kit_.staged->offset_bytes(kit_.k.mul_lo(*kit_.warp_k, piece));
}
Ptr<b8, Shared> BlockWarp::first_x() const {
  return first().offset_bytes(kit_.products().lane() << 4u);
}
Ptr<b8, Shared> BlockWarp::first_floats() const {
  return (first() + layout_.scales_at()).offset_bytes(kit_.products().lane() << 2u);
}

void BlockWarp::add_part(std::uint32_t step, std::uint32_t part, const Decode& decode) {
  if (kit_.plan.batch > 1) return add_batch(step, part, decode);
  const XPart x = x_of(0, step, part);
  for_lane_rows([&](std::uint32_t row) { kit_.products().add(decode(row, part), x, sums_[row]); });
}

// Every weight is decoded once for all rows of the batch.
void BlockWarp::add_batch(std::uint32_t step, std::uint32_t part, const Decode& decode) {
  std::vector<DecodedPart> decoded;
  for (std::uint32_t row = 0; row * together() < rows_; ++row) {
    decoded.push_back(decode(row, part));
  }
  for (std::uint32_t m = 0; m < kit_.plan.batch; ++m) {
    kit_.for_batch_row(m, [&] {
      const XPart x = x_of(m, step, part);
      for (std::uint32_t row = 0; row < decoded.size(); ++row) {
        kit_.products().add(decoded[row], x, sums_[m * kit_.plan.rows + row]);
      }
    });
  }
}

XPart BlockWarp::x_of(std::uint32_t m, std::uint32_t step, std::uint32_t part) const {
  const std::uint64_t from =
      m * (window_bytes(kit_.plan) / kit_.plan.batch) + std::uint64_t{step} * layout_.step_bytes();
  return load_x_part(kit_.k, layout_, {x_.view() + from, floats_.view() + from}, part);
}

// The rows of a lane; in the last one, the upper half of the warp may have none.
template <class Body>
void BlockWarp::for_lane_rows(const Body& body) {
  for (std::uint32_t row = 0; row * together() < rows_; ++row) {
    if (rows_ - row * together() < together()) {
      kit_.k.if_(!*kit_.upper, [&] { body(row); });
    } else {
      body(row);
    }
  }
}

}  // namespace ptxgen::inline v0::gemv
