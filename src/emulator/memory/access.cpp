// src/emulator/memory/access.cpp - checks and targets of a warp-level memory access
#include "emulator/memory/access.hpp"

#include <algorithm>
#include <cstring>

#include "emulator/memory/faults.hpp"
#include "emulator/report/report.hpp"
#include "emulator/state/address_space.hpp"
#include "emulator/state/written_bits.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

/// An access to one state space, while it is checked.
struct SpaceAccess {
  Context& context;
  const Step& step;
  const MemoryDetail& detail;
  const AccessRequest& request;
  AccessTargets& out;
  std::uint32_t mask = 0;
  std::array<std::uint64_t, 32> address;  ///< in the space: device address or offset
};

void check_alignment(SpaceAccess& part, ptx::Space space) {
  const MemoryView& view = part.context.worker->memory;
  if (!view.check_aligned) return;
  const std::uint64_t low = part.request.alignment - 1;
  for_each_lane(part.mask, [&](unsigned lane) {
    if ((part.address[lane] & low) == 0) return;
    report_misaligned(
        {part.context, part.step, part.detail, part.request, space, lane, part.address[lane]});
    // Hardware faults here: a result would be one that no GPU gives.
    part.mask &= ~(1u << lane);
  });
}

/// A load of which only some bytes are used: each run of them is an access for the race check.
void watch_used(const SpaceAccess& part, Races& races, const RaceAccess& full) {
  for (std::uint64_t left = part.request.used; left != 0;) {
    const auto first = static_cast<unsigned>(std::countr_zero(left));
    const auto count = static_cast<unsigned>(std::countr_one(left >> first));
    left &= ~(low_mask(count) << first);
    std::array<std::uint64_t, 32> addresses = part.address;
    for (std::uint64_t& address : addresses) address += first;
    RaceAccess run = full;
    run.addresses = addresses.data();
    run.bytes = static_cast<std::uint8_t>(count);
    races.access(part.context, part.step.statement, run);
  }
}

/// `others`: the check of the other memory, which must learn what this access synchronises.
void hook_races(SpaceAccess& part, Races* races, Races* others = nullptr,
                const Cta* owner = nullptr) {
  const bool strong =
      part.request.kind == RaceAccess::Kind::Atomic ||
      (part.detail.order != ptx::Modifier::none && part.detail.order != ptx::Modifier::weak);
  if (!strong) others = nullptr;
  if ((races == nullptr && others == nullptr) || part.mask == 0) return;
  RaceAccess access;
  access.kind = part.request.kind;
  access.order = part.detail.order;
  access.scope = part.detail.scope;
  access.mask = part.mask;
  access.bytes = static_cast<std::uint8_t>(part.request.bytes);
  access.unit = part.detail.elements > 1 ? part.detail.element_bytes : std::uint8_t{0};
  access.addresses = part.address.data();
  access.values = part.request.values;
  access.value_stride = part.request.value_stride;
  access.ticket = part.request.ticket;
  access.owner = owner;
  if (races != nullptr && part.request.used == 0) {
    races->access(part.context, part.step.statement, access);
  } else if (races != nullptr) {
    watch_used(part, *races, access);
  }
  if (others != nullptr) others->synchronise(part.context, part.step.statement, access);
}

void count(SpaceAccess& part, ptx::Space space) {
  if (part.mask == 0 || !part.request.count) return;
  count_access(part.context, part.detail, space, part.address.data(), part.mask,
               part.request.bytes);
}

/// Whether required bytes were never written; `required`: elements, see MemoryDetail.
bool lacks_bytes(const std::uint64_t* words, std::uint64_t first, const AccessRequest& request,
                 const MemoryDetail& detail, std::uint8_t required) noexcept {
  if (request.used != 0) {
    const std::uint64_t missing =
        request.used & ~written_mask(words, first, request.bytes) & low_mask(request.bytes);
    for (unsigned i = 0; i < detail.elements; ++i) {
      const std::uint64_t own = missing >> (i * detail.element_bytes);
      if ((required >> i & 1) != 0 && (own & low_mask(detail.element_bytes)) != 0) return true;
    }
    return false;
  }
  if (all_written(words, first, request.bytes)) return false;
  if (required == 0xff || detail.elements == 1) return required != 0;
  for (unsigned i = 0; i < detail.elements; ++i) {
    if ((required >> i & 1) == 0) continue;
    if (!all_written(words, first + i * detail.element_bytes, detail.element_bytes)) return true;
  }
  return false;
}

