// src/support/exclusive_file.hpp - a file with one writer at a time
#pragma once

#include <string>
#include <string_view>

namespace ptxgen::inline v0 {

/// A file opened for writing and locked against every other ExclusiveFile, of this process or of
/// another; the lock goes with the object or the process. What the file holds stays until
/// `replace`. One thread at a time.
class ExclusiveFile {
 public:
  ExclusiveFile() = default;
  /// `path`, or `path`.2, .3, ... .99: the first that no other has. Throws `Error` (stage io,
  /// "write").
  [[nodiscard]] static ExclusiveFile open_first_free(const std::string& path);

  ExclusiveFile(ExclusiveFile&& other) noexcept;
  ExclusiveFile& operator=(ExclusiveFile&& other) noexcept;
  ExclusiveFile(const ExclusiveFile&) = delete;
  ExclusiveFile& operator=(const ExclusiveFile&) = delete;
  ~ExclusiveFile();

  [[nodiscard]] explicit operator bool() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Puts `content` in the place of what the file held. Throws `Error` (stage io, "write").
  void replace(std::string_view content);

 private:
  int descriptor_ = -1;
  std::string path_;
};

}  // namespace ptxgen::inline v0
