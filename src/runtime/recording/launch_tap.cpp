// src/runtime/recording/launch_tap.cpp - a driver table that keeps launches instead of doing them
#include "runtime/recording/launch_tap.hpp"

#include <cstring>
#include <map>
#include <string_view>

namespace ptxgen::inline v0 {

namespace {

using namespace driver;

struct TappedFunction {
  CUmodule module = nullptr;
  std::string name;
};

// See the class comment.
struct TapState {
  std::mutex mutex;
  const Table* base = nullptr;
  std::map<CUmodule, std::string> modules;
  std::map<CUfunction, TappedFunction> functions;
  std::map<CUdeviceptr, std::uint64_t> allocations;
  std::vector<TappedLaunch> launches;
};
TapState state;
std::mutex one_tap;

// Machine code and archives of it are no text.
std::string text_of_image(const void* image) {
  constexpr unsigned char kElf[] = {0x7f, 'E', 'L', 'F'};
  constexpr unsigned char kFatBinary[] = {0x50, 0xed, 0x55, 0xba};
  if (std::memcmp(image, kElf, 4) == 0 || std::memcmp(image, kFatBinary, 4) == 0) return {};
  return static_cast<const char*>(image);
}

CUresult tap_module_load_data_ex(CUmodule* module, const void* image, unsigned options,
                                 CUjit_option* which, void** values) {
  const CUresult result = state.base->module_load_data_ex(module, image, options, which, values);
  if (result == CUDA_SUCCESS) {
    const std::lock_guard lock(state.mutex);
    state.modules[*module] = text_of_image(image);
  }
  return result;
}

CUresult tap_module_get_function(CUfunction* function, CUmodule module, const char* name) {
  const CUresult result = state.base->module_get_function(function, module, name);
  if (result == CUDA_SUCCESS) {
    const std::lock_guard lock(state.mutex);
    state.functions[*function] = {module, name};
  }
  return result;
}

CUresult tap_mem_alloc(CUdeviceptr* address, std::size_t bytes) {
  const CUresult result = state.base->mem_alloc(address, bytes);
  if (result == CUDA_SUCCESS) {
    const std::lock_guard lock(state.mutex);
    state.allocations[*address] = bytes;
  }
  return result;
}

CUresult tap_mem_free(CUdeviceptr address) {
  const CUresult result = state.base->mem_free(address);
  if (result == CUDA_SUCCESS) {
    const std::lock_guard lock(state.mutex);
    state.allocations.erase(address);
  }
  return result;
}

// The argument block in `extra`, where the runtime has it.
std::vector<std::byte> block_in(void** extra) {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  for (; extra != nullptr && extra[0] != nullptr; extra += 2) {
    const auto tag = reinterpret_cast<std::uintptr_t>(extra[0]);
    if (tag == kLaunchParamBufferPointer) begin = static_cast<const std::byte*>(extra[1]);
    if (tag == kLaunchParamBufferSize) bytes = *static_cast<const std::size_t*>(extra[1]);
  }
  return begin == nullptr ? std::vector<std::byte>() : std::vector<std::byte>(begin, begin + bytes);
}

void keep(CUfunction function, const LaunchGeometry& geometry, void** extra) {
  const std::lock_guard lock(state.mutex);
  const TappedFunction& known = state.functions[function];
  state.launches.push_back({state.modules[known.module], known.name, geometry, block_in(extra)});
}

CUresult tap_launch_kernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                           CUstream, void**, void** extra) {
  LaunchGeometry geometry;
  geometry.grid = {grid_x, grid_y, grid_z};
  geometry.block = {block_x, block_y, block_z};
  geometry.dynamic_shared_bytes = shared;
  keep(function, geometry, extra);
  return CUDA_SUCCESS;
}

CUresult tap_launch_kernel_ex(const CUlaunchConfig* config, CUfunction function, void**,
                              void** extra) {
  LaunchGeometry geometry;
  geometry.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  geometry.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  geometry.dynamic_shared_bytes = config->sharedMemBytes;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto& cluster = attribute.value.clusterDim;
      geometry.cluster = {cluster.x, cluster.y, cluster.z};
    }
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      geometry.cooperative = attribute.value.cooperative != 0;
    }
  }
  keep(function, geometry, extra);
  return CUDA_SUCCESS;
}

}  // namespace

LaunchTap::LaunchTap(const Table& base) : alone_(one_tap), table_(base) {
  const std::lock_guard lock(state.mutex);
  state.base = &base;
  table_.module_load_data_ex = tap_module_load_data_ex;
  table_.module_get_function = tap_module_get_function;
  table_.mem_alloc = tap_mem_alloc;
  table_.mem_free = tap_mem_free;
  table_.launch_kernel = tap_launch_kernel;
  if (base.launch_kernel_ex != nullptr) table_.launch_kernel_ex = tap_launch_kernel_ex;
}

LaunchTap::~LaunchTap() {
  const std::lock_guard lock(state.mutex);
  state.base = nullptr;
  state.modules.clear();
  state.functions.clear();
  state.allocations.clear();
  state.launches.clear();
}

const std::vector<TappedLaunch>& LaunchTap::launches() const noexcept { return state.launches; }

std::optional<LaunchTap::Allocation> LaunchTap::allocation_of(std::uint64_t address) const {
  const std::lock_guard lock(state.mutex);
  auto found = state.allocations.upper_bound(address);
  if (found == state.allocations.begin()) return std::nullopt;
  --found;
  if (address - found->first >= found->second) return std::nullopt;
  return Allocation{found->first, found->second};
}

}  // namespace ptxgen::inline v0
