// src/runtime/module/ptx_dump.cpp - rejected PTX in a file
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "support/format.hpp"

#if defined(_WIN32)
#include <fstream>
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include "runtime/module/loaded_module.hpp"

namespace ptxgen::inline v0 {

namespace {

/// FNV-1a: only names a file.
std::string name_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  std::string name = "ptxgen-";
  for (int shift = 60; shift >= 0; shift -= 4) name += "0123456789abcdef"[(hash >> shift) & 15];
  return name;
}

#if defined(_WIN32)
bool leave(const std::string& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.flush();
  return static_cast<bool>(out);
}
#else
/// Never follows a link or overwrites a file. False with EEXIST: the name is taken.
bool leave(const std::string& path, std::string_view text) {
  int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0 && errno == EEXIST) {
    struct stat found {};
    file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    const bool ours = file >= 0 && ::fstat(file, &found) == 0 && S_ISREG(found.st_mode) &&
                      found.st_uid == ::geteuid() &&
                      static_cast<std::uint64_t>(found.st_size) == text.size();
    if (file >= 0) ::close(file);
    errno = EEXIST;
    return ours;
  }
  if (file < 0) return false;
  while (!text.empty()) {
    const ssize_t wrote = ::write(file, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int why = errno;
      ::close(file);
      ::unlink(path.c_str());
      errno = why;
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return ::close(file) == 0;
}
#endif

}  // namespace

std::string dump_ptx(const std::string& folder, std::string_view text) {
  const std::string stem = format_text("{}/{}", folder, name_of(text));
  for (const char* const suffix : {".ptx", "-2.ptx", "-3.ptx"}) {
    const std::string path = stem + suffix;
    if (leave(path, text)) return "the PTX is in " + path;
    if (errno != EEXIST) break;
  }
  const int why = errno;
  return format_text("the PTX could not be written to {}.ptx: {}", stem,
                     std::generic_category().message(why));
}

}  // namespace ptxgen::inline v0
