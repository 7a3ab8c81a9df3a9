// src/driver/recorder/shadow.cpp - device memory as it was last seen
#include "driver/recorder/shadow.hpp"

#include <algorithm>
#include <cstring>

namespace ptxgen::inline v0::driver::recorder {

CUresult Shadow::add(Region region, std::uint64_t bytes) {
  region.seen.resize(static_cast<std::size_t>(bytes));
  const CUresult result = read(region, region.seen);
  if (result == CUDA_SUCCESS) regions_[region.address] = std::move(region);
  return result;
}

void Shadow::add_seen(Region region) { regions_[region.address] = std::move(region); }

void Shadow::remove(CUdeviceptr address) { regions_.erase(address); }

const Region* Shadow::find(CUdeviceptr address) const {
  auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) return nullptr;
  --after;
  return after->second.holds(address) ? &after->second : nullptr;
}

CUdeviceptr Shadow::device_address(const void* host) const {
  const auto* const at = static_cast<const std::byte*>(host);
  for (const auto& [address, region] : regions_) {
    if (region.host == nullptr || at < region.host || at >= region.host + region.seen.size()) {
      continue;
    }
    return address + static_cast<std::uint64_t>(at - region.host);
  }
  return 0;
}

CUresult Shadow::look(bool host_visible_only, std::vector<Change>& changes) {
  for (auto& [address, region] : regions_) {
    if (host_visible_only && !region.host_visible) continue;
    now_.resize(region.seen.size());
    if (const CUresult result = read(region, now_)) return result;
    const auto first = std::ranges::mismatch(now_, region.seen).in1;
    if (first == now_.end()) continue;
    Change change;
    change.region = &region;
    change.begin = static_cast<std::size_t>(first - now_.begin());
    change.end = now_.size();
    while (now_[change.end - 1] == region.seen[change.end - 1]) --change.end;
    region.seen.swap(now_);
    change.before.assign(now_.begin() + static_cast<std::ptrdiff_t>(change.begin),
                         now_.begin() + static_cast<std::ptrdiff_t>(change.end));
    changes.push_back(std::move(change));
  }
  return CUDA_SUCCESS;
}

CUresult Shadow::read(const Region& region, std::vector<std::byte>& to) const {
  return region.is_array() ? read_image(table_, region.array, to.data())
                           : table_.memcpy_to_host(to.data(), region.address, to.size());
}

CUresult Shadow::refresh(const StepRows& rows) {
  if (rows.width == 0 || rows.height == 0 || rows.depth == 0) return CUDA_SUCCESS;
  const std::uint64_t last = (rows.depth - 1) * rows.slice_height + rows.height - 1;
  const std::uint64_t bytes = last * rows.pitch + rows.width;
  const Region* const holds = find(rows.address);
  if (holds == nullptr) return CUDA_SUCCESS;
  Region& region = regions_[holds->address];
  if (region.is_array()) return read(region, region.seen);
  const std::uint64_t begin = rows.address - region.address;
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(bytes, region.seen.size() - begin));
  return table_.memcpy_to_host(region.seen.data() + begin, rows.address, count);
}

}  // namespace ptxgen::inline v0::driver::recorder
