// src/emulator/vector/lane_steps.cpp - running lane-wise rows for a whole warp
#include "emulator/vector/lane_steps.hpp"

#include <algorithm>
#include <bit>

#include "emulator/report/report.hpp"
#include "emulator/state/machine.hpp"
#include "emulator/vector/alu.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using ptx::Op;
using ptx::SpecialRegister;

/// A result of `slot.bits` bits, extended to its register.
std::uint64_t extended(const Slot& slot, std::uint64_t value) {
  if (slot.bits >= 64) return value;
  const unsigned unused = 64u - slot.bits;
  if (slot.is_signed && slot.register_bits > slot.bits) {
    value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
    return slot.register_bits >= 64 ? value
                                    : value & ((std::uint64_t{1} << slot.register_bits) - 1);
  }
  return value << unused >> unused;
}

std::uint64_t source_bits(const Context& context, const Slot& slot, unsigned lane) {
  const std::uint64_t value = get_lane(context, slot, lane);
  return slot.bits >= 64 ? value : value & ((std::uint64_t{1} << slot.bits) - 1);
}

void run_lane_by_lane(Context& context, const Step& step) {
  const LaneDetail& detail = context.code->lanes[step.detail];
  std::uint64_t sources[kMaxLaneWords + 1];
  std::uint64_t results[kMaxLaneWords + 1] = {};
  for_each_lane(context.mask(step), [&](unsigned lane) {
    for (std::size_t i = 0; i < detail.sources.size(); ++i) {
      sources[i] = source_bits(context, detail.sources[i], lane);
    }
    detail.function(detail.op, sources, results);
    for (std::size_t i = 0; i < detail.results.size(); ++i) {
      const Slot& slot = detail.results[i];
      if (slot.present()) set_lane(context, slot, lane, extended(slot, results[i]));
    }
  });
}

/// mov.b32 of a register to two of 16 bits. A half that is not wanted has no offset.
void unpack_halves(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  std::uint32_t full[kLanes];
  std::copy_n(context.lanes<std::uint32_t>(step.source[0]), kLanes, full);
  const auto store = [&](std::uint32_t offset, unsigned shift) {
    if (offset == kNoIndex) return;
    auto* const to = context.lanes<std::uint32_t>(offset);
    if (mask == 0xffffffffu) {
      for (unsigned lane = 0; lane < kLanes; ++lane) to[lane] = full[lane] >> shift & 0xffffu;
    } else {
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        to[lane] = (mask >> lane & 1u) != 0 ? full[lane] >> shift & 0xffffu : to[lane];
      }
    }
  };
  store(step.source[1], 0);
  store(step.source[2], 16);
}

/// Whether `unpack_halves` can run the row; fills the operands of `step`.
bool unpacks_halves(const LaneDetail& detail, Step& step) {
  const auto is_half = [](const Slot& slot) {
    return !slot.present() || (slot.lane_bytes == 4 && slot.register_bits == 16);
  };
  if (detail.op.op != Op::mov_unpack_b32_2 || detail.sources.size() != 1 ||
      detail.results.size() != 2 || !is_half(detail.results[0]) || !is_half(detail.results[1])) {
    return false;
  }
  const Slot& source = detail.sources[0];
  if (!source.present() || source.lane_bytes != 4 || source.bits != 32) return false;
  step.source = {source.offset, detail.results[0].offset, detail.results[1].offset};
  return true;
}

bool is_32_bits(const Slot& slot) {
  return slot.lane_bytes == 4 && slot.bits == 32 && slot.register_bits == 32;
}

void run_matrix(Context& context, const Step& step) {
  const LaneDetail& detail = context.code->lanes[step.detail];
  std::uint64_t sources[kMaxLaneWords][kLanes];
  std::uint64_t results[kMaxLaneWords][kLanes];
  const std::uint32_t mask = context.mask(step);
  for (std::size_t i = 0; i < detail.sources.size(); ++i) {
    const Slot& slot = detail.sources[i];
    if (is_32_bits(slot)) {
      std::copy_n(context.lanes<std::uint32_t>(slot.offset), kLanes, sources[i]);
      continue;
    }
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      sources[i][lane] = source_bits(context, slot, lane);
    }
  }
  detail.matrix(detail.op, sources, results);
  for (std::size_t i = 0; i < detail.results.size(); ++i) {
    const Slot& slot = detail.results[i];
    if (!slot.present()) continue;
    if (is_32_bits(slot) && mask == 0xffffffffu) {
      auto* const to = context.lanes<std::uint32_t>(slot.offset);
      for (unsigned lane = 0; lane < kLanes; ++lane) {
        to[lane] = static_cast<std::uint32_t>(results[i][lane]);
      }
      continue;
    }
    for_each_lane(mask, [&](unsigned lane) {
      set_lane(context, slot, lane, extended(slot, results[i][lane]));
    });
  }
}

}  // namespace

namespace {
thread_local LaneByLane* lane_by_lane = nullptr;
}

LaneByLane::LaneByLane() noexcept { lane_by_lane = this; }
LaneByLane::~LaneByLane() { lane_by_lane = nullptr; }

Handler choose_lane_handler(const LaneDetail& detail, Step& step) {
  if (detail.matrix != nullptr) return &run_matrix;
  if (lane_by_lane != nullptr) {
    ++lane_by_lane->rows;
    return &run_lane_by_lane;
  }
  if (unpacks_halves(detail, step)) return &unpack_halves;
  if (const Handler vector = vector_handler(detail, step)) return vector;
  return &run_lane_by_lane;
}

