// src/cli/args/profile_options.hpp - options --trace and --flame
#pragma once

#include <optional>
#include <string>

#include "ptxgen/support/settings.hpp"
#include "ptxgen/support/trace.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::cli {

class Command;

/// `--trace FILE` and `--flame` of a command.
struct ProfileOptions {
  std::string trace;
  bool flame = false;

  void add_to(Command& command);
  [[nodiscard]] bool in_use() const noexcept { return !trace.empty() || flame; }
};

/// The profile of one call. Made before the device is opened, destroyed after it.
class Profile {
 public:
  /// Throws `UsageError` if the file cannot be written.
  explicit Profile(const ProfileOptions& options);

  /// Makes devices that are opened with these settings record their spans.
  void apply(Settings& settings);
  /// A trace for work without a device; off without options.
  [[nodiscard]] Trace start();
  /// The summary of `--flame`, on standard error. After the spans have ended.
  void report(const Trace& trace) const;

 private:
  ProfileOptions options_;
  std::optional<TemporaryDirectory> folder_;  // of a trace that only `report` reads
};

}  // namespace ptxgen::cli
