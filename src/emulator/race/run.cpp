// src/emulator/race/run.cpp - accesses without gaps, for both race checks
#include "emulator/race/detail.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

constexpr RunTable make_table(unsigned bytes) {
  RunTable table;
  table.code = bytes == 1 ? 2 : bytes == 2 ? 1 : 0;
  for (std::uint32_t i = 0; i < 128; ++i) {
    const std::uint32_t lane = i * 4 / bytes;
    const std::uint32_t width = bytes >= 4 ? 1 : 4 / bytes;
    if (lane >= kLanes) break;
    table.first[i] = lane | table.code << 10;
    table.lanes[i] = ((1u << width) - 1u) << lane;
  }
  return table;
}

constexpr std::array<RunTable, 5> kTables = {make_table(1), make_table(2), make_table(4),
                                             make_table(8), make_table(16)};

}  // namespace

const RunTable& run_table(unsigned bytes) noexcept {
  return kTables[static_cast<unsigned>(std::countr_zero(bytes | 16u))];
}

bool all_equal(const RaceAccess& access) noexcept {
  if (access.mask != 0xffffffffu) return false;
  if (access.shape == RaceAccess::Shape::Equal) return true;
  if (access.shape != RaceAccess::Shape::Unknown) return false;
  const std::uint64_t first = access.addresses[0];
  std::uint64_t different = 0;
  for (std::uint32_t lane = 1; lane < kLanes; ++lane) different |= access.addresses[lane] ^ first;
  return different == 0;
}

namespace {

/// The lanes of the second half of the warp repeat those of the first, which ascend. `groups` has a
/// group for each lane.
bool group_halves(const RaceAccess& access, AddressGroups& groups) noexcept {
  const std::uint32_t half = groups.count / 2;
  if ((access.mask >> 16) != (access.mask & 0xffffu) || half == 0) return false;
  bool wrong = false;
  for (std::uint32_t i = 0; i < half; ++i) {
    wrong |= groups.address[i] != groups.address[half + i];
    wrong |= i != 0 && groups.address[i] < groups.address[i - 1] + access.bytes;
  }
  if (wrong) return false;
  for (std::uint32_t i = 0; i < half; ++i) groups.lanes[i] |= groups.lanes[half + i];
  groups.count = half;
  return true;
}

}  // namespace

AddressGroups group_by_address(const RaceAccess& access) noexcept {
  AddressGroups groups;
  if (access.shape == RaceAccess::Shape::Equal || all_equal(access)) {
    groups.address[0] = access.addresses[0];
    groups.lanes[0] = access.mask;
    groups.count = 1;
    return groups;
  }
  const std::uint64_t bytes = access.bytes;
  bool ascends = true;
  std::uint64_t end = 0;
  for (std::uint32_t rest = access.mask; rest != 0; rest &= rest - 1) {
    const std::uint64_t address = access.addresses[std::countr_zero(rest)];
    ascends &= address >= end;
    end = address + bytes;
    groups.address[groups.count] = address;
    groups.lanes[groups.count++] = rest & (0u - rest);
  }
  if (ascends || group_halves(access, groups)) return groups;
  groups.count = 0;
  std::array<std::uint8_t, 64> table{};
  for_each_lane(access.mask, [&](unsigned lane) {
    const std::uint64_t address = access.addresses[lane];
    for (std::uint64_t at = address / access.bytes;; ++at) {
      std::uint8_t& entry = table[at % 64];
      if (entry == 0) {
        groups.address[groups.count] = address;
        groups.lanes[groups.count] = 1u << lane;
        entry = static_cast<std::uint8_t>(++groups.count);
        return;
      }
      if (groups.address[entry - 1u] == address) {
        groups.lanes[entry - 1u] |= 1u << lane;
        return;
      }
    }
  });
  return groups;
}

bool is_run(const RaceAccess& access, std::uint32_t& count) noexcept {
  const std::uint32_t mask = access.mask;
  const std::uint64_t bytes = access.bytes;
  if ((mask & (mask + 1)) != 0 || mask == 0 || !one_bit(access.bytes) || bytes > 16) {
    return false;
  }
  if (access.shape == RaceAccess::Shape::Equal && mask != 1) return false;
  if (access.shape == RaceAccess::Shape::Ascending) return false;
  const std::uint64_t base = access.addresses[0];
  count = kLanes - static_cast<std::uint32_t>(std::countl_zero(mask));
  if (((base | (count * bytes)) & 3u) != 0) return false;
  if (access.shape == RaceAccess::Shape::Neighbours) return true;
  std::uint64_t wrong = 0;
  if (mask == 0xffffffffu) {
    // The common case, with a constant count.
    for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
      wrong |= access.addresses[lane] ^ (base + lane * bytes);
    }
  } else {
    for (std::uint64_t lane = 0; lane < count; ++lane) {
      wrong |= access.addresses[lane] ^ (base + lane * bytes);
    }
  }
  return wrong == 0;
}

}  // namespace ptxgen::inline v0::emulator
