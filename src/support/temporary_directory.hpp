// src/support/temporary_directory.hpp - a folder that goes away again
#pragma once

#include <string>
#include <string_view>

namespace ptxgen::inline v0 {

/// A new, empty folder that only this user can enter; removed with all it holds by the destructor.
class TemporaryDirectory {
 public:
  /// Makes it below `parent`, or below /tmp when that is empty. Throws `Error` (stage io,
  /// "no-temporary-folder").
  explicit TemporaryDirectory(const std::string& parent = {});

  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const;

 private:
  std::string path_;
};

/// The whole content of a file. Throws `Error` (stage io, "read").
[[nodiscard]] std::string read_file(const std::string& path);
/// Replaces the content of a file. Throws `Error` (stage io, "write").
void write_file(const std::string& path, std::string_view content);

}  // namespace ptxgen::inline v0
