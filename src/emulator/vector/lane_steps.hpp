// src/emulator/vector/lane_steps.hpp - running lane-wise rows for a whole warp
#pragma once

#include <vector>

#include "emulator/state/code.hpp"

namespace ptxgen::inline v0::emulator {

struct Warp;

/// Maximum 64-bit words of sources or results of one row.
inline constexpr std::size_t kMaxLaneWords = 48;

/// The handler of a decoded lane-wise row: a vector handler, whose operands are in `step`, or one
/// that calls the LaneFunction lane by lane.
[[nodiscard]] Handler choose_lane_handler(const LaneDetail& detail, Step& step);
/// While it exists, programs that its thread loads run all rows lane by lane, but those of
/// matrices; for tests of the vector handlers. One at a time in a thread.
struct LaneByLane {
  LaneByLane() noexcept;
  ~LaneByLane();
  LaneByLane(const LaneByLane&) = delete;
  LaneByLane& operator=(const LaneByLane&) = delete;
  std::size_t rows = 0;
};
/// Whether it runs Code::lanes[step.detail].
[[nodiscard]] bool reads_lane_detail(Handler run) noexcept;

/// A 128-bit slot becomes two of 64 bits, the low one first.
void split_wide_slots(std::vector<Slot>& slots);

/// Counts the lanes whose guard is false.
void count_predicated_off(Context& context, const Step& step);

/// Reports integer divisions by zero. Step: source[0] the divisor, `immediate` its lane bytes.
void check_divisor(Context& context, const Step& step);

[[nodiscard]] bool reads_carry(ptx::Op op) noexcept;
/// Step: `immediate` the special register, `result` its slot, `detail` the slot's lane bytes.
void update_clock(Context& context, const Step& step);

/// The value of a special register that does not change while the warp runs.
[[nodiscard]] std::uint64_t special_value(const Warp& warp, ptx::SpecialRegister which,
                                          std::uint8_t component, unsigned lane) noexcept;

}  // namespace ptxgen::inline v0::emulator
