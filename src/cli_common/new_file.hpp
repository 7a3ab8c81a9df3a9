// src/cli_common/new_file.hpp - a result file that appears whole or not at all
#pragma once

#include <string>
#include <string_view>

namespace ptxgen::cli {

/// Reserves the right to write a file before the work that fills it begins: the folder is writable
/// and the name is free. What is written appears under the name in one step; until then, and
/// whenever something fails, there is nothing.
class NewFile {
 public:
  /// Throws `UsageError` if the path cannot be written, or exists and `overwrite` is not said.
  /// `option` is how messages call it.
  [[nodiscard]] static NewFile named(const std::string& path, bool overwrite,
                                     const std::string& option = "--csv");
  /// `path`, or with -2, -3, ... before its extension: one that nobody has, at the end either.
  [[nodiscard]] static NewFile with_free_name(const std::string& path);

  NewFile(NewFile&& other) noexcept;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  /// Gives the file its name with that content. Throws `Error` (stage io, "write"), and
  /// `UsageError` if the path has come to exist meanwhile.
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
