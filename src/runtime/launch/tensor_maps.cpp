// src/runtime/launch/tensor_maps.cpp - tensor maps among the arguments of a launch
#include "runtime/launch/tensor_maps.hpp"

#include <cstring>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

static_assert(sizeof(driver::CUtensorMap) == kTensorMapBytes);

driver::CUtensorMapDataType data_type(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return driver::CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case ElementType::f16:
      return driver::CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case ElementType::bf16:
      return driver::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    default:
      return driver::CU_TENSOR_MAP_DATA_TYPE_UINT8;
  }
}

driver::CUtensorMapSwizzle swizzle_of(unsigned bytes) {
  return bytes == 128  ? driver::CU_TENSOR_MAP_SWIZZLE_128B
         : bytes == 64 ? driver::CU_TENSOR_MAP_SWIZZLE_64B
         : bytes == 32 ? driver::CU_TENSOR_MAP_SWIZZLE_32B
                       : driver::CU_TENSOR_MAP_SWIZZLE_NONE;
}

driver::CUtensorMap encoded(const ContextCore& core, const KernelDescription& kernel,
                            const TensorMapUse& use) {
  constexpr std::uint32_t kEachElement[5] = {1, 1, 1, 1, 1};
  driver::CUtensorMap map;
  const driver::CUresult result = core.table().tensor_map_encode_tiled(
      &map, data_type(use.type), use.rank, reinterpret_cast<void*>(use.address), use.extents.data(),
      use.strides.data(), use.box.data(), kEachElement, driver::CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle_of(use.swizzle), driver::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      driver::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == driver::CUDA_SUCCESS) return map;
  Error error =
      core.failure(Stage::Launch, {&row_of(&driver::Table::tensor_map_encode_tiled), result});
  error.kernel = kernel.name;
  throw error.refresh();
}

}  // namespace

void encode_tensor_maps(const ContextCore& core, const KernelDescription& kernel,
                        std::byte* block) {
  if (core.table().tensor_map_encode_tiled == nullptr) {
    Error error(Stage::Launch, "driver-lacks",
                format_text("{} has tensor maps among its arguments, and this driver has no "
                            "cuTensorMapEncodeTiled; install one of CUDA 12.0 or newer, or launch "
                            "a kernel without tensor maps",
                            kernel.name));
    error.kernel = kernel.name;
    throw error.refresh();
  }
  for (const std::uint32_t offset : kernel.tensor_maps) {
    TensorMapUse use;
    std::memcpy(&use, block + offset, sizeof use);
    const driver::CUtensorMap map = encoded(core, kernel, use);
    std::memcpy(block + offset, &map, sizeof map);
  }
}

}  // namespace ptxgen::inline v0
