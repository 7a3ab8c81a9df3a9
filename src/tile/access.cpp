// src/tile/access.cpp - vector widths and bank conflicts of tiles
#include "ptxgen/tile/access.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "support/format.hpp"

namespace ptxgen::inline v0::tile {

namespace {

constexpr std::uint32_t kVectorBytes = 16;
constexpr std::uint32_t kBanks = 32;
constexpr std::uint32_t kMaxPadding = 32;  // elements; more repeats the same banks

bool divides(std::uint64_t divisor, std::uint64_t number) noexcept {
  return divisor != 0 && number % divisor == 0;
}

std::uint64_t total(const Placement& placement, std::uint32_t element_bytes,
                    std::span<const WarpAccess> accesses) {
  std::uint64_t sum = 0;
  for (const WarpAccess& access : accesses) {
    sum += access.times * wavefronts(placement, access, element_bytes);
  }
  return sum;
}

std::string describe(const PlacementChoice& choice, std::uint32_t rows,
                     std::uint32_t element_bytes) {
  const Placement& p = choice.placement;
  const std::string how = p.mask == 0
                              ? format_text("rows of {}", p.pitch)
                              : format_text("groups of {} exchanged by row & {}", p.group, p.mask);
  return format_text(
      "tile [{} x {}] of {}-byte elements: {}, {} bytes, {} wavefronts (plain rows: {})", rows,
      p.columns, element_bytes, how, choice.bytes, choice.wavefronts, choice.plain_wavefronts);
}

}  // namespace

std::uint32_t vector_elements(const RowFacts& row) noexcept {
  if (!row.dense || row.element_bytes == 0) return 1;
  std::uint32_t elements = kVectorBytes / row.element_bytes;
  const auto legal = [&](std::uint32_t n) {
    return divides(n, row.tile) && divides(n, row.size_divisor) && divides(n, row.stride_divisor) &&
           divides(std::uint64_t{n} * row.element_bytes, row.base_alignment);
  };
  while (elements > 1 && !legal(elements)) elements /= 2;
  return std::max(elements, 1u);
}

std::uint64_t wavefronts(const Placement& placement, const WarpAccess& access,
                         std::uint32_t element_bytes) {
  const std::uint32_t lane_bytes = access.elements * element_bytes;
  const std::uint32_t phases = lane_bytes <= 4 ? 1 : lane_bytes / 4;
  const std::uint32_t lanes = 32 / phases;
  std::uint64_t sum = 0;
  std::vector<std::uint32_t> words;
  for (std::uint32_t phase = 0; phase < phases; ++phase) {
    words.clear();
    for (std::uint32_t lane = phase * lanes; lane < (phase + 1) * lanes; ++lane) {
      const WarpAccess::Element& at = access.lanes[lane];
      const std::uint32_t first = placement.position(at.row, at.column) * element_bytes / 4;
      for (std::uint32_t word = 0; word < std::max(lane_bytes / 4, 1u); ++word) {
        words.push_back(first + word);
      }
    }
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::array<std::uint32_t, kBanks> in_bank{};
    for (const std::uint32_t word : words) ++in_bank[word % kBanks];
    sum += *std::max_element(in_bank.begin(), in_bank.end());
  }
  return sum;
}

PlacementChoice choose_placement(std::uint32_t rows, std::uint32_t columns,
                                 std::uint32_t element_bytes, std::span<const WarpAccess> accesses,
                                 std::uint64_t max_bytes) {
  std::uint32_t vector = 1;
  for (const WarpAccess& access : accesses) vector = std::max(vector, access.elements);
  const Placement plain{columns, columns, 1, 0};
  PlacementChoice best;
  best.placement = plain;
  best.plain_wavefronts = total(plain, element_bytes, accesses);
  best.wavefronts = best.plain_wavefronts;
  best.bytes = std::uint64_t{rows} * columns * element_bytes;
  const auto consider = [&](const Placement& placement) {
    const std::uint64_t cost = total(placement, element_bytes, accesses);
    const std::uint64_t size = std::uint64_t{rows} * placement.pitch * element_bytes;
    if (cost >= best.wavefronts || size > max_bytes) return;
    best.placement = placement;
    best.wavefronts = cost;
    best.bytes = size;
  };
  if (rows > 1) {
    for (std::uint32_t padding = vector; padding <= kMaxPadding; padding += vector) {
      consider({columns, columns + padding, 1, 0});
    }
    // Groups as wide as the widest vector keep it in one piece.
    const std::uint32_t groups = columns % vector == 0 ? columns / vector : 0;
    for (std::uint32_t mask = 1; std::has_single_bit(groups) && mask < groups && mask < kBanks;
         mask = mask * 2 + 1) {
      consider({columns, columns, vector, mask});
    }
  }
  best.text = describe(best, rows, element_bytes);
  return best;
}

}  // namespace ptxgen::inline v0::tile
