// src/support/virtual_memory.hpp - reserved address space, committed when touched
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptxgen::inline v0 {

/// Memory without an address that parts of a VirtualMemory can show, several at the same time; zero
/// at first. Empty where the system does not provide it (all but Linux). Moves, does not copy.
class SharedPages {
 public:
  SharedPages() = default;
  /// `bytes`: a multiple of pages.
  [[nodiscard]] static SharedPages make(std::uint64_t bytes) noexcept;

  SharedPages(SharedPages&& other) noexcept;
  SharedPages& operator=(SharedPages&& other) noexcept;
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  ~SharedPages();

  [[nodiscard]] explicit operator bool() const noexcept { return file_ >= 0; }

 private:
  friend class VirtualMemory;
  int file_ = -1;
};

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

  /// Makes bytes zero again and gives whole pages back. Must be inside.
  void reset(std::uint64_t offset, std::uint64_t bytes) noexcept;
  /// Bytes of the pages within a range that have memory after them; where the system does not
  /// tell, all of them.
  [[nodiscard]] std::uint64_t resident_bytes(std::uint64_t offset,
                                             std::uint64_t bytes) const noexcept;
  [[nodiscard]] static std::uint64_t page_bytes() noexcept;
  /// What a program must call before it touches a range, on systems that do not commit pages by
  /// themselves; false if there is no memory for it. Costs nothing elsewhere.
  [[nodiscard]] bool commit(std::uint64_t offset, std::uint64_t bytes) noexcept;
  /// Shows the first `bytes` of other memory at an offset, both multiples of pages, until `hide`;
  /// false, with nothing changed, if the system refuses.
  [[nodiscard]] bool show(std::uint64_t offset, std::uint64_t bytes,
                          const SharedPages& pages) noexcept;
  /// Own pages again, which are zero; false, with nothing changed, if the system refuses.
  /// `huge_pages` as at `reserve`.
  [[nodiscard]] bool hide(std::uint64_t offset, std::uint64_t bytes, bool huge_pages) noexcept;

 private:
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace ptxgen::inline v0
