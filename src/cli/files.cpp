// src/cli/files.cpp - reading inputs and writing products
#ifdef _WIN32
#include <io.h>
#else
#include <unistd.h>
#endif

#include <algorithm>
#include <iostream>

#include "cli/commands.hpp"
#include "ptxgen/support/error.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::cli {

std::string read_input(const std::string& path, std::uint64_t max_bytes) {
  if (path != "-") return read_file(path, max_bytes);
  return read_stream(std::cin, input_name(path), std::min(max_bytes, kMaxStreamBytes));
}

std::string input_name(const std::string& path) { return path == "-" ? "<stdin>" : path; }

void write_output(const std::string& path, std::string_view bytes) {
  if (!path.empty() && path != "-") return write_file(path, bytes);
  std::cout.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::cout.flush();
  if (!std::cout) throw Error(Stage::Io, "write", "cannot write to standard output");
}

bool is_terminal(Stream stream) noexcept {
  const int number = stream == Stream::Out ? 1 : 2;
#ifdef _WIN32
  return _isatty(number) != 0;
#else
  return isatty(number) != 0;
#endif
}

}  // namespace ptxgen::cli
