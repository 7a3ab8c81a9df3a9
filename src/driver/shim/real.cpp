// src/driver/shim/real.cpp - the libcuda that the shim calls
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "driver/recorder/recorder.hpp"
#include "driver/shim/shim.hpp"
#include "ptxgen/support/settings.hpp"
#include "support/dynamic_library.hpp"
#include "support/toolkit.hpp"

namespace ptxgen::inline v0::driver {
namespace shim {
namespace {

template <CUresult result, class... Parameters>
CUresult answer(Parameters...) {
  return result;
}

/// Entries that a driver does not have are answered, too.
template <CUresult result>
void fill_up(Table& table) {
  const auto fill = []<class... Parameters>(CUresult (*&entry)(Parameters...)) {
    if (entry == nullptr) entry = &answer<result, Parameters...>;
  };
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  fill(table.field);
#include "ptxgen/driver/functions.def"
}

/// By path: by name the loader would give us ourselves.
Settings settings_with_path() {
  Settings settings = Settings::from_environment();
  const LibrarySearch usual = libcuda_search(settings);
  for (const std::string& folder : usual.folders) {
    if (!settings.libcuda_path.empty()) break;
    const std::string file = folder + "/libcuda.so.1";
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) settings.libcuda_path = file;
  }
  settings.search_usual_places = false;
  return settings;
}

struct Real {
  Libcuda found;
  DynamicLibrary library;
};

const Real& real() {
  // Never destroyed: see LoadedFiles in libcuda.cpp.
  static const Real* const the_real = [] {
    auto* const built = new Real;
    const Settings settings = settings_with_path();
    if (settings.libcuda_path.empty()) {
      built->found.problem =
          "there is no libcuda.so.1 in the usual folders; name one by "
          "PTXGEN_LIBCUDA_PATH";
    } else {
      built->library = DynamicLibrary::find(libcuda_search(settings));
      bool* records = nullptr;  // of the emulated driver, which is told that it does not
      if (built->library && built->library.resolve("ptxgen_driver_records", records)) {
        *records = false;
      }
      built->found = find_libcuda(settings);
    }
    if (built->found.table == nullptr) {
      // Printed whatever PTXGEN_LOG is: it is the only hint why there is no device.
      std::fprintf(stderr, "ptxgen: nothing is recorded, there is no driver: %s %s\n",
                   built->found.where.c_str(), built->found.problem.c_str());
    }
    return built;
  }();
  return *the_real;
}

}  // namespace

const Table& real_table() noexcept {
  static const Table none = [] {
    Table table;
    fill_up<CUDA_ERROR_NO_DEVICE>(table);
    return table;
  }();
  try {
    const Table* const found = real().found.table;
    return found != nullptr ? *found : none;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "ptxgen: nothing is recorded: %s\n", failure.what());
    return none;
  }
}

void* real_symbol(const char* name) noexcept {
  try {
    const Real& all = real();
    return all.library ? all.library.symbol(name) : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace shim

namespace standin {

const Table& table() noexcept {
  static const Table functions = [] {
    Table built = recorder::recorded_if_asked(shim::real_table(), false);
    shim::fill_up<CUDA_ERROR_NOT_SUPPORTED>(built);
    built.get_proc_address = get_proc_address;
    shim::find_forwarded();
    return built;
  }();
  return functions;
}

}  // namespace standin
}  // namespace ptxgen::inline v0::driver
