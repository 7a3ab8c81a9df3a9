// src/emulator/machine/track.cpp - which bits of registers are defined
#include "emulator/machine/track.hpp"

#include <algorithm>

#include "emulator/report/report.hpp"
#include "emulator/state/windows.hpp"
#include "emulator/vector/lane_steps.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using Value = TrackDetail::Value;

constexpr std::uint64_t kAll = ~std::uint64_t{0};

std::uint64_t low(unsigned bits) noexcept {
  return bits >= 64 ? kAll : (std::uint64_t{1} << bits) - 1;
}

std::uint64_t undefined_bits(const Context& context, const Value& value, unsigned lane) noexcept {
  return value.shadow.present() ? ~get_lane(context, value.shadow, lane) & low(value.slot.bits) : 0;
}

/// The lowest set bit of `bits` and all higher ones.
std::uint64_t from_lowest(std::uint64_t bits) noexcept { return ~(bits & (~bits + 1)) + 1; }

// Tables of rows with one or two sources.
constexpr std::uint8_t kAnd = 0x8;
constexpr std::uint8_t kOr = 0xe;
constexpr std::uint8_t kXor = 0x6;
constexpr std::uint8_t kNot = 0x1;

/// Result bits of a lookup table that depend on undefined bits.
std::uint64_t logic(std::uint8_t table, std::size_t sources, const std::uint64_t* values,
                    const std::uint64_t* undefined) noexcept {
  if (sources <= 2) {
    const std::uint64_t either = undefined[0] | (sources > 1 ? undefined[1] : 0);
    if (table == kXor || table == kNot) return either;
    if (table == kAnd) return either & (undefined[0] | values[0]) & (undefined[1] | values[1]);
    if (table == kOr) return either & (undefined[0] | ~values[0]) & (undefined[1] | ~values[1]);
  }
  std::uint64_t may_be[2] = {0, 0};
  for (unsigned row = 0; row < 1u << sources; ++row) {
    std::uint64_t possible = kAll;
    for (std::size_t i = 0; i < sources; ++i) {
      possible &= undefined[i] | ((row >> i & 1u) != 0 ? values[i] : ~values[i]);
    }
    may_be[table >> row & 1u] |= possible;
  }
  return may_be[0] & may_be[1];
}

/// For packed types: an element is undefined if it is in any source.
std::uint64_t by_element(const TrackDetail& detail, const std::uint64_t* undefined,
                         unsigned result_bits) noexcept {
  std::uint64_t result = 0;
  const unsigned width = result_bits / detail.elements;
  for (unsigned element = 0; element < detail.elements; ++element) {
    bool any = false;
    for (std::size_t i = 0; i < detail.sources.size(); ++i) {
      const unsigned own = detail.sources[i].slot.bits / detail.elements;
      any |= (undefined[i] >> (element * own) & low(own)) != 0;
    }
    if (any) result |= low(width) << (element * width);
  }
  return result;
}

/// cvt to a packed type: the first source makes the highest element.
std::uint64_t packed(const TrackDetail& detail, const std::uint64_t* undefined,
                     unsigned result_bits) noexcept {
  std::uint64_t result = 0;
  const unsigned width = result_bits / detail.elements;
  for (unsigned i = 0; i < detail.elements; ++i) {
    if (undefined[i] != 0) result |= low(width) << ((detail.elements - 1 - i) * width);
  }
  return result;
}

/// Lanes of `lanes` in which a value is undefined in part.
std::uint32_t undefined_lanes(const Context& context, const Value& value, std::uint32_t lanes) {
  if (!value.shadow.present()) return 0;
  if (value.shadow.lane_bytes == 0) return lanes & ~context.predicate(value.shadow.offset);
  std::uint32_t found = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    if (undefined_bits(context, value, lane) != 0) found |= 1u << lane;
  });
  return found;
}

/// Whether all lanes are defined, active or not: the common case, and cheap to check.
bool all_defined(const Context& context, const Value& value) {
  if (!value.shadow.present()) return true;
  switch (value.shadow.lane_bytes) {
    case 0:
      return context.predicate(value.shadow.offset) == 0xffffffffu;
    case 4: {
      const std::uint32_t* lanes = context.lanes<std::uint32_t>(value.shadow.offset);
      std::uint32_t all = 0xffffffffu;
      for (unsigned i = 0; i < kLanes; ++i) all &= lanes[i];
      return all == 0xffffffffu;
    }
    case 8: {
      const std::uint64_t* lanes = context.lanes<std::uint64_t>(value.shadow.offset);
      std::uint64_t all = kAll;
      for (unsigned i = 0; i < kLanes; ++i) all &= lanes[i];
      return all == kAll;
    }
    default:
      return false;
  }
}

void set_defined(const Context& context, const Value& value, std::uint32_t lanes, bool defined) {
  if (!value.shadow.present()) return;
  if (lanes == 0xffffffffu && value.shadow.lane_bytes != 16) {
    const std::size_t bytes = value.shadow.lane_bytes == 0 ? 4 : kLanes * value.shadow.lane_bytes;
    std::memset(context.frame + value.shadow.offset, defined ? 0xff : 0, bytes);
    return;
  }
  for_each_lane(lanes,
                [&](unsigned lane) { set_lane(context, value.shadow, lane, defined ? kAll : 0); });
}

