// src/emulator/machine/warp_steps.cpp - rows that exchange values between lanes
#include "emulator/machine/warp_steps.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "emulator/race/race.hpp"
#include "emulator/report/report.hpp"
#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Modifier;
using ptx::Op;

const LaneDetail& detail_of(const Context& context, const Step& step) {
  return context.code->lanes[step.detail];
}

std::uint32_t predicate_mask(const Context& context, const Slot& slot) {
  if (slot.lane_bytes != 0) {  // an immediate as a predicate
    std::uint32_t mask = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      mask |= static_cast<std::uint32_t>(get_lane(context, slot, lane) & 1u) << lane;
    }
    return mask;
  }
  return context.predicate(slot.offset) ^ (slot.negated ? 0xffffffffu : 0u);
}

void set_predicate(const Context& context, const Slot& slot, std::uint32_t lanes,
                   std::uint32_t values) {
  if (!slot.present()) return;
  std::uint32_t& mask = context.predicate(slot.offset);
  mask = (mask & ~lanes) | (values & lanes);
}

void set_all(const Context& context, const Slot& slot, std::uint32_t lanes, std::uint64_t value) {
  if (!slot.present()) return;
  for_each_lane(lanes, [&](unsigned lane) { set_lane(context, slot, lane, value); });
}

/// The executing lanes of the member mask; without a mask, all executing lanes.
std::uint32_t members_of(const Context& context, const Slot& slot, unsigned lane,
                         std::uint32_t executing) {
  return static_cast<std::uint32_t>(get_lane(context, slot, lane)) & executing;
}

// All lanes execute, each exchanges with its partner of a butterfly over the warp, and values
// are 32 bits wide.
bool shuffle_butterfly(const Context& context, const LaneDetail& detail) {
  const Slot& value = detail.sources[0];
  const Slot& result = detail.results[0];
  if (value.lane_bytes != 4 || detail.sources[1].lane_bytes != 4 ||
      detail.sources[2].lane_bytes != 4 || result.lane_bytes != 4 || !result.present() ||
      detail.results.size() > 1) {
    return false;
  }
  const auto* distances = context.lanes<std::uint32_t>(detail.sources[1].offset);
  const auto* clamps = context.lanes<std::uint32_t>(detail.sources[2].offset);
  std::uint32_t different = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    different |= (distances[lane] ^ distances[0]) | ((clamps[lane] & 0x1f1fu) ^ 0x1fu);
  }
  if (different != 0) return false;
  const std::uint32_t distance = distances[0] & 31u;
  // The warp in groups of four lanes: whole groups move, and lanes within each.
  using Four = std::uint32_t __attribute__((vector_size(16)));
  Four groups[kLanes / 4];
  Four got[kLanes / 4];
  std::memcpy(groups, context.lanes<std::uint32_t>(value.offset), sizeof groups);
  for (unsigned i = 0; i < kLanes / 4; ++i) got[i] = groups[i ^ distance / 4];
  for (Four& four : got) {
    if ((distance & 1u) != 0) four = __builtin_shufflevector(four, four, 1, 0, 3, 2);
    if ((distance & 2u) != 0) four = __builtin_shufflevector(four, four, 2, 3, 0, 1);
  }
  std::memcpy(context.lanes<std::uint32_t>(result.offset), got, sizeof got);
  return true;
}

void shuffle(Context& context, const Step& step) {
  const LaneDetail& detail = detail_of(context, step);
  const std::uint32_t executing = context.mask(step);
  const auto mode = static_cast<Modifier>(step.immediate);
  if (mode == Modifier::bfly && executing == 0xffffffffu && shuffle_butterfly(context, detail)) {
    return;
  }
  std::uint32_t values[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    values[lane] = static_cast<std::uint32_t>(get_lane(context, detail.sources[0], lane));
  }
  std::uint32_t in_range = 0;
  std::uint32_t got[kLanes] = {};
  for_each_lane(executing, [&](unsigned lane) {
    const auto b = static_cast<std::uint32_t>(get_lane(context, detail.sources[1], lane)) & 31u;
    const auto c = static_cast<std::uint32_t>(get_lane(context, detail.sources[2], lane));
    const std::uint32_t clamp = c & 31u;
    const std::uint32_t segment = (c >> 8) & 31u;
    const std::uint32_t max_lane = (lane & segment) | (clamp & ~segment & 31u);
    const std::uint32_t min_lane = lane & segment;
    std::uint32_t from = lane;
    bool valid = false;
    switch (mode) {
      case Modifier::up:
        valid = static_cast<std::int32_t>(lane) - static_cast<std::int32_t>(b) >=
                static_cast<std::int32_t>(max_lane);
        from = lane - b;
        break;
      case Modifier::down:
        from = lane + b;
        valid = from <= max_lane;
        break;
      case Modifier::bfly:
        from = lane ^ b;
        valid = from <= max_lane;
        break;
      default:
        from = min_lane | (b & ~segment & 31u);
        valid = from <= max_lane;
        break;
    }
    if (!valid) from = lane;
    got[lane] = values[from & 31u];
    if (valid) in_range |= 1u << lane;
  });
  const Slot& result = detail.results[0];
  if (result.present()) {
    for_each_lane(executing, [&](unsigned lane) { set_lane(context, result, lane, got[lane]); });
  }
  if (detail.results.size() > 1) set_predicate(context, detail.results[1], executing, in_range);
}

