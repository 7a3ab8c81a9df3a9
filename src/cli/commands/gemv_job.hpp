// src/cli/commands/gemv_job.hpp - one GEMV on a device, compared with fp64
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/runtime/launch/verify.hpp"

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
  Verification result;
  std::string target;
  LaunchGeometry geometry;
  KernelCost cost;
  std::optional<GemvPlan> plan;              ///< of a planned kernel
  std::optional<GemvPrediction> prediction;  ///< of the plan, for this device
  std::string hash;                          ///< of the PTX; empty for cuBLAS
  std::vector<Finding> check;                ///< findings of the verifier
  std::string origin;  ///< of the module: "compiled", "disk", ...; empty for cuBLAS
  /// From spec to loaded module, then those of the result.
  StageTimes stages;
  std::optional<emulator::Result> emulated;  ///< findings and counters, of the emulated device

  /// Whether the result is right. Findings have a verdict of their own.
  [[nodiscard]] bool ok() const noexcept {
    return !result.error && result.wrong == 0 && result.outside == 0 &&
           (!emulated || emulated->status == emulator::Status::Ok);
  }
};

/// Verifies the GEMV that a launcher chooses. A fault of the device is part of the outcome. Throws
/// `Error` as the launcher does, std::bad_alloc where this machine has too little memory.
[[nodiscard]] GemvOutcome run_gemv(const Device& device, const GemvJob& job,
                                   const Settings& settings);

}  // namespace ptxgen::cli
