// src/support/toolkit.cpp - locating the parts of the CUDA toolkit
#include "support/toolkit.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>

#include "support/subprocess.hpp"

namespace ptxgen::inline v0 {

namespace {

namespace fs = std::filesystem;

/// /usr/local/cuda-13.0 and its like, the newest first.
std::vector<std::string> versioned_toolkits() {
  std::vector<std::pair<double, std::string>> found;
  std::error_code failure;
  for (fs::directory_iterator at("/usr/local", failure), end; !failure && at != end;
       at.increment(failure)) {
    const std::string name = at->path().filename().string();
    if (name.rfind("cuda-", 0) != 0) continue;
    found.emplace_back(std::atof(name.c_str() + 5), at->path().string());
  }
  std::sort(found.begin(), found.end(), std::greater<>{});
  std::vector<std::string> folders;
  for (auto& [version, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

std::vector<std::string> usual_toolkits(const Settings& settings) {
  std::vector<std::string> roots;
  for (const std::string& root : {settings.cuda_home, settings.cuda_toolkit}) {
    if (!root.empty()) roots.push_back(root);
  }
  roots.emplace_back("/usr/local/cuda");
  for (std::string& root : versioned_toolkits()) roots.push_back(std::move(root));
  roots.emplace_back("/opt/cuda");
  if (!settings.conda_prefix.empty()) roots.push_back(settings.conda_prefix);
  return roots;
}

/// `root`/`leaf` for all roots, without folders that are the same one under another name.
std::vector<std::string> below(const std::vector<std::string>& roots,
                               std::initializer_list<std::string_view> leaves) {
  std::vector<std::string> folders;
  std::vector<fs::path> seen;
  for (const std::string& root : roots) {
    for (const std::string_view leaf : leaves) {
      std::string folder = root + "/" + std::string(leaf);
      std::error_code failure;
      const fs::path real = fs::canonical(folder, failure);
      if (!failure && std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
      // Toolkits have lib64 or lib: of those that are missing one line per root is enough.
      if (failure && leaf != *leaves.begin()) continue;
      if (!failure) seen.push_back(real);
      folders.push_back(std::move(folder));
    }
  }
  return folders;
}

LibrarySearch toolkit_library(const Settings& settings, const std::string& stem,
                              const char* variable, const std::string& override_path) {
  LibrarySearch search;
  search.stem = stem;
  // Newest first, two majors ahead of the newest that exists.
  for (const char* major : {".15", ".14", ".13", ".12", ".11.2"}) {
    search.loader_names.push_back(stem + major);
  }
  search.loader_names.push_back(stem);
  search.variable = variable;
  search.override_path = override_path;
  search.usual_places = settings.search_usual_places;
  if (!settings.cuda_path.empty()) {
    search.first_folders =
        below({settings.cuda_path}, {"lib64", "lib", "targets/x86_64-linux/lib"});
  }
  if (settings.search_usual_places) {
    search.folders = below(usual_toolkits(settings), {"lib64", "lib", "targets/x86_64-linux/lib"});
  }
  return search;
}

bool is_program(const std::string& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

std::string why_not_a_program(const std::string& file) {
  std::error_code ignored;
  return fs::exists(file, ignored) ? "not an executable file" : "no such file";
}

}  // namespace

LibrarySearch libcuda_search(const Settings& settings) {
  LibrarySearch search;
  search.stem = "libcuda.so";
  // Not plain libcuda.so: that name belongs to development packages and the toolkit's stub.
  search.loader_names = {"libcuda.so.1"};
  search.variable = "PTXGEN_LIBCUDA_PATH";
  search.override_path = settings.libcuda_path;
  search.usual_places = settings.search_usual_places;
  search.folders = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib",
                    "/usr/local/nvidia/lib64", "/run/opengl-driver/lib"};
  return search;
}

LibrarySearch nvjitlink_search(const Settings& settings) {
  LibrarySearch search = toolkit_library(settings, "libnvJitLink.so", "PTXGEN_NVJITLINK_PATH",
                                         settings.nvjitlink_path);
  search.standin_symbol = "ptxgen_emulated_nvjitlink";  // src/driver/nvjitlink
  return search;
}

LibrarySearch nvrtc_search(const Settings& settings) {
  return toolkit_library(settings, "libnvrtc.so", "PTXGEN_NVRTC_PATH", settings.nvrtc_path);
}

LibrarySearch cublas_search(const Settings& settings) {
  return toolkit_library(settings, "libcublas.so", "PTXGEN_CUBLAS_PATH", settings.cublas_path);
}

FoundProgram find_program(const Settings& settings, const std::string& name,
                          const std::string& variable, const std::string& override_path) {
  FoundProgram found;
  if (!override_path.empty()) {
    std::error_code ignored;
    const std::string file =
        fs::is_directory(override_path, ignored) ? override_path + "/" + name : override_path;
    if (is_program(file)) {
      found.path = file;
    } else {
      found.attempts.push_back({file + " (" + variable + ")", why_not_a_program(file)});
    }
    return found;
  }
  const auto look_in = [&](const std::string& folder) {
    const std::string file = folder + "/" + name;
    if (is_program(file)) {
      found.path = file;
    } else {
      found.attempts.push_back({file, why_not_a_program(file)});
    }
    return !found.path.empty();
  };
  if (!settings.cuda_path.empty() && look_in(settings.cuda_path + "/bin")) return found;
  if (settings.search_usual_places) {
    std::string_view rest = settings.program_path;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      const std::string file = std::string(rest.substr(0, end)) + "/" + name;
      // An empty entry means the working directory; do not run a program from there.
      if (end != 0 && is_program(file)) {
        found.path = file;
        return found;
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    found.attempts.push_back({"PATH", "no " + name + " in its folders"});
    for (const std::string& folder : below(usual_toolkits(settings), {"bin"})) {
      if (look_in(folder)) return found;
    }
  }
  if (!settings.search_usual_places) {
    found.attempts.push_back({"the usual places", "not searched, as the settings ask"});
  }
  return found;
}

std::string cuda_program_version(const std::string& program) {
  SubprocessOptions options;
  options.timeout = std::chrono::seconds(20);
  const SubprocessResult result = run_program({program, "--version"}, options);
  const std::size_t at = result.out.find(", V");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + 3;
  const std::size_t end = result.out.find_first_not_of("0123456789.", begin);
  return result.out.substr(begin, end == std::string::npos ? end : end - begin);
}

}  // namespace ptxgen::inline v0
