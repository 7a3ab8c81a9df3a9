// src/driver/nvjitlink/nvjitlink.cpp - libnvJitLink over the emulated driver's linker
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/lto_ir.hpp"
#include "driver/nvjitlink/lto.hpp"
#include "driver/standin/driver_api.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"

/// NVIDIA's nvJitLink links to machine code, which no emulated GPU runs. This one gives what
/// cuLinkComplete gives, which the emulated driver loads: PTX and fat binaries with PTX are joined,
/// machine code is refused. LTO IR becomes PTX by NVIDIA's own (lto.hpp).
namespace ptxgen::inline v0::driver::nvjitlink {

/// nvJitLinkResult.
enum Result : int {
  kSuccess = 0,
  kUnrecognizedOption = 1,
  kMissingArch = 2,
  kInvalidInput = 3,
  kPtxCompile = 4,
  kInternal = 6,
  kUnrecognizedInput = 8,
  kNullInput = 10,
  kLtoNotEnabled = 18,
};

/// nvJitLinkInputType.
enum Input : int {
  kCubin = 1,
  kPtx = 2,
  kLtoIr = 3,
  kFatbin = 4,
  kObject = 5,
  kLibrary = 6,
  kIndex = 7,
  kAny = 10,
};

constexpr std::size_t kLogBytes = 65536;

struct Source {
  Input type;
  std::string bytes;
  std::string name;
};

/// A link in progress: cuLink's, with its logs.
struct nvJitLink {
  CUcontext context = nullptr;  ///< the primary one of device 0, retained
  CUlinkState link = nullptr;
  bool ptx_wanted = false;
  bool lto_enabled = false;
  bool has_input = false;          ///< also of one that was refused
  std::unique_ptr<LtoLinker> lto;  ///< with the first LTO IR
  std::vector<std::string> lto_options;
  std::string ptx;  ///< of `-ptx`
  // The driver writes the sizes of the logs here until the link is destroyed.
  std::array<CUjit_option, 6> options = {CU_JIT_TARGET,
                                         CU_JIT_INFO_LOG_BUFFER,
                                         CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                                         CU_JIT_ERROR_LOG_BUFFER,
                                         CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                                         CU_JIT_MAX_REGISTERS};
  std::array<void*, 6> option_values{};
  std::array<char, kLogBytes> errors{};
  std::array<char, kLogBytes> infos{};
  const void* image = nullptr;  ///< the link's
  std::size_t image_bytes = 0;
};

namespace {

/// A link's context, current while this lives: the caller needs none.
class Current {
 public:
  explicit Current(CUcontext context) : good_(cuCtxPushCurrent_v2(context) == CUDA_SUCCESS) {}
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    CUcontext context = nullptr;
    if (good_) static_cast<void>(cuCtxPopCurrent_v2(&context));
  }
  explicit operator bool() const { return good_; }

