// src/qa/gemv_check.cpp - results of a GEMV against fp64
#include "qa/gemv_check.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ptxgen/kernels.hpp"

namespace ptxgen::qa {

namespace {

constexpr double kHalfSmallest = 0x1p-150;
constexpr std::uint32_t kColumnsOfMeanError = 64;

}  // namespace

double check_gemv(Tally& tally, const Problem& problem, const std::vector<float>& y,
                  std::uint64_t roundings, std::string_view name, MeanError mean) {
  const GemvReference reference = gemv_reference(problem.a, problem.x, problem.k, problem.n);
  double worst = 0;
  double error = 0;
  double square = 0;
  for (std::size_t j = 0; j < problem.n; ++j) {
    const double exact = reference.y[j];
    const double got = j < y.size() ? y[j] : std::nan("");
    bool right = false;
    double bound = 0;
    if (std::isnan(exact)) {
      right = std::isnan(got);
    } else if (std::isinf(exact)) {
      right = got == exact;
    } else {
      bound = gemv_error_bound(reference.magnitude[j], roundings) + kHalfSmallest * problem.k;
      right = std::abs(got - exact) <= bound;
      if (bound > 0) worst = std::max(worst, std::abs(got - exact) / bound);
      error += (got - exact) * (got - exact);
      square += exact * exact;
    }
    tally.check(right, "{} {} x {}: y[{}] is {:.9g}, expected {:.17g} +- {:.3g}", name, problem.k,
                problem.n, j, got, exact, bound);
  }
  const double limit = 1e-12 * std::max(1.0, static_cast<double>(roundings) / 1024);
  if (mean == MeanError::Checked && problem.n >= kColumnsOfMeanError && square > 1e-200) {
    tally.check(error <= limit * square, "{} {} x {}: NMSE {:.3g} is above {:.3g}", name, problem.k,
                problem.n, error / square, limit);
  }
  return worst;
}

std::uint64_t coalesced_roundings(const Problem& problem) {
  return std::max<std::uint64_t>(1, GemvCoalesced{problem.k, problem.n}.roundings());
}

std::uint64_t strided_roundings(const Problem& problem) {
  return GemvStrided{problem.k, problem.n}.roundings();
}

void check_clean(Tally& tally, const GemvRun& run, std::string_view name) {
  tally.check(run.guards_kept, "{}: bytes around y were changed", name);
  if (run.result) {
    tally.check(run.result->status == emulator::Status::Ok, "{}: {}", name,
                first_error(*run.result));
  }
}

double check_both_kernels(Tally& tally, Fixture& fixture, const Problem& problem) {
  const GemvRun coalesced = fixture.gemv<GemvCoalesced>(problem);
  check_clean(tally, coalesced, "gemv_coalesced");
  const double first =
      check_gemv(tally, problem, coalesced.y, coalesced_roundings(problem), "gemv_coalesced");
  const GemvRun strided = fixture.gemv<GemvStrided>(problem);
  check_clean(tally, strided, "gemv_strided");
  return std::max(
      first, check_gemv(tally, problem, strided.y, strided_roundings(problem), "gemv_strided"));
}

std::size_t different_bits(const std::vector<float>& a, const std::vector<float>& b) {
  std::size_t different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    different += std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]);
  }
  return different;
}

}  // namespace ptxgen::qa
