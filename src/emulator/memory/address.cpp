// src/emulator/memory/address.cpp - address conversions, policies, fences
#include "emulator/state/address_space.hpp"

#include "emulator/memory/access.hpp"
#include "emulator/memory/steps.hpp"
#include "emulator/report/report.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {

void run_to_generic(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  const std::uint64_t window = window_start(detail.space);
  for_each_lane(context.mask(step), [&](unsigned lane) {
    set_lane(context, detail.data[0], lane, get_lane(context, detail.sources[0], lane) + window);
  });
}

void run_from_generic(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  for_each_lane(context.mask(step), [&](unsigned lane) {
    const std::uint64_t address = get_lane(context, detail.sources[0], lane);
    // Keep an address of another space unchanged: its use is reported.
    const bool inside = window_of(address) == detail.space;
    set_lane(context, detail.data[0], lane,
             inside ? address - window_start(detail.space) : address);
  });
}

void run_is_space(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  for_each_lane(context.mask(step), [&](unsigned lane) {
    const std::uint64_t address = get_lane(context, detail.sources[0], lane);
    bool holds = window_of(address) == detail.space;
    if (holds && detail.space == ptx::Space::Shared && !detail.cluster) {
      std::uint64_t offset = address;
      Cta* owner = nullptr;
      holds = find_owner(context, offset, owner) && owner == context.cta;
    }
    if (detail.space == ptx::Space::Const || detail.space == ptx::Space::Global) {
      const Allocation* const found = context.grid->space->find(address);
      const bool constant = found != nullptr && found->kind == AllocationKind::Constant;
      holds = detail.space == ptx::Space::Const
                  ? constant
                  : window_of(address) == ptx::Space::Global && !constant;
    }
    set_lane(context, detail.data[0], lane, holds ? 1 : 0);
  });
}

void run_map_peer(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  const std::uint64_t window = detail.space == ptx::Space::Shared ? 0 : kSharedWindow;
  const std::vector<Cta*>& blocks = context.cta->cluster->blocks;
  for_each_lane(context.mask(step), [&](unsigned lane) {
    std::uint64_t address = get_lane(context, detail.sources[0], lane);
    const std::uint64_t rank = get_lane(context, detail.sources[1], lane);
    Cta* owner = nullptr;
    if (rank >= blocks.size()) {
      context.grid->reporter->report(context, step.statement, Rule::InvalidAddress, lane, [&] {
        return FindingText{
            format_text("maps an address to rank {} of a cluster of {}", rank,
                        count_text(blocks.size(), "block")),
            {"ranks go from 0 to %cluster_nctarank - 1; launch with a larger cluster"}};
      });
    } else if (find_owner(context, address, owner)) {
      address += window + (rank + 1) * kPeerBytes;
    }
    set_lane(context, detail.data[0], lane, address);
  });
}

void run_peer_rank(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  for_each_lane(context.mask(step), [&](unsigned lane) {
    std::uint64_t address = get_lane(context, detail.sources[0], lane);
    Cta* owner = context.cta;
    static_cast<void>(find_owner(context, address, owner));
    set_lane(context, detail.data[0], lane, owner->rank);
  });
}

void run_policy(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  for_each_lane(context.mask(step),
                [&](unsigned lane) { set_lane(context, detail.data[0], lane, 0); });
}

void run_fence(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  const MemoryDetail& detail = context.code->memory[step.detail];
  host_fence();
  if (Races* const races = context.cta->races.get()) {
    races->fence(context, mask, detail.order, detail.scope, step.statement);
  }
  if (Races* const races = context.grid->races.get()) {
    races->fence(context, mask, detail.order, detail.scope, step.statement);
  }
}

}  // namespace ptxgen::inline v0::emulator
