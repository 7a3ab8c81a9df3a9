// src/support/virtual_memory.cpp - reserved address space, committed when touched
#include "support/virtual_memory.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#if defined(_WIN32)
#include <windows.h>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

// The thread sanitizer of gcc 12 turns a fixed address that it keeps for itself into address 0.
#if defined(__SANITIZE_THREAD__)
#define PTXGEN_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PTXGEN_THREAD_SANITIZER
#endif
#endif

namespace ptxgen::inline v0 {

#if defined(_WIN32)

// Windows counts committed pages against the page file at once, so that pages are committed when a
// range is given out, and become real when they are touched.
namespace {

void* reserve_pages(std::size_t bytes, bool, void* at) noexcept {
  return VirtualAlloc(at, bytes, MEM_RESERVE, PAGE_READWRITE);
}
void release_pages(void* data, std::size_t) noexcept { VirtualFree(data, 0, MEM_RELEASE); }
void drop_pages(void* data, std::size_t bytes) noexcept {
  VirtualFree(data, bytes, MEM_DECOMMIT);
  VirtualAlloc(data, bytes, MEM_COMMIT, PAGE_READWRITE);
}

}  // namespace

bool VirtualMemory::commit(std::uint64_t offset, std::uint64_t bytes) noexcept {
  return VirtualAlloc(data_ + offset, static_cast<std::size_t>(bytes), MEM_COMMIT,
                      PAGE_READWRITE) != nullptr;
}

std::uint64_t VirtualMemory::resident_bytes(std::uint64_t, std::uint64_t bytes) const noexcept {
  return bytes;
}

std::uint64_t VirtualMemory::page_bytes() noexcept {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  return info.dwPageSize;
}

#else

namespace {

void* own_pages(std::size_t bytes, void* at, int flags) noexcept {
  flags |= MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
  flags |= MAP_NORESERVE;
#endif
  void* const data = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return data != MAP_FAILED ? data : nullptr;
}

void advise(void* data, std::size_t bytes, bool huge_pages) noexcept {
#if defined(MADV_NOHUGEPAGE)
  if (!huge_pages) static_cast<void>(madvise(data, bytes, MADV_NOHUGEPAGE));
#endif
  static_cast<void>(huge_pages);
#if defined(MADV_DONTDUMP)
  // A core file of a crashed program need not hold terabytes of nothing.
  static_cast<void>(madvise(data, bytes, MADV_DONTDUMP));
#endif
}

void* reserve_pages(std::size_t bytes, bool huge_pages, void* at) noexcept {
  int flags = 0;
#if defined(MAP_FIXED_NOREPLACE) && !defined(PTXGEN_THREAD_SANITIZER)
  if (at != nullptr) flags |= MAP_FIXED_NOREPLACE;
#endif
  void* const data = own_pages(bytes, at, flags);
  if (data == nullptr) return nullptr;
  // Systems that do not know the flag take the address as a wish.
  if (at != nullptr && data != at) {
    munmap(data, bytes);
    return nullptr;
  }
  advise(data, bytes, huge_pages);
  return data;
}

void release_pages(void* data, std::size_t bytes) noexcept { munmap(data, bytes); }

void drop_pages(void* data, std::size_t bytes) noexcept {
#if defined(__linux__)
  if (madvise(data, bytes, MADV_DONTNEED) == 0) return;
#endif
  // Elsewhere DONTNEED need not zero: a fresh mapping in the same place does.
  if (mmap(data, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
      MAP_FAILED) {
    std::memset(data, 0, bytes);
  }
}

}  // namespace

bool VirtualMemory::commit(std::uint64_t, std::uint64_t) noexcept { return true; }

std::uint64_t VirtualMemory::resident_bytes(std::uint64_t offset,
                                            std::uint64_t bytes) const noexcept {
#if defined(__linux__)
  const std::uint64_t page = page_bytes();
  std::uint64_t first = offset / page * page;
  const std::uint64_t end = std::min(bytes_, (offset + bytes + page - 1) / page * page);
  std::uint64_t resident = 0;
  // In pieces, so that a terabyte does not ask for a vector of its pages.
  std::vector<unsigned char> pages;
  while (first < end) {
    const std::uint64_t piece = std::min<std::uint64_t>(end - first, page << 16);
    try {
      pages.assign(static_cast<std::size_t>((piece + page - 1) / page), 0);
    } catch (...) {
      return bytes;
    }
    if (mincore(data_ + first, static_cast<std::size_t>(piece), pages.data()) != 0) return bytes;
    resident += page * static_cast<std::uint64_t>(std::ranges::count_if(
                           pages, [](unsigned char one) { return (one & 1u) != 0; }));
    first += piece;
  }
  return resident;
#else
  static_cast<void>(offset);
  return bytes;
#endif
}

std::uint64_t VirtualMemory::page_bytes() noexcept {
  return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

#endif

#if defined(__linux__)

SharedPages SharedPages::make(std::uint64_t bytes) noexcept {
  SharedPages result;
  result.file_ = memfd_create("ptxgen", MFD_CLOEXEC);
  if (result.file_ >= 0 && ftruncate(result.file_, static_cast<off_t>(bytes)) != 0) return {};
  return result;
}

SharedPages::~SharedPages() {
  if (file_ >= 0) close(file_);
}

bool VirtualMemory::show(std::uint64_t offset, std::uint64_t bytes,
                         const SharedPages& pages) noexcept {
  return mmap(data_ + offset, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_FIXED, pages.file_, 0) != MAP_FAILED;
}

bool VirtualMemory::hide(std::uint64_t offset, std::uint64_t bytes, bool huge_pages) noexcept {
  const auto count = static_cast<std::size_t>(bytes);
  if (own_pages(count, data_ + offset, MAP_FIXED) == nullptr) return false;
  advise(data_ + offset, count, huge_pages);
  return true;
}

#else

SharedPages SharedPages::make(std::uint64_t) noexcept { return {}; }
SharedPages::~SharedPages() = default;
bool VirtualMemory::show(std::uint64_t, std::uint64_t, const SharedPages&) noexcept {
  return false;
}
bool VirtualMemory::hide(std::uint64_t, std::uint64_t, bool) noexcept { return false; }

#endif

SharedPages::SharedPages(SharedPages&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

SharedPages& SharedPages::operator=(SharedPages&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

VirtualMemory VirtualMemory::reserve(std::uint64_t bytes, bool huge_pages,
                                     std::uint64_t at) noexcept {
  VirtualMemory result;
  const std::uint64_t page = page_bytes();
  if (bytes == 0 || bytes > std::numeric_limits<std::size_t>::max() / 2 - page) return result;
  const std::uint64_t rounded = (bytes + page - 1) / page * page;
  void* const wanted = reinterpret_cast<void*>(static_cast<std::uintptr_t>(at));
  void* data = reserve_pages(static_cast<std::size_t>(rounded), huge_pages, wanted);
  if (data == nullptr) return result;
  result.data_ = static_cast<std::byte*>(data);
  result.bytes_ = rounded;
  return result;
}

VirtualMemory::VirtualMemory(VirtualMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

VirtualMemory& VirtualMemory::operator=(VirtualMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

VirtualMemory::~VirtualMemory() {
  if (data_ != nullptr) release_pages(data_, static_cast<std::size_t>(bytes_));
}

void VirtualMemory::reset(std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (bytes == 0) return;
  const std::uint64_t page = page_bytes();
  const std::uint64_t end = offset + bytes;
  const std::uint64_t first_page = (offset + page - 1) / page * page;
  const std::uint64_t end_page = end / page * page;
  if (first_page >= end_page) {
    std::memset(data_ + offset, 0, static_cast<std::size_t>(bytes));
    return;
  }
  std::memset(data_ + offset, 0, static_cast<std::size_t>(first_page - offset));
  drop_pages(data_ + first_page, static_cast<std::size_t>(end_page - first_page));
  std::memset(data_ + end_page, 0, static_cast<std::size_t>(end - end_page));
}

}  // namespace ptxgen::inline v0
