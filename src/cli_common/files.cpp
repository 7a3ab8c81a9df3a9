// src/cli_common/files.cpp - input files, products, JSON text
#include "cli_common/files.hpp"

#ifdef _WIN32
#include <io.h>
#else
#include <unistd.h>
#endif

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "cli_common/nearest.hpp"
#include "cli_common/program.hpp"
#include "ptxgen/kernels/description.hpp"
#include "ptxgen/support/error.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::cli {

namespace {

namespace fs = std::filesystem;

// PTX and CUDA files of a folder, or every file where there are none, in alphabetical order.
std::vector<std::string> files_of(const fs::path& folder, bool kernels_only) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string extension = entry.path().extension().string();
    if (kernels_only && extension != ".ptx" && extension != ".cu") continue;
    if (entry.is_regular_file(error)) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// A suggestion for a path that cannot be read.
std::string hint_for(const std::string& path, int status) {
  if (status == EISDIR) {
    constexpr std::size_t kShown = 8;
    const std::vector<std::string> names = files_of(path, true);
    std::string text;
    for (std::size_t i = 0; i < names.size() && i < kShown; ++i) {
      text += (text.empty() ? "" : ", ") + names[i];
    }
    if (text.empty()) return "; it holds no .ptx and no .cu file";
    return "; it holds " + text + (names.size() > kShown ? ", ..." : "");
  }
  if (status != ENOENT) return {};
  const fs::path missing(path);
  const fs::path folder = missing.has_parent_path() ? missing.parent_path() : fs::path(".");
  std::vector<std::string> names = files_of(folder, false);
  if (missing.has_parent_path()) {
    for (std::string& name : names) name = (missing.parent_path() / name).string();
  }
  const std::string meant = did_you_mean(path, names);
  if (!meant.empty() || find_kernel(path) == nullptr) return meant;
  return "; " + path + " is a kernel of the library: ptxgen dump " + path + " prints its PTX";
}

}  // namespace

std::string read_input(const std::string& path, std::uint64_t max_bytes) {
  if (path == "-")
    return read_stream(std::cin, input_name(path), std::min(max_bytes, kMaxStreamBytes));
  try {
    return read_file(path, max_bytes);
  } catch (Error& error) {
    const std::string hint = hint_for(path, error.driver_status);
    if (hint.empty()) throw;
    error.message += hint;
    throw error.refresh();
  }
}

void check_writable(const std::string& option, const std::string& path) {
  if (path.empty() || path == "-") return;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const auto refuse = [&](const std::string& why) {
    throw UsageError(option + ": '" + path + "' " + why);
  };
  if (status.type() == fs::file_type::directory) refuse("is a folder; name a file in it");
  const bool exists = fs::exists(status);
  const fs::path parent = fs::path(path).parent_path();
  const std::string place = exists ? path : parent.empty() ? "." : parent.string();
  if (!exists && !fs::is_directory(place, error))
    refuse("cannot be written: there is no folder '" + place + "'");
  if (::access(place.c_str(), exists ? W_OK : W_OK | X_OK) != 0) {
    refuse("cannot be written: " + std::generic_category().message(errno));
  }
}

std::string input_name(const std::string& path) { return path == "-" ? "<stdin>" : path; }

void write_output(const std::string& path, std::string_view bytes) {
  if (!path.empty() && path != "-") return write_file(path, bytes);
  std::cout.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::cout.flush();
  if (!std::cout) throw Error(Stage::Io, "write", "cannot write to standard output");
}

std::string text_of(const nlohmann::json& document) {
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
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
