// src/driver/emulated/link.cpp - cuLink: PTX texts joined into one image
#include <algorithm>
#include <memory>
#include <mutex>
#include <span>

#include "driver/emulated/device_runtime.hpp"
#include "driver/emulated/entries.hpp"
#include "driver/emulated/image.hpp"
#include "driver/emulated/link.hpp"
#include "driver/emulated/modules.hpp"
#include "ptxgen/emulator/emulator.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::inline v0::driver {

/// A link in progress. Used by one thread at a time, as CUDA asks.
struct CUlinkState_st {
  ptx::Gpu gpu;  ///< of the context, or a part of the target asked for
  emulated::JitOptions options;
  std::vector<emulated::LinkInput> inputs;
  bool device_runtime = false;   ///< libcudadevrt.a is an input
  std::vector<std::byte> image;  ///< the result of cuLinkComplete
};

namespace emulated {
namespace {

CUresult reject(JitOptions& options, CUresult result, const std::string& text) {
  options.error(text);
  options.finish();
  return refuse(result, text);
}

const char* name_of(CUjitInputType type) {
  switch (type) {
    case CU_JIT_INPUT_CUBIN:
      return "a cubin";
    case CU_JIT_INPUT_OBJECT:
      return "an object file";
    case CU_JIT_INPUT_LIBRARY:
      return "a library";
    default:
      return "an unknown kind of input";
  }
}

/// The target GPU of a link: CU_JIT_TARGET may name one that is not present.
CUresult choose_gpu(CUlinkState_st& link, const ptx::Gpu& own) {
  link.gpu = own;
  if (!link.options.target || runs_on(*link.options.target, own)) return CUDA_SUCCESS;
  try {
    link.gpu = emulator::default_gpu(ptx::name(*link.options.target));
  } catch (const Error& error) {
    return reject(link.options, CUDA_ERROR_NO_BINARY_FOR_GPU, error.message);
  }
  return CUDA_SUCCESS;
}

CUresult add(CUlinkState_st& link, CUjitInputType type, std::span<const std::byte> bytes,
             const std::string& name) {
  if (type == CU_JIT_INPUT_LIBRARY && is_device_runtime(bytes)) {
    link.device_runtime = true;
    return CUDA_SUCCESS;
  }
  const bool readable = type == CU_JIT_INPUT_PTX || type == CU_JIT_INPUT_FATBINARY;
  // The result of a link can be linked again.
  const ModuleImage image = read_image(bytes, link.gpu);
  if (!readable && image.result != CUDA_SUCCESS) {
    return reject(
        link.options, CUDA_ERROR_NO_BINARY_FOR_GPU,
        format_text(
            "link input '{}' is {}; the emulated driver links PTX, fat binaries with PTX, and of "
            "libraries libcudadevrt.a",
            name, name_of(type)));
  }
  if (image.result != CUDA_SUCCESS) {
    // Input declared as PTX is compiled as PTX, whatever it begins with.
    const CUresult result = type == CU_JIT_INPUT_PTX && image.result == CUDA_ERROR_INVALID_IMAGE
                                ? CUDA_ERROR_INVALID_PTX
                                : image.result;
    return reject(link.options, result, format_text("link input '{}': {}", name, image.why));
  }
  // Errors of a text are reported when it is added, as by libcuda; its external symbols are
  // resolved at completion.
  link.inputs.push_back({name, std::string(image.ptx)});
  try {
    (void)ptx::parse(link.inputs.back().ptx, name);
    return CUDA_SUCCESS;
  } catch (const Error&) {
    link.inputs.pop_back();
    const CUresult result = try_ptx(link.gpu, image.ptx, name, link.options);
    link.options.finish();
    return result;
  }
}

CUresult complete(CUlinkState_st& link) {
  if (link.inputs.empty()) {
    return reject(link.options, CUDA_ERROR_INVALID_VALUE, "the link has no input");
  }
  std::string text;
  try {
    if (link.device_runtime && needs_device_runtime(link.inputs)) {
      link.inputs.push_back({"libcudadevrt", std::string(device_runtime())});
    }
    text = join(link.inputs);
  } catch (const Error& error) {
    return reject(link.options, CUDA_ERROR_INVALID_PTX, error.describe());
  }
  const std::string name = link.inputs.size() == 1 ? link.inputs.front().name : "<linked>";
  const CUresult result = try_ptx(link.gpu, text, name, link.options);
  link.options.finish();
  if (result == CUDA_SUCCESS) link.image = linked_image(text, link.options.max_registers);
  return result;
}

/// Common checks of calls on a link.
CUresult check(CUlinkState state) {
  CUcontext context = nullptr;
  if (const CUresult result = enter(context)) return result;
  return living(state) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult add_checked(CUlinkState state, CUjitInputType type, std::span<const std::byte> bytes,
                     const std::string& name, unsigned count, const CUjit_option* options,
                     void** values) {
  // Log buffers, times and targets apply to the link as a whole.
  for (unsigned i = 0; options != nullptr && i < count; ++i) {
    const int option = options[i];
    if ((option >= CU_JIT_WALL_TIME && option <= CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) ||
        option == CU_JIT_TARGET || option == CU_JIT_TARGET_FROM_CUCONTEXT) {
      return refuse(CUDA_ERROR_INVALID_VALUE,
                    format_text("JIT option {} belongs to cuLinkCreate, not to one input", option));
    }
  }
  JitOptions own;
  std::string why;
  if (const CUresult result = own.read(count, options, values, why)) return refuse(result, why);
  if (!state->image.empty()) {
    return reject(state->options, CUDA_ERROR_ILLEGAL_STATE, "the link is already complete");
  }
  return add(*state, type, bytes, name);
}

}  // namespace

namespace entries {

CUresult link_create(unsigned num_options, CUjit_option* options, void** option_values,
                     CUlinkState* state_out) {
  return guarded([&] {
    CUcontext context = nullptr;
    if (const CUresult result = enter(context)) return result;
    if (state_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto created = std::make_unique<CUlinkState_st>();
    std::string why;
    if (const CUresult result = created->options.read(num_options, options, option_values, why)) {
      return refuse(result, why);
    }
    if (const CUresult result = choose_gpu(*created, context->memory.gpu())) return result;
    born(created.get());
    *state_out = created.release();
    return CUDA_SUCCESS;
  });
}

CUresult link_add_data(CUlinkState state, CUjitInputType type, void* data, std::size_t size,
                       const char* name, unsigned num_options, CUjit_option* options,
                       void** option_values) {
  return guarded([&] {
    if (const CUresult result = check(state)) return result;
    if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    const std::span bytes(static_cast<const std::byte*>(data), size);
    return add_checked(state, type, bytes, name != nullptr ? name : "<input>", num_options, options,
                       option_values);
  });
}

CUresult link_add_file(CUlinkState state, CUjitInputType type, const char* path,
                       unsigned num_options, CUjit_option* options, void** option_values) {
  return guarded([&] {
    if (const CUresult result = check(state)) return result;
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::string bytes;
    try {
      bytes = read_file(path);
    } catch (const Error& error) {
      return reject(state->options, CUDA_ERROR_FILE_NOT_FOUND, error.describe());
    }
    return add_checked(state, type, std::as_bytes(std::span(bytes)), path, num_options, options,
                       option_values);
  });
}

CUresult link_complete(CUlinkState state, void** cubin_out, std::size_t* size_out) {
  return guarded([&] {
    if (const CUresult result = check(state)) return result;
    if (cubin_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (state->image.empty()) {
      if (const CUresult result = complete(*state)) return result;
    }
    *cubin_out = state->image.data();
    if (size_out != nullptr) *size_out = state->image.size();
    return CUDA_SUCCESS;
  });
}

CUresult link_destroy(CUlinkState state) {
  return guarded([&] {
    if (!started()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!living(state) || !gone(state)) return CUDA_ERROR_INVALID_HANDLE;
    delete state;
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
