// src/driver/emulated/memory_before.cpp - memory that a launch can reach, before it runs
#include "driver/emulated/memory_before.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "emulator/state/address_space.hpp"
#include "emulator/state/written_bits.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Ranges unwritten_bytes(const emulator::AddressSpace& space, std::uint64_t address,
                       std::uint64_t bytes) {
  Ranges ranges;
  const std::uint64_t first = address - emulator::kGlobalBase;
  for (std::uint64_t at = 0; at < bytes;) {
    const std::uint64_t count = std::min<std::uint64_t>(64, bytes - at);
    const std::uint64_t missing =
        ~emulator::written_mask(space.written(), first + at, count) & emulator::low_mask(count);
    if (missing == 0) {
      at += count;
      continue;
    }
    const std::uint64_t begin = at + static_cast<std::uint64_t>(std::countr_zero(missing));
    const std::uint64_t end = std::min(
        bytes,
        begin + static_cast<std::uint64_t>(std::countr_one(missing >> std::countr_zero(missing))));
    if (!ranges.empty() && ranges.back().second == begin) {
      ranges.back().second = end;
    } else {
      ranges.emplace_back(begin, end);
    }
    at = end;
  }
  return ranges;
}

}  // namespace

std::vector<MemoryBefore> memory_before(const emulator::AddressSpace& space,
                                        const KernelLaunch& launch) {
  std::map<std::uint64_t, const emulator::Allocation*> found;
  for (std::size_t at = 0; at + 8 <= launch.arguments.size(); at += 8) {
    std::uint64_t address = 0;
    std::memcpy(&address, launch.arguments.data() + at, sizeof address);
    const emulator::Allocation* const allocation = space.find(address);
    if (allocation != nullptr && !allocation->freed) found[allocation->start] = allocation;
  }
  // The driver notes what is written only if it checks for reads of what is not.
  const bool noted = launch.options.checks.has(emulator::Rule::UninitializedRead);
  std::vector<MemoryBefore> memory;
  for (const auto& [start, allocation] : found) {
    MemoryBefore& kept = memory.emplace_back();
    kept.address = start;
    kept.bytes.resize(static_cast<std::size_t>(allocation->bytes));
    space.read(start, kept.bytes);
    if (noted) kept.unwritten = unwritten_bytes(space, start, allocation->bytes);
  }
  return memory;
}

}  // namespace ptxgen::inline v0::driver::emulated