bool reads_lane_detail(Handler run) noexcept {
  return run == &run_matrix || run == &run_lane_by_lane;
}

void split_wide_slots(std::vector<Slot>& slots) {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].lane_bytes != 16) continue;
    slots[i].bits = slots[i].register_bits = 64;
    Slot high = slots[i];
    if (high.present()) high.offset += 8;  // lanes stay 16 bytes apart
    slots.insert(slots.begin() + static_cast<std::ptrdiff_t>(i) + 1, high);
    ++i;
  }
}

void count_predicated_off(Context& context, const Step& step) {
  if (!context.counting) return;
  context.worker->predicated_off[step.statement] +=
      static_cast<std::uint64_t>(std::popcount(context.active & ~context.mask(step)));
}

void check_divisor(Context& context, const Step& step) {
  Slot divisor;
  divisor.offset = step.source[0];
  divisor.lane_bytes = static_cast<std::uint8_t>(step.immediate);
  for_each_lane(context.mask(step), [&](unsigned lane) {
    if (get_lane(context, divisor, lane) != 0) return;
    context.grid->reporter->report(context, step.statement, Rule::DivisionByZero, lane, [] {
      return FindingText{
          "divides an integer by zero; PTX does not specify the result",
          {"test the divisor first; the emulator returns a quotient with all bits set and the "
           "dividend as remainder"}};
    });
  });
}

bool reads_carry(Op op) noexcept { return op == Op::addc || op == Op::subc || op == Op::madc; }

void update_clock(Context& context, const Step& step) {
  // Time is the number of executed instructions: repeatable and increasing.
  const std::uint64_t now = ++context.warp->instructions;
  const auto which = static_cast<SpecialRegister>(step.immediate);
  const bool high = which == SpecialRegister::clock_hi || which == SpecialRegister::globaltimer_hi;
  Slot slot;
  slot.offset = step.result;
  slot.lane_bytes = static_cast<std::uint8_t>(step.detail);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    set_lane(context, slot, lane, high ? now >> 32 : now);
  }
}

// long because it has one case for each special register
std::uint64_t special_value(const Warp& warp, SpecialRegister which, std::uint8_t component,
                            unsigned lane) noexcept {
  const Cta& cta = *warp.cta;
  const Grid& grid = *cta.grid;
  // `.w` of a vector reads 0, a vector without component is its x.
  const auto part = [&](const Dim3& d, std::uint32_t w) -> std::uint64_t {
    switch (component) {
      case 2:
        return d.y;
      case 3:
        return d.z;
      case 4:
        return w;
      default:
        return d.x;
    }
  };
  const std::uint32_t thread = warp.first_thread + lane;
  switch (which) {
    case SpecialRegister::tid:
      return part(thread_position(grid.block, thread), 0);
    case SpecialRegister::ntid:
      return part(grid.block, 0);
    case SpecialRegister::ctaid:
      return part(cta.id, 0);
    case SpecialRegister::nctaid:
      return part(grid.grid, 0);
    case SpecialRegister::laneid:
      return lane;
    case SpecialRegister::warpid:
      return warp.index;
    case SpecialRegister::nwarpid:
      return (cta.threads + kLanes - 1) / kLanes;
    case SpecialRegister::smid:
      return cta.linear % std::max<std::uint32_t>(1, grid.sms);
    case SpecialRegister::nsmid:
      return std::max<std::uint32_t>(1, grid.sms);
    case SpecialRegister::gridid:
      return 1;
    case SpecialRegister::is_explicit_cluster:
      return grid.explicit_cluster ? 1 : 0;
    case SpecialRegister::clusterid:
      return part(cta.cluster->id, 0);
    case SpecialRegister::nclusterid:
      return part({grid.grid.x / grid.cluster.x, grid.grid.y / grid.cluster.y,
                   grid.grid.z / grid.cluster.z},
                  0);
    case SpecialRegister::cluster_ctaid:
      return part({cta.id.x % grid.cluster.x, cta.id.y % grid.cluster.y, cta.id.z % grid.cluster.z},
                  0);
    case SpecialRegister::cluster_nctaid:
      return part(grid.cluster, 0);
    case SpecialRegister::cluster_ctarank:
      return cta.rank;
    case SpecialRegister::cluster_nctarank:
      return grid.cluster.count();
    case SpecialRegister::lanemask_eq:
      return 1u << lane;
    case SpecialRegister::lanemask_lt:
      return (1u << lane) - 1;
    case SpecialRegister::lanemask_le:
      return (2u << lane) - 1;
    case SpecialRegister::lanemask_gt:
      return ~((2u << lane) - 1);
    case SpecialRegister::lanemask_ge:
      return ~((1u << lane) - 1);
    case SpecialRegister::total_smem_size:
    case SpecialRegister::aggr_smem_size:
      return cta.shared_bytes - grid.reserved_shared_bytes;
    case SpecialRegister::reserved_smem_offset_begin:
    case SpecialRegister::reserved_smem_offset_0:
    case SpecialRegister::reserved_smem_offset_1:
      return grid.reserved_shared_start;
    case SpecialRegister::reserved_smem_offset_end:
    case SpecialRegister::reserved_smem_offset_cap:
      return grid.reserved_shared_start + grid.reserved_shared_bytes;
    case SpecialRegister::envreg1:
      return grid.grid_workspace >> 32;
    case SpecialRegister::envreg2:
      return grid.grid_workspace & 0xffffffffu;
    case SpecialRegister::dynamic_smem_size:
      return grid.dynamic_shared_bytes;
    default:
      return 0;  // performance monitors, other environment registers
  }
}

}  // namespace ptxgen::inline v0::emulator
