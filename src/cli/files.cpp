// src/cli/files.cpp - reading inputs and writing products
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/commands.hpp"
#include "ptxgen/support/error.hpp"

namespace ptxgen::cli {

namespace {

[[noreturn]] void io_error(std::string code, const std::string& what, const std::string& path) {
  Error error(Stage::Io, std::move(code), what + " '" + path + "': " + std::strerror(errno));
  error.file = path;
  throw error.refresh();
}

}  // namespace

std::string read_input(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) io_error("cannot-read", "cannot open", path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  // Opening a folder succeeds; reading from it does not.
  if (in.bad() || (text.empty() && errno != 0)) io_error("cannot-read", "cannot read", path);
  return text;
}

std::string input_name(const std::string& path) { return path == "-" ? "<stdin>" : path; }

void write_output(const std::string& path, std::string_view bytes) {
  if (path.empty() || path == "-") {
    std::cout.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::cout.flush();
    if (!std::cout) io_error("cannot-write", "cannot write to", "standard output");
    return;
  }
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) io_error("cannot-write", "cannot create", path);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) io_error("cannot-write", "cannot write", path);
}

}  // namespace ptxgen::cli
