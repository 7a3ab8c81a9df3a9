// src/runtime/launch/launch_checks.hpp - arguments of a launch against signature and shape
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ptxgen/builder/kernel.hpp"

namespace ptxgen::inline v0 {

/// Checks the parameter block of a user-defined kernel: its size ("arguments") and the alignment of
/// its pointers ("misaligned"). Null pointers are allowed.
void check_block(std::string_view kernel, const Signature& signature,
                 std::span<const std::byte> arguments);

}  // namespace ptxgen::inline v0
