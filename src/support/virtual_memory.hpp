// src/support/virtual_memory.hpp - reserved address space, committed when touched
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptxgen::inline v0 {

/// A range of this process's addresses whose pages read as zero and cost nothing until they are
/// written. Moves, does not copy; an empty object owns nothing.
///
/// Threads: the owner synchronizes accesses; the range must not be in use during `reset`.
class VirtualMemory {
 public:
  VirtualMemory() = default;
  /// `bytes` (rounded up to pages). Empty if the system refuses. `huge_pages`: whether the system
  /// may use large pages, which are faster for dense use and wasteful for sparse use. `at`: the
  /// address it must have, a multiple of pages; empty if anything is there. 0: any.
  [[nodiscard]] static VirtualMemory reserve(std::uint64_t bytes, bool huge_pages,
                                             std::uint64_t at = 0) noexcept;

  VirtualMemory(VirtualMemory&& other) noexcept;
  VirtualMemory& operator=(VirtualMemory&& other) noexcept;
  VirtualMemory(const VirtualMemory&) = delete;
  VirtualMemory& operator=(const VirtualMemory&) = delete;
  ~VirtualMemory();

  [[nodiscard]] explicit operator bool() const noexcept { return data_ != nullptr; }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return bytes_; }

  /// Makes bytes zero again and gives whole pages back. Must lie inside.
  void reset(std::uint64_t offset, std::uint64_t bytes) noexcept;
  /// Bytes of the pages within a range that have memory after them; where the system does not
  /// tell, all of them.
  [[nodiscard]] std::uint64_t resident_bytes(std::uint64_t offset,
                                             std::uint64_t bytes) const noexcept;
  [[nodiscard]] static std::uint64_t page_bytes() noexcept;
  /// What a program must call before it touches a range, on systems that do not commit pages by
  /// themselves; false if there is no memory for it. Costs nothing elsewhere.
  [[nodiscard]] bool commit(std::uint64_t offset, std::uint64_t bytes) noexcept;

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace ptxgen::inline v0
