// src/runtime/launch/tensor_maps.hpp - tensor maps among the arguments of a launch
#pragma once

#include <cstddef>

#include "ptxgen/kernels/description.hpp"
#include "runtime/device/core.hpp"

namespace ptxgen::inline v0 {

/// Encodes the tensor maps of an argument block in place. Throws `Error` (Stage::Launch): "driver-
/// lacks" without cuTensorMapEncodeTiled (CUDA 12.0), "driver-call" for a map that it refuses.
void encode_tensor_maps(const ContextCore& core, const KernelDescription& kernel, std::byte* block);

}  // namespace ptxgen::inline v0
