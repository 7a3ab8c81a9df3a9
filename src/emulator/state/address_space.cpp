// src/emulator/state/address_space.cpp - the global memory of an emulated GPU
#include "emulator/state/address_space.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "emulator/state/race_shadow.hpp"
#include "emulator/state/written_bits.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

constexpr std::uint64_t kUnknownMemory = std::uint64_t{64}
                                         << 30;  ///< of a GPU of unknown memory size
constexpr std::uint64_t kMinReservation = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxReservation = std::uint64_t{16} << 40;

constexpr std::uint64_t rounded_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Bytes of the red zones before and after an allocation. Addresses cost nothing, pages do: a large
/// allocation has wide red zones, which also catch a wrong stride, a small one narrow ones.
constexpr std::uint64_t red_zone(std::uint64_t bytes) {
  return rounded_up(std::clamp<std::uint64_t>(bytes / 4, 256, std::uint64_t{1} << 20),
                    kAllocationAlignment);
}

std::uint64_t span_of(std::uint64_t bytes) {
  return rounded_up(bytes, kAllocationAlignment) + 2 * red_zone(bytes);
}

std::string called(std::string_view name) {
  return name.empty() ? std::string("an allocation") : std::string(name);
}

}  // namespace

AddressSpace::AddressSpace(const ptx::Gpu& gpu) : gpu_(gpu) {
  if (gpu_.memory_bytes == 0) gpu_.memory_bytes = kUnknownMemory;
  // A quarter more than the memory of the GPU, for red zones and quarantine.
  std::uint64_t bytes = gpu_.memory_bytes;
  bytes += std::max<std::uint64_t>(bytes / 4, std::uint64_t{16} << 30);
  bytes = std::min(rounded_up(bytes, std::uint64_t{1} << 20), kMaxReservation);
  // If the system limits the addresses of a process (ulimit -v, strict overcommit), take fewer.
  for (; bytes >= kMinReservation; bytes /= 2) {
    data_ = VirtualMemory::reserve(bytes, true);
    if (!data_) continue;
    // One word more for 64-bit reads from the last bit.
    written_ = VirtualMemory::reserve(data_.size() / 8 + 64, false);
    if (written_) return;
    data_ = VirtualMemory();
  }
  throw Error(Stage::Emulate, "out-of-memory",
              "the system gives this process no addresses for device memory; at least 64 MiB are "
              "needed, raise the limit (ulimit -v)");
}

std::size_t AddressSpace::after(std::uint64_t address) const noexcept {
  const auto found = std::ranges::upper_bound(
      allocations_, address, {}, [](const std::unique_ptr<Allocation>& one) { return one->start; });
  return static_cast<std::size_t>(found - allocations_.begin());
}

void AddressSpace::recycle_oldest() {
  const std::uint64_t start = quarantine_.front();
  quarantine_.pop_front();
  const std::size_t index = after(start) - 1;
  const std::uint64_t bytes = allocations_[index]->bytes;
  forgotten_.push_back(std::move(allocations_[index]));
  allocations_.erase(allocations_.begin() + static_cast<std::ptrdiff_t>(index));
  give_back(start - red_zone(bytes) - kGlobalBase, span_of(bytes));
}

void AddressSpace::give_back(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0) return;
  auto [block, added] = free_.emplace(offset, bytes);
  static_cast<void>(added);
  if (const auto next = std::next(block);
      next != free_.end() && block->first + block->second == next->first) {
    block->second += next->second;
    free_.erase(next);
  }
  if (block != free_.begin()) {
    const auto before = std::prev(block);
    if (before->first + before->second == block->first) {
      before->second += block->second;
      free_.erase(block);
    }
  }
}

bool AddressSpace::place(std::uint64_t bytes, std::uint64_t alignment, std::uint64_t& offset) {
  const std::uint64_t span = span_of(bytes);
  const std::uint64_t before = red_zone(bytes);
  // The first offset from `from` on with aligned bytes after the red zone.
  const auto aligned = [&](std::uint64_t from) {
    return rounded_up(from + before, alignment) - before;
  };
  const auto fits = [&](std::uint64_t first, std::uint64_t size) {
    const std::uint64_t skipped = aligned(first) - first;
    return skipped <= size && span <= size - skipped;
  };
  if (fits(next_, data_.size() - next_)) {
    const std::uint64_t first = next_;
    offset = aligned(first);
    next_ = offset + span;
    give_back(first, offset - first);
    return true;
  }
  for (;;) {
    for (auto block = free_.begin(); block != free_.end(); ++block) {
      const auto [first, size] = *block;
      if (!fits(first, size)) continue;
      offset = aligned(first);
      free_.erase(block);
      give_back(first, offset - first);
      give_back(offset + span, first + size - (offset + span));
      return true;
    }
    if (quarantine_.empty()) return false;
    recycle_oldest();
  }
}

