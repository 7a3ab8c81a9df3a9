// src/tile/checked.hpp - errors of views and partitions
#pragma once

#include <string>
#include <string_view>

namespace ptxgen::inline v0 {

/// Throws `Error` (Stage::Build): "what; rule: rule; cure: cure".
[[noreturn]] void throw_view(std::string_view code, std::string what, std::string_view rule,
                             std::string_view cure);

}  // namespace ptxgen::inline v0
