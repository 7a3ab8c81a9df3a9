// src/driver/emulated/managed.hpp - advice about managed memory
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// Devices by their numbers, then the host: the order in which cuda.bindings' tests expect them.
struct DevicesFirst {
  bool operator()(CUdevice a, CUdevice b) const noexcept {
    return static_cast<unsigned>(a) < static_cast<unsigned>(b);  // the host is -1
  }
};

/// What cuMemAdvise and cuMemPrefetchAsync said of some pages. Locations: a device, the host, or a
/// NUMA node; of type NONE where nothing was said.
struct PageAdvice {
  bool read_mostly = false;
  CUmemLocation preferred{};
  CUmemLocation prefetched{};
  std::set<CUdevice, DevicesFirst> accessed_by = {};  ///< kDeviceCpu: the host
};

/// The advice about one managed allocation. Guarded by the mutex of its context.
class ManagedAdvice {
 public:
  ManagedAdvice(std::uint64_t start, std::uint64_t bytes, CUmemLocation preferred);

  /// The advice of all pages that hold a part of the range, to be changed.
  [[nodiscard]] std::vector<PageAdvice*> pages(std::uint64_t address, std::uint64_t bytes);

 private:
  void split(std::uint64_t address);

  std::uint64_t start_;
  std::uint64_t end_;
  std::map<std::uint64_t, PageAdvice> pieces_;  ///< by first address, each up to the next
};

}  // namespace ptxgen::inline v0::driver::emulated
