// src/check/limits/limit_findings.hpp - findings of the rule tile-limits
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptxgen/ptx/finding.hpp"
#include "ptxgen/ptx/ir.hpp"
#include "ptxgen/ptx/target.hpp"
#include "tile/limit_finding.hpp"

namespace ptxgen::inline v0::gates {

using tile::limit_finding;

/// Bytes of the static shared memory of a kernel: its variables, those of functions that it may
/// call, and the module's that either names. Saturates at 2^64-1.
[[nodiscard]] std::uint64_t static_shared_bytes(const ptx::Module& module, std::uint32_t entry);

/// More static shared memory than a block may have; the dynamic limit is higher.
[[nodiscard]] Finding static_shared_finding(std::string_view kernel, std::uint64_t bytes,
                                            const ptx::Target& target);

}  // namespace ptxgen::inline v0::gates
