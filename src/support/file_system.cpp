// src/support/file_system.cpp - file calls of POSIX
#include "support/file_system.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <system_error>

namespace ptxgen::inline v0 {

namespace {

template <class Call>
auto repeat_after_signal(const Call& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

FileInfo info_of(const struct stat& status) {
  FileInfo info;
  info.regular = S_ISREG(status.st_mode);
  info.bytes = status.st_size < 0 ? 0 : static_cast<std::uint64_t>(status.st_size);
  info.modified_s = static_cast<std::int64_t>(status.st_mtime);
  return info;
}

}  // namespace

int FileSystem::open(const std::string& path, Handle& handle) {
  handle = repeat_after_signal(
      [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); });
  return handle < 0 ? errno : 0;
}

int FileSystem::info(Handle handle, FileInfo& info) {
  struct stat status = {};
  if (::fstat(handle, &status) != 0) return errno;
  info = info_of(status);
  return 0;
}

int FileSystem::read(Handle handle, std::span<std::byte> to, std::size_t& got) {
  const ssize_t count = repeat_after_signal([&] { return ::read(handle, to.data(), to.size()); });
  if (count < 0) return errno;
  got = static_cast<std::size_t>(count);
  return 0;
}

int FileSystem::create(const std::string& path, Handle& handle) {
  handle = repeat_after_signal(
      [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  return handle < 0 ? errno : 0;
}

int FileSystem::write(Handle handle, std::span<const std::byte> from, std::size_t& written) {
  const ssize_t count =
      repeat_after_signal([&] { return ::write(handle, from.data(), from.size()); });
  if (count < 0) return errno;
  written = static_cast<std::size_t>(count);
  return 0;
}

int FileSystem::sync(Handle handle) {
  if (repeat_after_signal([&] { return ::fsync(handle); }) == 0) return 0;
  return errno == EINVAL || errno == ENOSYS || errno == ENOTSUP ? 0 : errno;
}

int FileSystem::close(Handle handle) {
  // Linux has released the descriptor even when it says EINTR; a second close could hit another's.
  return ::close(handle) == 0 || errno == EINTR ? 0 : errno;
}

int FileSystem::replace(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

int FileSystem::remove(const std::string& path) { return ::unlink(path.c_str()) == 0 ? 0 : errno; }

int FileSystem::make_folders(const std::string& path) {
  int status = 0;
  for (std::size_t end = 1; end <= path.size(); ++end) {
    if (end != path.size() && path[end] != '/') continue;
    // Parents that cannot be made (on a read-only system, say) do not matter if the last one can.
    status = ::mkdir(path.substr(0, end).c_str(), 0700) == 0 ? 0 : errno;
  }
  if (status == 0) return 0;
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) ? 0 : status;
}

int FileSystem::list(const std::string& folder, std::vector<FileInfo>& files) {
  files.clear();
  DIR* stream = ::opendir(folder.c_str());
  if (stream == nullptr) return errno;
  int failure = 0;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream);
    if (entry == nullptr) {
      failure = errno;
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat status = {};
    if (::fstatat(::dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    files.push_back(info_of(status));
    files.back().name = entry->d_name;
  }
  ::closedir(stream);
  return failure;
}

int FileSystem::touch(const std::string& path) {
  return ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0 ? 0 : errno;
}

std::int64_t FileSystem::now_s() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

std::string errno_text(int status) { return std::generic_category().message(status); }

}  // namespace ptxgen::inline v0
