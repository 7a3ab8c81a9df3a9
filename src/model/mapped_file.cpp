// src/model/mapped_file.cpp - mmap of a regular file
#include "model/mapped_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "ptxgen/support/error.hpp"
#include "support/file_system.hpp"

namespace ptxgen::inline v0 {

namespace {

[[noreturn]] void cannot_map(const std::string& path, const std::string& reason, int status) {
  Error error(Stage::Io, "read", "cannot map the file: " + reason);
  error.file = path;
  error.driver_status = status;
  throw error.refresh();
}

// Closes the descriptor of a file; its mapping does not need it.
struct Descriptor {
  FileSystem system;
  FileSystem::Handle handle = -1;
  Descriptor() = default;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (handle >= 0) (void)system.close(handle);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  Descriptor file;
  if (const int status = file.system.open(path, file.handle)) {
    cannot_map(path, errno_text(status), status);
  }
  FileInfo info;
  if (const int status = file.system.info(file.handle, info)) {
    cannot_map(path, errno_text(status), status);
  }
  if (!info.regular) cannot_map(path, "it is a folder, a pipe or a device", 0);
  if (info.bytes == 0) return;  // which mmap refuses
  if (info.bytes > std::numeric_limits<std::size_t>::max()) {
    cannot_map(path, "it is larger than the address space", 0);
  }
  const auto bytes = static_cast<std::size_t>(info.bytes);
  void* data = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.handle, 0);
  if (data == MAP_FAILED) cannot_map(path, errno_text(errno), errno);
  bytes_ = {static_cast<const std::byte*>(data), bytes};
}

void MappedFile::release(std::span<const std::byte> part) const noexcept {
  const std::less<> before;
  if (part.empty() || bytes_.empty() || before(part.data(), bytes_.data()) ||
      before(bytes_.data() + bytes_.size(), part.data() + part.size())) {
    return;
  }
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto from = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t begin = (from + page - 1) / page * page;
  const std::uintptr_t end = (from + part.size()) / page * page;
  if (begin >= end) return;
  // Advice: nothing is lost if the system does not take it.
  (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace ptxgen::inline v0
