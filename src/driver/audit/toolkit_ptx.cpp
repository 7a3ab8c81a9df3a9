// src/driver/audit/toolkit_ptx.cpp - CUDA's toolkit gives PTX, for LD_AUDIT
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

/// An auditing library of the loader (LD_AUDIT, `man 7 rtld-audit`). A program that asks NVRTC for
/// a cubin, or nvJitLink for a linked one, gets machine code, which no emulated GPU runs. With this
/// library
///   - calls of NVRTC's two functions for a cubin reach those for PTX, in any libnvrtc that the
///     program links with or opens: the signatures are the same (nvrtc.h), and the driver loads PTX
///     wherever it loads a cubin;
///   - whatever libnvJitLink.so.12 or .13 a program opens is the one beside this library
///     (src/driver/nvjitlink).
///
/// It is loaded into every process of a command and needs nothing but libc.
namespace {

std::string_view name_in(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool begins_with(std::string_view text, std::string_view begin) {
  return text.substr(0, begin.size()) == begin;
}

/// The path of `name` in the folder of this library; null where it is not there.
const char* beside_this(std::string_view name, char (&path)[PATH_MAX]) {
  Dl_info own{};
  if (dladdr(reinterpret_cast<void*>(&beside_this), &own) == 0 ||
      realpath(own.dli_fname, path) == nullptr) {
    return nullptr;
  }
  const auto folder = static_cast<std::size_t>(name_in(path).data() - path);
  if (folder + name.size() >= PATH_MAX) return nullptr;
  std::memcpy(path + folder, name.data(), name.size());
  path[folder + name.size()] = 0;
  return access(path, R_OK) == 0 ? path : nullptr;
}

/// ptxgen's libnvJitLink in place of `name`; null for other libraries.
const char* own_linker(const char* name, char (&path)[PATH_MAX]) {
  const std::string_view file = name_in(name);
  if (file != "libnvJitLink.so.12" && file != "libnvJitLink.so.13") return nullptr;
  return beside_this(file, path);
}

/// The cookie of ptxgen's libnvJitLink, which may open NVIDIA's.
constexpr std::uintptr_t kOwnLinker = 1;

constexpr std::string_view kCubin = "nvrtcGetCUBIN";
constexpr std::string_view kCubinSize = "nvrtcGetCUBINSize";

/// The function that stands for `symbol`; null if the symbol keeps its own.
const char* instead_of(std::string_view symbol) {
  if (symbol == kCubin) return "nvrtcGetPTX";
  return symbol == kCubinSize ? "nvrtcGetPTXSize" : nullptr;
}

/// The address of a table that an object's dynamic section names; null without one.
template <class Entry>
const Entry* table_of(const link_map& map, Elf64_Sxword tag) {
  for (const Elf64_Dyn* row = map.l_ld; row->d_tag != DT_NULL; ++row) {
    if (row->d_tag == tag) return reinterpret_cast<const Entry*>(row->d_un.d_ptr);
  }
  return nullptr;
}

/// The address of a function of an object; 0 if it has none of that name. Found in its table
/// (DT_GNU_HASH), as dlsym cannot be called while the program is being bound.
std::uintptr_t function_of(const link_map& map, std::string_view name) {
  const auto* symbols = table_of<Elf64_Sym>(map, DT_SYMTAB);
  const auto* names = table_of<char>(map, DT_STRTAB);
  const auto* header = table_of<std::uint32_t>(map, DT_GNU_HASH);
  if (symbols == nullptr || names == nullptr || header == nullptr) return 0;
  std::uint32_t hash = 5381;
  for (const char c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  const std::uint32_t bucket_count = header[0];
  const std::uint32_t first = header[1];
  const std::uint32_t* buckets = header + 4 + std::size_t{2} * header[2];  // after the filter
  std::uint32_t index = bucket_count != 0 ? buckets[hash % bucket_count] : 0;
  if (index < first) return 0;
  for (const std::uint32_t* chain = buckets + bucket_count;; ++index) {
    const std::uint32_t of_symbol = chain[index - first];
    if ((of_symbol | 1) == (hash | 1) && names + symbols[index].st_name == name) {
      return map.l_addr + symbols[index].st_value;
    }
    if ((of_symbol & 1) != 0) return 0;
  }
}

}  // namespace

extern "C" {

unsigned la_version(unsigned version) { return version < LAV_CURRENT ? version : LAV_CURRENT; }

/// Called with each name that the loader tries; what it returns is tried instead. `requester`: who
/// opens it.
char* la_objsearch(const char* name, std::uintptr_t* requester, unsigned) {
  static char path[PATH_MAX];  // the loader holds its lock
  const char* ours = *requester != kOwnLinker ? own_linker(name, path) : nullptr;
  return const_cast<char*>(ours != nullptr ? ours : name);
}

/// Sets the library's cookie: its map if it is an NVRTC, kOwnLinker, or 0.
unsigned la_objopen(link_map* map, Lmid_t, std::uintptr_t* cookie) {
  if (begins_with(name_in(map->l_name), "libnvrtc.so")) {
    *cookie = reinterpret_cast<std::uintptr_t>(map);
    return LA_FLG_BINDFROM | LA_FLG_BINDTO;
  }
  char own[PATH_MAX];
  char opened[PATH_MAX];
  const bool linker = own_linker(map->l_name, own) != nullptr &&
                      realpath(map->l_name, opened) != nullptr && std::string_view(own) == opened;
  *cookie = linker ? kOwnLinker : 0;
  return LA_FLG_BINDFROM;
}

/// Called for functions that are called by name, and for what dlsym finds, also outside NVRTC.
std::uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned, std::uintptr_t*, std::uintptr_t* definer,
                            unsigned*, const char* name) {
  const std::uintptr_t own = symbol->st_value;
  const bool nvrtc = *definer != 0 && *definer != kOwnLinker;
  const char* instead = nvrtc ? instead_of(name) : nullptr;
  if (instead == nullptr) return own;
  const std::uintptr_t found = function_of(*reinterpret_cast<const link_map*>(*definer), instead);
  return found != 0 ? found : own;
}

}  // extern "C"
