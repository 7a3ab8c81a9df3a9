// src/runtime/assemble/nvrtc.cpp - CUDA C++ text to PTX
#include "ptxgen/runtime/assemble/nvrtc.hpp"

#include <cstring>

#include "ptxgen/support/error.hpp"
#include "support/dynamic_library.hpp"
#include "support/excerpt.hpp"
#include "support/format.hpp"
#include "support/numbers.hpp"
#include "support/toolkit.hpp"

namespace ptxgen::inline v0 {

namespace {

// Values of nvrtcResult.
constexpr int kSuccess = 0;
constexpr int kCompilationError = 6;

}  // namespace

/// NVRTC's functions. A program is an opaque handle, a status an int.
struct Nvrtc::Library {
  DynamicLibrary file;
  std::string version;
  int (*get_version)(int*, int*) = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*create)(void**, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(void**) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  int (*ptx_size)(void*, std::size_t*) = nullptr;
  int (*ptx)(void*, char*) = nullptr;
  int (*log_size)(void*, std::size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;

  [[nodiscard]] static std::string read(void* program, int (*size)(void*, std::size_t*),
                                        int (*get)(void*, char*)) {
    std::size_t bytes = 0;
    if (size(program, &bytes) != kSuccess || bytes == 0) return {};
    std::string text(bytes + 1, '\0');
    if (get(program, text.data()) != kSuccess) return {};
    text.resize(std::strlen(text.c_str()));
    return text;
  }
};

Nvrtc::Nvrtc(const Settings& settings) : library_(Hidden<Library>::make()) {
  Library& library = *library_;
  library.file = DynamicLibrary::find(nvrtc_search(settings));
  if (!library.file) {
    Error error(Stage::Build, "no-nvrtc",
                "the CUDA C++ compiler library NVRTC was not found; install the CUDA toolkit's "
                "libnvrtc or set PTXGEN_NVRTC_PATH or PTXGEN_CUDA_PATH to its path");
    error.log = to_text(library.file.attempts());
    throw error.refresh();
  }
  const char* missing = nullptr;
  const auto need = [&](const char* name, auto*& function) {
    if (missing == nullptr && !library.file.resolve(name, function)) missing = name;
  };
  need("nvrtcVersion", library.get_version);
  need("nvrtcGetErrorString", library.error_string);
  need("nvrtcCreateProgram", library.create);
  need("nvrtcDestroyProgram", library.destroy);
  need("nvrtcCompileProgram", library.compile);
  need("nvrtcGetPTXSize", library.ptx_size);
  need("nvrtcGetPTX", library.ptx);
  need("nvrtcGetProgramLogSize", library.log_size);
  need("nvrtcGetProgramLog", library.log);
  if (missing != nullptr) {
    throw Error(Stage::Build, "no-nvrtc",
                format_text("{} is not an NVRTC library: it has no function {}",
                            library.file.path(), missing));
  }
  int major = 0;
  int minor = 0;
  (void)library.get_version(&major, &minor);
  library.version = format_text("{}.{}", major, minor);
}

const std::string& Nvrtc::where() const noexcept { return library_->file.path(); }
const std::string& Nvrtc::version() const noexcept { return library_->version; }

NvrtcResult Nvrtc::compile(std::string_view source, std::span<const std::string> options,
                           std::string_view name) const {
  const Library& library = *library_;
  struct Program {
    const Library& owner;
    void* handle = nullptr;
    ~Program() {
      if (handle != nullptr) (void)owner.destroy(&handle);
    }
  } program{library};
  const std::string text(source);
  const std::string file(name);
  const auto reason = [&](int status) {
    const char* words = library.error_string(status);
    return format_text("{} ({})", words == nullptr ? "unknown" : words, status);
  };
  if (const int status =
          library.create(&program.handle, text.c_str(), file.c_str(), 0, nullptr, nullptr);
      status != kSuccess) {
    throw Error(
        Stage::Build, "nvrtc-failed",
        format_text("NVRTC {} cannot create the program: {}", library.version, reason(status)));
  }
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  const int status =
      library.compile(program.handle, static_cast<int>(arguments.size()), arguments.data());
  NvrtcResult result;
  result.log = Library::read(program.handle, library.log_size, library.log);
  if (status == kSuccess) {
    result.ptx = Library::read(program.handle, library.ptx_size, library.ptx);
    return result;
  }
  Error error(Stage::Build, status == kCompilationError ? "nvrtc-rejected" : "nvrtc-failed",
              format_text("NVRTC {} cannot compile {}: {}", library.version, file, reason(status)));
  error.driver_status = status;
  error.file = file;
  // NVRTC's first error has the form "name(12): error: text".
  const std::size_t at = result.log.find("): error");
  if (const std::size_t open = result.log.rfind('(', at);
      at != std::string::npos && open != std::string::npos) {
    std::string_view digits = std::string_view(result.log).substr(open + 1, at - open - 1);
    if (const auto line = take_number<decltype(error.line)>(digits)) error.line = *line;
    const std::size_t words = result.log.find(": ", at + 2);
    if (words != std::string::npos) {
      error.message =
          format_text("NVRTC {} rejects line {}: {}", library.version, error.line,
                      result.log.substr(words + 2, result.log.find('\n', words) - words - 2));
    }
    error.excerpt = excerpt_around(source, error.line);
  }
  error.log = std::move(result.log);
  throw error.refresh();
}

}  // namespace ptxgen::inline v0
