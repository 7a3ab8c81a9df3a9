// src/cli/commands/gemv_job.hpp - one GEMV on a device, compared with fp64
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/gemv_numbers.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"

namespace ptxgen::cli {

struct GemvJob {
  GemvProblem problem;
  float alpha = 1;  ///< both only where the problem is scaled
  float beta = 0;
  GemvChoice choice = GemvChoice::Auto;
  std::uint64_t seed = 0;
  const ptx::Target* target = nullptr;  ///< null: the device's own
};

struct GemvOutcome {
  std::string kernel;          ///< "gemv", "gemv_coalesced", "cublasSgemv"
  std::string implementation;  ///< "direct", "coalesced", "cublas", ...
  std::string reason;
  std::string target;
  LaunchGeometry geometry;
  KernelCost cost;
  std::optional<GemvPlan> plan;              ///< of a planned kernel
  std::optional<GemvPrediction> prediction;  ///< of the plan, for this device
  std::string hash;                          ///< of the PTX; empty for cuBLAS
  std::vector<Finding> check;                ///< findings of the verifier
  std::string origin;  ///< of the module: "compiled", "disk", ...; empty for cuBLAS
  /// Microseconds, in order: the launcher's stages from spec to loaded module, then ours.
  std::vector<std::pair<std::string, double>> stages;
  std::optional<emulator::Result> emulated;  ///< findings and counters, of the emulated device
  std::string fault;                         ///< the driver's message if it stopped the kernel
  Comparison comparison;                     ///< not made after a fault
  bool ok = false;
};

/// Runs the job through a Launcher. Throws `Error` as the launcher does, std::bad_alloc where this
/// machine has too little memory.
[[nodiscard]] GemvOutcome run_gemv(const Device& device, const GemvJob& job,
                                   const Settings& settings);

}  // namespace ptxgen::cli
