// src/cli/commands/bench_kernel.hpp - ptxgen bench NAME: any kernel of the library
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/args/profile_options.hpp"
#include "cli_common/device_choice.hpp"

namespace ptxgen::cli {

struct BenchKernelOptions {
  std::string kernel;
  std::vector<std::string> settings;  ///< of `-p`
  std::string iters;                  ///< empty: 100, on the emulator 3
  std::string warmup;                 ///< empty: 10, on the emulator 1
  std::uint64_t rounds = 0;           ///< 0: 5; cold 20, on the emulator 3
  bool cold = false;                  ///< single launches, caches replaced before each
  bool cublas = false;                ///< rounds of cuBLAS beside those of a GEMM
  std::uint64_t seed = 0;
  DeviceOptions device;
  ProfileOptions profile;
  bool json = false;
};

/// Times the kernel and prints the report. Returns the exit code: 1 if a result is wrong. Throws
/// `UsageError`, and `Error` as opening a device.
[[nodiscard]] int bench_kernel(const BenchKernelOptions& options);

}  // namespace ptxgen::cli
