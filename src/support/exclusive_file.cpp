// src/support/exclusive_file.cpp - a file with one writer at a time
#include "support/exclusive_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr int kMaxFiles = 99;

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  Error error(Stage::Io, "write", "cannot write " + path + ": " + what);
  error.file = path;
  throw std::move(error.refresh());
}

}  // namespace

ExclusiveFile ExclusiveFile::open_first_free(const std::string& path) {
  for (int i = 1; i <= kMaxFiles; ++i) {
    ExclusiveFile file;
    file.path_ = i == 1 ? path : path + "." + std::to_string(i);
    file.descriptor_ = open(file.path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (file.descriptor_ < 0) fail(file.path_, std::strerror(errno));
    // The lock belongs to the open file, so a second one in the same process is refused too.
    if (flock(file.descriptor_, LOCK_EX | LOCK_NB) == 0) return file;
    // File systems without locks: better one file for two writers than none.
    if (errno != EWOULDBLOCK) return file;
  }
  fail(path, "it and its first " + std::to_string(kMaxFiles) + " successors are being written");
}

ExclusiveFile::ExclusiveFile(ExclusiveFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

ExclusiveFile& ExclusiveFile::operator=(ExclusiveFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

ExclusiveFile::~ExclusiveFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void ExclusiveFile::replace(std::string_view content) {
  // A pipe or a terminal has no length to reset.
  if (ftruncate(descriptor_, 0) != 0 && errno != EINVAL) fail(path_, std::strerror(errno));
  if (lseek(descriptor_, 0, SEEK_SET) < 0 && errno != ESPIPE) fail(path_, std::strerror(errno));
  while (!content.empty()) {
    const ssize_t written = write(descriptor_, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(path_, std::strerror(errno));
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace ptxgen::inline v0
