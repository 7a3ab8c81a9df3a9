// src/emulator/memory/bulk.cpp - checks and delivery of bulk copies
#include "emulator/memory/bulk.hpp"

#include <algorithm>
#include <cstring>

#include "emulator/memory/access.hpp"
#include "emulator/memory/async.hpp"
#include "emulator/memory/bulk_parts.hpp"
#include "emulator/memory/faults.hpp"
#include "emulator/memory/mbarrier.hpp"
#include "emulator/memory/steps.hpp"
#include "emulator/memory/tensor_maps.hpp"
#include "emulator/memory/warpgroup.hpp"
#include "emulator/report/report.hpp"
#include "emulator/state/address_space.hpp"
#include "emulator/state/written_bits.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

using Kind = BulkDetail::Kind;

constexpr std::uint32_t kUnit = kBulkUnit;
constexpr std::uint64_t kMaxDelay =
    12;  ///< maximum additional scheduling rounds of a copy, for seeds other than 0
constexpr std::uint64_t kSectorBytes = 32;

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

BulkCopies& copies_of(Cta& cta) {
  if (cta.bulk == nullptr) cta.bulk = std::make_shared<BulkCopies>();
  return *cta.bulk;
}

namespace {

/// The context of the thread that issued a copy, for findings and race checks.
Context issuer_of(Cta& cta, const BulkCopy& copy) {
  Context context;
  context.warp = &cta.warps[copy.warp];
  context.cta = &cta;
  context.worker = cta.worker;
  context.grid = cta.grid;
  context.counting = cta.grid->options.counters;
  return context;
}

}  // namespace

void notify_range(Races* races, const CopySide& side, RaceAccess::Kind kind, std::uint64_t from,
                  std::uint64_t ticket) {
  if (races == nullptr) return;
  std::uint64_t addresses[32] = {};
  RaceAccess access;
  access.kind = kind;
  access.mask = 1u << side.lane;
  access.bytes = kUnit;
  access.addresses = addresses;
  access.ticket = ticket;
  for (std::uint32_t done = 0; done < side.bytes; done += kUnit) {
    addresses[side.lane] = from + done;
    races->access(side.context, side.step.statement, access);
  }
}

void count_copy(Context& context, const MemoryDetail& detail, const BulkCopy& copy,
                std::uint64_t global) {
  AccessCounters* const counters = counters_of(context, detail);
  if (counters == nullptr) return;
  ++counters->bulk.copies;
  counters->bulk.bytes += copy.bytes;
  if (global == 0 || copy.bytes == 0) return;
  counters->bulk.sectors += (global + copy.bytes - 1) / kSectorBytes - global / kSectorBytes + 1;
}

void enqueue(Context& context, const Step& step, const MemoryDetail& detail, unsigned lane,
             BulkCopy& copy) {
  BulkCopies& all = copies_of(*context.cta);
  const std::uint64_t seed = context.grid->options.seed;
  copy.step = &step;
  copy.detail = &detail;
  copy.warp = context.warp->index;
  copy.lane = lane;
  const std::uint64_t random = seed ^ mixed(context.cta->order + 1) ^ mixed(++all.tickets << 20);
  copy.due = context.cta->schedule_round + 1 + (seed == 0 ? 0 : mixed(random) % kMaxDelay);
  all.pending.push_back(copy);
}

