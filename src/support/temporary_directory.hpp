// src/support/temporary_directory.hpp - a temporary directory, removed at the end
#pragma once

#include <cstdint>
#include <iosfwd>
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

/// What a text or a pipe may hold at most, so that an endless one ends in an error.
constexpr std::uint64_t kMaxStreamBytes = std::uint64_t{1} << 30;

/// The whole content of a regular file of at most `max_bytes`, or of a pipe of at most
/// kMaxStreamBytes of these. Throws `Error` (stage io, "read"), for a folder, a device or a socket
/// too, and when the content does not fit in memory.
[[nodiscard]] std::string read_file(const std::string& path,
                                    std::uint64_t max_bytes = ~std::uint64_t{0});
/// The rest of a stream; `name` is what errors call it. Throws as `read_file`.
[[nodiscard]] std::string read_stream(std::istream& in, const std::string& name,
                                      std::uint64_t max_bytes = kMaxStreamBytes,
                                      std::uint64_t expected_bytes = 0);
/// Replaces the content of a file. Throws `Error` (stage io, "write").
void write_file(const std::string& path, std::string_view content);

}  // namespace ptxgen::inline v0
