// src/driver/emulated/libraries.cpp - cuLibrary and cuKernel: modules without a context
#include "driver/emulated/libraries.hpp"

#include <algorithm>
#include <cstring>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/image.hpp"
#include "driver/emulated/memory.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::inline v0::driver::emulated {
namespace {

/// The library's module in a context, loaded on first use.
CUresult module_in(CUlib_st& library, CUctx_st& context, CUmodule& module);

CUmodule loaded_in(CUctx_st& context, CUlibrary library) {
  const std::lock_guard lock(context.mutex);
  const auto found = context.of_libraries.find(library);
  return found != context.of_libraries.end() ? found->second : nullptr;
}

/// The function of a kernel in a module of its library, or null.
CUfunc_st* function_of(const CUmod_st& module, const CUkern_st& kernel) {
  const auto named = [&](const auto& one) { return one->kernel->name == kernel.name; };
  // The same place as in the module that the list of kernels was read from, unless the image has
  // another text for this GPU.
  if (kernel.index < module.functions.size() && named(module.functions[kernel.index])) {
    return module.functions[kernel.index].get();
  }
  const auto found = std::ranges::find_if(module.functions, named);
  return found != module.functions.end() ? found->get() : nullptr;
}

void apply_attributes(CUlib_st& library, const CUctx_st& context, CUmod_st& module) {
  for (const auto& kernel : library.kernels) {
    CUfunc_st* const function = function_of(module, *kernel);
    const std::lock_guard lock(kernel->mutex);
    for (const auto& [key, value] : kernel->attributes) {
      if (key.first != context.device || function == nullptr) continue;
      static_cast<void>(set_attribute(*function, key.second, value));
    }
  }
}

CUresult module_in(CUlib_st& library, CUctx_st& context, CUmodule& module) {
  module = loaded_in(context, &library);
  if (module != nullptr) return CUDA_SUCCESS;
  const std::lock_guard loading(library.mutex);
  module = loaded_in(context, &library);
  if (module != nullptr) return CUDA_SUCCESS;
  JitOptions options = library.options.without_buffers();
  CUmodule created = nullptr;
  if (const CUresult result = load_bytes(context, library.image, library.name, options, created)) {
    return result;
  }
  created->library = &library;
  apply_attributes(library, context, *created);
  library.contexts.push_back(hold(&context));
  const std::lock_guard lock(context.mutex);
  context.of_libraries[&library] = created;
  module = created;
  return CUDA_SUCCESS;
}

void add_kernels(CUlib_st& library, std::span<const emulator::Program::Kernel> kernels) {
  for (const emulator::Program::Kernel& one : kernels) {
    auto result = std::make_unique<CUkern_st>();
    result->library = &library;
    result->index = library.kernels.size();
    result->name = one.name;
    result->parameters = one.parameters;
    library.kernels.push_back(std::move(result));
  }
}

/// Compiles the image for the current context, or, where there is none, for the first device to see
/// which kernels it has.
CUresult first_load(CUlib_st& library) {
  std::shared_ptr<CUctx_st> context;
  const CUresult entered = enter(context);
  if (entered == CUDA_SUCCESS) {
    CUmodule module = nullptr;
    if (const CUresult result =
            load_bytes(*context, library.image, library.name, library.options, module)) {
      return result;
    }
    module->library = &library;
    add_kernels(library, module->program.kernels());
    library.contexts.push_back(context);
    const std::lock_guard lock(context->mutex);
    context->of_libraries[&library] = module;
    return CUDA_SUCCESS;
  }
  if (entered != CUDA_ERROR_INVALID_CONTEXT) return entered;
  const ptx::Gpu* const gpu = gpu_of(0);
  if (gpu == nullptr) return CUDA_ERROR_NO_DEVICE;
  return try_bytes(*gpu, library.image, library.name, library.options,
                   [&](const CUmod_st& module) { add_kernels(library, module.program.kernels()); });
}

void unload_modules_of_library(CUlib_st& library) {
  for (const std::weak_ptr<CUctx_st>& one : library.contexts) {
    const std::shared_ptr<CUctx_st> context = one.lock();
    if (!context) continue;
    CUmodule module = nullptr;
    {
      const std::lock_guard lock(context->mutex);
      const auto found = context->of_libraries.find(&library);
      if (found == context->of_libraries.end()) continue;
      module = found->second;
      context->of_libraries.erase(found);
    }
    // Waits for queued work, also in a faulted context.
    static_cast<void>(wait_for_all(context.get()));
    unload_module(*context, module);
  }
}

CUresult check_options(const CUlibraryOption* options, unsigned count, bool from_file) {
  if (options == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const bool preserved = options[i] == CU_LIBRARY_BINARY_IS_PRESERVED;
    const bool table = options[i] == CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE;
    if ((!preserved && !table) || (preserved && from_file)) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult load(CUlibrary* handle, std::span<const std::byte> image, const std::string& name,
              const CUjit_option* options, void** values, unsigned count) {
  const auto created = std::make_shared<CUlib_st>();
  created->name = name;
  created->image.assign(image.begin(), image.end());
  std::string why;
  if (const CUresult result = created->options.read(count, options, values, why)) {
    return refuse(result, why);
  }
  const CUresult result = first_load(*created);
  created->options.finish();
  if (result != CUDA_SUCCESS) return result;
  // The caller's buffers are no longer used.
  created->options = created->options.without_buffers();
  enroll(created);
  for (const auto& kernel : created->kernels) {
    enroll(std::shared_ptr<CUkern_st>(created, kernel.get()));
  }
  *handle = created.get();
  return CUDA_SUCCESS;
}

/// With the current context and the library's module in it.
template <class Work>
CUresult with_module(CUlibrary handle, Work&& work) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context)) return result;
    const std::shared_ptr<CUlib_st> library = hold(handle);
    if (!library) return CUDA_ERROR_INVALID_HANDLE;
    CUmodule module = nullptr;
    if (const CUresult result = module_in(*library, *context, module)) return result;
    return work(module);
  });
}