namespace {

/// Copies bytes and their written bits to global memory or to a block's shared memory.
template <bool Concurrent>
void move_bytes(const BulkCopy& copy, std::byte* to, std::uint64_t* written, std::uint64_t first) {
  for (std::uint32_t done = 0; done < copy.bytes;) {
    const std::uint32_t bytes = std::min(copy.bytes - done, kUnit);
    std::byte data[kUnit];
    load_bytes(data, copy.from + done, bytes);
    store_bytes(to + done, data, bytes);
    done += bytes;
  }
  if (copy.bytes == 0) return;
  if (copy.from_written == nullptr || all_written(copy.from_written, copy.from_first, copy.bytes)) {
    mark_written<Concurrent>(written, first, copy.bytes);
    return;
  }
  for (std::uint32_t i = 0; i < copy.bytes; ++i) {
    if (all_written(copy.from_written, copy.from_first + i, 1)) {
      mark_written<Concurrent>(written, first + i, 1);
    }
  }
}

/// What a copy writes to a block's shared memory. A box may have gaps, which count as written.
BulkWrite written_by(const BulkCopy& copy, const Cta& target, const Cta& issuer) {
  const std::uint64_t bytes = copy.tensor != nullptr ? copy.tensor->span : copy.bytes;
  return {&target, copy.to, bytes, copy.step->statement, &issuer, copy.warp, copy.lane};
}

void deliver_to_block(Cta& cta, const BulkCopy& copy, Cta& target) {
  Context context = issuer_of(cta, copy);
  const CopySide side{context, *copy.step, *copy.detail, copy.lane, copy.bytes, true};
  const AccessRequest asked = side.request();
  const Cta* const other = &target != &cta ? &target : nullptr;
  if (other != nullptr && has_left(target)) {
    report_exited(
        {context, *copy.step, *copy.detail, asked, ptx::Space::Shared, copy.lane, copy.to, other});
    return;
  }
  if (copy.from != nullptr || copy.tensor != nullptr) {
    if (copy.tensor != nullptr) {
      load_box(target, *copy.tensor);
    } else {
      move_bytes<false>(copy, target.shared + copy.to, target.shared_written, copy.to);
    }
    BulkCopies::Arrived arrived;
    arrived.write = written_by(copy, target, cta);
    arrived.barrier = copy.barrier;
    copies_of(target).arrived.push_back(arrived);
  }
  const std::uint32_t completed = copy.size_unknown ? kAllBytes : copy.bytes;
  if (!complete_bytes(target, copy.barrier, completed)) {
    report_no_object({context, *copy.step, *copy.detail, asked, ptx::Space::Shared, copy.lane,
                      copy.barrier, other});
  }
}

void deliver(Cta& cta, BulkCopy& copy) {
  if (copy.kind == Kind::Store) {
    AddressSpace& space = *cta.grid->space;
    if (copy.tensor != nullptr) {
      store_box(cta, *copy.tensor);
    } else {
      move_bytes<true>(copy, space.host(copy.to), space.written(), copy.to - kGlobalBase);
    }
    cta.bulk->stores.push_back(copy);
    return;
  }
  if (copy.kind == Kind::Value) copy.from = copy.value.data();
  for_each_lane(copy.blocks,
                [&](unsigned rank) { deliver_to_block(cta, copy, *cta.cluster->blocks[rank]); });
}

void deliver_at(Cta& cta, std::size_t index) {
  std::vector<BulkCopy>& pending = cta.bulk->pending;
  BulkCopy copy = pending[index];
  pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(index));
  deliver(cta, copy);
}

}  // namespace

bool find_barrier(Context& context, const Step& step, const MemoryDetail& detail, unsigned lane,
                  std::uint64_t address, const Cta& block, std::uint64_t& offset) {
  const CopySide side{context, step, detail, lane, 8, true};
  Cta* owner = nullptr;
  offset = address;
  if (!side.shared(offset, owner, true, 8)) return false;
  if (owner == &block) return true;
  context.grid->reporter->report(context, step.statement, Rule::InvalidAddress, lane, [&] {
    return FindingText{
        format_text(
            "the copy writes shared memory of rank {} of the cluster, but its mbarrier is in "
            "that of rank {}",
            block.rank, owner->rank),
        {"use mapa with the same rank for the destination and the mbarrier"}};
  });
  return false;
}

namespace {

/// Whether a size is valid for a bulk copy.
bool check_size(Context& context, const Step& step, unsigned lane, std::uint64_t bytes) {
  if (bytes % kUnit == 0) return true;
  context.grid->reporter->report(context, step.statement, Rule::Misaligned, lane, [&] {
    return FindingText{format_text("thread copies {} in bulk, which is not a multiple of 16",
                                   count_text(bytes, "byte")),
                       {"round the size up and pad the data, or copy the rest with ld and st"}};
  });
  return false;
}

}  // namespace

std::uint32_t ranks_of(const Context& context, const Slot& mask, unsigned lane) {
  const auto named = static_cast<std::uint32_t>(get_lane(context, mask, lane));
  const auto blocks = static_cast<std::uint32_t>(context.cta->cluster->blocks.size());
  const std::uint32_t all = (1u << blocks) - 1;
  return named & 0xffffu & all;
}

void notify_write(Context& context, const Step& step, const BulkCopy& copy, unsigned lane) {
  for_each_lane(copy.blocks, [&](unsigned rank) {
    Cta& target = *context.cta->cluster->blocks[rank];
    if (target.races == nullptr || copy.bytes == 0) return;
    BulkCopy issued = copy;
    issued.step = &step;
    issued.warp = context.warp->index;
    issued.lane = lane;
    target.races->bulk_write(context, written_by(issued, target, *context.cta));
  });
}

