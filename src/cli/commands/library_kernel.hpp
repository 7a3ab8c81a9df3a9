// src/cli/commands/library_kernel.hpp - a kernel of the library, named on the command line
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "ptxgen/kernels/description.hpp"

namespace ptxgen::cli {

/// A value as `-p` takes it: "4096", "T".
[[nodiscard]] std::string value_text(const ParameterInfo& parameter, std::uint64_t value);

/// `{"k":4096,"layout":"T"}`
[[nodiscard]] nlohmann::json parameters_json(const KernelDescription& kernel,
                                             std::span<const std::uint64_t> values);

/// A kernel with the values of its parameters, those that `-p` did not set at their defaults.
struct LibraryKernel {
  const KernelDescription* entry = nullptr;
  std::vector<std::uint64_t> values;
};

/// Throws `UsageError` with the list of kernels or parameters.
[[nodiscard]] LibraryKernel library_kernel(const std::string& name,
                                           const std::vector<std::string>& settings);
/// The row of the target table. Throws `UsageError` that lists the names.
[[nodiscard]] const ptx::Target& target_named(const std::string& name);

}  // namespace ptxgen::cli
