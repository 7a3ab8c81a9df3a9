// tests/cli/program.hpp - calls of the ptxgen program
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::test {

inline SubprocessResult ptxgen_program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), PTXGEN_PROGRAM);
  return run_program(arguments);
}

/// The same with environment variables, each `NAME=VALUE`.
inline SubprocessResult with_environment(std::vector<std::string> variables,
                                         const std::vector<std::string>& arguments) {
  variables.insert(variables.begin(), "/usr/bin/env");
  variables.push_back(PTXGEN_PROGRAM);
  variables.insert(variables.end(), arguments.begin(), arguments.end());
  return run_program(variables);
}

/// The same with a file on standard input.
inline SubprocessResult with_input(const std::string& file, const std::string& arguments) {
  return run_program(
      {"/bin/sh", "-c", std::string(PTXGEN_PROGRAM) + " " + arguments + " < " + file});
}

/// Files in a folder that goes with it.
struct Place {
  TemporaryDirectory folder;
  [[nodiscard]] std::string file(std::string_view name) const { return folder.file(name); }
  /// Writes a file and returns its path.
  std::string with(std::string_view name, std::string_view content) const {
    write_file(file(name), content);
    return file(name);
  }
};

inline bool contains(const std::string& text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> values_in(const std::string& file) {
  const std::string bytes = read_file(file);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace ptxgen::test
