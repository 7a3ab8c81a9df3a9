// src/runtime/launch/library_keys.cpp - cache keys and parameter values of the library's kernels
#include "runtime/launch/library_keys.hpp"

#include <algorithm>
#include <string>

#include "ptxgen/support/error.hpp"
#include "support/count.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

[[noreturn]] void refuse(const CatalogEntry& kernel, const char* code, std::string message) {
  Error error(Stage::Build, code, std::move(message));
  error.kernel = kernel.name;
  throw error.refresh();
}

}  // namespace

ModuleKey LibraryKeys::of(const CatalogEntry& kernel, std::span<const std::uint64_t> values) const {
  const auto with_values = [](ModuleKey key, const KeyValues& key_values) {
    key.values = key_values;
    return key;
  };
  const auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(values[i]); };
  if (kernel.name == Copy::kName) return copy;
  if (kernel.name == FmaRpt::kName) return fma_rpt;
  if (kernel.name == Gemv::kName) return gemv;
  if (kernel.name == GemvCoalesced::kName) {
    return with_values(gemv_coalesced, key_values(GemvCoalesced{at(0), at(1)}));
  }
  if (kernel.name == GemvStrided::kName) {
    return with_values(gemv_strided, key_values(GemvStrided{at(0), at(1)}));
  }
  if (kernel.name == Vadd::kName) return vadd;
  if (kernel.name == VaddBf16::kName) return vadd_bf16;
  if (kernel.name == VaddF16::kName) return vadd_f16;
  refuse(kernel, "no-key",
         format_text("the catalog has the kernel '{}', but the launcher has no cache key for it, "
                     "and another kernel's key would launch that kernel; add it to LibraryKeys "
                     "(src/runtime/launch/library_keys.hpp), or build it and use Launcher::load",
                     kernel.name));
}

std::span<const std::uint64_t> parameter_values(const CatalogEntry& kernel,
                                                std::span<const std::uint64_t> held) {
  const std::size_t needed = kernel.parameters.size();
  if (needed > held.size()) {
    refuse(
        kernel, "bad-parameter",
        format_text("takes {}, but a launch or request holds {}; build it and use Launcher::load",
                    count_text(needed, "parameter"), held.size()));
  }
  return held.first(needed);
}

KernelRequest kernel_request(const CatalogEntry& kernel, std::span<const std::uint64_t> values) {
  KernelRequest request;
  request.kernel = kernel.name;
  const std::size_t needed = parameter_values(kernel, request.values).size();
  if (values.size() != needed) {
    refuse(kernel, "bad-parameter",
           format_text("takes {}, not {}", count_text(needed, "parameter"), values.size()));
  }
  std::copy(values.begin(), values.end(), request.values.begin());
  return request;
}

}  // namespace ptxgen::inline v0
