// src/driver/recorder/shadow.hpp - device memory as it was last seen
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "driver/recorder/array_image.hpp"
#include "ptxgen/driver/steps.hpp"
#include "ptxgen/driver/table.hpp"

namespace ptxgen::inline v0::driver::recorder {

/// One allocation, one variable of a module, or one array.
struct Region {
  CUdeviceptr address = 0;
  std::string name;
  /// The host can write it without a call: managed, pinned and registered memory.
  bool host_visible = false;
  const std::byte* host = nullptr;  ///< pinned and registered memory: its other address
  ArrayImage array;                 ///< of an array, which has its address in steps only
  std::vector<std::byte> seen;      ///< all bytes, as they were last read

  [[nodiscard]] CUdeviceptr end() const noexcept { return address + seen.size(); }
  [[nodiscard]] bool is_array() const noexcept { return array.handle != nullptr; }
  [[nodiscard]] bool holds(CUdeviceptr at) const noexcept { return at - address < seen.size(); }
};

/// Bytes of a region that are not as they were: from the first to the last of them.
struct Change {
  const Region* region = nullptr;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::vector<std::byte> before;  ///< what they were
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return std::span(region->seen).subspan(begin, end - begin);
  }
};

/// Copies of all memory of a context that a program has, which show what each launch changes. Takes
/// as much host memory as the program has device memory.
///
/// Threads: one at a time, with the context current and its work done.
class Shadow {
 public:
  explicit Shadow(const Table& table) noexcept : table_(table) {}

  /// Reads all bytes of a new region; an error is the driver's, and nothing is added.
  [[nodiscard]] CUresult add(Region region, std::uint64_t bytes);
  /// Adds a region as `seen` says that it is.
  void add_seen(Region region);
  void remove(CUdeviceptr address);
  void clear() noexcept { regions_.clear(); }

  /// The region that holds an address, or null.
  [[nodiscard]] const Region* find(CUdeviceptr address) const;
  /// The device address of a host address in pinned or registered memory, or 0.
  [[nodiscard]] CUdeviceptr device_address(const void* host) const;
  [[nodiscard]] const std::map<CUdeviceptr, Region>& regions() const noexcept { return regions_; }

  /// What has changed since it was last seen, by address. With `host_visible_only` of memory that
  /// the host can write without a call.
  [[nodiscard]] CUresult look(bool host_visible_only, std::vector<Change>& changes);
  /// Takes bytes as they are now.
  [[nodiscard]] CUresult refresh(const StepRows& rows);

 private:
  [[nodiscard]] CUresult read(const Region& region, std::vector<std::byte>& to) const;

  const Table& table_;
  std::map<CUdeviceptr, Region> regions_;
  std::vector<std::byte> now_;
};

}  // namespace ptxgen::inline v0::driver::recorder