/// The lanes that store to global memory.
std::uint32_t storing_to_global(const Context& context, const TrackDetail& detail,
                                std::uint32_t lanes) {
  if (!detail.base.present()) return lanes;
  std::uint32_t global = 0;
  for_each_lane(lanes, [&](unsigned lane) {
    const std::uint64_t address = get_lane(context, detail.base, lane) + detail.offset;
    if (window_of(address) == ptx::Space::Global) global |= 1u << lane;
  });
  return global;
}

void check_use(Context& context, const Step& step, const TrackDetail& detail,
               const TrackDetail::Use& use, std::uint32_t lanes) {
  std::uint32_t undefined = undefined_lanes(context, use.value, lanes);
  if (undefined != 0 && use.only_global) undefined = storing_to_global(context, detail, undefined);
  if (undefined == 0) return;
  const auto first = static_cast<unsigned>(std::countr_zero(undefined));
  const std::uint64_t bits = undefined_bits(context, use.value, first);
  context.grid->reporter->report(context, step.statement, Rule::UninitializedRead, first, [&] {
    const bool part = bits != low(use.value.slot.bits);
    return FindingText{
        part
            ? format_text("part of register {} {} and was never written by the thread "
                          "(bits {})",
                          use.name, use.role, hex(bits))
            : format_text("register {} {} and was never written by the thread", use.name, use.role),
        {"write it on every path to this instruction"},
        "register " + use.name};
  });
  // Report each undefined value once.
  set_defined(context, use.value, undefined, true);
}

/// Lanes of a value, zero-extended; of a predicate 0 or 1.
void load_lanes(const Context& context, const Slot& slot, std::uint64_t* to) {
  const std::uint64_t mask = low(slot.bits);
  switch (slot.lane_bytes) {
    case 4: {
      const std::uint32_t* from = context.lanes<std::uint32_t>(slot.offset);
      for (unsigned lane = 0; lane < kLanes; ++lane) to[lane] = from[lane] & mask;
      break;
    }
    case 8: {
      const std::uint64_t* from = context.lanes<std::uint64_t>(slot.offset);
      for (unsigned lane = 0; lane < kLanes; ++lane) to[lane] = from[lane] & mask;
      break;
    }
    default:
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        to[lane] = get_lane(context, slot, lane) & mask;
      }
  }
}

void load_undefined(const Context& context, const Value& value, std::uint64_t* to) {
  if (!value.shadow.present()) {
    std::fill_n(to, kLanes, 0);
    return;
  }
  load_lanes(context, value.shadow, to);
  const std::uint64_t mask = low(value.slot.bits);
  for (unsigned lane = 0; lane < kLanes; ++lane) to[lane] ^= mask;
}

/// Makes `undefined` the undefined bits of a result, for some lanes.
void store_undefined(const Context& context, const Value& result, std::uint32_t lanes,
                     std::uint64_t* undefined) {
  if (!result.shadow.present()) return;
  if (result.slot.is_signed && result.slot.bits < result.slot.register_bits) {
    // Sign-extended like the value.
    const std::uint64_t sign = std::uint64_t{1} << (result.slot.bits - 1u);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      undefined[lane] = (undefined[lane] ^ sign) - sign;
    }
  }
  if (lanes == 0xffffffffu && result.shadow.lane_bytes == 4) {
    std::uint32_t* to = context.lanes<std::uint32_t>(result.shadow.offset);
    for (unsigned lane = 0; lane < kLanes; ++lane)
      to[lane] = ~static_cast<std::uint32_t>(undefined[lane]);
  } else if (lanes == 0xffffffffu && result.shadow.lane_bytes == 8) {
    std::uint64_t* to = context.lanes<std::uint64_t>(result.shadow.offset);
    for (unsigned lane = 0; lane < kLanes; ++lane) to[lane] = ~undefined[lane];
  } else {
    for_each_lane(lanes,
                  [&](unsigned lane) { set_lane(context, result.shadow, lane, ~undefined[lane]); });
  }
}

/// Whether the kind makes all bits of its result undefined where the lowest bit of a source is.
bool spreads_everywhere(TrackDetail::Kind kind) noexcept {
  return kind == TrackDetail::Kind::Any || kind == TrackDetail::Kind::Carries;
}

/// Whether no lane has a defined bit, as for a register that a loop carries and never writes.
bool none_defined(const Context& context, const Value& value) {
  if (!value.shadow.present() || value.slot.bits < 32) return false;
  if (value.shadow.lane_bytes == 4) {
    const std::uint32_t* lanes = context.lanes<std::uint32_t>(value.shadow.offset);
    return std::all_of(lanes, lanes + kLanes, [](std::uint32_t bits) { return bits == 0; });
  }
  if (value.shadow.lane_bytes == 8) {
    const std::uint64_t* lanes = context.lanes<std::uint64_t>(value.shadow.offset);
    return std::all_of(lanes, lanes + kLanes, [](std::uint64_t bits) { return bits == 0; });
  }
  return false;
}

