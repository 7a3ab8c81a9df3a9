// ptxgen/driver/table.hpp - the Driver API as a table of functions
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ptxgen/driver/api.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::inline v0::driver {

/// The only interface to a device: every call of the library goes through such a table. It is
/// filled from libcuda or by the emulated driver; tests and tracing replace single entries in a
/// copy. Optional entries may be null.
///
/// Plain data. Threads: both drivers may be called from any thread.
struct Table {
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  CUresult(*field) parameters = nullptr;
#include "ptxgen/driver/functions.def"
};

/// Kinds of objects that a driver holds until they are released.
enum class Object : std::uint8_t {
  None,
  Context,
  DeviceMemory,
  HostMemory,
  Registration,
  Stream,
  Event,
  Module,
  Link,
  Graph,
  GraphExec,
  LogCallback,
  MemoryPool,
  Library,
};
/// Which count of living objects a successful call changes, and by how much.
struct ObjectEffect {
  Object object = Object::None;
  int change = 0;
};

enum class Need : std::uint8_t { Required, Optional };

/// One row of functions.def.
struct FunctionInfo {
  std::string_view field;   ///< "mem_alloc"
  std::string_view symbol;  ///< "cuMemAlloc_v2"
  Need need = Need::Optional;
  int since = 0;  ///< the CUDA version that brought this symbol, 12080 is 12.8
  ObjectEffect effect;
};
/// All rows, in the order of the table's members.
[[nodiscard]] std::span<const FunctionInfo> functions() noexcept;

/// "CUDA_ERROR_INVALID_VALUE", or "CUresult 12345" for an unknown number.
[[nodiscard]] std::string result_name(CUresult result);
/// "CUDA_ERROR_INVALID_VALUE (1): an argument is out of its range".
[[nodiscard]] std::string result_text(CUresult result);
/// The same with the text of the driver of `table`, which may know newer codes.
[[nodiscard]] std::string result_text(const Table& table, CUresult result);
/// 12080 as "12.8".
[[nodiscard]] std::string version_text(int version);
/// The newest PTX version that a driver of that CUDA version compiles, as 10 * major + minor; 0 for
/// versions older than the table. Source: the release notes section of the PTX ISA manual.
[[nodiscard]] int newest_ptx(int driver_version) noexcept;

/// Result of the search for libcuda.
struct Libcuda {
  const Table* table = nullptr;  ///< null: not found, or not usable
  std::string where;             ///< the file; empty if none was found
  std::string problem;           ///< why there is no table: places tried, a line each, or what is
                                 ///< wrong with `where`, to be read after its name
  bool emulated = false;         ///< it is the stand-in library
};

/// Finds libcuda (PTXGEN_LIBCUDA_PATH, then libraries that the process has loaded, then the usual
/// places) and fills a table from it: with cuGetProcAddress if it exists, else by symbol. Tables
/// live until the process ends, one per file. Does not throw if nothing is found; does not call
/// cuInit. From any thread.
[[nodiscard]] Libcuda find_libcuda(const Settings& settings);

}  // namespace ptxgen::inline v0::driver