 private:
  bool good_;
};

/// What nvJitLink.h lists. Those with a value end with `=`; what they ask for has no meaning for
/// PTX that is joined, but for the target, the registers and the output.
constexpr std::string_view kFlags[] = {"-time",
                                       "-verbose",
                                       "-lto",
                                       "-ptx",
                                       "-g",
                                       "-lineinfo",
                                       "-optimize-unused-variables",
                                       "-no-cache",
                                       "-O0",
                                       "-O1",
                                       "-O2",
                                       "-O3",
                                       "-device-stack-protector"};
constexpr std::string_view kSettings[] = {"-ftz=",
                                          "-prec-div=",
                                          "-prec-sqrt=",
                                          "-fma=",
                                          "-kernels-used=",
                                          "-variables-used=",
                                          "-Xptxas=",
                                          "-Xnvvm=",
                                          "-split-compile=",
                                          "-split-compile-extended=",
                                          "-jump-table-density=",
                                          "-device-stack-protector=",
                                          "-maxrregcount=",
                                          "-arch=",
                                          "-opt="};

/// The value of CU_JIT_TARGET for `sm_90`, `sm_90a`, `compute_100f`.
std::optional<unsigned> target_of(std::string_view arch) {
  const std::size_t at = arch.find('_');
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view family = arch.substr(0, at);
  if (family != "sm" && family != "compute" && family != "lto") return std::nullopt;
  arch.remove_prefix(at + 1);
  unsigned variant = 0;
  if (arch.ends_with('a')) variant = kJitTargetAccelerated;
  if (arch.ends_with('f')) variant = kJitTargetFamily;
  if (variant != 0) arch.remove_suffix(1);
  const std::optional<unsigned> number = parse_number<unsigned>(arch);
  if (!number) return std::nullopt;
  return *number + variant;
}

struct Options {
  std::vector<std::string> for_lto;  ///< all but -lto and -ptx
  std::optional<unsigned> target;
  unsigned max_registers = 0;
  bool lto = false;
  bool ptx = false;
};

Result refuse(Result result, const std::string& why) {
  ptxgen_driver_log(CU_LOG_LEVEL_ERROR, ("nvJitLink: " + why).c_str());
  return result;
}

Result read_setting(std::string_view option, Options& options) {
  const std::size_t equals = option.find('=');
  const std::string_view name = option.substr(0, equals);
  const std::string_view value = option.substr(equals + 1);
  if (name == "-arch") {
    options.target = target_of(value);
    if (!options.target) {
      // As nvJitLink 13.0, which has a code of its own for it.
      return refuse(kUnrecognizedOption,
                    format_text("'{}' names no target; write -arch=sm_90", option));
    }
  }
  if (name == "-maxrregcount") {
    const std::optional<unsigned> registers = parse_number<unsigned>(value);
    if (!registers) {
      return refuse(kUnrecognizedOption, format_text("the value of '{}' is no number", option));
    }
    options.max_registers = *registers;
  }
  return kSuccess;
}

Result read_options(std::uint32_t count, const char** texts, Options& options) {
  if (texts == nullptr && count != 0) return kNullInput;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (texts[i] == nullptr) return kNullInput;
    const std::string_view option = texts[i];
    options.lto = options.lto || option == "-lto";
    options.ptx = options.ptx || option == "-ptx";
    if (option != "-lto" && option != "-ptx") options.for_lto.emplace_back(option);
    const bool setting = std::ranges::any_of(
        kSettings, [&](std::string_view name) { return option.starts_with(name); });
    if (setting) {
      if (const Result result = read_setting(option, options)) return result;
    } else if (std::ranges::find(kFlags, option) == std::end(kFlags)) {
      return refuse(kUnrecognizedOption,
                    format_text("'{}' is no option of nvJitLink.h (13.0)", option));
    }
  }
  if (!options.target) return refuse(kMissingArch, "the option -arch=sm_NN is missing");
  if (options.ptx && !options.lto) return refuse(kLtoNotEnabled, "-ptx needs -lto");
  return kSuccess;
}

/// cuLinkCreate with the logs of `handle`.
CUresult begin(nvJitLink& handle, const Options& options) {
  const auto number = [](std::size_t value) { return reinterpret_cast<void*>(value); };
  handle.option_values = {number(*options.target), handle.infos.data(),
                          number(kLogBytes),       handle.errors.data(),
                          number(kLogBytes),       number(options.max_registers)};
  // Without a maximum the last one is left out.
  const unsigned count = options.max_registers != 0 ? 6 : 5;
  return cuLinkCreate_v2(count, handle.options.data(), handle.option_values.data(), &handle.link);
}

Result result_of(CUresult result) {
  switch (result) {
    case CUDA_SUCCESS:
      return kSuccess;
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return kPtxCompile;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_FILE_NOT_FOUND:
      return kUnrecognizedInput;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_ILLEGAL_STATE:
      return kInvalidInput;
    default:
      return kInternal;
  }
}

