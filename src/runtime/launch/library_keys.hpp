// src/runtime/launch/library_keys.hpp - cache keys and parameter values of the library's kernels
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"
#include "ptxgen/runtime/cache/module_cache.hpp"

namespace ptxgen::inline v0 {

using KeyValues = std::array<std::uint64_t, 6>;

/// The part of a kernel's value that its cache key has. GEMV kernels are kept by shape, since
/// planning is by shape; elementwise code is the same for every size, and a size that was not met
/// before must not cost a compilation.
[[nodiscard]] constexpr KeyValues key_values(const GemvCoalesced& spec) noexcept {
  return {spec.k, spec.n};
}
[[nodiscard]] constexpr KeyValues key_values(const GemvStrided& spec) noexcept {
  return {spec.k, spec.n};
}
template <class T>
[[nodiscard]] constexpr KeyValues key_values(const VaddOf<T>&) noexcept {
  return {};
}
[[nodiscard]] constexpr KeyValues key_values(const Copy&) noexcept { return {}; }
[[nodiscard]] constexpr KeyValues key_values(const FmaRpt&) noexcept { return {}; }

/// The keys of the library's kernels, without values.
struct LibraryKeys {
  ModuleKey copy, fma_rpt, gemv, gemv_coalesced, gemv_strided, vadd, vadd_bf16, vadd_f16;

  /// The key of a kernel of the catalog with the values of its parameters; of "gemv", whose plan
  /// the caller adds, without. Throws `Error` (Stage::Build, "no-key") for a kernel that has no
  /// member above: another kernel's key would launch that kernel.
  [[nodiscard]] ModuleKey of(const CatalogEntry& kernel,
                             std::span<const std::uint64_t> values) const;
};

/// The first of `held`, one for each parameter of the kernel. Throws `Error` (Stage::Build,
/// "bad-parameter") if it has more parameters than `held` holds.
[[nodiscard]] std::span<const std::uint64_t> parameter_values(const CatalogEntry& kernel,
                                                              std::span<const std::uint64_t> held);

/// The request for that kernel. Throws `Error` (Stage::Build, "bad-parameter") if there is not one
/// value for each parameter, or a request cannot hold them.
[[nodiscard]] KernelRequest kernel_request(const CatalogEntry& kernel,
                                           std::span<const std::uint64_t> values);

}  // namespace ptxgen::inline v0
