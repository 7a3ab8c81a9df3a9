// src/driver/libcuda.cpp - the table filled from a libcuda
#include <map>
#include <memory>
#include <mutex>

#include "driver/symbols.hpp"
#include "ptxgen/driver/table.hpp"
#include "support/toolkit.hpp"

namespace ptxgen::inline v0::driver {
namespace {

using GetProcAddress = decltype(Table::get_proc_address);

/// The function's address for programs of the version in `since`; null if the driver has none.
void* ask_driver(GetProcAddress get_proc_address, const FunctionInfo& function) {
  void* entry = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  const std::string name(base_name(function.symbol));
  const CUresult result =
      get_proc_address(name.c_str(), &entry, function.since, kLegacyStream, &status);
  const bool good = result == CUDA_SUCCESS && status == CU_GET_PROC_ADDRESS_SUCCESS;
  return good ? entry : nullptr;
}

/// Fills `table`; returns the name of the first required function that the library lacks, or null.
const char* fill(const DynamicLibrary& library, Table& table) {
  GetProcAddress get_proc_address = nullptr;
  (void)library.resolve("cuGetProcAddress_v2", get_proc_address);
  const char* missing = nullptr;
  const auto find = [&](const FunctionInfo& function) {
    void* entry = get_proc_address == nullptr ? nullptr : ask_driver(get_proc_address, function);
    if (entry == nullptr) entry = library.symbol(function.symbol.data());
    if (entry == nullptr && function.need == Need::Required && missing == nullptr) {
      missing = function.symbol.data();
    }
    return entry;
  };
  const FunctionInfo* row = functions().data();
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  table.field = reinterpret_cast<decltype(table.field)>(find(*row++));
#include "ptxgen/driver/functions.def"
  return missing;
}

/// Result of examining a file.
struct Loaded {
  Table table;
  std::string problem;  ///< empty: usable
  bool emulated = false;
};

std::unique_ptr<const Loaded> load(const DynamicLibrary& library) {
  auto loaded = std::make_unique<Loaded>();
  loaded->emulated = library.symbol("ptxgen_emulated_driver") != nullptr;
  const char* const missing = fill(library, loaded->table);
  if (missing != nullptr) {
    loaded->problem = "is not a usable driver: it has no function " + std::string(missing);
    return loaded;
  }
  // Queried before cuInit, which the user of the table calls; a stub answers no other call.
  int version = 0;
  if (loaded->table.driver_get_version(&version) == CUDA_ERROR_STUB_LIBRARY) {
    loaded->problem =
        "is the toolkit's stub for linking, not a driver; install the NVIDIA driver, or remove the "
        "stubs folder from LD_LIBRARY_PATH";
  }
  return loaded;
}

/// Tables by file. Never destroyed: threads of the host may still call the driver while the process
/// ends.
struct LoadedFiles {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<const Loaded>> by_path;
};
LoadedFiles& loaded_files() {
  static LoadedFiles* const files = new LoadedFiles;
  return *files;
}

}  // namespace

Libcuda find_libcuda(const Settings& settings) {
  // Also held while the library is opened, so concurrent callers open it once.
  LoadedFiles& files = loaded_files();
  const std::lock_guard lock(files.mutex);
  const DynamicLibrary library = DynamicLibrary::find(libcuda_search(settings));
  Libcuda found;
  if (!library) {
    found.problem = to_text(library.attempts());
    return found;
  }
  found.where = library.path();
  std::unique_ptr<const Loaded>& loaded = files.by_path[found.where];
  if (loaded == nullptr) loaded = load(library);
  found.problem = loaded->problem;
  found.emulated = loaded->emulated;
  if (loaded->problem.empty()) found.table = &loaded->table;
  return found;
}

}  // namespace ptxgen::inline v0::driver
