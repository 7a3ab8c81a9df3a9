// src/cli_common/new_file.hpp - a result file that appears whole or not at all
#pragma once

#include <string>
#include <string_view>

namespace ptxgen::cli {

/// Checks before long work that its result file can be written: the folder is writable and the name
/// is free. The content appears under the name in one step; before that, and after a failure, there
/// is no file.
class NewFile {
 public:
  /// Throws `UsageError` if the path cannot be written, or exists and `overwrite` is false.
  /// Messages begin with `option`.
  [[nodiscard]] static NewFile named(const std::string& path, bool overwrite,
                                     const std::string& option = "--csv");
  /// `path`, or with -2, -3, ... before its extension: a name that is free, also at the end.
  [[nodiscard]] static NewFile with_free_name(const std::string& path);

  NewFile(NewFile&& other) noexcept;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  /// Gives the file its name with that content. Throws `Error` (stage io, "write"), and
  /// `UsageError` if another program created the file meanwhile.
  void publish(std::string_view content);
  /// The name; final after `publish`.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  enum class Taken { Refuse, Replace, CountUp };
  NewFile(std::string path, Taken taken, std::string option);
  [[noreturn]] void throw_exists() const;

  std::string option_, wanted_, path_, part_;
  Taken taken_;
};

}  // namespace ptxgen::cli