/// cuLink's name for a kind of input that is not LTO IR.
std::optional<CUjitInputType> type_of(Input type, std::string_view bytes) {
  switch (type) {
    case kCubin:
      return CU_JIT_INPUT_CUBIN;
    case kPtx:
      return CU_JIT_INPUT_PTX;
    case kFatbin:
      return CU_JIT_INPUT_FATBINARY;
    case kObject:
      return CU_JIT_INPUT_OBJECT;
    case kLibrary:
      return CU_JIT_INPUT_LIBRARY;
    case kAny:
      // Other images tell their kind.
      return bytes.starts_with("!<arch>") ? CU_JIT_INPUT_LIBRARY : CU_JIT_INPUT_FATBINARY;
    default:
      return std::nullopt;
  }
}

/// `work(handle)` with the link's context; for every function but Create and Destroy.
template <class Work>
Result with(nvJitLink* handle, Work&& work) noexcept {
  if (handle == nullptr) return kNullInput;
  try {
    const Current current(handle->context);
    return current ? work(*handle) : kInternal;
  } catch (...) {
    return kInternal;
  }
}

/// NVIDIA's reason in the link's error log, and in the driver's log.
Result lto_failure(nvJitLink& handle, int result) {
  const std::string& why = handle.lto->why();
  const std::size_t bytes = std::min(why.size(), kLogBytes - 1);
  std::copy_n(why.data(), bytes, handle.errors.data());
  handle.errors[bytes] = 0;
  return refuse(static_cast<Result>(result), why);
}

Result add_lto(nvJitLink& handle, const Source& input) {
  if (!handle.lto_enabled) {
    return refuse(kLtoNotEnabled, format_text("the input '{}' is LTO IR: add -lto", input.name));
  }
  if (handle.lto == nullptr) {
    handle.lto = std::make_unique<LtoLinker>();
    if (!handle.lto->begin(handle.lto_options)) return lto_failure(handle, kInternal);
  }
  const int result = handle.lto->add(input.type, input.bytes, input.name);
  return result == 0 ? kSuccess : lto_failure(handle, result);
}

/// Adds an input of any kind to the driver's link, LTO IR to NVIDIA's.
Result add(nvJitLink& handle, Source input) {
  handle.has_input = true;
  if (input.type == kAny && is_lto_ir(input.bytes)) input.type = kLtoIr;
  if (input.type == kLtoIr || input.type == kIndex) return add_lto(handle, input);
  const std::optional<CUjitInputType> type = type_of(input.type, input.bytes);
  if (!type) {
    return refuse(kInvalidInput,
                  format_text("the input '{}' is of kind {}, which nvJitLink.h (13.0) "
                              "does not have",
                              input.name, static_cast<int>(input.type)));
  }
  const CUresult result =
      cuLinkAddData_v2(handle.link, *type, input.bytes.data(), input.bytes.size(),
                       input.name.c_str(), 0, nullptr, nullptr);
  return result_of(result);
}

/// The PTX of LTO IR, if there is any: the result of `-ptx`, else another input.
Result complete_lto(nvJitLink& handle) {
  if (handle.lto == nullptr) {
    return handle.ptx_wanted ? refuse(kInvalidInput, "-ptx: no input is LTO IR") : kSuccess;
  }
  std::string ptx;
  if (const int result = handle.lto->complete(ptx)) return lto_failure(handle, result);
  if (handle.ptx_wanted) {
    handle.ptx = std::move(ptx);
    return kSuccess;
  }
  return add(handle, {kPtx, std::move(ptx), "<lto>"});
}

/// What nvJitLink links without an input; cuLink refuses that, and a module of nothing at all.
constexpr const char* kEmptyModule =
    ".version 6.0\n.target sm_50\n.address_size 64\n.func nothing() { ret; }\n";

/// Whether there is a linked image.
Result check_linked(const nvJitLink& handle, const void* out) {
  if (out == nullptr) return kNullInput;
  return handle.image != nullptr ? kSuccess : kInvalidInput;
}

Result give_size(const std::array<char, kLogBytes>& log, std::size_t* size) {
  if (size == nullptr) return kNullInput;
  const std::size_t bytes = std::strlen(log.data());
  *size = bytes != 0 ? bytes + 1 : 0;  // with the terminating 0
  return kSuccess;
}

