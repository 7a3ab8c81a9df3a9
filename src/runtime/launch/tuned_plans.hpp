// src/runtime/launch/tuned_plans.hpp - measured GEMV plans in files
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/gemv/operands.hpp"
#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/file_system.hpp"

namespace ptxgen::inline v0 {

/// The validity of a measurement: a plan is used only if all fields are equal.
struct TunedPlace {
  std::string device;  ///< "NVIDIA H200"
  std::uint16_t sm = 0;
  int driver = 0;       ///< 13000 is 13.0
  std::string version;  ///< version of this library
  friend bool operator==(const TunedPlace&, const TunedPlace&) = default;
};
[[nodiscard]] TunedPlace tuned_place(const DeviceInfo& device);

/// One measured candidate of a problem.
struct TunedCandidate {
  std::string plan;  ///< as text
  double median_us = 0;
  std::string failure;  ///< the reason if it has no time; else empty
};

/// Result of measuring a problem.
struct TunedRecord {
  TunedPlace place;
  GemvProblem problem;
  std::optional<GemvPlan> plan;  ///< the best; none: `failure` says why
  std::string failure;
  std::string metric;  ///< "chained"
  double median_us = 0;
  double low_us = 0;  ///< of the interval around the median
  double high_us = 0;
  std::uint64_t samples = 0;
  double planned_us = 0;  ///< of the planner's first choice, for comparison
  std::vector<TunedCandidate> candidates;
};

/// The folder of the files: the setting `tuned`, or `tuned` in the cache's folder; empty if the
/// setting is "off" or there is no such folder.
[[nodiscard]] std::string tuned_folder(const Settings& settings);
/// One file for each kind of device: "NVIDIA-H200.json".
[[nodiscard]] std::string tuned_file_name(std::string_view device);

/// The valid records of a file's text. `why` gets the errors of the others or of the text; it stays
/// empty if there are none.
[[nodiscard]] std::vector<TunedRecord> read_tuned(std::string_view text, std::string& why);

/// The text of a file with `fresh` records. `existing` is kept unchanged, with unknown members and
/// records of other devices; a record of the same device and problem is replaced. Throws `Error`
/// (Stage::Io, "damaged") if `existing` is neither empty nor such a file.
[[nodiscard]] std::string merge_tuned(std::string_view existing,
                                      std::span<const TunedRecord> fresh);

/// Merges the records into the file of that device, atomically for concurrent readers and writers.
/// Returns its path. Throws `Error` (Stage::Io): "write", "damaged", "locked" if another process
/// holds the lock for longer than `patience`, in tenths of a second.
std::string keep_tuned(const std::string& folder, std::span<const TunedRecord> fresh,
                       FileSystem& files, int patience = 100);

/// The plans of a folder for a device, read once by the constructor. A file that is unreadable or
/// partly damaged costs one warning in the log; its valid records are used.
class TunedPlans final : public GemvPlanSource {
 public:
  TunedPlans(const Device& device, const std::string& folder);

  [[nodiscard]] std::optional<TunedGemv> find(const GemvProblem& problem) const override;
  /// Problems it has a plan for.
  [[nodiscard]] std::size_t size() const noexcept { return records_.size(); }

 private:
  std::vector<TunedRecord> records_;
};

}  // namespace ptxgen::inline v0
