// src/support/dynamic_library.hpp - finding and opening shared libraries
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::inline v0 {

/// One place where a library or program was looked for, and why it was not taken.
struct SearchAttempt {
  std::string where;   ///< a file, a folder, or words such as "the loader's search path"
  std::string reason;  ///< the loader's own text, or "no such file", ...
};

/// `where: reason`, one line per attempt, no newline after the last.
[[nodiscard]] std::string to_text(const std::vector<SearchAttempt>& attempts);

/// Where a library may be. The order of the search is: `override_path` (and then nothing else),
/// `first_folders`, what the process has already loaded, the loader's own search path, `folders`.
struct LibrarySearch {
  std::string stem;                        ///< "libnvJitLink.so", without a version
  std::vector<std::string> loader_names;   ///< names for the loader, best first
  std::string variable;                    ///< the environment variable, for messages
  std::string override_path;               ///< its value: a file or a folder; empty if not set
  std::vector<std::string> first_folders;  ///< chosen by the user, looked at first
  std::vector<std::string> folders;        ///< the usual places
  bool usual_places = true;                ///< false: neither process, loader nor `folders`
  std::string standin_symbol;              ///< a library that has it is passed over
};

/// An open shared library, or the reasons why there is none. In a folder the file with the highest
/// version after `stem` is taken.
///
/// Libraries stay mapped after the object is gone (RTLD_NODELETE): CUDA libraries start threads
/// that do not survive unloading, and opening again is then cheap.
/// Const members may be called from several threads.
class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  [[nodiscard]] static DynamicLibrary find(const LibrarySearch& search);
  /// The library of that name if the process has loaded it already; never loads one.
  [[nodiscard]] static DynamicLibrary find_loaded(const std::string& name);

  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  ~DynamicLibrary();

  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }
  /// The file that was opened, as the loader names it.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Every place tried before the one that worked, or all of them.
  [[nodiscard]] const std::vector<SearchAttempt>& attempts() const noexcept { return attempts_; }

  /// The address of `name`, or null.
  [[nodiscard]] void* symbol(const char* name) const noexcept;
  /// Sets `function` to `name` and returns whether it exists.
  template <class Function>
  [[nodiscard]] bool resolve(const char* name, Function*& function) const noexcept {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }

 private:
  bool open_file(const std::string& file);
  bool open_in_folder(const std::string& folder, const std::string& stem);
  bool adopt(void* handle, const std::string& fallback_name);

  void* handle_ = nullptr;
  std::string path_;
  std::vector<SearchAttempt> attempts_;
  std::string standin_symbol_;
};

}  // namespace ptxgen::inline v0