void compute_results(Context& context, const TrackDetail& detail, std::uint32_t lanes) {
  const std::size_t sources = detail.sources.size();
  if (spreads_everywhere(detail.kind) &&
      std::ranges::any_of(detail.sources,
                          [&](const Value& source) { return none_defined(context, source); })) {
    for (const Value& result : detail.results) set_defined(context, result, lanes, false);
    return;
  }
  std::uint64_t values[kMaxLaneWords][kLanes];
  std::uint64_t undefined[kMaxLaneWords][kLanes];
  std::uint64_t results[kMaxLaneWords][kLanes];
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < sources; ++i) {
    load_undefined(context, detail.sources[i], undefined[i]);
    for_each_lane(lanes, [&](unsigned lane) { found |= undefined[i][lane]; });
  }
  if (found == 0) {
    for (const Value& result : detail.results) set_defined(context, result, lanes, true);
    return;
  }
  for (std::size_t i = 0; i < sources && !spreads_everywhere(detail.kind); ++i) {
    load_lanes(context, detail.sources[i].slot, values[i]);
  }
  for (std::size_t i = 0; i < detail.results.size(); ++i) std::fill_n(results[i], kLanes, 0);
  std::uint64_t own_values[kMaxLaneWords] = {};
  std::uint64_t own[kMaxLaneWords];
  std::uint64_t computed[kMaxLaneWords];
  for_each_lane(lanes, [&](unsigned lane) {
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < sources; ++i) any |= own[i] = undefined[i][lane];
    if (any != 0 && !spreads_everywhere(detail.kind)) {
      for (std::size_t i = 0; i < sources; ++i) own_values[i] = values[i][lane];
    }
    undefined_results(detail, own_values, own, computed);
    for (std::size_t i = 0; i < detail.results.size(); ++i) results[i][lane] = computed[i];
  });
  for (std::size_t i = 0; i < detail.results.size(); ++i) {
    store_undefined(context, detail.results[i], lanes, results[i]);
  }
}

}  // namespace

void undefined_results(const TrackDetail& detail, const std::uint64_t* values,
                       const std::uint64_t* undefined, std::uint64_t* results) {
  using Kind = TrackDetail::Kind;
  const std::size_t sources = detail.sources.size();
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < sources; ++i) any |= undefined[i];
  const auto width = [&](std::size_t i) { return detail.results[i].slot.bits; };
  const auto fill = [&](bool set) {
    for (std::size_t i = 0; i < detail.results.size(); ++i) results[i] = set ? low(width(i)) : 0;
  };
  if (detail.kind == Kind::Defines || any == 0) return fill(false);
  switch (detail.kind) {
    case Kind::Elements:
      results[0] = by_element(detail, undefined, width(0));
      break;
    case Kind::Pack:
      results[0] = packed(detail, undefined, width(0));
      break;
    case Kind::Carries:
      results[0] = from_lowest(any) & low(width(0));
      break;
    case Kind::Logic:
      results[0] = logic(detail.table, sources, values, undefined) & low(width(0));
      break;
    case Kind::Select:
      if (undefined[2] != 0) return fill(true);
      results[0] = undefined[(values[2] & 1) != 0 ? 0 : 1];
      break;
    case Kind::Moves: {
      std::uint64_t moved[kMaxLaneWords];
      for (std::size_t i = 0; i < sources; ++i) {
        const bool data = (detail.data >> std::min<std::size_t>(i, 63) & 1) != 0;
        if (!data && undefined[i] != 0) return fill(true);
        moved[i] = data ? undefined[i] : values[i];
      }
      detail.function(detail.op, moved, results);
      for (std::size_t i = 0; i < detail.results.size(); ++i) results[i] &= low(width(i));
      break;
    }
    default:
      fill(true);
      break;
  }
}

void track(Context& context, const Step& step) {
  const TrackDetail& detail = context.code->tracks[step.detail];
  const std::uint32_t lanes = context.mask(step);
  for (const TrackDetail::Use& use : detail.uses) {
    // The guard is used in all active lanes, the guarded instruction only where it is true.
    const bool guard = step.immediate != 0 && &use == detail.uses.data();
    check_use(context, step, detail, use, guard ? context.active : lanes);
  }
  if (detail.results.empty()) return;
  const bool defined = detail.kind == TrackDetail::Kind::Defines ||
                       std::ranges::all_of(detail.sources, [&](const Value& source) {
                         return all_defined(context, source);
                       });
  if (defined) {
    for (const Value& result : detail.results) set_defined(context, result, lanes, true);
  } else {
    compute_results(context, detail, lanes);
  }
  if (!detail.guard.present()) return;
  // With an undefined guard a lane may have the old or the new value.
  const std::uint32_t unsure = context.active & ~context.predicate(detail.guard.offset);
  if (unsure == 0) return;
  for (const Value& result : detail.results) set_defined(context, result, unsure, false);
}

}  // namespace ptxgen::inline v0::emulator