/// Lanes out of bounds in memory that a GPU maps. No other rule checks them.
template <class Host>
void resolve_mapped(SpaceAccess& part, ptx::Space space, std::uint32_t lanes, Host&& host) {
  const std::uint32_t own = part.mask;
  part.mask = lanes;
  check_alignment(part, space);
  for_each_lane(part.mask, [&](unsigned lane) { part.out.host[lane] = host(lane); });
  part.out.mask |= part.mask;
  part.mask = own;
}

/// Bounds and read-only allocations of global memory.
class GlobalCheck {
 public:
  GlobalCheck(SpaceAccess& part, ptx::Space space)
      : part_(part),
        space_(space),
        memory_(*part.context.grid->space),
        races_(part.context.grid->races.get()) {}

  /// `last`: the allocation that the instruction accessed last. Removes failing lanes from the
  /// mask.
  void run(LastAllocation& last) {
    const AccessRequest& request = part_.request;
    if (last.generation != memory_.generation()) last = {};
    for_each_lane(part_.mask, [&](unsigned lane) {
      const std::uint64_t address = part_.address[lane];
      if (address - last.start >= last.bytes && !find(address, last)) return out_of_bounds(lane);
      if (request.needed() > last.bytes - (address - last.start)) return out_of_bounds(lane);
      if (request.writes && !last.writable) {
        report_readonly(fault(lane));
        part_.mask &= ~(1u << lane);
        return;
      }
      if (request.writes && races_ != nullptr && !last.watched) throw Replay{true};
      watched |= last.watched;
    });
  }

  std::uint32_t slack = 0;  ///< out of bounds, but in memory that a GPU maps
  bool watched = false;     ///< by the race check

 private:
  [[nodiscard]] Fault fault(unsigned lane) const {
    return {part_.context, part_.step, part_.detail,       part_.request,
            space_,        lane,       part_.address[lane]};
  }
  bool find(std::uint64_t address, LastAllocation& last) const {
    const std::uint64_t generation = memory_.generation();
    const Allocation* const found = memory_.find(address);
    if (found == nullptr || found->freed) return false;
    last = {found->start, found->bytes, generation,
            !found->read_only && found->kind != AllocationKind::Constant,
            races_ != nullptr && races_->watches(found->start)};
    return true;
  }
  void out_of_bounds(unsigned lane) {
    const bool mapped = report_bounds(fault(lane));
    if (mapped && part_.context.grid->options.mapped_pages) slack |= 1u << lane;
    part_.mask &= ~(1u << lane);
  }

  SpaceAccess& part_;
  ptx::Space space_;
  AddressSpace& memory_;
  Races* races_;
};

void resolve_global(SpaceAccess& part, ptx::Space space) {
  Context& context = part.context;
  AddressSpace& memory = *context.grid->space;
  const MemoryView& view = context.worker->memory;
  const AccessRequest& request = part.request;
  LastAllocation local;
  AccessCounters* const counters =
      part.detail.counter == kNoIndex ? nullptr : view.counters + part.detail.counter;
  GlobalCheck check(part, space);
  check.run(counters != nullptr ? counters->last : local);
  check_alignment(part, space);
  if (check.slack != 0) {
    resolve_mapped(part, space, check.slack, [&](unsigned lane) {
      return memory.slack(part.address[lane], request.bytes, request.writes && request.mark);
    });
  }
  const bool check_written = view.check_written && request.reads && request.check_written;
  for_each_lane(part.mask, [&](unsigned lane) {
    const std::uint64_t offset = part.address[lane] - kGlobalBase;
    if (check_written && lacks_bytes(memory.written(), offset, request, part.detail,
                                     part.detail.required.elements)) {
      report_unwritten({context, part.step, part.detail, request, space, lane, part.address[lane]});
    }
    part.out.host[lane] = memory.host(part.address[lane]);
  });
  // Without writes by any thread there is no release to record.
  if (check.watched || context.grid->races == nullptr) {
    hook_races(part, context.grid->races.get(), context.cta->races.get());
  }
  if (request.writes && request.mark) {
    for_each_lane(part.mask, [&](unsigned lane) {
      mark_written<true>(memory.written(), part.address[lane] - kGlobalBase, request.bytes);
    });
  }
  count(part, ptx::Space::Global);
}

