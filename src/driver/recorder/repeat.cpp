// src/driver/recorder/repeat.cpp - steps done by a driver
#include "driver/recorder/repeat.hpp"

namespace ptxgen::inline v0::driver::recorder {
namespace {

CUlaunchAttribute cluster_attribute(const std::uint32_t (&cluster)[3]) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = cluster[0];
  attribute.value.clusterDim.y = cluster[1];
  attribute.value.clusterDim.z = cluster[2];
  return attribute;
}

CUlaunchAttribute cooperative_attribute() {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  return attribute;
}

CUresult fill_row(const Table& table, const FillStep& step, CUdeviceptr row, CUstream stream) {
  const auto count = static_cast<std::size_t>(step.to.width / step.element_bytes);
  if (step.element_bytes == 1) {
    return table.memset_d8_async(row, static_cast<unsigned char>(step.value), count, stream);
  }
  if (step.element_bytes == 2) {
    return table.memset_d16_async(row, static_cast<unsigned short>(step.value), count, stream);
  }
  return table.memset_d32_async(row, step.value, count, stream);
}

}  // namespace

CUresult repeat_launch(const Table& table, CUfunction function, const LaunchStep& step,
                       std::vector<std::byte> arguments, CUstream stream) {
  std::size_t bytes = arguments.size();
  void* extra[] = {reinterpret_cast<void*>(kLaunchParamBufferPointer), arguments.data(),
                   reinterpret_cast<void*>(kLaunchParamBufferSize), &bytes,
                   reinterpret_cast<void*>(kLaunchParamEnd)};
  if (step.cluster[0] == 0 && !step.cooperative) {
    return table.launch_kernel(function, step.grid[0], step.grid[1], step.grid[2], step.block[0],
                               step.block[1], step.block[2], step.shared_bytes, stream, nullptr,
                               extra);
  }
  if (table.launch_kernel_ex == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  std::vector<CUlaunchAttribute> attributes;
  if (step.cluster[0] != 0) attributes.push_back(cluster_attribute(step.cluster));
  if (step.cooperative) attributes.push_back(cooperative_attribute());
  CUlaunchConfig config{};
  config.gridDimX = step.grid[0];
  config.gridDimY = step.grid[1];
  config.gridDimZ = step.grid[2];
  config.blockDimX = step.block[0];
  config.blockDimY = step.block[1];
  config.blockDimZ = step.block[2];
  config.sharedMemBytes = step.shared_bytes;
  config.hStream = stream;
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  return table.launch_kernel_ex(&config, function, nullptr, extra);
}

CUresult repeat_fill(const Table& table, const FillStep& step, CUstream stream) {
  for (std::uint64_t y = 0; y < step.to.height; ++y) {
    const CUdeviceptr row = step.to.address + y * step.to.pitch;
    if (const CUresult result = fill_row(table, step, row, stream)) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace ptxgen::inline v0::driver::recorder
