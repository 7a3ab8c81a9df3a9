// src/driver/emulated/modules.cpp - loading, unloading and querying modules
#include "driver/emulated/modules.hpp"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/image.hpp"
#include "ptx/occupancy.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/join.hpp"
#include "support/numbers.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::inline v0::driver {

int CUfunc_st::max_threads() const noexcept {
  const std::uint64_t required = kernel->required_block.count();
  return static_cast<int>(required != 0 ? std::min<std::uint64_t>(required, kernel->max_threads)
                                        : kernel->max_threads);
}

namespace emulated {
namespace {

/// The modules of a context, which are unloaded with it.
struct Registry {
  std::mutex mutex;
  std::unordered_map<CUcontext, std::unordered_set<CUmodule>> modules;
};
Registry& registry() {
  // Never destroyed: the CUDA runtime unloads a program's modules while the process ends.
  static Registry* const the_registry = new Registry;
  return *the_registry;
}

int registers_of(const emulator::Program& program, const emulator::Program::Kernel& kernel,
                 const ptx::Gpu& gpu, const JitOptions& options) {
  std::uint32_t registers = kernel.registers_32bit;
  const auto at_most = [&](std::uint32_t limit) { registers = std::min(registers, limit); };
  if (const ptx::Function* function = program.module().find_function(kernel.name)) {
    at_most(ptx::max_registers(gpu, *function));
  }
  if (options.max_registers != 0) at_most(options.max_registers);
  if (options.threads_per_block != 0) {
    at_most(ptx::max_registers(gpu.registers_per_sm, options.threads_per_block, 1));
  }
  return static_cast<int>(std::max(registers, 1u));
}

std::unique_ptr<CUfunc_st> make_function(CUmodule owner, const emulator::Program::Kernel& kernel,
                                         const ptx::Gpu& gpu, const JitOptions& options) {
  auto result = std::make_unique<CUfunc_st>();
  result->owner = owner;
  result->kernel = &kernel;
  result->registers = registers_of(owner->program, kernel, gpu, options);
  result->binary_version = ptx::sm_of(gpu);
  result->max_dynamic_shared = static_cast<int>(kStaticShared) - result->static_shared();
  result->cluster_width = static_cast<int>(kernel.required_cluster.x);
  result->cluster_height = static_cast<int>(kernel.required_cluster.y);
  result->cluster_depth = static_cast<int>(kernel.required_cluster.z);
  return result;
}

/// One message in the format of ptxas.
std::string message(const std::string& name, std::uint32_t line, std::string_view kind,
                    const std::string& text) {
  std::string result = "ptxas " + name;
  if (line != 0) result += format_text(", line {}", line);
  return format_text("{}; {} : {}", result, kind, text);
}

/// Adds the reason to the error log, from which it is copied to the driver's log with no lock held.
CUresult note(JitOptions& options, CUresult result, const std::string& text) {
  options.error(text);
  return result;
}

/// Copies the error log from byte `before` on to the driver's log.
CUresult passed_on(const JitOptions& options, std::size_t before, CUresult result) {
  std::string text = options.error_log().substr(before);
  while (text.ends_with('\n')) text.pop_back();
  return text.empty() ? result : refuse(result, text);
}

/// The reasons why a text was not loaded, for both logs: all findings of the verifier.
CUresult explain(const Error& error, std::string_view ptx, const std::string& name,
                 JitOptions& options) {
  if (error.code == "out-of-memory") {
    return note(options, CUDA_ERROR_OUT_OF_MEMORY,
                message(name, error.line, "fatal  ", error.message));
  }
  std::vector<std::string> lines;
  if (error.stage == Stage::Verify && error.code != "syntax") {
    for (const Finding& finding : ptx::verify(ptx::parse(ptx, name))) {
      if (finding.severity != Severity::Error) continue;
      lines.push_back(message(name, finding.line, "error  ",
                              format_text("{} [{}]", finding.message, finding.rule)));
    }
  }
  if (lines.empty()) {
    lines.push_back(
        message(name, error.line, "error  ", format_text("{} [{}]", error.message, error.code)));
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  text += "ptxas fatal   : the PTX was not loaded because of these errors";
  return note(options, CUDA_ERROR_INVALID_PTX, text);
}

CUresult check_version(std::string_view ptx, const std::string& name, JitOptions& options) {
  const int version = ptx_version(ptx);
  const int newest = newest_ptx();
  if (version <= newest) return CUDA_SUCCESS;
  return note(options, CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
              message(name, 0, "fatal  ",
                      format_text("the text is PTX {}; this driver is emulated and takes up to PTX "
                                  "{} (PTXGEN_EMULATED_PTX); write an older .version",
                                  dotted_version(version), dotted_version(newest))));
}

/// In the format of ptxas -v, which tools parse. Registers are the declared ones: see CUfunc_st.
void describe(const CUmod_st& module, JitOptions& options) {
  for (const auto& function : module.functions) {
    const emulator::Program::Kernel& kernel = *function->kernel;
    options.info("ptxas info    : Function properties for " + kernel.name);
    options.info(format_text("    {} stack frame, 0 bytes spill stores, 0 bytes spill loads",
                             count_text(kernel.local_bytes, "byte")));
    std::string used = "ptxas info    : Used " + count_text(function->registers, "register");
    if (kernel.static_shared_bytes != 0) {
      used += format_text(", {} smem", count_text(kernel.static_shared_bytes, "byte"));
    }
    options.info(used);
  }
  options.info("ptxas info    : emulated: registers are those declared, none spilled");
}

/// Parses, verifies, decodes; `result` on success. The device's memory is held.
CUresult compile(emulator::Device& device, std::string_view ptx, const std::string& name,
                 JitOptions& options, std::unique_ptr<CUmod_st>& result, CUcontext context) {
  try {
    result = std::make_unique<CUmod_st>(context, emulator::Program::load(device, ptx, name));
  } catch (const Error& error) {
    return explain(error, ptx, name, options);
  }
  for (const emulator::Program::Kernel& kernel : result->program.kernels()) {
    if (kernel.static_shared_bytes > kStaticShared) {
      return note(options, CUDA_ERROR_INVALID_PTX,
                  message(name, 0, "error  ",
                          format_text("kernel '{}' declares {} of shared memory; the limit is {}; "
                                      "more is possible as dynamic shared memory",
                                      kernel.name, count_text(kernel.static_shared_bytes, "byte"),
                                      kStaticShared)));
    }
    result->functions.push_back(make_function(result.get(), kernel, device.gpu(), options));
  }
  if (options.verbose) describe(*result, options);
  return CUDA_SUCCESS;
}

CUresult check_target(const ptx::Gpu& gpu, JitOptions& options) {
  if (!options.target || runs_on(*options.target, gpu)) return CUDA_SUCCESS;
  return note(
      options, CUDA_ERROR_NO_BINARY_FOR_GPU,
      format_text("CU_JIT_TARGET requests {}, which the emulated GPU '{}' ({}) does not run",
                  ptx::name(*options.target), gpu.name, gpu.target));
}

void enter_module(CUmod_st& module) {
  {
    const std::lock_guard lock(registry().mutex);
    registry().modules[module.context].insert(&module);
  }
  for (const auto& function : module.functions) born(function.get());
  born(&module);
}

/// All of the load calls.
CUresult load_image(CUmodule* handle, std::span<const std::byte> image, const std::string& name,
                    unsigned count, const CUjit_option* names, void** values) {
  std::shared_ptr<CUctx_st> context;
  if (const CUresult result = enter(context)) return result;
  if (const CUresult result = unsafe_during_capture()) return result;
  JitOptions options;
  std::string why;
  if (const CUresult result = options.read(count, names, values, why)) return refuse(result, why);
  struct Finish {
    JitOptions& jit;
    ~Finish() { jit.finish(); }
  } const finish{options};
  return load_bytes(*context, image, name, options, *handle);
}

/// The PTX of an image for a GPU; its compile options are applied.
CUresult find_ptx(std::span<const std::byte> image, const ptx::Gpu& gpu, JitOptions& options,
                  ModuleImage& found) {
  found = read_image(image, gpu);
  if (found.result != CUDA_SUCCESS) {
    const std::size_t before = options.error_log().size();
    return passed_on(options, before, note(options, found.result, found.why));
  }
  if (options.max_registers == 0) options.max_registers = found.max_registers;
  return CUDA_SUCCESS;
}

constexpr const char* kUnnamed = "<module>";

}  // namespace

CUresult load_module(CUcontext context, std::string_view ptx, const std::string& name,
                     JitOptions& options, CUmodule& loaded) {
  const std::size_t before = options.error_log().size();
  CUresult result = check_version(ptx, name, options);
  if (result == CUDA_SUCCESS) result = check_target(context->memory.gpu(), options);
  if (result == CUDA_SUCCESS) {
    std::unique_ptr<CUmod_st> created;
    const std::lock_guard memory(context->memory_mutex);
    result = compile(context->memory, ptx, name, options, created, context);
    if (result == CUDA_SUCCESS) {
      enter_module(*created);
      loaded = created.release();
    }
  }
  return passed_on(options, before, result);
}

CUresult load_bytes(CUctx_st& context, std::span<const std::byte> image, const std::string& name,
                    JitOptions& options, CUmodule& loaded) {
  ModuleImage found;
  if (const CUresult result = find_ptx(image, context.memory.gpu(), options, found)) return result;
  return load_module(&context, found.ptx, name, options, loaded);
}

namespace {

CUresult try_text(const ptx::Gpu& gpu, std::string_view ptx, const std::string& name,
                  JitOptions& options, const std::function<void(const CUmod_st&)>& look) {
  const std::size_t before = options.error_log().size();
  CUresult result = check_version(ptx, name, options);
  if (result == CUDA_SUCCESS) {
    emulator::Device device(gpu);
    std::unique_ptr<CUmod_st> created;
    result = compile(device, ptx, name, options, created, nullptr);
    if (result == CUDA_SUCCESS && look) look(*created);
  }
  return passed_on(options, before, result);
}

}  // namespace

CUresult try_ptx(const ptx::Gpu& gpu, std::string_view ptx, const std::string& name,
                 JitOptions& options) {
  return try_text(gpu, ptx, name, options, {});
}

CUresult try_bytes(const ptx::Gpu& gpu, std::span<const std::byte> image, const std::string& name,
                   JitOptions& options, const std::function<void(const CUmod_st&)>& look) {
  ModuleImage found;
  if (const CUresult result = find_ptx(image, gpu, options, found)) return result;
  return try_text(gpu, found.ptx, name, options, look);
}

bool unload_module(CUctx_st& context, CUmodule module) {
  const std::lock_guard memory(context.memory_mutex);
  // Of two threads that unload the same module only one succeeds.
  if (!gone(module)) return false;
  {
    const std::lock_guard lock(registry().mutex);
    registry().modules[&context].erase(module);
  }
  for (const auto& function : module->functions) gone(function.get());
  delete module;
  return true;
}

void unload_modules_of(CUcontext context) {
  std::unordered_set<CUmodule> modules;
  {
    const std::lock_guard lock(registry().mutex);
    const auto found = registry().modules.find(context);
    if (found == registry().modules.end()) return;
    modules = std::move(found->second);
    registry().modules.erase(found);
  }
  for (const CUmodule module : modules) {
    gone(module);
    for (const auto& function : module->functions) gone(function.get());
    delete module;
  }
}

namespace entries {

CUresult module_load_data_ex(CUmodule* handle, const void* image, unsigned num_options,
                             CUjit_option* options, void** option_values) {
  return guarded([&] {
    if (handle == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return load_image(handle, image_at(image), kUnnamed, num_options, options, option_values);
  });
}

CUresult module_load_data(CUmodule* handle, const void* image) {
  return module_load_data_ex(handle, image, 0, nullptr, nullptr);
}

CUresult module_load_fat_binary(CUmodule* handle, const void* image) {
  return module_load_data_ex(handle, image, 0, nullptr, nullptr);
}

CUresult module_load(CUmodule* handle, const char* path) {
  return guarded([&] {
    if (handle == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUcontext context = nullptr;
    if (const CUresult result = enter(context)) return result;
    std::string bytes;
    try {
      bytes = read_file(path);
    } catch (const Error& error) {
      return refuse(CUDA_ERROR_FILE_NOT_FOUND, error.describe());
    }
    return load_image(handle, std::as_bytes(std::span(bytes)), path, 0, nullptr, nullptr);
  });
}

CUresult module_unload(CUmodule handle) {
  return guarded([&] {
    CUcontext context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (!living(handle)) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult result = unsafe_during_capture()) return result;
    if (handle->library != nullptr) {
      return refuse(CUDA_ERROR_NOT_PERMITTED,
                    "cuModuleUnload: the module belongs to a library; call cuLibraryUnload");
    }
    context = handle->context;
    if (const CUresult result = wait_for_all(context)) return result;
    return unload_module(*context, handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult module_get_function(CUfunction* function, CUmodule handle, const char* name) {
  return guarded([&] {
    CUcontext context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!living(handle)) return CUDA_ERROR_INVALID_HANDLE;
    for (const auto& each : handle->functions) {
      if (each->kernel->name == name) {
        *function = each.get();
        return CUDA_SUCCESS;
      }
    }
    const std::string names =
        join_text(handle->functions, ", ", [](const auto& each) { return each->kernel->name; });
    return refuse(CUDA_ERROR_NOT_FOUND,
                  format_text("there is no kernel '{}' in the module; it has {}", name,
                              names.empty() ? "none" : names));
  });
}

CUresult module_get_global(CUdeviceptr* address, std::size_t* bytes, CUmodule handle,
                           const char* name) {
  return guarded([&] {
    CUcontext context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (name == nullptr || (address == nullptr && bytes == nullptr)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (!living(handle)) return CUDA_ERROR_INVALID_HANDLE;
    const emulator::Device::Extent found = handle->program.variable(name);
    if (found.bytes == 0) return CUDA_ERROR_NOT_FOUND;
    if (address != nullptr) *address = found.start;
    if (bytes != nullptr) *bytes = static_cast<std::size_t>(found.bytes);
    return CUDA_SUCCESS;
  });
}

CUresult module_get_loading_mode(CUmoduleLoadingMode* mode) {
  if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

CUresult module_get_function_count(unsigned* count, CUmodule handle) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (!living(handle)) return CUDA_ERROR_INVALID_HANDLE;
    *count = static_cast<unsigned>(handle->functions.size());
    return CUDA_SUCCESS;
  });
}

CUresult module_enumerate_functions(CUfunction* functions, unsigned num_functions,
                                    CUmodule handle) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (functions == nullptr && num_functions != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!living(handle)) return CUDA_ERROR_INVALID_HANDLE;
    const std::size_t count = std::min<std::size_t>(num_functions, handle->functions.size());
    for (std::size_t i = 0; i < count; ++i) functions[i] = handle->functions[i].get();
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