/// Bounds of memory that begins at offset 0. Returns the lanes out of bounds in memory that a GPU
/// maps.
std::uint32_t check_offsets(SpaceAccess& part, ptx::Space space, std::uint64_t size) {
  std::uint32_t mapped = 0;
  const std::uint64_t window = window_start(space);
  for_each_lane(part.mask, [&](unsigned lane) {
    std::uint64_t& address = part.address[lane];
    // Compilers also pass generic addresses, truncated or not, to ld.shared.
    if (in_window(address, window)) address -= window;
    if (address < size && part.request.needed() <= size - address) return;
    if (report_bounds({part.context, part.step, part.detail, part.request, space, lane, address})) {
      mapped |= 1u << lane;
    }
    part.mask &= ~(1u << lane);
  });
  return part.context.grid->options.mapped_pages ? mapped : 0;
}

/// The addresses of `part.mask` are offsets in the shared memory of one block of the cluster.
void resolve_block(SpaceAccess& part, Cta& cta) {
  const AccessRequest& request = part.request;
  const bool check_written =
      part.context.worker->memory.check_written && request.reads && request.check_written;
  for_each_lane(part.mask, [&](unsigned lane) {
    const std::uint64_t offset = part.address[lane];
    if (check_written && lacks_bytes(cta.shared_written, offset, request, part.detail,
                                     part.detail.required.elements)) {
      report_unwritten({part.context, part.step, part.detail, request, ptx::Space::Shared, lane,
                        offset, &cta != part.context.cta ? &cta : nullptr});
    }
    part.out.host[lane] = cta.shared + offset;
  });
  hook_races(part, cta.races.get(), part.context.grid->races.get(), &cta);
  if (request.writes && request.mark) {
    for_each_lane(part.mask, [&](unsigned lane) {
      mark_written<false>(cta.shared_written, part.address[lane], request.bytes);
    });
  }
}

/// Lanes that access the shared memory of other blocks of the cluster.
void resolve_peers(SpaceAccess& part) {
  Context& context = part.context;
  std::array<std::uint32_t, kMaxCluster> lanes_of{};
  for_each_lane(part.mask, [&](unsigned lane) {
    std::uint64_t address = part.address[lane];
    Cta* owner = nullptr;
    if (!find_owner(context, address, owner)) return;
    part.address[lane] = address;
    if (owner == context.cta) return;
    part.mask &= ~(1u << lane);
    const Fault fault{context, part.step, part.detail, part.request, ptx::Space::Shared,
                      lane,    address,   owner};
    if (!part.detail.cluster) return report_not_own(fault);
    if (has_left(*owner)) return report_exited(fault);
    if (address >= owner->shared_bytes || part.request.bytes > owner->shared_bytes - address) {
      static_cast<void>(report_bounds(fault));
      return;
    }
    if (context.worker->memory.check_aligned && address % part.request.alignment != 0) {
      return report_misaligned(fault);
    }
    lanes_of[owner->rank] |= 1u << lane;
  });
  const std::uint32_t own = part.mask;
  std::uint32_t reached = 0;
  for (Cta* owner : context.cta->cluster->blocks) {
    part.mask = lanes_of[owner->rank];
    if (part.mask == 0) continue;
    for_each_lane(part.mask, [&](unsigned lane) {
      part.out.rank[lane] = static_cast<std::uint8_t>(owner->rank);
    });
    resolve_block(part, *owner);
    reached |= part.mask;
  }
  part.mask = own;
  part.out.peers |= reached;
  part.out.mask |= reached;
  AccessCounters* const counters = counters_of(context, part.detail);
  if (counters == nullptr || reached == 0 || !part.request.count) return;
  ++counters->peer.requests;
  counters->peer.bytes += static_cast<std::uint64_t>(std::popcount(reached)) * part.request.bytes;
}

void resolve_shared(SpaceAccess& part) {
  Cta& cta = *part.context.cta;
  std::uint64_t high = 0;
  for_each_lane(part.mask, [&](unsigned lane) { high |= part.address[lane]; });
  if (high >= kPeerBytes) {
    resolve_peers(part);
    if (part.mask == 0) return;
  }
  const std::uint32_t slack = check_offsets(part, ptx::Space::Shared, cta.shared_bytes);
  check_alignment(part, ptx::Space::Shared);
  if (slack != 0) {
    resolve_mapped(part, ptx::Space::Shared, slack,
                   [&](unsigned lane) { return cta.shared + part.address[lane]; });
  }
  resolve_block(part, cta);
  count(part, ptx::Space::Shared);
}

