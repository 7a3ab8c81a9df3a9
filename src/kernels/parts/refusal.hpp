// src/kernels/parts/refusal.hpp - kernels that cannot be built
#pragma once

#include <string>
#include <string_view>

#include "ptxgen/ptx/target.hpp"

namespace ptxgen::inline v0 {

/// Throws an `Error` of Stage::Build about a kernel, and about a target unless it is null.
[[noreturn]] void refuse_build(std::string_view kernel, std::string_view code,
                               const ptx::Target* target, std::string message);

}  // namespace ptxgen::inline v0
