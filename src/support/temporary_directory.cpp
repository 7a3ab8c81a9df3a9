// src/support/temporary_directory.cpp - a temporary directory, removed at the end
#include "support/temporary_directory.hpp"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <new>
#include <system_error>

#include "ptxgen/support/error.hpp"

namespace ptxgen::inline v0 {

namespace {

[[noreturn]] void fail(const char* code, const std::string& message, const std::string& file) {
  const int number = errno;
  Error error(Stage::Io, code, message + ": " + std::generic_category().message(number));
  error.file = file;
  error.driver_status = number;
  throw error.refresh();
}

// A file that can be opened and must not be read.
[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  Error error(Stage::Io, "read", "cannot read the file: it " + why);
  error.file = file;
  throw error.refresh();
}

std::string byte_text(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

std::string kind_text(std::filesystem::file_type type) {
  switch (type) {
    case std::filesystem::file_type::character:
    case std::filesystem::file_type::block:
      return "a device";
    case std::filesystem::file_type::socket:
      return "a socket";
    default:
      return "no regular file";
  }
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(const std::string& parent)
    : path_((parent.empty() ? std::string("/tmp") : parent) + "/ptxgen-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) {
    fail("no-temporary-folder", "cannot make a temporary folder (TMPDIR chooses where)", path_);
  }
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;  // a destructor cannot report it
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::file(std::string_view name) const {
  return path_ + "/" + std::string(name);
}

std::string read_stream(std::istream& in, const std::string& name, std::uint64_t max_bytes,
                        std::uint64_t expected_bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::string content;
  try {
    // One byte more than expected meets the end of the file.
    std::size_t piece = std::max(kPiece, static_cast<std::size_t>(expected_bytes) + 1);
    while (in) {
      const std::size_t size = content.size();
      content.resize(size + piece);
      in.read(content.data() + size, static_cast<std::streamsize>(piece));
      content.resize(size + static_cast<std::size_t>(in.gcount()));
      piece = kPiece;
      if (content.size() > max_bytes) refuse(name, "holds more than " + byte_text(max_bytes));
    }
  } catch (const std::bad_alloc&) {
    refuse(name, "does not fit in the memory of this machine");
  }
  return content;
}

std::string read_file(const std::string& path, std::uint64_t max_bytes) {
  namespace fs = std::filesystem;
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("read", "cannot read the file", path);
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::fifo) {
    return read_stream(in, path, std::min(max_bytes, kMaxStreamBytes));
  }
  if (type == fs::file_type::directory) {
    errno = EISDIR;
    fail("read", "cannot read the file", path);
  }
  if (type != fs::file_type::regular) {
    refuse(path, "is " + kind_text(type) + "; name a regular file or a pipe");
  }
  // Files of a process file system say that they are empty and are not.
  const std::uint64_t bytes = fs::file_size(path, error);
  if (!error && bytes > max_bytes) {
    refuse(path, "has " + byte_text(bytes) + "; at most " + byte_text(max_bytes) + " are read");
  }
  std::string content = read_stream(in, path, max_bytes, error ? 0 : bytes);
  if (!in.eof()) fail("read", "cannot read the file", path);
  return content;
}

void write_file(const std::string& path, std::string_view content) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.flush();
  if (!out) fail("write", "cannot write the file", path);
}

}  // namespace ptxgen::inline v0
