// src/cli_common/new_file.cpp - a result file that appears whole or not at all
#include "cli_common/new_file.hpp"

#include <filesystem>
#include <utility>

#include "cli_common/program.hpp"
#include "ptxgen/support/error.hpp"
#include "support/file_system.hpp"
#include "support/format.hpp"
#include "support/process_ids.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::cli {

namespace fs = std::filesystem;

namespace {

bool exists(const std::string& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

std::string counted(const std::string& path, unsigned number) {
  if (number == 1) return path;
  const fs::path original(path);
  fs::path result = original;
  result.replace_filename(
      format_text("{}-{}{}", original.stem().string(), number, original.extension().string()));
  return result.string();
}

}  // namespace

NewFile NewFile::named(const std::string& path, bool overwrite, const std::string& option) {
  return {path, overwrite ? Taken::Replace : Taken::Refuse, option};
}
NewFile NewFile::with_free_name(const std::string& path) { return {path, Taken::CountUp, "--csv"}; }

void NewFile::throw_exists() const {
  throw UsageError(option_ + " " + path_ +
                   ": the file exists; choose another name, or replace it with "
                   "--overwrite");
}

NewFile::NewFile(std::string path, Taken taken, std::string option)
    : option_(std::move(option)), wanted_(std::move(path)), path_(wanted_), taken_(taken) {
  std::error_code error;
  if (fs::is_directory(wanted_, error)) {
    throw UsageError(option_ + " " + wanted_ + ": is a folder; name a file in it");
  }
  if (taken_ == Taken::Refuse && exists(wanted_)) throw_exists();
  for (unsigned i = 1; taken_ == Taken::CountUp && exists(path_); ++i) path_ = counted(wanted_, i);
  const std::string part = format_text("{}.{}.part", wanted_, process_id());
  FileSystem system;
  FileSystem::Handle handle{};
  if (const int status = system.create(part, handle)) {
    throw UsageError(option_ + " " + wanted_ + ": cannot be written: " + errno_text(status));
  }
  (void)system.close(handle);
  part_ = part;
}

NewFile::NewFile(NewFile&& other) noexcept
    : option_(std::move(other.option_)),
      wanted_(std::move(other.wanted_)),
      path_(std::move(other.path_)),
      part_(std::exchange(other.part_, {})),
      taken_(other.taken_) {}

NewFile::~NewFile() {
  std::error_code error;
  if (!part_.empty()) fs::remove(part_, error);
}

void NewFile::publish(std::string_view content) {
  write_file(part_, content);
  std::error_code error;
  if (taken_ == Taken::Replace) {
    fs::rename(part_, path_, error);
  } else {
    // A hard link, unlike a renaming, fails where the name is taken.
    fs::create_hard_link(part_, path_, error);
    for (unsigned i = 2; error == std::errc::file_exists && taken_ == Taken::CountUp; ++i) {
      path_ = counted(wanted_, i);
      fs::create_hard_link(part_, path_, error);
    }
    if (error == std::errc::file_exists) throw_exists();
    // A file system without hard links.
    if (error && !exists(path_)) fs::rename(part_, path_, error);
  }
  if (error) {
    throw Error(Stage::Io, "write", "cannot write '" + path_ + "': " + error.message());
  }
  fs::remove(part_, error);
  part_.clear();
}

}  // namespace ptxgen::cli