void vote(Context& context, const Step& step) {
  const LaneDetail& detail = detail_of(context, step);
  const std::uint32_t executing = context.mask(step);
  const bool has_members = detail.sources.size() > 1;
  const std::uint32_t values = predicate_mask(context, detail.sources[0]);
  const auto mode = static_cast<Modifier>(step.immediate);
  for_each_lane(executing, [&](unsigned lane) {
    const std::uint32_t members =
        has_members ? members_of(context, detail.sources[1], lane, executing) : executing;
    const std::uint32_t set = values & members;
    std::uint64_t result = 0;
    switch (mode) {
      case Modifier::all:
        result = set == members;
        break;
      case Modifier::any:
        result = set != 0;
        break;
      case Modifier::uni:
        result = set == members || set == 0;
        break;
      default:
        result = set;
        break;
    }
    if (detail.results[0].present()) set_lane(context, detail.results[0], lane, result);
  });
}

void match_any(Context& context, const Step& step) {
  const LaneDetail& detail = detail_of(context, step);
  const std::uint32_t executing = context.mask(step);
  for_each_lane(executing, [&](unsigned lane) {
    const std::uint64_t own = get_lane(context, detail.sources[0], lane);
    std::uint32_t equal = 0;
    for_each_lane(members_of(context, detail.sources[1], lane, executing), [&](unsigned other) {
      if (get_lane(context, detail.sources[0], other) == own) equal |= 1u << other;
    });
    if (detail.results[0].present()) set_lane(context, detail.results[0], lane, equal);
  });
}

void match_all(Context& context, const Step& step) {
  const LaneDetail& detail = detail_of(context, step);
  const std::uint32_t executing = context.mask(step);
  std::uint32_t agreeing = 0;
  std::uint32_t masks[kLanes] = {};
  for_each_lane(executing, [&](unsigned lane) {
    const std::uint32_t members = members_of(context, detail.sources[1], lane, executing);
    const std::uint64_t own = get_lane(context, detail.sources[0], lane);
    bool all = true;
    for_each_lane(members, [&](unsigned other) {
      all = all && get_lane(context, detail.sources[0], other) == own;
    });
    if (all) {
      agreeing |= 1u << lane;
      masks[lane] = members;
    }
  });
  if (detail.results[0].present()) {
    for_each_lane(executing,
                  [&](unsigned lane) { set_lane(context, detail.results[0], lane, masks[lane]); });
  }
  if (detail.results.size() > 1) set_predicate(context, detail.results[1], executing, agreeing);
}

std::uint32_t reduced(Modifier action, bool is_signed, std::uint32_t a, std::uint32_t b) {
  switch (action) {
    case Modifier::add:
      return a + b;
    case Modifier::and_:
      return a & b;
    case Modifier::or_:
      return a | b;
    case Modifier::xor_:
      return a ^ b;
    case Modifier::min:
      if (is_signed) {
        return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) ? a : b;
      }
      return a < b ? a : b;
    default:
      if (is_signed) {
        return static_cast<std::int32_t>(a) > static_cast<std::int32_t>(b) ? a : b;
      }
      return a > b ? a : b;
  }
}

