// tests/support/scripted_driver.cpp - a driver that answers as a test tells it
#include "support/scripted_driver.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace ptxgen::test {
namespace {

using namespace driver;

ScriptedDriver* self = nullptr;
CUlogsCallback log_callback = nullptr;
void* log_user = nullptr;

template <class Handle>
Handle handle_of(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

int device_attribute(CUdevice_attribute which) {
  if (const auto own = self->attributes.find(which); own != self->attributes.end()) {
    return own->second;
  }
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return self->sm / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return self->sm % 10;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return 48 * 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return 227 * 1024;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
      return 1;
    default:
      return 1024;
  }
}

int function_attribute(CUfunction_attribute which) {
  if (const auto own = self->function_attributes.find(which);
      own != self->function_attributes.end()) {
    return own->second;
  }
  return which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
}

void write_log(void* buffer, void** size, const std::string& text) {
  const std::size_t space = reinterpret_cast<std::uintptr_t>(*size);
  if (buffer == nullptr || space == 0) return;
  const std::size_t length = std::min(text.size(), space - 1);
  std::memcpy(buffer, text.data(), length);
  static_cast<char*>(buffer)[length] = '\0';
  *size = reinterpret_cast<void*>(length);
}

CUresult load(CUmodule* handle, const void* image, unsigned count, CUjit_option* options,
              void** values) {
  ++self->jit_calls;
  self->jit_text = static_cast<const char*>(image);
  self->jit_options.clear();
  void* info = nullptr;
  void* error = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    switch (options[i]) {
      case CU_JIT_INFO_LOG_BUFFER:
        info = values[i];
        break;
      case CU_JIT_ERROR_LOG_BUFFER:
        error = values[i];
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        write_log(info, &values[i], self->jit_info_log);
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        write_log(error, &values[i], self->jit_error_log);
        break;
      default:
        self->jit_options[options[i]] =
            static_cast<int>(reinterpret_cast<std::uintptr_t>(values[i]));
    }
  }
  if (self->jit_result != CUDA_SUCCESS) return self->jit_result;
  ++self->modules;
  *handle = handle_of<CUmodule>(0x100);
  return CUDA_SUCCESS;
}

std::vector<std::byte> arguments_of(void** extra) {
  if (extra == nullptr) return {};
  const auto* const bytes = static_cast<const std::byte*>(extra[1]);
  return {bytes, bytes + *static_cast<std::size_t*>(extra[3])};
}

CUresult synchronize() {
  if (!self->logged.empty() && log_callback != nullptr) {
    std::string text = self->logged;
    log_callback(log_user, CU_LOG_LEVEL_ERROR, text.data(), text.size());
  }
  return self->synchronize_result;
}

void fill_objects(Table& table) {
  table.device_primary_ctx_retain = [](CUcontext* context, CUdevice) {
    ++self->contexts;
    *context = handle_of<CUcontext>(0x10);
    return CUDA_SUCCESS;
  };
  table.device_primary_ctx_release = [](CUdevice) {
    --self->contexts;
    return CUDA_SUCCESS;
  };
  table.ctx_get_current = [](CUcontext* context) {
    *context = self->current.empty() ? nullptr : self->current.back();
    return CUDA_SUCCESS;
  };
  table.ctx_push_current = [](CUcontext context) {
    self->current.push_back(context);
    return CUDA_SUCCESS;
  };
  table.ctx_pop_current = [](CUcontext* context) {
    *context = self->current.back();
    self->current.pop_back();
    return CUDA_SUCCESS;
  };
  table.ctx_synchronize = [] { return synchronize(); };
  table.stream_synchronize = [](CUstream) { return synchronize(); };
  table.mem_get_info = [](std::size_t* free, std::size_t* total) {
    *free = static_cast<std::size_t>(self->memory_free);
    *total = 1 << 20;
    return CUDA_SUCCESS;
  };
  table.mem_alloc = [](CUdeviceptr* address, std::size_t bytes) {
    if (bytes > static_cast<std::size_t>(self->memory_free)) return CUDA_ERROR_OUT_OF_MEMORY;
    *address = 0x10000u * static_cast<unsigned>(++self->memories);
    return CUDA_SUCCESS;
  };
  table.mem_free = [](CUdeviceptr) {
    --self->memories;
    return CUDA_SUCCESS;
  };
  table.stream_create = [](CUstream* stream, unsigned) {
    *stream = handle_of<CUstream>(0x1000u * static_cast<unsigned>(++self->streams));
    return CUDA_SUCCESS;
  };
  table.stream_destroy = [](CUstream) {
    --self->streams;
    return CUDA_SUCCESS;
  };
  table.stream_begin_capture = [](CUstream, CUstreamCaptureMode) {
    self->capturing = true;
    return CUDA_SUCCESS;
  };
  table.stream_end_capture = [](CUstream, CUgraph* graph) {
    if (!std::exchange(self->capturing, false)) return CUDA_ERROR_ILLEGAL_STATE;
    ++self->graphs;
    *graph = handle_of<CUgraph>(0x200);
    return CUDA_SUCCESS;
  };
  table.graph_instantiate_with_flags = [](CUgraphExec* executable, CUgraph, unsigned long long) {
    ++self->graphs;
    *executable = handle_of<CUgraphExec>(0x201);
    return CUDA_SUCCESS;
  };
  table.graph_destroy = [](CUgraph) {
    --self->graphs;
    return CUDA_SUCCESS;
  };
  table.graph_exec_destroy = [](CUgraphExec) {
    --self->graphs;
    return CUDA_SUCCESS;
  };
}