bool AddressSpace::unify() noexcept {
  VirtualMemory moved = VirtualMemory::reserve(data_.size(), true, kGlobalBase);
  if (!moved) return false;
  data_ = std::move(moved);
  return true;
}

void AddressSpace::out_of_memory(std::uint64_t bytes, std::string_view name) const {
  const std::string reason =
      bytes > gpu_.memory_bytes - used_
          ? format_text("{} of {} bytes of the GPU '{}' are free", gpu_.memory_bytes - used_,
                        gpu_.memory_bytes, gpu_.name)
          : format_text(
                "the system gave this process only {} of addresses for device memory; raise "
                "the limit (ulimit -v)",
                count_text(data_.size(), "byte"));
  throw Error(Stage::Emulate, "out-of-memory",
              format_text("{} of {} bytes does not fit: {}", called(name), bytes, reason));
}

std::uint64_t AddressSpace::allocate(std::uint64_t bytes, std::string_view name,
                                     AllocationKind kind, std::uint64_t alignment) {
  bytes = std::max<std::uint64_t>(bytes, 1);
  auto result = std::make_unique<Allocation>();
  result->bytes = bytes;
  result->name = std::string(name);
  result->kind = kind;
  result->read_only = kind == AllocationKind::Constant;
  const std::unique_lock lock(mutex_);
  if (kind != AllocationKind::Heap) forgotten_.clear();
  std::uint64_t offset = 0;
  if (bytes > gpu_.memory_bytes - used_ || !place(bytes, alignment, offset)) {
    out_of_memory(bytes, name);
  }
  const std::uint64_t inner = offset + red_zone(bytes);
  if (!data_.commit(inner, bytes) || !written_.commit(inner / 8, bytes / 8 + 16)) {
    out_of_memory(bytes, name);
  }
  const std::uint64_t start = kGlobalBase + inner;
  result->start = start;
  used_ += bytes;
  insert(std::move(result));
  return start;
}

void AddressSpace::insert(std::unique_ptr<Allocation> allocation) {
  const std::size_t index = after(allocation->start);
  allocations_.insert(allocations_.begin() + static_cast<std::ptrdiff_t>(index),
                      std::move(allocation));
}

std::uint64_t AddressSpace::reserve(std::uint64_t bytes, std::string_view name, const Part& part,
                                    std::uint64_t alignment) {
  std::uint64_t start = 0;
  {
    const std::unique_lock lock(mutex_);
    forgotten_.clear();
    std::uint64_t offset = 0;
    if (!place(bytes, alignment, offset)) {
      throw Error(Stage::Emulate, "out-of-memory",
                  format_text("{} of {} bytes does not fit: the addresses for device memory are {}",
                              called(name), bytes, count_text(data_.size(), "byte")));
    }
    start = kGlobalBase + offset + red_zone(bytes);
    reservations_[start] = {bytes, std::string(name)};
  }
  divide(start, {&part, 1});
  return start;
}

void AddressSpace::replace(std::uint64_t start, std::uint64_t bytes,
                           std::vector<std::unique_ptr<Allocation>> by) {
  const auto first = allocations_.begin() + static_cast<std::ptrdiff_t>(after(start - 1));
  const auto last = allocations_.begin() + static_cast<std::ptrdiff_t>(after(start + bytes - 1));
  allocations_.erase(first, last);
  for (std::unique_ptr<Allocation>& one : by) insert(std::move(one));
  __atomic_fetch_add(&generation_, 1, __ATOMIC_ACQ_REL);
}

void AddressSpace::divide(std::uint64_t reservation, std::span<const Part> parts) {
  const std::unique_lock lock(mutex_);
  const Reservation& range = reservations_.at(reservation);
  std::vector<std::unique_ptr<Allocation>> entries;
  std::uint64_t start = reservation;
  for (const Part& part : parts) {
    auto one = std::make_unique<Allocation>();
    one->start = start;
    one->bytes = part.bytes;
    one->name = range.name;
    one->read_only = part.read_only;
    one->freed = !part.live;
    if (!part.live) {
      one->state = part.state;
      one->remedy = part.remedy;
    } else if (const std::uint64_t offset = start - kGlobalBase;
               !data_.commit(offset, part.bytes) ||
               !written_.commit(offset / 8, part.bytes / 8 + 16)) {
      out_of_memory(part.bytes, range.name);
    }
    start += part.bytes;
    entries.push_back(std::move(one));
  }
  replace(reservation, range.bytes, std::move(entries));
}

void AddressSpace::end_reservation(std::uint64_t reservation) {
  const std::unique_lock lock(mutex_);
  const auto found = reservations_.find(reservation);
  auto freed = std::make_unique<Allocation>();
  freed->start = reservation;
  freed->bytes = found->second.bytes;
  freed->name = found->second.name;
  freed->freed = true;
  std::vector<std::unique_ptr<Allocation>> entries;
  entries.push_back(std::move(freed));
  replace(reservation, found->second.bytes, std::move(entries));
  discard(reservation, found->second.bytes);
  reservations_.erase(found);
  quarantine_.push_back(reservation);
}