namespace {

/// Copies global or own shared memory to the shared memory of a block of the cluster.
void copy_to_shared(Context& context, const Step& step, const MemoryDetail& detail, unsigned lane,
                    std::uint64_t to, std::uint64_t from, std::uint64_t barrier) {
  const BulkDetail& bulk = detail.as<BulkDetail>();
  const bool from_global = bulk.kind == Kind::Load;
  BulkCopy copy;
  copy.kind = bulk.kind;
  copy.bytes = static_cast<std::uint32_t>(get_lane(context, bulk.bytes, lane));
  const CopySide target{context, step, detail, lane, copy.bytes, true};
  const CopySide source{context, step, detail, lane, copy.bytes, false};
  Cta* owner = nullptr;
  Cta* own = nullptr;
  bool good = check_size(context, step, lane, copy.bytes);
  good = good && target.shared(to, owner, detail.cluster);
  if (owner == nullptr) owner = context.cta;
  if (!find_barrier(context, step, detail, lane, barrier, *owner, copy.barrier)) return;
  const std::uint64_t asked_from = from;
  good = good && (from_global ? source.global(from) : source.shared(from, own, false));
  copy.to = to;
  copy.blocks = bulk.ranks.present() ? ranks_of(context, bulk.ranks, lane) : 1u << owner->rank;
  if (good) {
    copy.ticket = AsyncCopies::of(context).new_ticket();
    if (from_global) {
      copy.from = context.grid->space->host(from);
      copy.from_written = context.grid->space->written();
      copy.from_first = from - kGlobalBase;
      notify_range(context.grid->races.get(), source, RaceAccess::Kind::AsyncRead, from,
                   copy.ticket);
    } else {
      copy.from = context.cta->shared + from;
      copy.from_written = context.cta->shared_written;
      copy.from_first = from;
      notify_range(context.cta->races.get(), source, RaceAccess::Kind::Read, from, copy.ticket);
    }
    notify_write(context, step, copy, lane);
    count_copy(context, detail, copy, from_global ? asked_from : 0);
  }
  // After a finding, only complete the bytes at the mbarrier, to avoid a deadlock finding.
  enqueue(context, step, detail, lane, copy);
}

void copy_to_global(Context& context, const Step& step, const MemoryDetail& detail, unsigned lane,
                    std::uint64_t to, std::uint64_t from) {
  BulkCopy copy;
  copy.kind = Kind::Store;
  copy.bytes = static_cast<std::uint32_t>(get_lane(context, detail.as<BulkDetail>().bytes, lane));
  const CopySide target{context, step, detail, lane, copy.bytes, true};
  const CopySide source{context, step, detail, lane, copy.bytes, false};
  Cta* own = nullptr;
  if (!check_size(context, step, lane, copy.bytes) || !source.shared(from, own, false) ||
      !target.global(to)) {
    return;
  }
  copy.ticket = AsyncCopies::of(context).new_ticket();
  copy.from = context.cta->shared + from;
  copy.from_written = context.cta->shared_written;
  copy.from_first = from;
  copy.to = to;
  notify_range(context.cta->races.get(), source, RaceAccess::Kind::AsyncRead, from, copy.ticket);
  notify_range(context.grid->races.get(), target, RaceAccess::Kind::AsyncWrite, to, copy.ticket);
  count_copy(context, detail, copy, to);
  enqueue(context, step, detail, lane, copy);
}

std::uint32_t& groups_of(Context& context, unsigned lane) {
  BulkCopies& all = copies_of(*context.cta);
  all.groups.resize(context.cta->warps.size() * kLanes, 0);
  return all.groups[context.warp->first_thread + lane];
}

}  // namespace

void run_copy_bulk(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  if (context.worker->memory.counters == nullptr) make_memory_view(context);
  context.warp->failed_poll.consecutive = 0;
  std::uint64_t to[32];
  std::uint64_t from[32];
  std::uint64_t barrier[32];
  const BulkDetail& bulk = detail.as<BulkDetail>();
  compute_addresses(context, detail.address, to);
  compute_addresses(context, bulk.from, from);
  if (bulk.kind == Kind::Store) {
    for_each_lane(mask, [&](unsigned lane) {
      copy_to_global(context, step, detail, lane, to[lane], from[lane]);
    });
    return;
  }
  compute_addresses(context, bulk.barrier, barrier);
  for_each_lane(mask, [&](unsigned lane) {
    copy_to_shared(context, step, detail, lane, to[lane], from[lane], barrier[lane]);
  });
}

