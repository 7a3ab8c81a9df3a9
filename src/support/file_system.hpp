// src/support/file_system.hpp - file calls that tests can make fail
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::inline v0 {

/// What a file is, as far as a cache cares.
struct FileInfo {
  std::string name;      ///< without the folder; filled by `list` only
  bool regular = false;  ///< neither a folder nor a pipe nor a device
  std::uint64_t bytes = 0;
  std::int64_t modified_s = 0;  ///< seconds of the wall clock; may be in the future
};

/// The few calls to the operating system that a cache of files makes. Every call returns 0 or an
/// errno value, never throws (but for memory) and is never repeated after the caller's back,
/// except after EINTR. Calls may come from several threads.
///
/// The base class asks the system; tests derive from it and let single calls fail.
class FileSystem {
 public:
  using Handle = int;

  FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;
  virtual ~FileSystem() = default;

  /// For reading; does not wait for the other end of a pipe.
  virtual int open(const std::string& path, Handle& handle);
  virtual int info(Handle handle, FileInfo& info);
  /// At most `to.size()` bytes; `got` is 0 at the end of the file.
  virtual int read(Handle handle, std::span<std::byte> to, std::size_t& got);
  /// A new file for writing; EEXIST if there is anything of that name, a dangling link too.
  virtual int create(const std::string& path, Handle& handle);
  virtual int write(Handle handle, std::span<const std::byte> from, std::size_t& written);
  /// Until the file's bytes survive a loss of power. 0 where the file system has no such thing.
  virtual int sync(Handle handle);
  /// The handle is gone whatever is returned; network file systems report a full disk here.
  virtual int close(Handle handle);
  /// Gives `from` the name `to` atomically: opening `to` gives the old or the new file.
  virtual int replace(const std::string& from, const std::string& to);
  virtual int remove(const std::string& path);
  /// With all parents; new ones may be entered by this user only. 0 if it is there already.
  virtual int make_folders(const std::string& path);
  /// Files of a folder in any order. One that vanishes meanwhile is left out.
  virtual int list(const std::string& folder, std::vector<FileInfo>& files);
  /// Sets the file's time to now.
  virtual int touch(const std::string& path);
  [[nodiscard]] virtual std::int64_t now_s();
};

/// "Permission denied" and the like.
[[nodiscard]] std::string errno_text(int status);

}  // namespace ptxgen::inline v0
