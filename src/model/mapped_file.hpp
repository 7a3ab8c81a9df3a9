// src/model/mapped_file.hpp - a file's bytes in the address space
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ptxgen::inline v0 {

/// Maps a regular file for reading. Moves, does not copy; an empty object maps nothing. The only
/// part of the module that calls the operating system.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws `Error` (Stage::Io, "read") with the path and the system's reason.
  explicit MappedFile(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// Drops the whole pages of a part of `bytes()` from memory; bytes of others are ignored.
  void release(std::span<const std::byte> part) const noexcept;

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace ptxgen::inline v0
