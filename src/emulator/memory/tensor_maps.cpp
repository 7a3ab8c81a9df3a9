// src/emulator/memory/tensor_maps.cpp - tensormap.replace, tensormap.cp_fenceproxy, their fences
#include "emulator/memory/tensor_maps.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "emulator/memory/bulk_parts.hpp"
#include "emulator/report/report.hpp"
#include "emulator/state/tensor_map.hpp"
#include "emulator/state/written_bits.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using MapBytes = std::array<std::byte, kTensorMapBytes>;
constexpr auto kMapBytes = static_cast<std::uint32_t>(kTensorMapBytes);
constexpr auto kMapAlign = static_cast<std::uint32_t>(kTensorMapAlignment);

/// The 128 bytes of a map that a lane accesses.
struct MapPlace {
  std::byte* host = nullptr;
  std::uint64_t* written = nullptr;
  std::uint64_t first = 0;    ///< bit in `written`
  std::uint64_t address = 0;  ///< global address, or offset in the block's shared memory
  bool shared = false;
};

/// An access of one lane to a map.
class MapAccess {
 public:
  MapAccess(Context& context, const Step& step, const MemoryDetail& detail, unsigned lane)
      : context_(context), step_(step), detail_(detail), lane_(lane) {}

  /// Checks space, bounds and alignment. Nothing after a finding.
  [[nodiscard]] std::optional<MapPlace> find(ptx::Space space, std::uint64_t address,
                                             bool writes) const {
    if (space == ptx::Space::Generic) space = window_of(address);
    if (space == ptx::Space::Const) space = ptx::Space::Global;
    const CopySide side = side_of(writes);
    MapPlace place;
    place.address = address;
    if (space == ptx::Space::Shared) {
      Cta* owner = nullptr;
      if (!side.shared(place.address, owner, false, kMapAlign)) return std::nullopt;
      place.shared = true;
      place.host = context_.cta->shared + place.address;
      place.written = context_.cta->shared_written;
      place.first = place.address;
      return place;
    }
    if (space != ptx::Space::Global) {
      wrong_space(space, address);
      return std::nullopt;
    }
    if (!side.global(address) || !side.aligned(space, address, nullptr, kMapAlign)) {
      return std::nullopt;
    }
    AddressSpace& memory = *context_.grid->space;
    place.host = memory.host(address);
    place.written = memory.written();
    place.first = address - kGlobalBase;
    return place;
  }

  /// False after a finding: bytes that were never written.
  [[nodiscard]] bool read(const MapPlace& place, MapBytes& bytes) const {
    const bool complete = all_written(place.written, place.first, kMapBytes);
    if (!complete) unwritten(place);
    notify(place, RaceAccess::Kind::Read);
    for (std::uint32_t i = 0; i < kMapBytes; i += kBulkUnit) {
      load_bytes(bytes.data() + i, place.host + i, kBulkUnit);
    }
    return complete;
  }

  void write(const MapPlace& place, const MapBytes& bytes) const {
    notify(place, RaceAccess::Kind::Write);
    for (std::uint32_t i = 0; i < kMapBytes; i += kBulkUnit) {
      store_bytes(place.host + i, bytes.data() + i, kBulkUnit);
    }
    if (place.shared) {
      mark_written<false>(place.written, place.first, kMapBytes);
    } else {
      mark_written<true>(place.written, place.first, kMapBytes);
    }
    std::uint64_t addresses[32] = {};
    addresses[lane_] = place.address;
    count_access(context_, detail_, place.shared ? ptx::Space::Shared : ptx::Space::Global,
                 addresses, 1u << lane_, kMapBytes);
  }

  void report(FindingText&& text) const {
    context_.grid->reporter->report(context_, step_.statement, Rule::TensorMap, lane_,
                                    [&] { return std::move(text); });
  }

 private:
  [[nodiscard]] CopySide side_of(bool writes) const {
    return {context_, step_, detail_, lane_, kMapBytes, writes};
  }