void AddressSpace::claim(std::uint64_t bytes, std::string_view name) {
  const std::unique_lock lock(mutex_);
  if (bytes > gpu_.memory_bytes - used_) out_of_memory(bytes, name);
  used_ += bytes;
}

void AddressSpace::unclaim(std::uint64_t bytes) noexcept {
  const std::unique_lock lock(mutex_);
  used_ -= bytes;
}

void AddressSpace::discard(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t offset = address - kGlobalBase;
  const std::uint64_t size = rounded_up(bytes, kAllocationAlignment);
  data_.reset(offset, size);
  written_.reset(offset / 8, size / 8);
}

Pages AddressSpace::make_pages(std::uint64_t bytes) {
  Pages pages{SharedPages::make(bytes), SharedPages::make(bytes / 8)};
  return pages.data && pages.written ? std::move(pages) : Pages{};
}

bool AddressSpace::show(std::uint64_t address, std::uint64_t bytes, const Pages& pages) {
  const std::uint64_t offset = address - kGlobalBase;
  if (!data_.show(offset, bytes, pages.data)) return false;
  if (written_.show(offset / 8, bytes / 8, pages.written)) return true;
  static_cast<void>(data_.hide(offset, bytes, true));
  return false;
}

bool AddressSpace::hide(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t offset = address - kGlobalBase;
  return written_.hide(offset / 8, bytes / 8, false) && data_.hide(offset, bytes, true);
}

void AddressSpace::free(std::uint64_t address) {
  const std::unique_lock lock(mutex_);
  const std::size_t index = after(address);
  Allocation* const allocation = index == 0 ? nullptr : allocations_[index - 1].get();
  if (allocation == nullptr || allocation->start != address || allocation->freed) {
    std::string reason = "no allocation starts there";
    if (allocation != nullptr && allocation->start == address) {
      reason = format_text("{} was freed already", called(allocation->name));
    } else if (allocation != nullptr && !allocation->freed && allocation->holds(address)) {
      reason =
          format_text("it is byte {} of {}; pass the start, {:#x}", address - allocation->start,
                      called(allocation->name), allocation->start);
    }
    throw Error(Stage::Emulate, "invalid-address",
                format_text("free of {:#x}: {}", address, reason));
  }
  allocation->freed = true;
  __atomic_fetch_add(&generation_, 1, __ATOMIC_ACQ_REL);
  used_ -= allocation->bytes;
  quarantine_.push_back(address);
  const std::uint64_t offset = address - kGlobalBase;
  const std::uint64_t size = rounded_up(allocation->bytes, kAllocationAlignment);
  data_.reset(offset, size);
  written_.reset(offset / 8, size / 8);
}

void AddressSpace::protect(std::uint64_t address) {
  const std::unique_lock lock(mutex_);
  const std::size_t index = after(address);
  if (index == 0 || allocations_[index - 1]->start != address || allocations_[index - 1]->freed) {
    throw Error(Stage::Emulate, "invalid-address",
                format_text("protect of {:#x}: no allocation starts there", address));
  }
  allocations_[index - 1]->read_only = true;
  // Workers may have cached it as writable.
  __atomic_fetch_add(&generation_, 1, __ATOMIC_ACQ_REL);
}

const Allocation* AddressSpace::find(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  const std::size_t index = after(address);
  if (index == 0 || !allocations_[index - 1]->holds(address)) return nullptr;
  return allocations_[index - 1].get();
}

const Allocation* AddressSpace::nearest(std::uint64_t address, std::uint64_t within) const {
  const std::shared_lock lock(mutex_);
  const std::size_t index = after(address);
  const Allocation* best = nullptr;
  std::uint64_t distance = within;
  if (index > 0) {
    const Allocation& before = *allocations_[index - 1];
    if (before.holds(address)) return &before;
    const std::uint64_t past = address - (before.start + before.bytes) + 1;
    if (past <= distance) {
      best = &before;
      distance = past;
    }
  }
  if (index < allocations_.size()) {
    const Allocation& next = *allocations_[index];
    const std::uint64_t missing = next.start - address;
    if (missing < distance || (missing == distance && (best == nullptr || best->freed))) {
      best = &next;
    }
  }
  return best;
}