void resolve_local(SpaceAccess& part) {
  Context& context = part.context;
  Cta& cta = *context.cta;
  const AccessRequest& request = part.request;
  const std::uint64_t stride = cta.local_stride;
  static_cast<void>(check_offsets(part, ptx::Space::Local, local_end(context)));
  check_alignment(part, ptx::Space::Local);
  const bool check_written = context.worker->memory.check_written && request.reads &&
                             request.check_written && !part.detail.is_param;
  for_each_lane(part.mask, [&](unsigned lane) {
    const std::uint64_t place = (context.warp->first_thread + lane) * stride + part.address[lane];
    if (check_written && lacks_bytes(cta.local_written, place, request, part.detail,
                                     part.detail.required.local_elements)) {
      report_unwritten(
          {context, part.step, part.detail, request, ptx::Space::Local, lane, part.address[lane]});
    }
    if (request.writes && request.mark)
      mark_written<false>(cta.local_written, place, request.bytes);
    part.out.host[lane] = cta.local + place;
  });
  if (!part.detail.is_param) count(part, ptx::Space::Local);
}

void resolve_param(SpaceAccess& part) {
  Context& context = part.context;
  const std::vector<std::byte>& block = context.grid->parameters;
  static_cast<void>(check_offsets(part, ptx::Space::Param, block.size()));
  if (part.request.writes) {
    for_each_lane(part.mask, [&](unsigned lane) {
      report_readonly({context, part.step, part.detail, part.request, ptx::Space::Param, lane,
                       part.address[lane]});
    });
    part.mask = 0;
  }
  check_alignment(part, ptx::Space::Param);
  for_each_lane(part.mask, [&](unsigned lane) {
    // Only read: stores were refused above.
    part.out.host[lane] = const_cast<std::byte*>(block.data()) + part.address[lane];
  });
}

void resolve_space(SpaceAccess& part, ptx::Space space) {
  switch (space) {
    case ptx::Space::Shared:
      resolve_shared(part);
      break;
    case ptx::Space::Local:
      resolve_local(part);
      break;
    case ptx::Space::Param:
      resolve_param(part);
      break;
    default:
      resolve_global(part, space);
      break;
  }
  part.out.mask |= part.mask;
}

template <unsigned Bytes>
__attribute__((no_sanitize("thread"))) inline void copy_constant(std::byte* to,
                                                                 const std::byte* from) noexcept {
  __builtin_memcpy(to, from, Bytes);
}

__attribute__((no_sanitize("thread"))) void copy_bytes(std::byte* to, const std::byte* from,
                                                       unsigned bytes) noexcept {
  switch (bytes) {
    case 1:
      return copy_constant<1>(to, from);
    case 2:
      return copy_constant<2>(to, from);
    case 4:
      return copy_constant<4>(to, from);
    case 8:
      return copy_constant<8>(to, from);
    case 16:
      return copy_constant<16>(to, from);
    case 32:
      copy_constant<16>(to, from);
      return copy_constant<16>(to + 16, from + 16);
    default:
      for (unsigned i = 0; i < bytes; ++i) copy_constant<1>(to + i, from + i);
  }
}

}  // namespace

void load_bytes(std::byte* to, const std::byte* from, unsigned bytes) noexcept {
  copy_bytes(to, from, bytes);
}

void store_bytes(std::byte* to, const std::byte* from, unsigned bytes) noexcept {
  copy_bytes(to, from, bytes);
}

void host_fence() noexcept {
  // An exchange is a full barrier as a fence is, and ThreadSanitizer supports it.
  int nothing = 0;
  static_cast<void>(__atomic_exchange_n(&nothing, 1, __ATOMIC_SEQ_CST));
}

void make_memory_view(Context& context) {
  Worker& worker = *context.worker;
  const Grid& grid = *context.grid;
  MemoryView& view = worker.memory;
  view.global = grid.space->host(kGlobalBase);
  view.written = grid.space->written();
  view.generation = grid.space->generation_word();
  view.check_written = grid.options.checks.has(Rule::UninitializedRead);
  view.check_aligned = grid.options.checks.has(Rule::Misaligned);
  view.global_races = grid.races != nullptr;
  view.shared_races =
      grid.options.checks.has(Rule::SharedRace) || grid.options.checks.has(Rule::RaceSameValue);
  view.counters = worker.memory_counters.data();
}

void compute_addresses(const Context& context, const AddressOperand& operand,
                       std::uint64_t addresses[32]) {
  const Slot& base = operand.base;
  const std::uint64_t offset = operand.offset;
  if (!base.present()) {
    std::fill_n(addresses, 32, offset);
  } else if (base.lane_bytes == 8) {
    const std::uint64_t* const lanes = context.lanes<std::uint64_t>(base.offset);
    for (unsigned lane = 0; lane < 32; ++lane) addresses[lane] = lanes[lane] + offset;
  } else {
    // 32-bit addresses wrap at 32 bits, whatever the offset.
    const std::uint32_t* const lanes = context.lanes<std::uint32_t>(base.offset);
    for (unsigned lane = 0; lane < 32; ++lane) {
      addresses[lane] = lanes[lane] + static_cast<std::uint32_t>(offset);
    }
  }
}

