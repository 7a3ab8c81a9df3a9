// src/driver/cudart/static_runtime.cpp - leads calls of statically linked runtimes to libcudart
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/driver/api.hpp"
#include "support/format.hpp"

/// A library for LD_PRELOAD. A program with the static CUDA runtime (nvcc's default) has the
/// runtime's functions under their public names in its symbol table. The constructor of this
/// library, which runs before all others (-z initfirst), writes a jump to the function of the
/// libcudart beside it at the start of each. So does it for the libraries loaded by then.
///
/// A function of the static runtime that keeps its code does nothing: the runtime asks the driver
/// for private tables (cuGetExportTable) at its first call, and that is refused. So no part of it
/// ever works beside libcudart.
namespace ptxgen::inline v0::driver::cudart {
namespace {

// The jump ---------------------------------------------------------------------------------------

#if defined(__x86_64__)
constexpr unsigned char kJump[] = {0xff, 0x25, 0, 0, 0, 0};  // jmp *0(%rip)
#elif defined(__aarch64__)
constexpr unsigned char kJump[] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6};  // ldr x16, 8; br x16
#else
#error "no jump to a 64-bit address is known for this architecture"
#endif
constexpr std::size_t kJumpBytes = sizeof kJump + sizeof(void*);

void write_jump(unsigned char* code, const void* target) {
  std::memcpy(code, kJump, sizeof kJump);
  std::memcpy(code + sizeof kJump, &target, sizeof target);
  __builtin___clear_cache(reinterpret_cast<char*>(code),
                          reinterpret_cast<char*>(code) + kJumpBytes);
}

// Files ------------------------------------------------------------------------------------------

/// A file, mapped; empty if it cannot be read.
class File {
 public:
  explicit File(const char* path) noexcept {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat status {};
    if (fstat(file, &status) == 0 && status.st_size > 0) {
      const auto bytes = static_cast<std::size_t>(status.st_size);
      void* const start = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
      if (start != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(start), bytes};
    }
    close(file);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }

  /// `count` objects at an offset; none unless the file has all of them.
  template <class Object>
  std::span<const Object> at(std::uint64_t offset, std::uint64_t count) const noexcept {
    const std::uint64_t bytes = bytes_.size();
    if (offset > bytes || count > (bytes - offset) / sizeof(Object) ||
        offset % alignof(Object) != 0) {
      return {};
    }
    return {reinterpret_cast<const Object*>(bytes_.data() + offset),
            static_cast<std::size_t>(count)};
  }
  std::string_view text_at(std::uint64_t offset, std::uint64_t end) const noexcept {
    if (offset >= end) return {};
    const std::span<const char> text = at<char>(offset, end - offset);
    return {text.data(), strnlen(text.data(), text.size())};
  }