bool AddressSpace::mapped(std::uint64_t address, std::uint64_t bytes, bool writes) const {
  const std::uint64_t offset = address - kGlobalBase;
  if (address < kGlobalBase || offset > data_.size() || bytes > data_.size() - offset) return false;
  const std::shared_lock lock(mutex_);
  const auto page_has_one = [&](std::uint64_t page) {
    for (std::size_t i = after(page + kPageBytes - 1); i-- > 0;) {
      const Allocation& each = *allocations_[i];
      if (each.start + each.bytes <= page) return false;
      const bool writable = !each.read_only && each.kind != AllocationKind::Constant;
      if (!each.freed && (writable || !writes)) return true;
    }
    return false;
  };
  const std::uint64_t first = address / kPageBytes * kPageBytes;
  const std::uint64_t last = (address + bytes - 1) / kPageBytes * kPageBytes;
  return page_has_one(first) && (first == last || page_has_one(last));
}

std::byte* AddressSpace::slack(std::uint64_t address, std::uint64_t bytes, bool writes) {
  static_cast<void>(data_.commit(address - kGlobalBase, bytes));
  const Allocation* const found = writes ? find(address) : nullptr;
  if (found != nullptr && !found->freed) {
    const std::uint64_t own = std::min(bytes, found->bytes - (address - found->start));
    mark_written<true>(written(), address - kGlobalBase, own);
  }
  return host(address);
}

const Allocation& AddressSpace::inside(std::uint64_t address, std::uint64_t bytes,
                                       std::string_view what) const {
  const Allocation* const allocation = find(address);
  if (allocation != nullptr && !allocation->freed &&
      bytes <= allocation->bytes - (address - allocation->start)) {
    return *allocation;
  }
  std::string reason = "is outside of all allocations";
  if (allocation != nullptr && allocation->freed) {
    reason = format_text("is in {}, {}", called(allocation->name), allocation->state);
  } else if (allocation != nullptr) {
    reason =
        format_text("goes {} past the end of {} ({})",
                    count_text(bytes - (allocation->bytes - (address - allocation->start)), "byte"),
                    called(allocation->name), count_text(allocation->bytes, "byte"));
  }
  throw Error(
      Stage::Emulate, "out-of-bounds",
      format_text("{} of {} at {:#x} {}", what, count_text(bytes, "byte"), address, reason));
}

void AddressSpace::note_written(std::uint64_t address, std::uint64_t bytes) {
  if (tracks_) mark_written<true>(written(), address - kGlobalBase, bytes);
}

void AddressSpace::track_initialised(bool on) {
  if (on && !tracks_) {
    const std::shared_lock lock(mutex_);
    for (const auto& one : allocations_) {
      if (!one->freed) mark_written<true>(written(), one->start - kGlobalBase, one->bytes);
    }
  }
  tracks_ = on;
}

void AddressSpace::write(std::uint64_t address, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  static_cast<void>(inside(address, bytes.size(), "write"));
  std::memcpy(host(address), bytes.data(), bytes.size());
  note_written(address, bytes.size());
}

void AddressSpace::read(std::uint64_t address, std::span<std::byte> bytes) const {
  if (bytes.empty()) return;
  static_cast<void>(inside(address, bytes.size(), "read"));
  std::memcpy(bytes.data(), host(address), bytes.size());
}

void AddressSpace::fill(std::uint64_t address, std::byte value, std::uint64_t bytes) {
  if (bytes == 0) return;
  static_cast<void>(inside(address, bytes, "fill"));
  std::memset(host(address), std::to_integer<int>(value), static_cast<std::size_t>(bytes));
  note_written(address, bytes);
}

void AddressSpace::mark(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0) return;
  static_cast<void>(inside(address, bytes, "mark"));
  note_written(address, bytes);
}

void AddressSpace::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  if (bytes == 0) return;
  static_cast<void>(inside(from, bytes, "copy from"));
  static_cast<void>(inside(to, bytes, "copy to"));
  std::memmove(host(to), host(from), static_cast<std::size_t>(bytes));
  if (!tracks_) return;
  // The ranges may overlap: read all bits before writing the first.
  std::vector<std::uint64_t> bits(static_cast<std::size_t>((bytes + 63) / 64));
  const auto count_at = [&](std::size_t i) {
    return std::min<std::uint64_t>(64, bytes - 64 * std::uint64_t{i});
  };
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = written_mask(written(), from - kGlobalBase + 64 * std::uint64_t{i}, count_at(i));
  }
  for (std::size_t i = 0; i < bits.size(); ++i) {
    put_written(written(), to - kGlobalBase + 64 * std::uint64_t{i}, bits[i], count_at(i));
  }
}

std::uint64_t AddressSpace::used_bytes() const {
  const std::shared_lock lock(mutex_);
  return used_;
}

std::uint64_t AddressSpace::overhead_bytes() const noexcept {
  const std::shared_lock lock(mutex_);
  return written_.resident_bytes(0, next_ / 8) + allocations_.size() * sizeof(Allocation) +
         (race_shadow_ ? race_shadow_->bytes() : 0);
}

}  // namespace ptxgen::inline v0::emulator
