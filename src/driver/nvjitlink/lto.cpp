// src/driver/nvjitlink/lto.cpp - LTO IR to PTX by NVIDIA's nvJitLink
#include "driver/nvjitlink/lto.hpp"

#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "support/dynamic_library.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::nvjitlink {
namespace {

namespace fs = std::filesystem;

using Handle = void*;

/// NVIDIA's functions, under the names without a version, which nvJitLink 13.0 has.
struct Functions {
  DynamicLibrary library;
  int (*create)(Handle*, std::uint32_t, const char**) = nullptr;
  int (*destroy)(Handle*) = nullptr;
  int (*add_data)(Handle, int, const void*, std::size_t, const char*) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*ptx_size)(Handle, std::size_t*) = nullptr;
  int (*ptx)(Handle, char*) = nullptr;
  int (*log_size)(Handle, std::size_t*) = nullptr;
  int (*log)(Handle, char*) = nullptr;
  std::string why;  ///< why there are none; else empty
};

/// A path that the loader has not seen: it answers with ptxgen's library where LD_AUDIT exchanged
/// one of that name.
std::string respelled(const fs::path& path) {
  std::error_code failure;
  return fs::is_directory(path, failure) ? (path / ".").string()
                                         : (path.parent_path() / "." / path.filename()).string();
}

/// Where packages of PyPI have nvJitLink, from a library of CUDA beside it: nvidia/cu13/lib for
/// nvidia/cu13/lib and nvidia/cu13/nvvm/lib64, nvidia/nvjitlink/lib for nvidia/cuda_nvrtc/lib.
int collect_folders(dl_phdr_info* loaded, std::size_t, void* folders) {
  const fs::path path = loaded->dlpi_name;
  const std::string name = path.filename().string();
  if (!name.starts_with("libnvrtc.so") && !name.starts_with("libnvvm.so")) return 0;
  auto& found = *static_cast<std::vector<std::string>*>(folders);
  fs::path folder = path.parent_path();
  for (int i = 0; i < 3; ++i, folder = folder.parent_path()) {
    for (const char* below : {".", "lib", "nvjitlink/lib"}) {
      std::error_code failure;
      if (fs::is_directory(folder / below, failure)) found.push_back(respelled(folder / below));
    }
  }
  return 0;
}

LibrarySearch search() {
  LibrarySearch search;
  search.stem = "libnvJitLink.so";
  search.variable = "PTXGEN_NVJITLINK_PATH";
  search.standin_symbol = "ptxgen_emulated_nvjitlink";
  const char* path = std::getenv("PTXGEN_NVJITLINK_PATH");
  if (path != nullptr && *path != 0) search.override_path = respelled(path);
  dl_iterate_phdr(&collect_folders, &search.first_folders);
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(variable);
    if (root != nullptr && *root != 0) search.folders.push_back(respelled(root) + "/lib64");
  }
  search.folders.emplace_back("/usr/local/./cuda/lib64");
  return search;
}

Functions load() {
  Functions found;
  found.library = DynamicLibrary::find(search());
  const DynamicLibrary& library = found.library;
  if (!library) {
    found.why = format_text(
        "NVIDIA's libnvJitLink, which compiles LTO IR, is not found; set "
        "PTXGEN_NVJITLINK_PATH\n{}",
        to_text(library.attempts()));
  } else if (!library.resolve("nvJitLinkCreate", found.create) ||
             !library.resolve("nvJitLinkDestroy", found.destroy) ||
             !library.resolve("nvJitLinkAddData", found.add_data) ||
             !library.resolve("nvJitLinkComplete", found.complete) ||
             !library.resolve("nvJitLinkGetLinkedPtxSize", found.ptx_size) ||
             !library.resolve("nvJitLinkGetLinkedPtx", found.ptx) ||
             !library.resolve("nvJitLinkGetErrorLogSize", found.log_size) ||
             !library.resolve("nvJitLinkGetErrorLog", found.log)) {
    found.why = format_text("{} lacks a function that nvJitLink 13.0 has", library.path());
  }
  return found;
}

const Functions& nvidia() {
  static const Functions functions = load();
  return functions;
}

}  // namespace

LtoLinker::~LtoLinker() {
  if (handle_ != nullptr) static_cast<void>(nvidia().destroy(&handle_));
}

int LtoLinker::fail(int result, const char* call) {
  why_ = format_text("{} of {} returns {}", call, nvidia().library.path(), result);
  std::size_t bytes = 0;
  if (handle_ == nullptr || nvidia().log_size(handle_, &bytes) != 0 || bytes == 0) return result;
  std::string log(bytes + 1, '\0');
  if (nvidia().log(handle_, log.data()) == 0) why_ += '\n' + std::string(log.c_str());
  return result;
}

bool LtoLinker::begin(std::vector<std::string> options) {
  if (!nvidia().why.empty()) {
    why_ = nvidia().why;
    return false;
  }
  options.insert(options.end(), {"-lto", "-ptx"});
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  const int result =
      nvidia().create(&handle_, static_cast<std::uint32_t>(texts.size()), texts.data());
  return result == 0 || fail(result, "nvJitLinkCreate") == 0;
}

int LtoLinker::add(int type, const std::string& bytes, const std::string& name) {
  const int result = nvidia().add_data(handle_, type, bytes.data(), bytes.size(), name.c_str());
  return result == 0 ? 0 : fail(result, "nvJitLinkAddData");
}

int LtoLinker::complete(std::string& ptx) {
  if (const int result = nvidia().complete(handle_)) return fail(result, "nvJitLinkComplete");
  std::size_t bytes = 0;
  if (const int result = nvidia().ptx_size(handle_, &bytes)) {
    return fail(result, "nvJitLinkGetLinkedPtxSize");
  }
  ptx.assign(bytes, '\0');
  if (const int result = nvidia().ptx(handle_, ptx.data())) {
    return fail(result, "nvJitLinkGetLinkedPtx");
  }
  ptx.resize(ptx.find('\0') == std::string::npos ? bytes : ptx.find('\0'));
  return 0;
}

}  // namespace ptxgen::inline v0::driver::nvjitlink
