// src/kernels/gemv/block_warp.hpp - a warp's products of steps of blocks
#pragma once

#include <functional>

#include "kernels/gemv/blocks.hpp"

namespace ptxgen::inline v0::gemv {

/// The steps of one window by one warp.
class BlockWarp {
 public:
  /// Gives a part of the lane's unit of row `row`, of those that the lane has.
  using Decode = std::function<DecodedPart(std::uint32_t row, std::uint32_t part)>;

  BlockWarp(Kit& kit, std::uint32_t rows, Sums& sums);

  /// Step `step` of those that a warp has at a time.
  void add_step(std::uint32_t step, const Decode& decode);
  /// Its first `blocks` blocks.
  void add_some(std::uint32_t step, std::uint32_t blocks, const Decode& decode);
  /// To the next of them.
  void next();

 private:
  [[nodiscard]] Ptr<b8, Shared> first() const;
  [[nodiscard]] Ptr<b8, Shared> first_x() const;
  [[nodiscard]] Ptr<b8, Shared> first_floats() const;
  void add_part(std::uint32_t step, std::uint32_t part, const Decode& decode);
  void add_batch(std::uint32_t step, std::uint32_t part, const Decode& decode);
  [[nodiscard]] XPart x_of(std::uint32_t m, std::uint32_t step, std::uint32_t part) const;
  [[nodiscard]] std::uint32_t together() const { return 32 / kit_.blocks->lanes; }
  [[nodiscard]] std::uint32_t distance() const {
    return kit_.plan.warps_k * kit_.plan.unroll * layout_.step_bytes();
  }
  template <class Body>
  void for_lane_rows(const Body& body);

  Kit& kit_;
  std::uint32_t rows_;
  Sums& sums_;
  StagedX layout_;
  Var<Ptr<b8, Shared>> x_, floats_;
};

}  // namespace ptxgen::inline v0::gemv
