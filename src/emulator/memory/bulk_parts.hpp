// src/emulator/memory/bulk_parts.hpp - common parts of bulk copies and tensor copies
#pragma once

#include "emulator/memory/access.hpp"
#include "emulator/memory/bulk_queue.hpp"
#include "emulator/memory/faults.hpp"
#include "emulator/state/address_space.hpp"

namespace ptxgen::inline v0::emulator {

inline constexpr std::uint32_t kBulkUnit = 16;  ///< bytes: addresses and sizes are multiples of it

/// Source or destination of one lane's copy, for its checks.
struct CopySide {
  Context& context;
  const Step& step;
  const MemoryDetail& detail;
  unsigned lane;
  std::uint32_t bytes;
  bool writes;

  [[nodiscard]] AccessRequest request(std::uint32_t alignment = kBulkUnit) const {
    AccessRequest result;
    result.mask = 1u << lane;
    result.bytes = bytes;
    result.alignment = alignment;
    result.reads = !writes;
    result.writes = writes;
    return result;
  }
  [[nodiscard]] bool aligned(ptx::Space space, std::uint64_t address, const Cta* owner,
                             std::uint32_t alignment = kBulkUnit) const {
    if (address % alignment == 0) return true;
    const AccessRequest asked = request(alignment);
    report_misaligned({context, step, detail, asked, space, lane, address, owner});
    return false;
  }
  [[nodiscard]] bool global(std::uint64_t address) const {
    const AccessRequest asked = request();
    const Fault fault{context, step, detail, asked, ptx::Space::Global, lane, address};
    const Allocation* const found = context.grid->space->find(address);
    if (found == nullptr || found->freed || bytes > found->bytes - (address - found->start)) {
      static_cast<void>(report_bounds(fault));
      return false;
    }
    if (writes && (found->read_only || found->kind == AllocationKind::Constant)) {
      report_readonly(fault);
      return false;
    }
    return aligned(ptx::Space::Global, address, nullptr);
  }
  /// `address` becomes the offset in the owner's memory.
  [[nodiscard]] bool shared(std::uint64_t& address, Cta*& owner, bool cluster,
                            std::uint32_t alignment = kBulkUnit) const {
    const AccessRequest asked = request(alignment);
    const bool found = find_owner(context, address, owner);
    if (!found) owner = context.cta;
    const Cta* const other = owner != context.cta ? owner : nullptr;
    const Fault fault{context, step, detail, asked, ptx::Space::Shared, lane, address, other};
    if (!found || address > owner->shared_bytes || bytes > owner->shared_bytes - address) {
      static_cast<void>(report_bounds(fault));
      return false;
    }
    if (other != nullptr && !cluster) {
      report_not_own(fault);
      return false;
    }
    if (other != nullptr && has_left(*owner)) {
      report_exited(fault);
      return false;
    }
    return aligned(ptx::Space::Shared, address, other, alignment);
  }
};

[[nodiscard]] BulkCopies& copies_of(Cta& cta);
/// Reports a range to a race check, as accesses of one unit each.
void notify_range(Races* races, const CopySide& side, RaceAccess::Kind kind, std::uint64_t from,
                  std::uint64_t ticket);
/// `global`: the address in global memory, 0 if there is none.
void count_copy(Context& context, const MemoryDetail& detail, const BulkCopy& copy,
                std::uint64_t global);
/// Adds a copy to those that are not carried out.
void enqueue(Context& context, const Step& step, const MemoryDetail& detail, unsigned lane,
             BulkCopy& copy);
/// Finds the mbarrier of a copy, which must be in the destination block.
[[nodiscard]] bool find_barrier(Context& context, const Step& step, const MemoryDetail& detail,
                                unsigned lane, std::uint64_t address, const Cta& block,
                                std::uint64_t& offset);
/// The destination ranks of a multicast.
[[nodiscard]] std::uint32_t ranks_of(const Context& context, const Slot& mask, unsigned lane);
/// Tells the race checks of the destination blocks.
void notify_write(Context& context, const Step& step, const BulkCopy& copy, unsigned lane);

// Boxes of tensors, tensor.cpp.
void load_box(Cta& target, const TensorBox& box);
void store_box(Cta& source, const TensorBox& box);

}  // namespace ptxgen::inline v0::emulator
