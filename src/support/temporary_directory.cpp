// src/support/temporary_directory.cpp - a folder that goes away again
#include "support/temporary_directory.hpp"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
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

}  // namespace

TemporaryDirectory::TemporaryDirectory(const std::string& parent)
    : path_((parent.empty() ? std::string("/tmp") : parent) + "/ptxgen-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) {
    fail("no-temporary-folder", "cannot make a temporary folder (TMPDIR chooses where)", path_);
  }
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;  // a destructor has nobody to tell
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::file(std::string_view name) const {
  return path_ + "/" + std::string(name);
}

std::string read_file(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  // A folder can be opened; reading from it then gives nothing and sets errno.
  const bool nothing = content.empty() && errno != 0;
  if (nothing || (!in.good() && !in.eof())) fail("read", "cannot read the file", path);
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
