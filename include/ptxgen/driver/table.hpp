// ptxgen/driver/table.hpp - the Driver API as a table of functions
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ptxgen/driver/api.hpp"
#include "ptxgen/support/settings.hpp"

namespace ptxgen::inline v0::driver {

/// The one seam to a device: every call of the library goes through such a table. It is filled from
/// libcuda or by the emulated driver; a copy with some entries replaced is a table too (fault
/// injection, tracing). Optional entries may be null.
///
/// Plain data. Threads: as the driver that fills it says; both kinds may be called from any thread.
struct Table {
#define PTXGEN_DRIVER_FUNCTION(field, symbol, need, since, effect, parameters, arguments) \
  CUresult(*field) parameters = nullptr;
#include "ptxgen/driver/functions.def"
};

/// What a driver keeps until it is told to let go.
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

/// "CUDA_ERROR_INVALID_VALUE", or "CUresult 12345" for a number that no row has.
[[nodiscard]] std::string result_name(CUresult result);
/// "CUDA_ERROR_INVALID_VALUE (1): an argument is out of its range".
[[nodiscard]] std::string result_text(CUresult result);
/// The same in the words of the driver behind `table`, which may know newer codes.
[[nodiscard]] std::string result_text(const Table& table, CUresult result);
/// 12080 as "12.8".
[[nodiscard]] std::string version_text(int version);
/// The newest PTX version that a driver of that CUDA version compiles, as 10 * major + minor; 0 for
/// versions older than the table. Source: the release notes section of the PTX ISA manual.
[[nodiscard]] int newest_ptx(int driver_version) noexcept;

/// A libcuda that was looked for.
struct Libcuda {
  const Table* table = nullptr;  ///< null: not there, or not usable
  std::string where;             ///< the file; empty if none was found
  std::string problem;           ///< why there is no table: places tried, a line each, or what is
                                 ///< wrong with `where`, to be read after its name
  bool emulated = false;         ///< it is our stand-in library
};

/// Finds libcuda (PTXGEN_LIBCUDA_PATH, then what the process has loaded, then the usual places) and
/// fills a table from it: with cuGetProcAddress where there is one, else by symbol. Tables are kept
/// for the life of the process, one a file. Never throws for what is missing; does not call cuInit.
/// From any thread.
[[nodiscard]] Libcuda find_libcuda(const Settings& settings);

}  // namespace ptxgen::inline v0::driver
