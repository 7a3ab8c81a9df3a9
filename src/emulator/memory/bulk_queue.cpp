// src/emulator/memory/bulk_queue.cpp - bulk copies of a block that are not finished
#include "emulator/memory/bulk_queue.hpp"

#include <algorithm>

namespace ptxgen::inline v0::emulator {

bool is_under_way(const Cta& cta) noexcept {
  return cta.bulk != nullptr && !cta.bulk->pending.empty();
}

void phase_ended(Cta& owner, std::uint64_t offset) {
  for (BulkCopies::Arrived& copy : owner.bulk->arrived) {
    if (copy.barrier == offset) copy.phase_ended = true;
  }
}

void observe_copies(Context& context, unsigned lane, std::uint64_t offset, std::uint64_t object) {
  std::vector<BulkCopies::Arrived>& arrived = context.cta->bulk->arrived;
  std::erase_if(arrived, [&](const BulkCopies::Arrived& copy) {
    if (!copy.phase_ended || copy.barrier != offset) return false;
    if (context.cta->races && copy.write.bytes != 0) {
      context.cta->races->bulk_observed(context, lane, copy.write, object);
    }
    return true;
  });
}

}  // namespace ptxgen::inline v0::emulator
