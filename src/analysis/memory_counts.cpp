// src/analysis/memory_counts.cpp - sectors and wavefronts of one request
#include "analysis/memory_counts.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace ptxgen::inline v0::analysis {

using ptx::Space;

namespace {

std::size_t distinct(std::vector<std::uint64_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  return static_cast<std::size_t>(std::unique(numbers.begin(), numbers.end()) - numbers.begin());
}

RequestFigures in_sectors(std::vector<std::uint64_t>& touched) {
  RequestFigures result;
  result.distinct_bytes = distinct(touched);
  touched.resize(result.distinct_bytes);
  for (std::uint64_t& byte : touched) byte /= 32;
  result.sectors = distinct(touched);
  return result;
}

// The most words that are in one bank.
std::uint64_t fullest_bank(std::vector<std::uint64_t>& words) {
  words.resize(distinct(words));
  std::array<std::uint64_t, 32> banks{};
  for (const std::uint64_t word : words) ++banks[word % 32];
  return *std::max_element(banks.begin(), banks.end());
}

}  // namespace

RequestFigures count_request(Space space, std::span<const LaneAddress> lanes, std::uint32_t bytes) {
  std::vector<std::uint64_t> touched;
  switch (space) {
    case Space::Global:
    case Space::Local:
      for (const LaneAddress& one : lanes) {
        for (std::uint64_t at = one.address; at != one.address + bytes; ++at)
          // Of local memory the same words of all lanes are neighbours.
          touched.push_back(
              space == Space::Global ? at : at / 4 * 128 + std::uint64_t{one.lane} * 4 + at % 4);
      }
      return in_sectors(touched);
    case Space::Const:
      for (const LaneAddress& one : lanes) {
        for (std::uint64_t at = one.address; at != one.address + bytes; ++at)
          touched.push_back(at / 4);
      }
      // All words of one lane come at once.
      return {0, 0, (distinct(touched) + std::max(1u, bytes / 4) - 1) / std::max(1u, bytes / 4), 1};
    case Space::Shared: {
      // A phase serves 32 lanes of at most 4 bytes, 16 of 8, 8 of 16.
      RequestFigures result;
      const std::uint32_t together = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
      for (std::uint32_t first = 0; first < 32; first += together) {
        touched.clear();
        for (const LaneAddress& one : lanes) {
          if (one.lane < first || one.lane >= first + together) continue;
          for (std::uint64_t word = one.address / 4; word <= (one.address + bytes - 1) / 4; ++word)
            touched.push_back(word);
        }
        if (touched.empty()) continue;
        ++result.phases;
        result.wavefronts += fullest_bank(touched);
      }
      return result;
    }
    default:
      return {};
  }
}

RequestFigures count_range(std::uint64_t address, std::uint64_t bytes) {
  RequestFigures result;
  result.distinct_bytes = bytes;
  if (bytes != 0) result.sectors = (address % 32 + bytes + 31) / 32;
  return result;
}

}  // namespace ptxgen::inline v0::analysis
