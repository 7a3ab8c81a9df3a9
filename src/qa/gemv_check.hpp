// src/qa/gemv_check.hpp - results of a GEMV against fp64
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "qa/fixture.hpp"
#include "qa/tally.hpp"

namespace ptxgen::qa {

/// Whether the mean square error is compared: not of sums that cancel, whose relative error is
/// large by nature.
enum class MeanError : std::uint8_t { Checked, Unchecked };

/// Compares every element with the fp64 reference: |y - ref| <= gamma * sum |A x|, with gamma = c u
/// / (1 - c u), u = 2^-24, c = `roundings` (and half the smallest number for each product, which
/// matters for tiny values alone); NaN and infinities exactly where the reference has them. From 64
/// columns on also NMSE <= 1e-12, in proportion above 1024 roundings, unless the
/// sums cancel (`MeanError::Unchecked`). Returns the largest error as a share of its bound.
double check_gemv(Tally& tally, const Problem& problem, const std::vector<float>& y,
                  std::uint64_t roundings, std::string_view name,
                  MeanError mean = MeanError::Checked);

/// Runs gemv_coalesced and gemv_strided on the problem, guards and findings of the emulator
/// included, and compares both. Returns the largest share.
double check_both_kernels(Tally& tally, Fixture& fixture, const Problem& problem);

/// The kernels' roundings; at least one.
[[nodiscard]] std::uint64_t coalesced_roundings(const Problem& problem);
[[nodiscard]] std::uint64_t strided_roundings(const Problem& problem);

/// Guards are intact, and the emulator has no finding of severity error.
void check_clean(Tally& tally, const GemvRun& run, std::string_view name);

/// Number of elements whose bits differ.
[[nodiscard]] std::size_t different_bits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace ptxgen::qa
