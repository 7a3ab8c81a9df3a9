// src/emulator/race_shadow.cpp - who touched which bytes of device memory last
#include "emulator/race_shadow.hpp"

#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0::emulator {

GlobalShadow::GlobalShadow(std::uint64_t base, std::uint64_t bytes) : base_(base), bytes_(bytes) {
  const std::uint64_t granules = bytes / 4 + 2 * kStep;
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    memory_[i] = VirtualMemory::reserve(
        (i < 4 ? granules : granules / kLineGranules + 1) * sizeof(std::uint32_t), false);
    if (!memory_[i]) {
      throw Error(Stage::Emulate, "out-of-memory",
                  "no address space for the global race check: four times the device's memory; run "
                  "without global-race and scope-too-narrow");
    }
  }
  const auto words = [](VirtualMemory& memory) {
    return reinterpret_cast<std::uint32_t*>(memory.data());
  };
  written = words(memory_[0]);
  write_info = words(memory_[1]);
  read = words(memory_[2]);
  read_info = words(memory_[3]);
  line_written = words(memory_[4]);
  line_write_info = words(memory_[5]);
  line_read = words(memory_[6]);
  line_read_info = words(memory_[7]);
  touched_.resize(granules / kStep + 1);
}

void GlobalShadow::touch(std::uint64_t granule, std::uint64_t count) {
  for (std::uint64_t at = granule / kStep; at <= (granule + count - 1) / kStep; ++at) {
    if (touched_[at]) continue;
    touched_[at] = true;
    bool ok = true;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const std::uint64_t count_of = i < 4 ? kStep : kStep / kLineGranules;
      ok &= memory_[i].commit(at * count_of * 4, count_of * 4);
      touched_bytes_ += count_of * sizeof(std::uint32_t);
    }
    if (!ok) {
      throw Error(Stage::Emulate, "out-of-memory", "no memory for the global race check");
    }
  }
}

void GlobalShadow::reset() {
  for (VirtualMemory& memory : memory_) memory.reset(0, memory.size());
  touched_.assign(touched_.size(), false);
  touched_bytes_ = 0;
  next_id = 1;
}

}  // namespace ptxgen::inline v0::emulator