 private:
  std::span<const std::byte> bytes_;
};

/// A loaded program or library.
struct Loaded {
  std::string path;  ///< to open it
  std::string name;  ///< for messages
  std::uintptr_t base = 0;
  std::span<const Elf64_Phdr> segments;
};

struct Function {
  std::string_view name;
  std::uintptr_t start = 0;
  std::size_t bytes = 0;  ///< up to the next symbol
};

/// What the file of a loaded object tells of a static runtime in it.
struct StaticRuntime {
  std::vector<Function> functions;
  bool has_kernels = false;  ///< a section that nvcc's host code has
  bool has_symbols = false;
  bool imports = false;  ///< registers its kernels with a shared runtime
};

bool is_defined(const Elf64_Sym& symbol) {
  return symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE;
}

/// Whether the symbol is a function that no other file can call: what the linker makes of the
/// functions of the static runtime, and not of those of a libcudart.
bool is_own_function(const Elf64_Sym& symbol) {
  if (!is_defined(symbol) || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) return false;
  return ELF64_ST_BIND(symbol.st_info) == STB_LOCAL ||
         ELF64_ST_VISIBILITY(symbol.st_other) == STV_HIDDEN;
}

bool is_public_name(std::string_view name) {
  return name.starts_with("cuda") || name.starts_with("__cuda");
}

/// The functions end where the next symbol starts, not where the linker says: the compiler aligns
/// functions, and the shortest of the runtime has 3 bytes of 16.
void measure(std::vector<Function>& functions, std::span<const Elf64_Sym> symbols,
             std::uintptr_t base) {
  std::vector<std::uintptr_t> starts;
  for (const Elf64_Sym& symbol : symbols) {
    if (is_defined(symbol)) starts.push_back(base + symbol.st_value);
  }
  std::ranges::sort(starts);
  for (Function& function : functions) {
    const auto next = std::ranges::upper_bound(starts, function.start);
    function.bytes = next != starts.end() ? *next - function.start : 0;
  }
}

StaticRuntime runtime_in(const File& file, const Loaded& loaded) {
  StaticRuntime found;
  const auto header = file.at<Elf64_Ehdr>(0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 ||
      header[0].e_ident[EI_CLASS] != ELFCLASS64) {
    return found;
  }
  // The file of that name may be another one by now.
  const auto segments = file.at<Elf64_Phdr>(header[0].e_phoff, header[0].e_phnum);
  if (segments.size() != loaded.segments.size() ||
      std::memcmp(segments.data(), loaded.segments.data(), segments.size_bytes()) != 0) {
    return found;
  }
  const auto sections = file.at<Elf64_Shdr>(header[0].e_shoff, header[0].e_shnum);
  const auto section = [&](std::uint64_t index) {
    return index < sections.size() ? sections[index] : Elf64_Shdr{};
  };
  const auto text = [&](const Elf64_Shdr& of, std::uint64_t offset) {
    return file.text_at(of.sh_offset + offset, of.sh_offset + of.sh_size);
  };
  const Elf64_Shdr names = section(header[0].e_shstrndx);
  for (const Elf64_Shdr& one : sections) {
    if (text(names, one.sh_name) == ".nvFatBinSegment") found.has_kernels = true;
    if (one.sh_type != SHT_SYMTAB && one.sh_type != SHT_DYNSYM) continue;
    const Elf64_Shdr strings = section(one.sh_link);
    const auto symbols = file.at<Elf64_Sym>(one.sh_offset, one.sh_size / sizeof(Elf64_Sym));
    for (const Elf64_Sym& symbol : symbols) {
      const std::string_view name = text(strings, symbol.st_name);
      if (!is_public_name(name)) continue;
      if (is_own_function(symbol)) {
        found.functions.push_back({name, loaded.base + symbol.st_value, 0});
      } else if (symbol.st_shndx == SHN_UNDEF && name == "__cudaRegisterFatBinary") {
        found.imports = true;
      }
    }
    if (one.sh_type != SHT_SYMTAB) continue;
    found.has_symbols = true;
    if (!found.functions.empty()) measure(found.functions, symbols, loaded.base);
  }
  return found;
}

bool has(const StaticRuntime& runtime, std::string_view name) {
  return std::ranges::find(runtime.functions, name, &Function::name) != runtime.functions.end();
}

/// The version of a static runtime by what was added and removed; 0: older than CUDA 12.
int major_of(const StaticRuntime& runtime) {
  if (!has(runtime, "cudaThreadExit")) return 13;
  return has(runtime, "cudaGetDeviceProperties_v2") ? 12 : 0;
}

// The libraries beside this one ------------------------------------------------------------------

std::string beside(const char* file) {
  Dl_info own{};
  static const char here = 0;
  if (dladdr(&here, &own) == 0 || own.dli_fname == nullptr) return file;
  const std::string_view path = own.dli_fname;
  return std::string(path.substr(0, path.rfind('/') + 1)) + file;
}

/// Writes to the log of the driver beside this library.
void report(const std::string& text) {
  void* const driver = dlopen(beside("libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  using Log = void(CUlogLevel, const char*);
  auto* const log =
      driver != nullptr ? reinterpret_cast<Log*>(dlsym(driver, "ptxgen_driver_log")) : nullptr;
  if (log != nullptr) {
    log(CU_LOG_LEVEL_ERROR, text.c_str());
  } else {
    std::fprintf(stderr, "ptxgen: %s\n", text.c_str());
  }
}

/// Whether all are in code of the loaded object and long enough; else a message.
std::string reason_against(const Loaded& loaded, std::span<const Function> functions) {
  for (const Function& function : functions) {
    const bool in_code = std::ranges::any_of(loaded.segments, [&](const Elf64_Phdr& segment) {
      return segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0 &&
             function.start - loaded.base - segment.p_vaddr < segment.p_memsz;
    });
    if (!in_code) return format_text("{} is not in its code", function.name);
    if (function.bytes < kJumpBytes) {
      return format_text("{} is too short ({} of {} bytes) for a jump to ptxgen's runtime",
                         function.name, function.bytes, kJumpBytes);
    }
  }
  return {};
}

/// The pages from the first to the last function.
bool protect(std::span<const Function> functions, int protection) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto [first, last] = std::ranges::minmax(functions, {}, &Function::start);
  const std::uintptr_t start = first.start / page * page;
  const std::uintptr_t end = last.start + kJumpBytes;
  return mprotect(reinterpret_cast<void*>(start), end - start, protection) == 0;
}

/// Writes the jumps; a message if that cannot be done, and then nothing is changed.
std::string replace(const Loaded& loaded, std::vector<Function> functions, int major) {
  const std::string file = beside(format_text("libcudart.so.{}", major).c_str());
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return format_text("cannot load ptxgen's runtime: {}", dlerror());
  const auto ours = [&](const Function& function) {
    return dlsym(library, std::string(function.name).c_str());
  };
  // Functions of the program whose names begin like that.
  std::erase_if(functions, [&](const Function& function) { return ours(function) == nullptr; });
  if (std::string reason = reason_against(loaded, functions); !reason.empty()) return reason;
  if (!protect(functions, PROT_READ | PROT_WRITE)) {
    return format_text("its code cannot be changed: {}", std::strerror(errno));
  }
  for (const Function& function : functions) {
    write_jump(reinterpret_cast<unsigned char*>(function.start), ours(function));
  }
  if (!protect(functions, PROT_READ | PROT_EXEC)) {
    return format_text("its code cannot be made executable again: {}", std::strerror(errno));
  }
  return {};
}

/// A message about a runtime that stays as it is and will be refused.
std::string handle(const Loaded& loaded) {
  const File file(loaded.path.c_str());
  const StaticRuntime runtime = runtime_in(file, loaded);
  const bool some = has(runtime, "cudaRuntimeGetVersion");
  if (!some && (runtime.has_symbols || !runtime.has_kernels || runtime.imports)) return {};
  // 'strip -x' removes only the names of what the program calls, and every program calls this.
  if (!some || !has(runtime, "__cudaRegisterFatBinary")) {
    return "it was stripped, and ptxgen finds the functions of its static CUDA runtime by its "
           "symbol table; link it without 'strip' and '-s', or with 'nvcc -cudart shared'";
  }
  const int major = major_of(runtime);
  if (major == 0) {
    return "its static CUDA runtime is older than CUDA 12; build it with CUDA 12 or 13";
  }
  return replace(loaded, runtime.functions, major);
}

int collect(dl_phdr_info* info, std::size_t, void* to) {
  const std::string_view name = info->dlpi_name;
  Loaded loaded{std::string(name.empty() ? "/proc/self/exe" : name),
                std::string(name),
                static_cast<std::uintptr_t>(info->dlpi_addr),
                {info->dlpi_phdr, info->dlpi_phnum}};
  if (name.empty()) {
    char program[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    loaded.name.assign(program, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  }
  static_cast<std::vector<Loaded>*>(to)->push_back(std::move(loaded));
  return 0;
}

__attribute__((constructor)) void lead_calls_to_libcudart(int, char**, char** environment) {
  // libc has not set it yet, and the driver, which is opened here, reads its settings from it once.
  if (environ == nullptr) environ = environment;
  try {
    std::vector<Loaded> all;
    dl_iterate_phdr(&collect, &all);
    for (const Loaded& loaded : all) {
      const std::string problem = handle(loaded);
      if (!problem.empty()) report(format_text("{}: {}", loaded.name, problem));
    }
  } catch (...) {
    // Out of memory: the static runtimes stay as they are and are refused.
  }
}

}  // namespace
}  // namespace ptxgen::inline v0::driver::cudart