template <class Work>
CUresult with_library(CUlibrary handle, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUlib_st> library = hold(handle);
    return library ? work(*library) : CUDA_ERROR_INVALID_HANDLE;
  });
}

template <class Work>
CUresult with_kernel(CUkernel handle, Work&& work) {
  return guarded([&]() -> CUresult {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    const std::shared_ptr<CUkern_st> kernel = hold(handle);
    return kernel ? work(*kernel) : CUDA_ERROR_INVALID_HANDLE;
  });
}

}  // namespace

CUresult find_function(CUcontext context, CUfunction& function) {
  if (living(function)) return CUDA_SUCCESS;
  const std::shared_ptr<CUkern_st> kernel = hold(reinterpret_cast<CUkernel>(function));
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  const std::shared_ptr<CUlib_st> library = hold(kernel->library);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  CUmodule module = nullptr;
  if (const CUresult result = module_in(*library, *context, module)) return result;
  CUfunc_st* const found = function_of(*module, *kernel);
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  function = found;
  return CUDA_SUCCESS;
}

namespace entries {

CUresult library_load_data(CUlibrary* library, const void* code, CUjit_option* jit_options,
                           void** jit_options_values, unsigned num_jit_options,
                           CUlibraryOption* library_options, void**, unsigned num_library_options) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (library == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_options(library_options, num_library_options, false)) {
      return result;
    }
    return load(library, image_at(code), "<library>", jit_options, jit_options_values,
                num_jit_options);
  });
}

CUresult library_load_from_file(CUlibrary* library, const char* file_name,
                                CUjit_option* jit_options, void** jit_options_values,
                                unsigned num_jit_options, CUlibraryOption* library_options, void**,
                                unsigned num_library_options) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (library == nullptr || file_name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_options(library_options, num_library_options, true)) {
      return result;
    }
    std::string bytes;
    try {
      bytes = read_file(file_name);
    } catch (const Error& error) {
      return refuse(CUDA_ERROR_FILE_NOT_FOUND, error.describe());
    }
    return load(library, std::as_bytes(std::span(bytes)), file_name, jit_options,
                jit_options_values, num_jit_options);
  });
}

CUresult library_unload(CUlibrary handle) {
  return with_library(handle, [&](CUlib_st& library) {
    // Of two threads that unload it one gets an error.
    if (!gone(handle)) return CUDA_ERROR_INVALID_HANDLE;
    for (const auto& kernel : library.kernels) gone(kernel.get());
    unload_modules_of_library(library);
    return CUDA_SUCCESS;
  });
}

CUresult library_get_kernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  return with_library(handle, [&](const CUlib_st& library) {
    if (kernel == nullptr || name == nullptr || *name == '\0') return CUDA_ERROR_INVALID_VALUE;
    const auto found = std::ranges::find(library.kernels, std::string_view(name),
                                         [](const auto& one) { return one->name; });
    if (found == library.kernels.end()) return CUDA_ERROR_NOT_FOUND;
    *kernel = found->get();
    return CUDA_SUCCESS;
  });
}

