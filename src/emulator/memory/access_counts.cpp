// src/emulator/memory/access_counts.cpp - sectors and wavefronts of one warp-level access
#include "emulator/memory/access_counts.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace ptxgen::inline v0::emulator {
namespace {

constexpr std::uint64_t kSector = 32;

/// Counts spans in ascending order of address.
class SectorCounter {
 public:
  void add(std::uint64_t address, std::uint64_t bytes) noexcept {
    const std::uint64_t end = address + bytes;
    if (end > end_) {
      distinct_ += end - std::max(address, end_);
      end_ = end;
    }
    const std::uint64_t first = std::max(address / kSector, next_sector_);
    const std::uint64_t last = (end - 1) / kSector;
    if (last >= first) {
      sectors_ += static_cast<unsigned>(last - first + 1);
      next_sector_ = last + 1;
    }
  }
  [[nodiscard]] SectorCount result() const noexcept {
    return {sectors_, static_cast<unsigned>((distinct_ + kSector - 1) / kSector)};
  }

 private:
  std::uint64_t end_ = 0;
  std::uint64_t distinct_ = 0;
  std::uint64_t next_sector_ = 0;
  unsigned sectors_ = 0;
};

/// Whether no bank has two distinct words, for lanes of an access of whole words.
bool without_conflict(const std::uint64_t* offsets, std::uint32_t mask, unsigned bytes) noexcept {
  std::array<std::uint64_t, 32> first_words;  // of the banks in `used`
  std::uint32_t used = 0;
  for (; mask != 0; mask &= mask - 1) {
    const std::uint64_t offset = offsets[std::countr_zero(mask)];
    if (offset % 4 != 0) return false;
    const std::uint64_t end = (offset + bytes) / 4;
    for (std::uint64_t word = offset / 4; word < end; ++word) {
      const auto bank = static_cast<std::uint32_t>(word % 32);
      if ((used >> bank & 1u) != 0 && first_words[bank] != word) return false;
      first_words[bank] = word;
      used |= 1u << bank;
    }
  }
  return true;
}

/// The maximum over banks of the distinct words in a bank, for some lanes of an access.
unsigned worst_bank(const std::uint64_t* offsets, std::uint32_t mask, unsigned bytes) noexcept {
  // Distinct words of each bank: at most 32 lanes with 5 words each (16 misaligned bytes).
  std::array<std::array<std::uint64_t, 40>, 32> seen;
  std::array<std::uint8_t, 32> count{};
  unsigned worst = 0;
  for (; mask != 0; mask &= mask - 1) {
    const std::uint64_t offset = offsets[std::countr_zero(mask)];
    const std::uint64_t last = (offset + bytes - 1) / 4;
    for (std::uint64_t word = offset / 4; word <= last; ++word) {
      const std::size_t bank = word % 32;
      auto& words = seen[bank];
      const auto end = words.begin() + count[bank];
      if (std::find(words.begin(), end, word) != end) continue;
      *end = word;
      worst = std::max<unsigned>(worst, ++count[bank]);
    }
  }
  return worst;
}

}  // namespace

SectorCount count_sectors(std::span<ByteSpan> spans) noexcept {
  std::ranges::sort(spans, {}, &ByteSpan::address);
  SectorCounter counter;
  for (const ByteSpan& one : spans) counter.add(one.address, one.bytes);
  return counter.result();
}

SectorCount count_sectors(const std::uint64_t addresses[32], std::uint32_t mask,
                          unsigned bytes) noexcept {
  std::array<std::uint64_t, 32> active;
  std::size_t count = 0;
  bool ascending = true;
  for (; mask != 0; mask &= mask - 1) {
    const std::uint64_t address = addresses[std::countr_zero(mask)];
    if (count > 0 && address < active[count - 1]) ascending = false;
    active[count++] = address;
  }
  if (!ascending) std::sort(active.begin(), active.begin() + static_cast<std::ptrdiff_t>(count));
  SectorCounter counter;
  for (std::size_t i = 0; i < count; ++i) counter.add(active[i], bytes);
  return counter.result();
}

SectorCount count_local_sectors(const std::uint64_t offsets[32], std::uint32_t mask,
                                unsigned bytes) noexcept {
  std::array<ByteSpan, 32 * 9> spans;
  std::size_t count = 0;
  for (; mask != 0; mask &= mask - 1) {
    const unsigned lane = static_cast<unsigned>(std::countr_zero(mask));
    std::uint64_t offset = offsets[lane];
    for (unsigned left = bytes; left > 0;) {
      const unsigned part = std::min<unsigned>(left, 4 - static_cast<unsigned>(offset % 4));
      spans[count++] = {offset / 4 * 128 + lane * 4 + offset % 4, part};
      offset += part;
      left -= part;
    }
  }
  return count_sectors(std::span(spans.data(), count));
}

WavefrontCount count_wavefronts(const std::uint64_t offsets[32], std::uint32_t mask,
                                unsigned bytes) noexcept {
  const unsigned lanes = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  WavefrontCount result;
  for (unsigned first = 0; first < 32; first += lanes) {
    const std::uint32_t phase = mask & ((0xffffffffu >> (32 - lanes)) << first);
    if (phase == 0) continue;
    ++result.ideal;
    const bool one = bytes % 4 == 0 && without_conflict(offsets, phase, bytes);
    result.wavefronts += one ? 1 : worst_bank(offsets, phase, bytes);
  }
  return result;
}

}  // namespace ptxgen::inline v0::emulator