Result give(const std::array<char, kLogBytes>& log, char* text) {
  if (text == nullptr) return kNullInput;
  const std::size_t bytes = std::strlen(log.data());
  if (bytes != 0) std::memcpy(text, log.data(), bytes + 1);
  return kSuccess;
}

}  // namespace

namespace entries {

Result Destroy(nvJitLink** handle) {
  if (handle == nullptr || *handle == nullptr) return kNullInput;
  const std::unique_ptr<nvJitLink> owned(*handle);
  *handle = nullptr;
  if (owned->link != nullptr) {
    const Current current(owned->context);
    static_cast<void>(cuLinkDestroy(owned->link));
  }
  static_cast<void>(cuDevicePrimaryCtxRelease_v2(0));
  return kSuccess;
}

Result Create(nvJitLink** handle, std::uint32_t count, const char** texts) {
  if (handle == nullptr) return kNullInput;
  *handle = nullptr;
  try {
    Options options;
    if (const Result result = read_options(count, texts, options)) return result;
    auto link = std::make_unique<nvJitLink>();
    link->ptx_wanted = options.ptx;
    link->lto_enabled = options.lto;
    link->lto_options = options.for_lto;
    if (cuInit(0) != CUDA_SUCCESS) return kInternal;
    if (cuDevicePrimaryCtxRetain(&link->context, 0) != CUDA_SUCCESS) return kInternal;
    nvJitLink* raw = link.release();
    const Result result =
        with(raw, [&](nvJitLink& held) { return result_of(begin(held, options)); });
    if (result == kSuccess) {
      *handle = raw;
    } else {
      static_cast<void>(Destroy(&raw));
    }
    return result;
  } catch (...) {
    return kInternal;
  }
}

Result AddData(nvJitLink* handle, Input type, const void* data, std::size_t size,
               const char* name) {
  return with(handle, [&](nvJitLink& held) {
    if (data == nullptr || size == 0) return kNullInput;
    return add(held, {type, std::string(static_cast<const char*>(data), size),
                      name != nullptr ? name : "<input>"});
  });
}

Result AddFile(nvJitLink* handle, Input type, const char* path) {
  return with(handle, [&](nvJitLink& held) {
    if (path == nullptr) return kNullInput;
    std::ifstream file(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (!file || bytes.empty()) {
      return refuse(kUnrecognizedInput, format_text("'{}' cannot be read or is empty", path));
    }
    return add(held, {type, std::move(bytes), path});
  });
}

Result Complete(nvJitLink* handle) {
  return with(handle, [&](nvJitLink& held) -> Result {
    if (const Result result = complete_lto(held); result != kSuccess || held.ptx_wanted) {
      return result;
    }
    if (!held.has_input) {
      const Result empty = add(held, {kPtx, kEmptyModule, "<empty>"});
      if (empty != kSuccess) return empty;
    }
    void* image = nullptr;
    const CUresult result = cuLinkComplete(held.link, &image, &held.image_bytes);
    if (result == CUDA_SUCCESS) held.image = image;
    return result_of(result);
  });
}

Result GetLinkedCubinSize(nvJitLink* handle, std::size_t* size) {
  return with(handle, [&](nvJitLink& held) {
    const Result result = check_linked(held, size);
    if (result == kSuccess) *size = held.image_bytes;
    return result;
  });
}

Result GetLinkedCubin(nvJitLink* handle, void* cubin) {
  return with(handle, [&](nvJitLink& held) {
    const Result result = check_linked(held, cubin);
    if (result == kSuccess) std::memcpy(cubin, held.image, held.image_bytes);
    return result;
  });
}

Result GetLinkedPtxSize(nvJitLink* handle, std::size_t* size) {
  if (handle == nullptr || size == nullptr) return kNullInput;
  if (!handle->lto_enabled) return kLtoNotEnabled;
  if (handle->ptx.empty()) return kInvalidInput;
  *size = handle->ptx.size() + 1;  // with the terminating 0
  return kSuccess;
}
Result GetLinkedPtx(nvJitLink* handle, char* ptx) {
  std::size_t size = 0;
  if (const Result result = GetLinkedPtxSize(handle, &size)) return result;
  if (ptx == nullptr) return kNullInput;
  std::memcpy(ptx, handle->ptx.c_str(), size);
  return kSuccess;
}

Result GetErrorLogSize(nvJitLink* handle, std::size_t* size) {
  return handle == nullptr ? kNullInput : give_size(handle->errors, size);
}
Result GetErrorLog(nvJitLink* handle, char* log) {
  return handle == nullptr ? kNullInput : give(handle->errors, log);
}
Result GetInfoLogSize(nvJitLink* handle, std::size_t* size) {
  return handle == nullptr ? kNullInput : give_size(handle->infos, size);
}
Result GetInfoLog(nvJitLink* handle, char* log) {
  return handle == nullptr ? kNullInput : give(handle->infos, log);
}

}  // namespace entries

extern "C" {

/// By which ptxgen's assembler knows that this is not NVIDIA's.
extern const char ptxgen_emulated_nvjitlink[];
const char ptxgen_emulated_nvjitlink[] = "ptxgen";

Result nvJitLinkVersion(unsigned* major, unsigned* minor);
Result nvJitLinkVersion(unsigned* major, unsigned* minor) {
  if (major == nullptr || minor == nullptr) return kNullInput;
  *major = PTXGEN_NVJITLINK_MAJOR;
  *minor = PTXGEN_NVJITLINK_MINOR;
  return kSuccess;
}

#define PTXGEN_NVJITLINK_NAMED(symbol, name, parameters, arguments) \
  Result symbol parameters;                                         \
  Result symbol parameters { return entries::name arguments; }

#define PTXGEN_NVJITLINK_FUNCTION(name, parameters, arguments) \
  PTXGEN_NVJITLINK_NAMED(nvJitLink##name, name, parameters, arguments)
#include "driver/nvjitlink/functions.def"
#undef PTXGEN_NVJITLINK_FUNCTION

#if PTXGEN_NVJITLINK_MAJOR == 13
#define PTXGEN_NVJITLINK_FUNCTION(name, parameters, arguments) \
  PTXGEN_NVJITLINK_NAMED(__nvJitLink##name##_13_0, name, parameters, arguments)
#include "driver/nvjitlink/functions.def"
#undef PTXGEN_NVJITLINK_FUNCTION
#else
#define PTXGEN_NVJITLINK_FUNCTION(name, parameters, arguments)                  \
  PTXGEN_NVJITLINK_NAMED(__nvJitLink##name##_12_0, name, parameters, arguments) \
  PTXGEN_NVJITLINK_NAMED(__nvJitLink##name##_12_1, name, parameters, arguments) \
  PTXGEN_NVJITLINK_NAMED(__nvJitLink##name##_12_2, name, parameters, arguments) \
  PTXGEN_NVJITLINK_NAMED(__nvJitLink##name##_12_3, name, parameters, arguments) \
  PTXGEN_NVJITLINK_NAMED(__nvJitLink##name##_12_4, name, parameters, arguments) \
  PTXGEN_NVJITLINK_NAMED(__nvJitLink##name##_12_5, name, parameters, arguments) \
  PTXGEN_NVJITLINK_NAMED(__nvJitLink##name##_12_6, name, parameters, arguments) \
  PTXGEN_NVJITLINK_NAMED(__nvJitLink##name##_12_7, name, parameters, arguments) \
  PTXGEN_NVJITLINK_NAMED(__nvJitLink##name##_12_8, name, parameters, arguments) \
  PTXGEN_NVJITLINK_NAMED(__nvJitLink##name##_12_9, name, parameters, arguments)
#include "driver/nvjitlink/functions.def"
#undef PTXGEN_NVJITLINK_FUNCTION
#endif

}  // extern "C"

}  // namespace ptxgen::inline v0::driver::nvjitlink
