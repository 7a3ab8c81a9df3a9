// ptxgen/runtime/device/doctor.hpp - search for drivers and tools of this machine
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/support/settings.hpp"

namespace ptxgen::inline v0 {

/// One component of the machine that the library can use. Building and verifying PTX needs none.
struct PieceFinding {
  std::string piece;    ///< "NVIDIA driver", "nvJitLink", "ptxas", ...
  bool found = false;   ///< present, and usable as far as a query shows
  std::string where;    ///< file or folder; empty if absent
  std::string version;  ///< empty if unknown
  std::string gives;    ///< features that need it
  std::string problem;  ///< reasons why it was not found or cannot be used, one a line
};

/// One GPU of the driver.
struct GpuFinding {
  int ordinal = 0;
  std::string name;
  std::string target;  ///< "sm_90"
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
};

/// Kernels on the host (`Device::open("host")`).
struct HostFinding {
  std::string backend;               ///< what would run them: "avx2", "scalar"; empty: `problem`
  std::vector<std::string> vectors;  ///< of this build that the processor has, widest first
  std::string problem;               ///< why PTXGEN_HOST cannot be served
};

struct Diagnosis {
  /// In a fixed order: NVIDIA driver, nvJitLink, ptxas, nvdisasm, cuobjdump, NVRTC, cuBLAS,
  /// cache folder.
  std::vector<PieceFinding> pieces;
  std::vector<GpuFinding> gpus;
  HostFinding host;

  /// The piece of that name, or null.
  [[nodiscard]] const PieceFinding* find(std::string_view piece) const noexcept;
};

/// Searches for all components and queries their versions. Does not throw if one is missing or
/// broken; the findings say so. Opens the libraries it finds (cuBLAS can take one to two seconds
/// from a cold disk) and initialises the driver. Changes nothing on the machine; the cache folder
/// is not created.
[[nodiscard]] Diagnosis diagnose(const Settings& settings);

}  // namespace ptxgen::inline v0
