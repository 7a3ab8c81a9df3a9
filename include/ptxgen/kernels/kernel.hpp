// ptxgen/kernels/kernel.hpp - metadata of the library's kernels
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  friend bool operator==(const Dim3&, const Dim3&) = default;
};

/// How a kernel is launched.
struct LaunchGeometry {
  Dim3 grid;
  Dim3 block;
  std::uint32_t dynamic_shared_bytes = 0;
  Dim3 cluster{1, 1, 1};  ///< blocks of a cluster, sm_90 and later; divides the grid
  /// Programmatic dependent launch: the kernel may start while the previous one in the stream still
  /// runs, and waits for it at `griddepcontrol.wait`, which it must have.
  bool programmatic = false;
  /// All blocks are resident at the same time, as grid-wide barriers require.
  bool cooperative = false;
  friend bool operator==(const LaunchGeometry&, const LaunchGeometry&) = default;
};

/// Minimum traffic and work of one launch: each input byte once, each output byte once. Bytes of
/// device memory; one fused multiply-add counts as two operations.
struct KernelCost {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t flops = 0;
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_read + bytes_written; }
};

/// One build-time parameter of a kernel: a shape or an option. Always an unsigned number; its
/// values may have names.
struct ParameterInfo {
  std::string_view name;
  std::string_view type;  ///< "u32"
  std::uint64_t default_value = 0;
  std::uint64_t min = 0;
  std::uint64_t max = 0;
  std::string_view doc;
  std::span<const std::string_view> words = {};  ///< names of the values 0, 1, ..., or none
};

/// A kernel of the library, found by name. `values` are in the order of `parameters`; if one is
/// missing or out of range, the functions throw `Error` (stage build, code "bad-parameter").
struct CatalogEntry {
  std::string_view name;            ///< also the entry's name in the PTX
  std::string_view doc;             ///< what it computes, one sentence
  std::string_view access_pattern;  ///< how consecutive lanes access memory
  std::span<const ParameterInfo> parameters;
  ptx::Module (*build)(std::span<const std::uint64_t> values, const ptx::Target& target);
  /// The target must be that of `build`: a plan depends on it.
  LaunchGeometry (*geometry)(std::span<const std::uint64_t> values, const ptx::Target& target);
  KernelCost (*cost)(std::span<const std::uint64_t> values);
};

/// All kernels, in alphabetical order.
[[nodiscard]] std::span<const CatalogEntry> catalog() noexcept;
/// The entry of that name, or nullptr.
[[nodiscard]] const CatalogEntry* find_kernel(std::string_view name) noexcept;
/// The entry of that name. Throws `Error` (stage build, "no-kernel") listing the names.
[[nodiscard]] const CatalogEntry& kernel_named(std::string_view name);
/// The index of that parameter. Throws `Error` (stage build, "bad-parameter") listing the names.
[[nodiscard]] std::size_t parameter_index(const CatalogEntry& kernel, std::string_view name);

}  // namespace ptxgen::inline v0