CUresult library_get_kernel_count(unsigned* count, CUlibrary handle) {
  return with_library(handle, [&](const CUlib_st& library) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(library.kernels.size());
    return CUDA_SUCCESS;
  });
}

CUresult library_enumerate_kernels(CUkernel* kernels, unsigned num_kernels, CUlibrary handle) {
  return with_library(handle, [&](const CUlib_st& library) {
    if (kernels == nullptr && num_kernels != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t count = std::min<std::size_t>(num_kernels, library.kernels.size());
    for (std::size_t i = 0; i < count; ++i) kernels[i] = library.kernels[i].get();
    return CUDA_SUCCESS;
  });
}

CUresult library_get_module(CUmodule* handle, CUlibrary library) {
  return with_module(library, [&](CUmodule module) {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *handle = module;
    return CUDA_SUCCESS;
  });
}

CUresult library_get_global(CUdeviceptr* address, std::size_t* bytes, CUlibrary library,
                            const char* name) {
  return with_module(
      library, [&](CUmodule module) { return module_get_global(address, bytes, module, name); });
}

CUresult library_get_managed(CUdeviceptr* address, std::size_t* bytes, CUlibrary handle,
                             const char* name) {
  return with_module(handle, [&](CUmodule module) -> CUresult {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const ptx::Module& parsed = module->program.module();
    const bool managed = std::ranges::any_of(parsed.variables, [&](const ptx::Variable& one) {
      return one.managed && parsed.text(one.name) == name;
    });
    if (!managed) return CUDA_ERROR_NOT_FOUND;
    if (!is_unified(*module->context)) {
      return refuse(CUDA_ERROR_NOT_SUPPORTED, no_managed_memory("cuLibraryGetManaged"));
    }
    return module_get_global(address, bytes, module, name);
  });
}

CUresult kernel_get_function(CUfunction* function, CUkernel kernel) {
  return guarded([&] {
    CUcontext context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!hold(kernel)) return CUDA_ERROR_INVALID_HANDLE;
    auto found = reinterpret_cast<CUfunction>(kernel);
    if (const CUresult result = find_function(context, found)) return result;
    *function = found;
    return CUDA_SUCCESS;
  });
}

CUresult kernel_get_library(CUlibrary* library, CUkernel handle) {
  return with_kernel(handle, [&](const CUkern_st& kernel) {
    if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *library = kernel.library;
    return CUDA_SUCCESS;
  });
}

CUresult kernel_get_attribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                              CUdevice device) {
  return with_kernel(handle, [&](const CUkern_st& kernel) -> CUresult {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (gpu_of(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const std::shared_ptr<CUctx_st> context = context_on(device);
    if (!context) {
      return refuse(CUDA_ERROR_INVALID_CONTEXT,
                    format_text("cuKernelGetAttribute: kernel '{}' is compiled for device {} in a "
                                "context of it; make one current, or retain its primary context",
                                kernel.name, device));
    }
    auto function = reinterpret_cast<CUfunction>(handle);
    if (const CUresult result = find_function(context.get(), function)) return result;
    return get_attribute(*function, attribute, *value);
  });
}

CUresult kernel_set_attribute(CUfunction_attribute attribute, int value, CUkernel handle,
                              CUdevice device) {
  return with_kernel(handle, [&](CUkern_st& kernel) -> CUresult {
    if (gpu_of(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const std::shared_ptr<CUctx_st> context = context_on(device);
    if (context) {
      auto function = reinterpret_cast<CUfunction>(handle);
      if (const CUresult result = find_function(context.get(), function)) return result;
      if (const CUresult result = set_attribute(*function, attribute, value)) return result;
    }
    const std::lock_guard lock(kernel.mutex);
    kernel.attributes[{device, attribute}] = value;
    return CUDA_SUCCESS;
  });
}

CUresult kernel_set_cache_config(CUkernel handle, CUfunc_cache config, CUdevice device) {
  return with_kernel(handle, [&](const CUkern_st&) {
    if (gpu_of(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    const bool known = config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL;
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult kernel_get_name(const char** name, CUkernel handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_kernel(handle, [&](const CUkern_st& kernel) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *name = kernel.name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult kernel_get_param_info(CUkernel handle, std::size_t param_index, std::size_t* param_offset,
                               std::size_t* param_size) {
  return with_kernel(handle, [&](const CUkern_st& kernel) {
    // NVIDIA's driver fails here without a current context: cuda.core's tests expect it.
    CUcontext context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (param_offset == nullptr || param_index >= kernel.parameters.size()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *param_offset = kernel.parameters[param_index].offset;
    if (param_size != nullptr) *param_size = kernel.parameters[param_index].bytes;
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
