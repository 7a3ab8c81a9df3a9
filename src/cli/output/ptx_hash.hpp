// src/cli/output/ptx_hash.hpp - a hash to compare the texts of two runs
#pragma once

#include <string>
#include <string_view>

namespace ptxgen::cli {

/// "fnv1a64:0123456789abcdef"
[[nodiscard]] std::string hash_of(std::string_view text);

}  // namespace ptxgen::cli