  void notify(const MapPlace& place, RaceAccess::Kind kind) const {
    Races* const races = place.shared ? context_.cta->races.get() : context_.grid->races.get();
    notify_range(races, side_of(kind == RaceAccess::Kind::Write), kind, place.address, 0);
  }

  void unwritten(const MapPlace& place) const {
    const AccessRequest asked = side_of(false).request();
    report_unwritten({context_, step_, detail_, asked,
                      place.shared ? ptx::Space::Shared : ptx::Space::Global, lane_,
                      place.address});
  }

  void wrong_space(ptx::Space space, std::uint64_t address) const {
    const std::string_view where =
        space == ptx::Space::Local ? "the thread's local memory" : "a kernel parameter";
    report({format_text("the tensor map at {} is in {}", hex(address), where),
            {"rule: tensormap.replace changes a map in shared or global memory",
             "copy the map to shared memory, change the copy, and write it to global memory with "
             "tensormap.cp_fenceproxy"}});
  }

  Context& context_;
  const Step& step_;
  const MemoryDetail& detail_;
  unsigned lane_;
};

/// The map that the bytes are; zeros are one without fields.
std::optional<TensorMap> map_of(const MapBytes& bytes) {
  if (std::optional<TensorMap> map = TensorMap::unpacked(bytes)) return map;
  const bool zeros = std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
  return zeros ? std::optional(TensorMap::blank()) : std::nullopt;
}

void replace_field(Context& context, const Step& step, const MemoryDetail& detail, unsigned lane,
                   std::uint64_t address) {
  const MapAccess access(context, step, detail, lane);
  const TensorMapDetail& change = detail.as<TensorMapDetail>();
  const std::optional<MapPlace> place = access.find(detail.space, address, true);
  MapBytes bytes;
  if (!place || !access.read(*place, bytes)) return;
  std::optional<TensorMap> map = map_of(bytes);
  if (!map) {
    return access.report(
        {format_text("the 128 bytes at {}{} are not a tensor map",
                     place->shared ? "shared offset " : "", hex(place->address)),
         {"rule: tensormap.replace changes a map of cuTensorMapEncodeTiled, or 128 bytes of zero",
          "copy all 128 bytes of the CUtensorMap there first, in the threads that change it or "
          "before a barrier"}});
  }
  const std::uint64_t value =
      detail.sources.empty() ? change.value : get_lane(context, detail.sources[0], lane);
  TensorMapFault wrong = map->replace(change.field, change.ordinal, value);
  if (wrong.found()) {
    return access.report(
        {std::move(wrong.message), {"rule: " + wrong.rule, std::move(wrong.remedy)}});
  }
  map->pack(bytes);
  access.write(*place, bytes);
  if (!place->shared) {
    ChangedMaps::of(*context.cta).change(place->address, step.statement, false);
  }
}

/// Orders the lanes of a warp, which wait for each other.
void order_lanes(Context& context, std::uint32_t lanes) {
  if (Races* const races = context.cta->races.get()) races->warp_sync(context, lanes);
  if (Races* const races = context.grid->races.get()) races->warp_sync(context, lanes);
}

void copy_map(Context& context, const Step& step, const MemoryDetail& detail, unsigned lane,
              std::uint64_t to, std::uint64_t from) {
  const MapAccess access(context, step, detail, lane);
  const std::optional<MapPlace> source = access.find(ptx::Space::Shared, from, false);
  const std::optional<MapPlace> target = access.find(ptx::Space::Global, to, true);
  MapBytes bytes;
  if (!source || !target || !access.read(*source, bytes)) return;
  access.write(*target, bytes);
  ChangedMaps::of(*context.cta).change(target->address, step.statement, true);
}

}  // namespace

ChangedMaps& ChangedMaps::of(Cta& cta) {
  if (cta.changed_maps == nullptr) cta.changed_maps = std::make_shared<ChangedMaps>();
  return *cta.changed_maps;
}