void fill_modules(Table& table) {
  table.module_load_data_ex = load;
  table.module_unload = [](CUmodule) {
    --self->modules;
    return CUDA_SUCCESS;
  };
  table.module_get_function = [](CUfunction* function, CUmodule, const char* name) {
    if (std::string_view(name) == "missing") return CUDA_ERROR_NOT_FOUND;
    *function = handle_of<CUfunction>(0x300);
    return CUDA_SUCCESS;
  };
  table.module_get_global = [](CUdeviceptr*, std::size_t*, CUmodule, const char*) {
    return CUDA_ERROR_NOT_FOUND;
  };
  table.func_get_attribute = [](int* value, CUfunction_attribute which, CUfunction) {
    *value = function_attribute(which);
    return CUDA_SUCCESS;
  };
  table.func_set_attribute = [](CUfunction, CUfunction_attribute, int value) {
    self->opted_in.push_back(value);
    return CUDA_SUCCESS;
  };
  table.occupancy_max_active_blocks_per_multiprocessor = [](int* blocks, CUfunction, int,
                                                            std::size_t) {
    *blocks = 2;
    return CUDA_SUCCESS;
  };
  table.launch_kernel = [](CUfunction, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared, CUstream stream, void**,
                           void** extra) {
    self->launches.push_back(
        {{gx, gy, gz, bx, by, bz, shared, stream, nullptr, 0}, {}, arguments_of(extra), false});
    return CUDA_SUCCESS;
  };
  table.launch_kernel_ex = [](const CUlaunchConfig* config, CUfunction, void**, void** extra) {
    self->launches.push_back(
        {*config, {config->attrs, config->attrs + config->numAttrs}, arguments_of(extra), true});
    return CUDA_SUCCESS;
  };
}

}  // namespace

ScriptedDriver::ScriptedDriver() {
  if (self != nullptr) std::abort();
  self = this;
  table.init = [](unsigned) { return CUDA_SUCCESS; };
  table.driver_get_version = [](int* version) {
    *version = self->driver_version;
    return CUDA_SUCCESS;
  };
  table.device_get_count = [](int* count) {
    *count = self->devices;
    return CUDA_SUCCESS;
  };
  table.device_get = [](CUdevice* device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
  };
  table.device_get_name = [](char* name, int, CUdevice) {
    std::strcpy(name, "Scripted GPU");
    return CUDA_SUCCESS;
  };
  table.device_total_mem = [](std::size_t* bytes, CUdevice) {
    *bytes = 1 << 20;
    return CUDA_SUCCESS;
  };
  table.device_get_attribute = [](int* value, CUdevice_attribute which, CUdevice) {
    *value = device_attribute(which);
    return CUDA_SUCCESS;
  };
  table.logs_register_callback = [](CUlogsCallback callback, void* user,
                                    CUlogsCallbackHandle* handle) {
    log_callback = callback;
    log_user = user;
    *handle = handle_of<CUlogsCallbackHandle>(0x400);
    return CUDA_SUCCESS;
  };
  table.logs_unregister_callback = [](CUlogsCallbackHandle) {
    log_callback = nullptr;
    return CUDA_SUCCESS;
  };
  fill_objects(table);
  fill_modules(table);
}

ScriptedDriver::~ScriptedDriver() { self = nullptr; }

}  // namespace ptxgen::test
