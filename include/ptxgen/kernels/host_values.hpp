// ptxgen/kernels/host_values.hpp - elements on the host as fp64, and back
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ptxgen/kernels/element_type.hpp"

namespace ptxgen::inline v0 {

/// The values of elements as they are in memory; exact. u64 is exact up to 2^53. Of a block format
/// all values of the blocks, as `dequantize`.
[[nodiscard]] std::vector<double> to_values(ElementType type, std::span<const std::byte> elements);
/// Elements as they are in memory, each value rounded once to nearest even; integers are truncated.
/// Every NaN is the type's quiet NaN. Blocks are those of `quantize`, and it throws as that.
[[nodiscard]] std::vector<std::byte> to_elements(ElementType type, std::span<const double> values);

/// The distance from a value to the next one of that type, at the value's magnitude: twice the
/// largest error of one rounding. 0 for integers.
[[nodiscard]] double unit_in_last_place(ElementType type, double value) noexcept;

}  // namespace ptxgen::inline v0