void ChangedMaps::change(std::uint64_t address, std::uint32_t statement, bool released) {
  const auto known = std::ranges::find(changes_, address, &Change::address);
  if (known == changes_.end()) {
    changes_.push_back({address, statement, released, false});
  } else {
    *known = {address, statement, released, false};
  }
}

void ChangedMaps::release() noexcept {
  for (Change& change : changes_) change.released = true;
}

void ChangedMaps::acquire(std::uint64_t address) noexcept {
  const auto known = std::ranges::find(changes_, address, &Change::address);
  if (known != changes_.end() && known->released) known->acquired = true;
}

const ChangedMaps::Change* ChangedMaps::hidden(std::uint64_t address) const noexcept {
  const auto known = std::ranges::find(changes_, address, &Change::address);
  return known == changes_.end() || known->acquired ? nullptr : &*known;
}

void forget_changed_maps(Cta& cta) { cta.changed_maps.reset(); }

void check_map_fences(Context& context, const Step& step, unsigned lane, std::uint64_t address) {
  if (context.cta->changed_maps == nullptr) return;
  const ChangedMaps::Change* const change = context.cta->changed_maps->hidden(address);
  if (change == nullptr) return;
  OtherParty party;
  party.statement = change->statement;
  party.cta = context.cta->linear;
  party.thread = context.warp->first_thread + lane;
  context.grid->reporter->report(context, step.statement, Rule::ProxyFence, lane, party, [&] {
    const std::string place = context.grid->image->at_text(change->statement);
    const char* const lacks =
        change->released ? "acquire of the map" : "release to the tensormap proxy";
    return FindingText{
        format_text("the copy uses the tensor map at {}, which was changed{}{}, with no {} since",
                    hex(address), place.empty() ? "" : " ", place, lacks),
        {"rule: tensor copies read maps through the tensormap proxy, which sees a change after a "
         "release and an acquire",
         change->released
             ? "put fence.proxy.tensormap::generic.acquire.gpu [map], 128 before the copy, in its "
               "thread, or in another one before a barrier"
             : "write the map with tensormap.cp_fenceproxy, or put "
               "fence.proxy.tensormap::generic.release.gpu after the change, then acquire it"}};
  });
}

void run_replace_map(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  if (context.worker->memory.counters == nullptr) make_memory_view(context);
  std::uint64_t addresses[32];
  compute_addresses(context, detail.address, addresses);
  for_each_lane(
      mask, [&](unsigned lane) { replace_field(context, step, detail, lane, addresses[lane]); });
}

void run_copy_map(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  if (context.worker->memory.counters == nullptr) make_memory_view(context);
  std::uint64_t to[32];
  std::uint64_t from[32];
  compute_addresses(context, detail.address, to);
  compute_addresses(context, detail.as<TensorMapDetail>().from, from);
  order_lanes(context, mask);
  std::uint32_t left = mask;
  while (left != 0) {
    // Lanes with the same addresses copy once. PTX does not say what others do.
    const auto first = static_cast<unsigned>(std::countr_zero(left));
    copy_map(context, step, detail, first, to[first], from[first]);
    for_each_lane(left, [&](unsigned lane) {
      if (to[lane] == to[first] && from[lane] == from[first]) left &= ~(1u << lane);
    });
  }
  order_lanes(context, mask);
}

void run_release_maps(Context& context, const Step& step) {
  if (context.mask(step) == 0 || context.cta->changed_maps == nullptr) return;
  context.cta->changed_maps->release();
}

void run_acquire_map(Context& context, const Step& step) {
  const std::uint32_t mask = context.mask(step);
  if (mask == 0 || context.cta->changed_maps == nullptr) return;
  std::uint64_t addresses[32];
  compute_addresses(context, context.code->memory[step.detail].address, addresses);
  for_each_lane(mask, [&](unsigned lane) { context.cta->changed_maps->acquire(addresses[lane]); });
}

}  // namespace ptxgen::inline v0::emulator
