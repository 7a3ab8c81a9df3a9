// src/check/barrier_safety/suspects.hpp - barriers that uniformity does not show to be safe
#pragma once

#include <array>
#include <vector>

#include "check/barrier_safety/barrier_safety.hpp"

namespace ptxgen::inline v0::gates::barriers {

/// The barriers of one function that uniformity alone does not show to be safe. Numbers, counts and
/// masks are read from `written`, the original function: folding keeps the equality of values, not
/// the values.
[[nodiscard]] std::vector<Doubt> suspects(const Subject& subject, const Subject& written,
                                          const std::array<std::uint32_t, 3>& block);

}  // namespace ptxgen::inline v0::gates::barriers
