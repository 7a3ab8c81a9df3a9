// src/driver/recorder/repeat.hpp - steps done by a driver
#pragma once

#include <vector>

#include "ptxgen/driver/steps.hpp"
#include "ptxgen/driver/table.hpp"

namespace ptxgen::inline v0::driver::recorder {

/// Queues a launch. `arguments` is the parameter block; the step's own is not looked at.
/// CUDA_ERROR_NOT_SUPPORTED: clusters and cooperation need a driver of CUDA 11.6.
[[nodiscard]] CUresult repeat_launch(const Table& table, CUfunction function,
                                     const LaunchStep& step, std::vector<std::byte> arguments,
                                     CUstream stream);

/// Queues fills of all rows, which begin at `step.to.address`.
[[nodiscard]] CUresult repeat_fill(const Table& table, const FillStep& step, CUstream stream);

/// Creates an array.
[[nodiscard]] CUresult repeat_array(const Table& table, const StepArray& array, CUarray& handle);

/// Creates a texture or surface object of `array`, or of memory at the step's address.
[[nodiscard]] CUresult repeat_object(const Table& table, const ObjectStep& step, CUarray array,
                                     unsigned long long& handle);

}  // namespace ptxgen::inline v0::driver::recorder
