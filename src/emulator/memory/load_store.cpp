// src/emulator/memory/load_store.cpp - ld and st for any mask, space and width
#include <algorithm>

#include "emulator/memory/access.hpp"
#include "emulator/memory/steps.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

constexpr std::byte kZeros[16] = {};

/// Loads the used bytes; the others may be inaccessible, and become 0.
void load_used(std::byte* to, const std::byte* from, const AccessRequest& request) {
  for (unsigned i = 0; i < request.bytes; ++i) {
    to[i] = std::byte{0};
    if ((request.used >> i & 1u) != 0) load_bytes(to + i, from + i, 1);
  }
}

}  // namespace

void run_load(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  const MemoryDetail& detail = context.code->memory[step.detail];
  std::uint64_t addresses[32];
  compute_addresses(context, detail.address, addresses);
  AccessRequest request;
  request.space = detail.space;
  request.addresses = addresses;
  request.mask = mask;
  request.bytes = request.alignment = unsigned{detail.element_bytes} * detail.elements;
  request.reads = true;
  request.kind = RaceAccess::Kind::Read;
  request.used = detail.required.used;
  AccessTargets found;
  resolve_access(context, step, detail, request, found);
  for_each_lane(mask, [&](unsigned lane) {
    const bool reached = (found.mask >> lane & 1u) != 0;
    std::byte data[kMaxLaneBytes];
    if (reached && request.used != 0) {
      load_used(data, found.host[lane], request);
    } else if (reached) {
      load_bytes(data, found.host[lane], request.bytes);
    }
    for (std::size_t i = 0; i < detail.data.size(); ++i) {
      set_element(context, detail.data[i], lane, reached ? data + i * detail.element_bytes : kZeros,
                  detail.element_bytes);
    }
  });
  // The load may wait for a store of another thread: let other warps run.
  if (detail.order != ptx::Modifier::none && detail.order != ptx::Modifier::weak &&
      context.split != nullptr) {
    context.split->polled = true;
    context.warp->failed_poll.consecutive = 0;
  }
}

void run_store(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  const MemoryDetail& detail = context.code->memory[step.detail];
  std::uint64_t addresses[32];
  compute_addresses(context, detail.address, addresses);
  AccessRequest request;
  request.space = detail.space;
  request.addresses = addresses;
  request.mask = mask;
  request.bytes = request.alignment = unsigned{detail.element_bytes} * detail.elements;
  request.writes = true;
  request.kind = RaceAccess::Kind::Write;
  std::byte values[32][kMaxLaneBytes];
  for_each_lane(mask, [&](unsigned lane) {
    for (std::size_t i = 0; i < detail.data.size(); ++i) {
      get_element(context, detail.data[i], lane, values[lane] + i * detail.element_bytes,
                  detail.element_bytes);
    }
  });
  request.values = values[0];
  request.value_stride = kMaxLaneBytes;
  AccessTargets found;
  resolve_access(context, step, detail, request, found);
  // In the order of lanes: the highest lane wins, which PTX does not specify.
  for_each_lane(found.mask,
                [&](unsigned lane) { store_bytes(found.host[lane], values[lane], request.bytes); });
}

void run_load_parameter(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  const MemoryDetail& detail = context.code->memory[step.detail];
  const std::vector<std::byte>& block = context.grid->parameters;
  const unsigned bytes = unsigned{detail.element_bytes} * detail.elements;
  const std::uint64_t offset = detail.address.offset;
  if (offset > block.size() || bytes > block.size() - offset || offset % bytes != 0) {
    run_load(context, step);
    return;
  }
  for (std::size_t i = 0; i < detail.data.size(); ++i) {
    const Slot& slot = detail.data[i];
    const std::byte* const from = block.data() + offset + i * detail.element_bytes;
    if (!slot.present()) continue;
    std::uint64_t bits = 0;
    std::memcpy(&bits, from, std::min<std::size_t>(detail.element_bytes, 8));
    if (mask == 0xffffffffu && slot.lane_bytes == 8) {
      std::fill_n(context.lanes<std::uint64_t>(slot.offset), 32,
                  extended(bits, detail.element_bytes, slot));
    } else if (mask == 0xffffffffu && slot.lane_bytes == 4) {
      std::fill_n(context.lanes<std::uint32_t>(slot.offset), 32,
                  static_cast<std::uint32_t>(extended(bits, detail.element_bytes, slot)));
    } else {
      for_each_lane(mask, [&](unsigned lane) {
        set_element(context, slot, lane, from, detail.element_bytes);
      });
    }
  }
}

void count_scattered_global(AccessCounters& counters, const std::uint64_t addresses[32],
                            std::uint32_t mask, unsigned bytes) {
  add_request(counters.memory, count_sectors(addresses, mask, bytes),
              static_cast<std::uint64_t>(std::popcount(mask)) * bytes);
}

void count_scattered_shared(AccessCounters& counters, const std::uint64_t offsets[32],
                            std::uint32_t mask, unsigned bytes) {
  add_request(counters.shared, count_wavefronts(offsets, mask, bytes),
              static_cast<std::uint64_t>(std::popcount(mask)) * bytes);
}

namespace {

void note_access(Context& context, const Step& step, const std::uint64_t addresses[32],
                 std::uint32_t mask, unsigned bytes, const std::byte* values,
                 RaceAccess::Shape shape, Races* races, Races* others) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  RaceAccess access;
  access.kind = values != nullptr ? RaceAccess::Kind::Write : RaceAccess::Kind::Read;
  access.order = detail.order;
  access.scope = detail.scope;
  access.mask = mask;
  access.shape = shape;
  access.bytes = static_cast<std::uint8_t>(bytes);
  access.unit = detail.elements > 1 ? detail.element_bytes : std::uint8_t{0};
  access.addresses = addresses;
  access.values = values;
  access.value_stride = bytes;
  if (races != nullptr) races->access(context, step.statement, access);
  const bool strong = detail.order != ptx::Modifier::none && detail.order != ptx::Modifier::weak;
  if (strong && others != nullptr) others->synchronise(context, step.statement, access);
}

}  // namespace

void note_shared_access(Context& context, const Step& step, const std::uint64_t offsets[32],
                        std::uint32_t mask, unsigned bytes, const std::byte* values,
                        RaceAccess::Shape shape) {
  note_access(context, step, offsets, mask, bytes, values, shape, context.cta->races.get(),
              context.grid->races.get());
}

void note_global_access(Context& context, const Step& step, const std::uint64_t addresses[32],
                        std::uint32_t mask, unsigned bytes, const std::byte* values,
                        RaceAccess::Shape shape) {
  note_access(context, step, addresses, mask, bytes, values, shape, context.grid->races.get(),
              context.cta->races.get());
}

}  // namespace ptxgen::inline v0::emulator