void run_store_async(Context& context, const Step& step) {
  const MemoryDetail& detail = context.code->memory[step.detail];
  const std::uint32_t mask = context.mask(step);
  if (mask == 0) return;
  if (context.worker->memory.counters == nullptr) make_memory_view(context);
  context.warp->failed_poll.consecutive = 0;
  std::uint64_t to[32];
  std::uint64_t barrier[32];
  compute_addresses(context, detail.address, to);
  compute_addresses(context, detail.as<BulkDetail>().barrier, barrier);
  for_each_lane(mask, [&](unsigned lane) {
    BulkCopy copy;
    copy.kind = Kind::Value;
    copy.bytes = std::uint32_t{detail.element_bytes} * detail.elements;
    const CopySide target{context, step, detail, lane, copy.bytes, true};
    Cta* owner = nullptr;
    copy.to = to[lane];
    if (!target.shared(copy.to, owner, true, copy.bytes) ||
        !find_barrier(context, step, detail, lane, barrier[lane], *owner, copy.barrier)) {
      return;
    }
    for (std::size_t i = 0; i < detail.data.size(); ++i) {
      get_element(context, detail.data[i], lane, copy.value.data() + i * detail.element_bytes,
                  detail.element_bytes);
    }
    copy.blocks = 1u << owner->rank;
    notify_write(context, step, copy, lane);
    count_copy(context, detail, copy, 0);
    enqueue(context, step, detail, lane, copy);
  });
}

void run_commit_bulk(Context& context, const Step& step) {
  for_each_lane(context.mask(step), [&](unsigned lane) {
    const std::uint32_t group = groups_of(context, lane)++;
    BulkCopies& all = *context.cta->bulk;
    for (std::vector<BulkCopy>* list : {&all.pending, &all.stores}) {
      for (BulkCopy& copy : *list) {
        if (copy.kind != Kind::Store || copy.committed || copy.lane != lane ||
            copy.warp != context.warp->index) {
          continue;
        }
        copy.committed = true;
        copy.group = group;
      }
    }
  });
}

void run_wait_bulk(Context& context, const Step& step) {
  const auto& wait = context.code->memory[step.detail].as<WaitGroupDetail>();
  for_each_lane(context.mask(step), [&](unsigned lane) {
    const std::uint64_t groups = groups_of(context, lane);
    BulkCopies& all = *context.cta->bulk;
    const auto waited_for = [&](const BulkCopy& copy) {
      return copy.kind == Kind::Store && copy.committed && copy.lane == lane &&
             copy.warp == context.warp->index && copy.group + wait.max_pending < groups;
    };
    for (std::size_t i = 0; i < all.pending.size();) {
      if (waited_for(all.pending[i])) {
        deliver_at(*context.cta, i);
      } else {
        ++i;
      }
    }
    std::uint64_t through = 0;
    for (const BulkCopy& copy : all.stores) {
      if (waited_for(copy)) through = std::max(through, copy.ticket);
    }
    std::erase_if(all.stores, waited_for);
    if (through != 0 && context.cta->races) {
      context.cta->races->async_complete(context, 1u << lane, through);
    }
  });
}

void deliver_due(Cta& cta) {
  for (std::size_t i = 0; i < cta.bulk->pending.size();) {
    if (cta.bulk->pending[i].due <= cta.schedule_round) {
      deliver_at(cta, i);
    } else {
      ++i;
    }
  }
}

bool deliver_next(Cta& cta) {
  const std::vector<BulkCopy>& pending = cta.bulk->pending;
  if (pending.empty()) return false;
  const auto first = std::ranges::min_element(pending, {}, &BulkCopy::due);
  deliver_at(cta, static_cast<std::size_t>(first - pending.begin()));
  return true;
}

void deliver_all(Cta& cta) {
  if (cta.bulk == nullptr) return;
  while (deliver_next(cta)) {
  }
}

void report_unfinished(Cta& cta) {
  forget_matrices(cta);
  forget_changed_maps(cta);
  if (cta.bulk == nullptr) return;
  BulkCopies& all = *cta.bulk;
  const auto report = [&](Cta& issuer, std::uint32_t statement, std::uint32_t warp,
                          std::uint32_t lane, const char* message, const char* remedy) {
    BulkCopy copy;
    copy.warp = warp;
    const Context context = issuer_of(issuer, copy);
    cta.grid->reporter->report(context, statement, Rule::UnfinishedCopy, lane, [&] {
      return FindingText{message, {remedy}};
    });
  };
  if (!cta.killed) {
    for (const BulkCopies::Arrived& copy : all.arrived) {
      const BulkWrite& write = copy.write;
      report(*cta.cluster->blocks[write.issuer->rank], write.statement, write.warp, write.lane,
             "no thread waits for this bulk copy before its block exits; the copy may then write "
             "memory of another block",
             "wait for the mbarrier of the copy in a thread of the block "
             "(mbarrier.try_wait.parity)");
    }
    for (const BulkCopy& copy : all.stores) {
      report(cta, copy.step->statement, copy.warp, copy.lane,
             "the thread does not wait for this bulk copy before its block exits; the copy may "
             "then read memory of another block",
             "end with cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0");
    }
  }
  all.pending.clear();
  all.stores.clear();
  all.arrived.clear();
  std::ranges::fill(all.groups, 0u);
  all.tickets = 0;
}

}  // namespace ptxgen::inline v0::emulator
