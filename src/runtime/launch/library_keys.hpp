// src/runtime/launch/library_keys.hpp - cache keys and parameter values of the library's kernels
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ptxgen/kernels.hpp"
#include "ptxgen/runtime/cache/module_cache.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"

namespace ptxgen::inline v0 {

using KeyValues = std::array<std::uint64_t, 6>;

/// The values of a kernel in its cache key. GEMV kernels are keyed by shape; elementwise code is
/// the same for every size, so a new size must not cost a compilation.
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

/// Values of the catalog's parameters, in its order.
using CatalogValues = std::array<std::uint64_t, 2>;
[[nodiscard]] constexpr CatalogValues catalog_values(const Copy& spec) noexcept { return {spec.n}; }
template <class T>
[[nodiscard]] constexpr CatalogValues catalog_values(const VaddOf<T>& spec) noexcept {
  return {spec.n};
}
[[nodiscard]] constexpr CatalogValues catalog_values(const FmaRpt& spec) noexcept {
  return {spec.n, spec.k};
}
[[nodiscard]] constexpr CatalogValues catalog_values(const GemvCoalesced& spec) noexcept {
  return {spec.k, spec.n};
}
[[nodiscard]] constexpr CatalogValues catalog_values(const GemvStrided& spec) noexcept {
  return {spec.k, spec.n};
}

/// The keys of the library's kernels, without values.
struct LibraryKeys {
  ModuleKey copy, fma_rpt, gemv, gemv_coalesced, gemv_strided, vadd, vadd_bf16, vadd_f16;

  [[nodiscard]] const ModuleKey& base(const Copy&) const noexcept { return copy; }
  [[nodiscard]] const ModuleKey& base(const FmaRpt&) const noexcept { return fma_rpt; }
  [[nodiscard]] const ModuleKey& base(const GemvCoalesced&) const noexcept {
    return gemv_coalesced;
  }
  [[nodiscard]] const ModuleKey& base(const GemvStrided&) const noexcept { return gemv_strided; }
  [[nodiscard]] const ModuleKey& base(const Vadd&) const noexcept { return vadd; }
  [[nodiscard]] const ModuleKey& base(const VaddBf16&) const noexcept { return vadd_bf16; }
  [[nodiscard]] const ModuleKey& base(const VaddF16&) const noexcept { return vadd_f16; }

  /// The key of a kernel with its values.
  template <class Spec>
  [[nodiscard]] ModuleKey of(const Spec& spec) const noexcept {
    ModuleKey key = base(spec);
    key.values = key_values(spec);
    return key;
  }

  /// The key of a kernel of the catalog with its parameter values; for "gemv" without values, the
  /// caller adds the plan. Throws `Error` (Stage::Build, "no-key") for a kernel without a member
  /// above.
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