void resolve_access(Context& context, const Step& step, const MemoryDetail& detail,
                    const AccessRequest& request, AccessTargets& out) {
  if (context.worker->memory.counters == nullptr) make_memory_view(context);
  out.mask = out.peers = 0;
  if (request.space != ptx::Space::Generic) {
    SpaceAccess part{context, step, detail, request, out, request.mask, {}};
    std::copy_n(request.addresses, 32, part.address.begin());
    resolve_space(part, request.space);
    return;
  }
  std::uint32_t left = request.mask;
  for (const ptx::Space space :
       {ptx::Space::Global, ptx::Space::Shared, ptx::Space::Local, ptx::Space::Param}) {
    std::uint32_t mask = 0;
    for_each_lane(left, [&](unsigned lane) {
      if (window_of(request.addresses[lane]) == space) mask |= 1u << lane;
    });
    if (mask == 0) continue;
    left &= ~mask;
    SpaceAccess part{context, step, detail, request, out, mask, {}};
    const std::uint64_t window = window_start(space);
    for_each_lane(mask,
                  [&](unsigned lane) { part.address[lane] = request.addresses[lane] - window; });
    resolve_space(part, space);
  }
}

AccessCounters* counters_of(Context& context, const MemoryDetail& detail) {
  if (!context.counting || detail.counter == kNoIndex) return nullptr;
  return &context.worker->memory_counters[detail.counter];
}

void add_request(MemoryCounters& counters, const SectorCount& count, std::uint64_t bytes) noexcept {
  ++counters.requests;
  counters.sectors += count.sectors;
  counters.ideal_sectors += count.ideal;
  counters.bytes += bytes;
}

void add_request(SharedCounters& counters, const WavefrontCount& count,
                 std::uint64_t bytes) noexcept {
  ++counters.requests;
  counters.wavefronts += count.wavefronts;
  counters.ideal_wavefronts += count.ideal;
  counters.bank_conflicts += count.wavefronts - count.ideal;
  counters.bytes += bytes;
}

void count_access(Context& context, const MemoryDetail& detail, ptx::Space space,
                  const std::uint64_t addresses[32], std::uint32_t mask, unsigned bytes) {
  AccessCounters* const counters = counters_of(context, detail);
  if (counters == nullptr || mask == 0 || detail.uncounted) return;
  const std::uint64_t total = static_cast<std::uint64_t>(std::popcount(mask)) * bytes;
  if (space == ptx::Space::Shared) {
    add_request(counters->shared, count_wavefronts(addresses, mask, bytes), total);
  } else if (space == ptx::Space::Local) {
    add_request(counters->local, count_local_sectors(addresses, mask, bytes), total);
  } else {
    add_request(counters->memory, count_sectors(addresses, mask, bytes), total);
  }
}

std::uint64_t extended(std::uint64_t bits, unsigned element_bytes, const Slot& slot) noexcept {
  const unsigned width = element_bytes * 8;
  if (!slot.is_signed || width >= slot.register_bits) return bits;
  const unsigned unused = 64 - width;
  const auto value =
      static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
  return slot.register_bits >= 64 ? value : value & ((std::uint64_t{1} << slot.register_bits) - 1);
}

void set_element(const Context& context, const Slot& slot, unsigned lane, const std::byte* data,
                 unsigned bytes) noexcept {
  if (!slot.present()) return;
  if (slot.lane_bytes == 16) {
    std::byte* const to = context.frame + slot.offset + std::size_t{16} * lane;
    std::memset(to, 0, 16);
    std::memcpy(to, data, std::min(bytes, 16u));
    return;
  }
  std::uint64_t bits = 0;
  std::memcpy(&bits, data, std::min(bytes, 8u));
  set_lane(context, slot, lane, extended(bits, bytes, slot));
}

void get_element(const Context& context, const Slot& slot, unsigned lane, std::byte* data,
                 unsigned bytes) noexcept {
  if (slot.lane_bytes == 16) {
    std::memcpy(data, context.frame + slot.offset + std::size_t{16} * lane, std::min(bytes, 16u));
    return;
  }
  const std::uint64_t bits = get_lane(context, slot, lane);
  std::memset(data, 0, bytes);
  std::memcpy(data, &bits, std::min(bytes, 8u));
}

}  // namespace ptxgen::inline v0::emulator