void reduce(Context& context, const Step& step) {
  const LaneDetail& detail = detail_of(context, step);
  const std::uint32_t executing = context.mask(step);
  const auto action = static_cast<Modifier>(step.immediate);
  const bool is_signed = detail.op.type == ptx::Type::s32;
  std::uint32_t results[kLanes] = {};
  for_each_lane(executing, [&](unsigned lane) {
    const std::uint32_t members = members_of(context, detail.sources[1], lane, executing);
    bool first = true;
    for_each_lane(members, [&](unsigned other) {
      const auto value = static_cast<std::uint32_t>(get_lane(context, detail.sources[0], other));
      results[lane] = first ? value : reduced(action, is_signed, results[lane], value);
      first = false;
    });
  });
  for_each_lane(executing,
                [&](unsigned lane) { set_lane(context, detail.results[0], lane, results[lane]); });
}

/// min and max of f32: NaN operands are ignored without .NaN; -0 is below +0.
void reduce_f32(Context& context, const Step& step) {
  const LaneDetail& detail = detail_of(context, step);
  const std::uint32_t executing = context.mask(step);
  const bool smallest = static_cast<Modifier>(step.immediate) == Modifier::min;
  std::uint32_t results[kLanes] = {};
  for_each_lane(executing, [&](unsigned lane) {
    std::uint32_t best = 0x7fffffffu;
    bool saw_nan = false;
    for_each_lane(members_of(context, detail.sources[1], lane, executing), [&](unsigned other) {
      auto bits = static_cast<std::uint32_t>(get_lane(context, detail.sources[0], other));
      if (detail.op.abs) bits &= 0x7fffffffu;
      const float value = std::bit_cast<float>(bits);
      if (std::isnan(value)) {
        saw_nan = true;
        return;
      }
      const float current = std::bit_cast<float>(best);
      // As integers in sign-magnitude order, which distinguishes the zeros.
      const auto key = [](std::uint32_t v) {
        return static_cast<std::int32_t>(v) < 0 ? static_cast<std::int32_t>(v ^ 0x7fffffffu)
                                                : static_cast<std::int32_t>(v);
      };
      const bool better = smallest ? key(bits) < key(best) : key(bits) > key(best);
      if (std::isnan(current) || better) best = bits;
    });
    results[lane] = saw_nan && detail.op.nan ? 0x7fffffffu : best;
  });
  for_each_lane(executing,
                [&](unsigned lane) { set_lane(context, detail.results[0], lane, results[lane]); });
}

void elect(Context& context, const Step& step) {
  const LaneDetail& detail = detail_of(context, step);
  const std::uint32_t executing = context.mask(step);
  for_each_lane(executing, [&](unsigned lane) {
    const std::uint32_t members = members_of(context, detail.sources[0], lane, executing);
    const auto leader = static_cast<unsigned>(std::countr_zero(members | 0x80000000u));
    if (detail.results[0].present()) set_lane(context, detail.results[0], lane, leader);
    if (detail.results.size() > 1 && detail.results[1].present()) {
      set_lane(context, detail.results[1], lane, leader == lane ? 1 : 0);
    }
  });
}

void active_mask(Context& context, const Step& step) {
  set_all(context, detail_of(context, step).results[0], context.mask(step), context.active);
}

void warp_barrier(Context& context, const Step& step) {
  const std::uint32_t executing = context.mask(step);
  if (!context.cta->races && !context.grid->races) return;
  // Converged lanes may have different masks: tiles of a warp.
  const LaneDetail& detail = detail_of(context, step);
  for (std::uint32_t left = executing; left != 0;) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint32_t lanes =
        members_of(context, detail.sources[0], lane, executing) | 1u << lane;
    if (context.cta->races) context.cta->races->warp_sync(context, lanes);
    if (context.grid->races) context.grid->races->warp_sync(context, lanes);
    left &= ~lanes;
  }
}

constexpr std::array kRows = {
    WarpRow{Op::shfl, &shuffle, false},
    WarpRow{Op::shfl_sync, &shuffle, true},
    WarpRow{Op::vote, &vote, false},
    WarpRow{Op::vote_ballot, &vote, false},
    WarpRow{Op::vote_sync, &vote, true},
    WarpRow{Op::vote_sync_ballot, &vote, true},
    WarpRow{Op::match_any, &match_any, true},
    WarpRow{Op::match_all, &match_all, true},
    WarpRow{Op::activemask, &active_mask, false},
    WarpRow{Op::redux, &reduce, true},
    WarpRow{Op::redux_bits, &reduce, true},
    WarpRow{Op::redux_f32, &reduce_f32, true},
    WarpRow{Op::elect, &elect, true},
    WarpRow{Op::bar_warp_sync, &warp_barrier, true},
};

}  // namespace

const WarpRow* find_warp_row(Op op) noexcept {
  for (const WarpRow& row : kRows) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

}  // namespace ptxgen::inline v0::emulator
