// src/driver/recorder/repeat.cpp - steps done by a driver
#include "driver/recorder/repeat.hpp"

#include <bit>

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

CUDA_RESOURCE_DESC described_resource(const StepResource& resource, CUarray array) {
  CUDA_RESOURCE_DESC built{};
  const auto format = static_cast<CUarray_format>(resource.format);
  const auto size = [](std::uint64_t value) { return static_cast<std::size_t>(value); };
  switch (resource.kind) {
    case StepResource::Kind::Array:
      built.resType = CU_RESOURCE_TYPE_ARRAY;
      built.res.array.hArray = array;
      break;
    case StepResource::Kind::Linear:
      built.resType = CU_RESOURCE_TYPE_LINEAR;
      built.res.linear = {resource.address, format, resource.channels, size(resource.width)};
      break;
    case StepResource::Kind::Pitched:
      built.resType = CU_RESOURCE_TYPE_PITCH2D;
      built.res.pitch2D = {resource.address,      format,
                           resource.channels,     size(resource.width),
                           size(resource.height), size(resource.pitch)};
      break;
  }
  return built;
}

CUDA_TEXTURE_DESC described_texture(const StepSampler& sampler) {
  CUDA_TEXTURE_DESC built{};
  for (std::size_t i = 0; i < 3; ++i) {
    built.addressMode[i] = static_cast<CUaddress_mode>(sampler.address_modes[i]);
  }
  built.filterMode = static_cast<CUfilter_mode>(sampler.filter);
  built.flags = sampler.flags;
  built.maxAnisotropy = sampler.anisotropy;
  for (std::size_t i = 0; i < 4; ++i) {
    built.borderColor[i] = std::bit_cast<float>(sampler.border[i]);
  }
  built.mipmapFilterMode = static_cast<CUfilter_mode>(sampler.mipmap[0]);
  built.mipmapLevelBias = std::bit_cast<float>(sampler.mipmap[1]);
  built.minMipmapLevelClamp = std::bit_cast<float>(sampler.mipmap[2]);
  built.maxMipmapLevelClamp = std::bit_cast<float>(sampler.mipmap[3]);
  return built;
}

CUDA_RESOURCE_VIEW_DESC described_view(const StepView& view) {
  CUDA_RESOURCE_VIEW_DESC built{};
  const auto number = [&](std::size_t i) { return static_cast<unsigned>(view.values[i]); };
  built.format = static_cast<CUresourceViewFormat>(number(0));
  built.width = static_cast<std::size_t>(view.values[1]);
  built.height = static_cast<std::size_t>(view.values[2]);
  built.depth = static_cast<std::size_t>(view.values[3]);
  built.firstMipmapLevel = number(4);
  built.lastMipmapLevel = number(5);
  built.firstLayer = number(6);
  built.lastLayer = number(7);
  return built;
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

CUresult repeat_array(const Table& table, const StepArray& array, CUarray& handle) {
  if (table.array_3d_create == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{static_cast<std::size_t>(array.width),
                                           static_cast<std::size_t>(array.height),
                                           static_cast<std::size_t>(array.depth),
                                           static_cast<CUarray_format>(array.format),
                                           array.channels,
                                           array.flags};
  return table.array_3d_create(&handle, &descriptor);
}

CUresult repeat_object(const Table& table, const ObjectStep& step, CUarray array,
                       unsigned long long& handle) {
  if (table.tex_object_create == nullptr || table.surf_object_create == nullptr) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const CUDA_RESOURCE_DESC resource = described_resource(step.resource, array);
  if (step.surface) return table.surf_object_create(&handle, &resource);
  const CUDA_TEXTURE_DESC texture = described_texture(step.sampler);
  CUDA_RESOURCE_VIEW_DESC view{};
  if (step.view) view = described_view(*step.view);
  return table.tex_object_create(&handle, &resource, &texture, step.view ? &view : nullptr);
}

}  // namespace ptxgen::inline v0::driver::recorder
