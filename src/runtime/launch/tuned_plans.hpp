// src/runtime/launch/tuned_plans.hpp - GEMV plans that were measured, kept in files
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/runtime/launch/gemv_operands.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/file_system.hpp"

namespace ptxgen::inline v0 {

/// What a measurement holds for: all of it must be equal for a plan to be used.
struct TunedPlace {
  std::string device;  ///< "NVIDIA H200"
  std::uint16_t sm = 0;
  int driver = 0;       ///< 13000 is 13.0
  std::string version;  ///< of this library, whose kernels were measured
  friend bool operator==(const TunedPlace&, const TunedPlace&) = default;
};
[[nodiscard]] TunedPlace tuned_place(const DeviceInfo& device);

/// One plan that was tried for a problem.
struct TunedCandidate {
  std::string plan;  ///< as text
  double median_us = 0;
  std::string failure;  ///< why it has no time; empty: it has
};

/// What measuring a problem came to.
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
  double planned_us = 0;  ///< of the planner's first choice, to see what measuring was good for
  std::vector<TunedCandidate> candidates;
};

/// The folder of the files: the setting `tuned`, or `tuned` in the cache's folder; empty where the
/// setting is "off" or there is no such folder.
[[nodiscard]] std::string tuned_folder(const Settings& settings);
/// One file for each kind of device: "NVIDIA-H200.json".
[[nodiscard]] std::string tuned_file_name(std::string_view device);

/// The records of a file's text, those that can be used. `why` gets what is wrong with the others,
/// or with the text as a whole, in words; it stays empty if nothing is.
[[nodiscard]] std::vector<TunedRecord> read_tuned(std::string_view text, std::string& why);

/// The text of a file with `fresh` records: what `existing` holds stays as it is, unknown members
/// and records of others too; a record of the same place and problem is replaced. Throws `Error`
/// (Stage::Io, "damaged") if `existing` is neither empty nor such a file.
[[nodiscard]] std::string merge_tuned(std::string_view existing,
                                      std::span<const TunedRecord> fresh);

/// Merges the records into the file of that device, which others may be reading or writing: they
/// see the old or the new one. Gives its path. Throws `Error` (Stage::Io): "write", "damaged",
/// "locked" if somebody else is writing it for longer than `patience`, in tenths of a second.
std::string keep_tuned(const std::string& folder, std::span<const TunedRecord> fresh,
                       FileSystem& files, int patience = 100);

/// The plans of a folder that hold for a device. Read once, when it is made; a file that cannot be
/// read or is damaged in part costs one warning in the log and is used as far as it can be.
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
