// ptxgen/tile/dynamic.hpp - numbers that are known when a kernel runs
#pragma once

#include <cstdint>

namespace ptxgen::inline v0::tile {

/// A dim of a shape that is known only when the kernel runs. Allowed in views, not in tiles.
inline constexpr std::int64_t kDynamicDim = INT64_MIN;

}  // namespace ptxgen::inline v0::tile
