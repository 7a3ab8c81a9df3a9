// src/kernels/model/errors.cpp - how far predictions were from published timings
#include "ptxgen/kernels/model/errors.hpp"

#include <cstddef>

namespace ptxgen::inline v0 {

namespace {

// By `Regime`, then not measured and measured: what bench/validation finds over all sweeps, rounded
// up. On a GEMV's GPU nothing was left out.
constexpr ErrorBand kBands[][2] = {{{0.105, 0.22}, {0.02, 0.045}},
                                   {{0.1, 0.17}, {0.065, 0.145}},
                                   {{0.125, 0.38}, {0.06, 0.25}},
                                   {{0.15, 0.3}, {0.1, 0.2}}};

}  // namespace

std::string_view to_string(Regime regime) noexcept {
  constexpr std::string_view kNames[] = {"reads", "mixed", "repeated", "gemv"};
  return kNames[static_cast<std::size_t>(regime)];
}

ErrorBand error_band(Regime regime, bool measured) noexcept {
  return kBands[static_cast<std::size_t>(regime)][measured ? 1 : 0];
}

}  // namespace ptxgen::inline v0
