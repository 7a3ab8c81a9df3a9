// src/emulator/state/race_shadow.cpp - who touched which bytes of device memory last
#include "emulator/state/race_shadow.hpp"

#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::emulator {

GlobalShadow::GlobalShadow(std::uint64_t base, std::uint64_t bytes) : base_(base), bytes_(bytes) {
  const std::uint64_t granules = bytes / 4 + 2 * kStep;
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    memory_[i] = VirtualMemory::reserve(
        (i < 4 ? granules : granules / kLineGranules + 1) * sizeof(std::uint32_t), false);
    if (!memory_[i]) {
      throw Error(
          Stage::Emulate, "out-of-memory",
          "no address space for the global race check, which reserves four times the device's "
          "memory; run without global-race and scope-too-narrow");
    }
  }
  saved_memory_ = VirtualMemory::reserve((bytes / kPageBytes + 2) * sizeof(std::uint32_t), false);
  touched_memory_ = VirtualMemory::reserve(granules / kStep + 1, false);
  if (!saved_memory_ || !touched_memory_ || !touched_memory_.commit(0, touched_memory_.size())) {
    throw Error(Stage::Emulate, "out-of-memory", "no address space for the global race check");
  }
  const auto words = [](VirtualMemory& memory) {
    return reinterpret_cast<std::uint32_t*>(memory.data());
  };
  written = words(memory_[0]);
  write_info = words(memory_[1]);
  read = words(memory_[2]);
  read_info = words(memory_[3]);
  saved_ = words(saved_memory_);
  line_written = words(memory_[4]);
  line_write_info = words(memory_[5]);
  line_read = words(memory_[6]);
  line_read_info = words(memory_[7]);
  touched_ = reinterpret_cast<std::uint8_t*>(touched_memory_.data());
}

void GlobalShadow::commit(std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  if (touched_[step] != 0) return;
  bool ok = true;
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    const std::uint64_t count = i < 4 ? kStep : kStep / kLineGranules;
    ok &= memory_[i].commit(step * count * 4, count * 4);
    touched_bytes_ += count * sizeof(std::uint32_t);
  }
  // Pages of 4 KiB have a word each.
  const std::uint64_t pages = kStep * 4 / kPageBytes;
  ok &= saved_memory_.commit(step * pages * 4, pages * 4);
  if (!ok) throw Error(Stage::Emulate, "out-of-memory", "no memory for the global race check");
  __atomic_store_n(&touched_[step], std::uint8_t{1}, __ATOMIC_RELEASE);
}

std::uint32_t GlobalShadow::next_epoch() {
  if (++epoch_ == 0) {
    saved_memory_.reset(0, saved_memory_.size());
    epoch_ = 1;
  }
  return epoch_;
}

void GlobalShadow::reset() {
  for (VirtualMemory& memory : memory_) memory.reset(0, memory.size());
  touched_memory_.reset(0, touched_memory_.size());
  touched_bytes_ = 0;
  next_id = 1;
}

}  // namespace ptxgen::inline v0::emulator
