// src/emulator/decode/places.cpp - registers that share places of the frame
#include <algorithm>

#include "emulator/decode/decoder.hpp"

namespace ptxgen::inline v0::emulator {

SharedPlaces::SharedPlaces(const ptx::Function& function, const analysis::Cfg& cfg,
                           const analysis::RegisterIndex& index, const analysis::RegisterSet& alone)
    : ranges_(analysis::live_ranges(function, cfg, index)) {
  for (std::uint32_t number = 0; number < index.size(); ++number) {
    const analysis::LiveRange& range = ranges_[number];
    if (range.first <= range.last && !alone.contains(number)) by_begin_.push_back(number);
  }
  by_end_ = by_begin_;
  std::ranges::stable_sort(by_begin_, {}, [&](std::uint32_t i) { return ranges_[i].first; });
  std::ranges::stable_sort(by_end_, {}, [&](std::uint32_t i) { return ranges_[i].last; });
}

}  // namespace ptxgen::inline v0::emulator
