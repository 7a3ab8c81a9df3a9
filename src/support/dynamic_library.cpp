// src/support/dynamic_library.cpp - finding and opening shared libraries
#include "support/dynamic_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "support/numbers.hpp"

namespace ptxgen::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr int kOpenFlags = RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE;

std::string last_loader_error() {
  const char* text = dlerror();
  return text == nullptr ? "the loader gave no reason" : text;
}

/// The numbers of ".13.0" or "", nothing for any other text.
std::optional<std::vector<int>> version_numbers(std::string_view suffix) {
  std::vector<int> numbers;
  while (!suffix.empty()) {
    if (suffix.front() != '.') return std::nullopt;
    suffix.remove_prefix(1);
    const auto number = take_number<int>(suffix);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

std::string to_text(const std::vector<SearchAttempt>& attempts) {
  std::string text;
  for (const SearchAttempt& attempt : attempts) {
    if (!text.empty()) text += '\n';
    text += attempt.where + ": " + attempt.reason;
  }
  return text;
}

DynamicLibrary DynamicLibrary::find(const LibrarySearch& search) {
  DynamicLibrary library;
  library.standin_symbol_ = search.standin_symbol;
  if (!search.override_path.empty()) {
    std::error_code ignored;
    // A broken override is the user's mistake to see, so nothing else is tried after it.
    if (fs::is_directory(search.override_path, ignored)) {
      (void)library.open_in_folder(search.override_path, search.stem);
    } else {
      (void)library.open_file(search.override_path);
    }
    if (!library.attempts_.empty()) library.attempts_.back().where += " (" + search.variable + ")";
    return library;
  }
  for (const std::string& folder : search.first_folders) {
    if (library.open_in_folder(folder, search.stem)) return library;
  }
  if (!search.usual_places) {
    library.attempts_.push_back({"the usual places", "not searched, as the settings ask"});
    return library;
  }
  for (const std::string& name : search.loader_names) {
    if (void* handle = dlopen(name.c_str(), kOpenFlags | RTLD_NOLOAD); handle != nullptr) {
      if (library.adopt(handle, name)) return library;
    }
  }
  std::vector<SearchAttempt> broken;
  for (const std::string& name : search.loader_names) {
    if (void* handle = dlopen(name.c_str(), kOpenFlags); handle != nullptr) {
      if (library.adopt(handle, name)) return library;
      continue;
    }
    std::string reason = last_loader_error();
    // "not there" is said once for all names; anything else is worth its own line.
    if (reason.find("No such file") == std::string::npos) {
      broken.push_back({"the loader's search path", std::move(reason)});
    }
  }
  std::string names;
  for (const std::string& name : search.loader_names) {
    names += (names.empty() ? "" : ", ") + name;
  }
  if (broken.empty()) {
    library.attempts_.push_back({"the loader's search path", "none of " + names});
  }
  for (SearchAttempt& attempt : broken) library.attempts_.push_back(std::move(attempt));
  for (const std::string& folder : search.folders) {
    if (library.open_in_folder(folder, search.stem)) return library;
  }
  return library;
}

DynamicLibrary DynamicLibrary::find_loaded(const std::string& name) {
  DynamicLibrary library;
  if (void* handle = dlopen(name.c_str(), kOpenFlags | RTLD_NOLOAD); handle != nullptr) {
    (void)library.adopt(handle, name);
  } else {
    library.attempts_.push_back({name, "not loaded by this process"});
  }
  return library;
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      path_(std::move(other.path_)),
      attempts_(std::move(other.attempts_)),
      standin_symbol_(std::move(other.standin_symbol_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  std::swap(attempts_, other.attempts_);
  std::swap(standin_symbol_, other.standin_symbol_);
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* DynamicLibrary::symbol(const char* name) const noexcept {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

/// False, with an attempt, if the library stands for the one that is looked for.
bool DynamicLibrary::adopt(void* handle, const std::string& fallback_name) {
  handle_ = handle;
  path_ = fallback_name;
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr &&
      *map->l_name != '\0') {
    path_ = map->l_name;
  }
  if (standin_symbol_.empty() || dlsym(handle, standin_symbol_.c_str()) == nullptr) return true;
  // Found by the process first, and by the loader again.
  if (attempts_.empty() || attempts_.back().where != path_) {
    attempts_.push_back({path_, "ptxgen's own, which stands for it on an emulated GPU"});
  }
  dlclose(std::exchange(handle_, nullptr));
  path_.clear();
  return false;
}

bool DynamicLibrary::open_file(const std::string& file) {
  // Without a slash the loader would search its own path, which is not what a path setting says.
  const std::string name = file.find('/') == std::string::npos ? "./" + file : file;
  std::error_code ignored;
  if (!fs::exists(name, ignored)) {
    attempts_.push_back({file, "no such file"});
    return false;
  }
  void* handle = dlopen(name.c_str(), kOpenFlags);
  if (handle == nullptr) {
    attempts_.push_back({file, last_loader_error()});
    return false;
  }
  return adopt(handle, name);
}

bool DynamicLibrary::open_in_folder(const std::string& folder, const std::string& stem) {
  std::error_code failure;
  std::vector<std::pair<std::vector<int>, std::string>> candidates;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    const std::string name = at->path().filename().string();
    if (name.rfind(stem, 0) != 0) continue;
    if (auto numbers = version_numbers(std::string_view(name).substr(stem.size()))) {
      candidates.emplace_back(std::move(*numbers), at->path().string());
    }
  }
  if (candidates.empty()) {
    attempts_.push_back({folder, failure ? "no such folder" : "no " + stem + " in it"});
    return false;
  }
  std::sort(candidates.begin(), candidates.end(), std::greater<>{});
  return std::any_of(candidates.begin(), candidates.end(),
                     [this](const auto& candidate) { return open_file(candidate.second); });
}

}  // namespace ptxgen::inline v0
