// src/driver/recorder/modules.cpp - modules and libraries that a recorded program loads
#include <algorithm>
#include <span>
#include <string_view>

#include "driver/emulated/image.hpp"
#include "driver/recorder/recorder.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::inline v0::driver::recorder {
namespace {

RecordedKernel kernel_in(const ptx::Module& module, const ptx::Function& entry,
                         std::uint64_t number) {
  RecordedKernel kernel;
  kernel.module = number;
  kernel.name = std::string(module.text(entry.name));
  std::uint32_t offset = 0;
  for (const ptx::Variable& parameter : entry.parameters) {
    const auto bytes = static_cast<std::uint32_t>(ptx::size_in_bytes(parameter));
    const std::uint32_t alignment = std::max(ptx::natural_alignment(parameter), 1u);
    offset = (offset + alignment - 1) / alignment * alignment;
    kernel.parameters.push_back({offset, bytes});
    offset += bytes;
  }
  kernel.parameter_bytes = offset;
  return kernel;
}

/// Reads the text that the driver chooses, or nothing: machine code is not recorded.
std::optional<RecordedModule> read_module(Recorder& all, std::span<const std::byte> image) {
  if (all.gpu == nullptr) {
    all.note("modules are not recorded: this GPU's architecture is not known");
    return std::nullopt;
  }
  const emulated::ModuleImage found = emulated::read_image(image, *all.gpu);
  if (found.result != CUDA_SUCCESS) {
    all.note("a module is not recorded, nor are launches of its kernels: " + found.why);
    return std::nullopt;
  }
  RecordedModule built;
  built.number = all.modules_loaded;
  ptx::Module parsed;
  try {
    parsed = ptx::parse(found.ptx, "<module>");
  } catch (const Error& error) {
    all.note("a module is not recorded, nor are launches of its kernels: " + error.describe());
    return std::nullopt;
  }
  for (const ptx::Function& function : parsed.functions) {
    if (!function.entry) continue;
    RecordedKernel kernel = kernel_in(parsed, function, built.number);
    built.kernels.emplace(kernel.name, kernel);
  }
  for (const ptx::Variable& variable : parsed.variables) {
    const bool is_memory =
        variable.space == ptx::Space::Global || variable.space == ptx::Space::Const;
    if (is_memory) built.variable_names.emplace_back(parsed.text(variable.name));
  }
  built.ptx = all.sink.keep(std::as_bytes(std::span(found.ptx)));
  ++all.modules_loaded;
  return built;
}

/// The recorded module of a handle, also of a library's, or null.
const RecordedModule* module_of(const Recorder& all, CUmodule handle) {
  const auto found = all.modules.find(handle);
  if (found != all.modules.end()) return &found->second;
  for (const auto& [library, module] : all.libraries) {
    CUmodule own = module.handle;
    if (own == nullptr) (void)all.base.library_get_module(&own, library);
    if (own == handle) return &module;
  }
  return nullptr;
}

/// Takes the variables of a module into the shadow. Memory is not read while a stream is captured.
void add_variables(Recorder& all, RecordedModule& module) {
  if (module.loaded || all.captures.load() != 0) return;
  if (module.handle == nullptr &&
      all.base.library_get_module(&module.handle, module.library) != CUDA_SUCCESS) {
    return;
  }
  module.loaded = true;
  LoadStep step;
  step.module = module.number;
  step.ptx = module.ptx;
  for (const std::string& name : module.variable_names) {
    StepVariable variable{name, 0, 0};
    std::size_t bytes = 0;
    CUdeviceptr address = 0;
    if (all.base.module_get_global(&address, &bytes, module.handle, name.c_str()) != CUDA_SUCCESS) {
      continue;
    }
    variable.address = address;
    variable.bytes = bytes;
    if (bytes == 0) continue;
    Region region;
    region.address = address;
    region.name = name;
    region.host_visible = true;  // it may be managed
    if (all.shadow.add(std::move(region), bytes) != CUDA_SUCCESS) continue;
    module.variables.push_back(address);
    step.variables.push_back(std::move(variable));
  }
  all.sink.write(step);
}

/// After a load call that succeeded.
void loaded(Recorder& all, CUmodule handle, std::span<const std::byte> image) {
  std::optional<RecordedModule> built = read_module(all, image);
  all.modules.erase(handle);
  if (!built) {
    all.suspect = true;
    return;
  }
  built->handle = handle;
  add_variables(all, all.modules[handle] = std::move(*built));
}

void keep_kernel(Recorder& all, const void* handle, const RecordedModule& module,
                 std::string_view name) {
  const auto found = module.kernels.find(name);
  if (found != module.kernels.end()) all.kernels[handle] = found->second;
}

/// A function that the program got in another way than by its name: from a node of a graph.
void find_by_name(Recorder& all, CUfunction function) {
  CUmodule handle = nullptr;
  const char* name = nullptr;
  if (all.base.func_get_module == nullptr || all.base.func_get_name == nullptr ||
      all.base.func_get_module(&handle, function) != CUDA_SUCCESS ||
      all.base.func_get_name(&name, function) != CUDA_SUCCESS) {
    return;
  }
  if (const RecordedModule* const module = module_of(all, handle)) {
    keep_kernel(all, function, *module, name);
  }
}

void unloaded(Recorder& all, const RecordedModule& module) {
  if (!module.loaded) return;
  for (const CUdeviceptr address : module.variables) all.shadow.remove(address);
  all.sink.write(UnloadStep{module.number});
}

/// A load call: `image` gives the bytes that were loaded.
template <class Load, class Image>
CUresult load(CUmodule* handle, Load&& call, Image&& image) {
  return entry([&]() -> CUresult {
    const CallScope scope;
    const CUresult result = call();
    Recorder& all = scope.recorder();
    if (result != CUDA_SUCCESS || all.sink.ended()) return result;
    if (!scope.records() && all.captures.load() == 0) return result;
    std::unique_lock<std::mutex> lock;
    if (!scope.records()) lock = std::unique_lock(all.mutex);
    loaded(all, *handle, image());
    return result;
  });
}

std::string file_or_nothing(const char* path) {
  try {
    return read_file(path);
  } catch (const Error&) {
    return {};
  }
}

/// Modules that are loaded without a recording step, with no context current for example, have
/// none.
template <class Load, class Image>
CUresult load_library_by(CUlibrary* library, Load&& call, Image&& image) {
  return entry([&]() -> CUresult {
    const CallScope scope;
    const CUresult result = call();
    Recorder& all = scope.recorder();
    if (result != CUDA_SUCCESS || all.sink.ended()) return result;
    std::unique_lock<std::mutex> lock;
    if (!scope.records()) lock = std::unique_lock(all.mutex);
    all.begin();
    std::optional<RecordedModule> built = read_module(all, image());
    if (!built) return result;
    built->library = *library;
    RecordedModule& kept = all.libraries[*library] = std::move(*built);
    if (scope.records()) add_variables(all, kept);
    return result;
  });
}

void replace_module_loads(Table& table) {
  table.module_load_data_ex = [](CUmodule* handle, const void* image, unsigned count,
                                 CUjit_option* options, void** values) -> CUresult {
    return load(
        handle,
        [&] { return active()->base.module_load_data_ex(handle, image, count, options, values); },
        [&] { return emulated::image_at(image); });
  };
  if (table.module_load_data != nullptr) {
    table.module_load_data = [](CUmodule* handle, const void* image) -> CUresult {
      return load(
          handle, [&] { return active()->base.module_load_data(handle, image); },
          [&] { return emulated::image_at(image); });
    };
  }
  if (table.module_load_fat_binary != nullptr) {
    table.module_load_fat_binary = [](CUmodule* handle, const void* image) -> CUresult {
      return load(
          handle, [&] { return active()->base.module_load_fat_binary(handle, image); },
          [&] { return emulated::image_at(image); });
    };
  }
  if (table.module_load == nullptr) return;
  table.module_load = [](CUmodule* handle, const char* path) -> CUresult {
    std::string bytes;
    return load(
        handle, [&] { return active()->base.module_load(handle, path); },
        [&] {
          bytes = file_or_nothing(path);
          return std::as_bytes(std::span(bytes));
        });
  };
}

void replace_module_uses(Table& table) {
  table.module_unload = [](CUmodule handle) -> CUresult {
    return entry([&]() -> CUresult {
      const CallScope scope;
      const CUresult result = scope.recorder().base.module_unload(handle);
      if (result != CUDA_SUCCESS || !scope.records()) return result;
      Recorder& all = scope.recorder();
      const auto found = all.modules.find(handle);
      if (found == all.modules.end()) return result;
      unloaded(all, found->second);
      all.modules.erase(found);
      return result;
    });
  };
  table.module_get_function = [](CUfunction* function, CUmodule handle,
                                 const char* name) -> CUresult {
    return entry([&]() -> CUresult {
      Recorder& all = *active();
      const CUresult result = all.base.module_get_function(function, handle, name);
      if (result != CUDA_SUCCESS) return result;
      const std::lock_guard lock(all.mutex);
      all.kernels.erase(*function);
      if (const RecordedModule* const module = module_of(all, handle)) {
        keep_kernel(all, *function, *module, name);
      }
      return result;
    });
  };
  if (table.module_enumerate_functions == nullptr || table.func_get_name == nullptr) return;
  table.module_enumerate_functions = [](CUfunction* functions, unsigned count,
                                        CUmodule handle) -> CUresult {
    return entry([&]() -> CUresult {
      Recorder& all = *active();
      const CUresult result = all.base.module_enumerate_functions(functions, count, handle);
      if (result != CUDA_SUCCESS) return result;
      unsigned loaded = 0;
      (void)all.base.module_get_function_count(&loaded, handle);
      const std::lock_guard lock(all.mutex);
      const RecordedModule* const module = module_of(all, handle);
      for (unsigned i = 0; module != nullptr && i < std::min(count, loaded); ++i) {
        const char* name = nullptr;
        if (all.base.func_get_name(&name, functions[i]) != CUDA_SUCCESS) continue;
        keep_kernel(all, functions[i], *module, name);
      }
      return result;
    });
  };
}

void replace_library_loads(Table& table) {
  table.library_load_data = [](CUlibrary* library, const void* code, CUjit_option* jit,
                               void** jit_values, unsigned jit_count, CUlibraryOption* options,
                               void** values, unsigned count) -> CUresult {
    return load_library_by(
        library,
        [&] {
          return active()->base.library_load_data(library, code, jit, jit_values, jit_count,
                                                  options, values, count);
        },
        [&] { return emulated::image_at(code); });
  };
  table.library_load_from_file = [](CUlibrary* library, const char* path, CUjit_option* jit,
                                    void** jit_values, unsigned jit_count, CUlibraryOption* options,
                                    void** values, unsigned count) -> CUresult {
    std::string bytes;
    return load_library_by(
        library,
        [&] {
          return active()->base.library_load_from_file(library, path, jit, jit_values, jit_count,
                                                       options, values, count);
        },
        [&] {
          bytes = file_or_nothing(path);
          return std::as_bytes(std::span(bytes));
        });
  };
  table.library_unload = [](CUlibrary library) -> CUresult {
    return entry([&]() -> CUresult {
      const CallScope scope;
      const CUresult result = scope.recorder().base.library_unload(library);
      if (result != CUDA_SUCCESS || !scope.records()) return result;
      Recorder& all = scope.recorder();
      const auto found = all.libraries.find(library);
      if (found == all.libraries.end()) return result;
      unloaded(all, found->second);
      all.libraries.erase(found);
      return result;
    });
  };
}

/// Keeps the kernels of a library by their handles.
void keep_kernels(Recorder& all, CUlibrary library, std::span<CUkernel> kernels,
                  const char* only_name) {
  const std::lock_guard lock(all.mutex);
  const auto found = all.libraries.find(library);
  for (CUkernel const kernel : kernels) {
    all.kernels.erase(kernel);
    if (found == all.libraries.end()) continue;
    const char* name = only_name;
    if (name == nullptr && all.base.kernel_get_name(&name, kernel) != CUDA_SUCCESS) continue;
    keep_kernel(all, kernel, found->second, name);
  }
}

/// A call that may make a library's module in the context.
template <class Use>
CUresult use_library(CUlibrary library, Use&& call) {
  return entry([&]() -> CUresult {
    const CallScope scope;
    if (scope.records()) {
      const auto found = scope.recorder().libraries.find(library);
      if (found != scope.recorder().libraries.end()) {
        add_variables(scope.recorder(), found->second);
      }
    }
    return call(scope.recorder());
  });
}

void replace_library_uses(Table& table) {
  table.library_get_kernel = [](CUkernel* kernel, CUlibrary library, const char* name) -> CUresult {
    return entry([&]() -> CUresult {
      Recorder& all = *active();
      const CUresult result = all.base.library_get_kernel(kernel, library, name);
      if (result == CUDA_SUCCESS) keep_kernels(all, library, {kernel, 1}, name);
      return result;
    });
  };
  table.library_get_module = [](CUmodule* handle, CUlibrary library) -> CUresult {
    return use_library(library,
                       [&](Recorder& all) { return all.base.library_get_module(handle, library); });
  };
  table.library_get_global = [](CUdeviceptr* address, std::size_t* bytes, CUlibrary library,
                                const char* name) -> CUresult {
    return use_library(library, [&](Recorder& all) {
      return all.base.library_get_global(address, bytes, library, name);
    });
  };
  table.library_get_managed = [](CUdeviceptr* address, std::size_t* bytes, CUlibrary library,
                                 const char* name) -> CUresult {
    return use_library(library, [&](Recorder& all) {
      return all.base.library_get_managed(address, bytes, library, name);
    });
  };
  if (table.library_enumerate_kernels == nullptr || table.kernel_get_name == nullptr) return;
  table.library_enumerate_kernels = [](CUkernel* kernels, unsigned count,
                                       CUlibrary library) -> CUresult {
    return entry([&]() -> CUresult {
      Recorder& all = *active();
      const CUresult result = all.base.library_enumerate_kernels(kernels, count, library);
      if (result != CUDA_SUCCESS) return result;
      unsigned loaded = 0;
      (void)all.base.library_get_kernel_count(&loaded, library);
      keep_kernels(all, library, {kernels, std::min(count, loaded)}, nullptr);
      return result;
    });
  };
}

void replace_kernels(Table& table) {
  table.kernel_get_function = [](CUfunction* function, CUkernel kernel) -> CUresult {
    return entry([&]() -> CUresult {
      const CallScope scope;
      Recorder& all = scope.recorder();
      if (scope.records()) (void)kernel_of(all, reinterpret_cast<CUfunction>(kernel));
      const CUresult result = all.base.kernel_get_function(function, kernel);
      if (result != CUDA_SUCCESS || !scope.records()) return result;
      const auto found = all.kernels.find(kernel);
      if (found != all.kernels.end()) all.kernels[*function] = found->second;
      return result;
    });
  };
}

}  // namespace

const RecordedKernel* kernel_of(Recorder& all, CUfunction function) {
  if (all.kernels.count(function) == 0) find_by_name(all, function);
  const auto found = all.kernels.find(function);
  if (found == all.kernels.end()) return nullptr;
  const auto is_its = [&](const auto& one) { return one.second.number == found->second.module; };
  if (const auto module = std::ranges::find_if(all.modules, is_its); module != all.modules.end()) {
    add_variables(all, module->second);
    return &found->second;
  }
  const auto library = std::ranges::find_if(all.libraries, is_its);
  if (library == all.libraries.end()) return nullptr;
  add_variables(all, library->second);
  return &found->second;
}

void replace_modules(Table& table) {
  replace_module_loads(table);
  replace_module_uses(table);
  if (table.library_load_data == nullptr) return;
  replace_library_loads(table);
  replace_library_uses(table);
  replace_kernels(table);
}

}  // namespace ptxgen::inline v0::driver::recorder
