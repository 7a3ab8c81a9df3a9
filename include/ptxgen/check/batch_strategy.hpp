// ptxgen/check/batch_strategy.hpp - how a batched kernel distributes its rows
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxgen::inline v0 {

/// How a batched kernel distributes its rows.
enum class BatchStrategy : std::uint8_t {
  GridY,           ///< %ctaid.y is the row, or the first of those that the block takes by stride
  GridZ,           ///< %ctaid.z, likewise
  RegisterUnroll,  ///< each thread sums several rows; the parameter `m_dim` counts the rows
};
/// "grid_y", "grid_z", "register_unroll"
[[nodiscard]] std::string_view to_string(BatchStrategy strategy) noexcept;

}  // namespace ptxgen::inline v0
