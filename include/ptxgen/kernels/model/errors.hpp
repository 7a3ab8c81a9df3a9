// ptxgen/kernels/model/errors.hpp - how far predictions were from published timings
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxgen::inline v0 {

/// Kinds of launches whose predictions were compared with published timings.
enum class Regime : std::uint8_t {
  Reads,     ///< DRAM is read, hardly written
  Mixed,     ///< DRAM is read and written
  Repeated,  ///< launched again on the same data: the L2 and the launch count
  Gemv,
};
[[nodiscard]] std::string_view to_string(Regime regime) noexcept;  ///< "reads", ...

/// Relative error of predictions: the mean of the absolute values, and the largest seen.
struct ErrorBand {
  double mean = 0;
  double worst = 0;
};
/// `measured`: on a GPU whose own rates were measured (`GpuRates::measured`); otherwise the errors
/// that such GPUs had without their own rates. docs/predictions.md has the points.
[[nodiscard]] ErrorBand error_band(Regime regime, bool measured) noexcept;

}  // namespace ptxgen::inline v0
