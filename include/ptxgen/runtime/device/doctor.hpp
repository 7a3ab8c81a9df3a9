// ptxgen/runtime/device/doctor.hpp - what this machine has
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/support/settings.hpp"

namespace ptxgen::inline v0 {

/// One piece of the machine that the library can use. None is required to build and verify PTX.
struct PieceFinding {
  std::string piece;    ///< "NVIDIA driver", "nvJitLink", "ptxas", ...
  bool found = false;   ///< there, and usable as far as asking it showed
  std::string where;    ///< file or folder; empty if nothing is there
  std::string version;  ///< empty if unknown
  std::string gives;    ///< what it makes possible
  std::string problem;  ///< why it was not found or cannot be used; a line per reason
};

/// One GPU that the driver shows.
struct GpuFinding {
  int ordinal = 0;
  std::string name;
  std::string target;  ///< "sm_90"
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
};

struct Diagnosis {
  /// In a fixed order: NVIDIA driver, nvJitLink, ptxas, nvdisasm, cuobjdump, NVRTC, cuBLAS,
  /// cache folder.
  std::vector<PieceFinding> pieces;
  std::vector<GpuFinding> gpus;

  /// The piece of that name, or null.
  [[nodiscard]] const PieceFinding* find(std::string_view piece) const noexcept;
};

/// Looks for everything the library can use and asks each piece for its version. Never throws for
/// what is missing or broken: that is what the findings say. Opens the libraries that it finds
/// (cuBLAS is large: up to a second or two from a cold disk) and starts the driver; changes nothing
/// on the machine, the cache folder is not created.
[[nodiscard]] Diagnosis diagnose(const Settings& settings);

}  // namespace ptxgen::inline v0
