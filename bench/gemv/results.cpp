// bench/gemv/results.cpp - everything that a run of gemv-bench found
#include "bench/gemv/results.hpp"

#include <algorithm>

namespace ptxgen::gemv_bench {

const ArmResult* ShapeResult::find(std::string_view arm) const noexcept {
  for (const ArmResult& one : arms) {
    if (one.arm.name == arm) return &one;
  }
  return nullptr;
}

double ShapeResult::median(std::string_view arm, Metric metric) const noexcept {
  const ArmResult* const found = find(arm);
  const MetricResult* const result = found == nullptr ? nullptr : found->find(metric);
  return result == nullptr ? 0 : result->us.median;
}

double ShapeResult::best_cublas(Metric metric) const noexcept {
  double best = 0;
  for (const char* const way : {"cublas-gemv", "cublas-gemm"}) {
    const double us = median(way, metric);
    if (us > 0 && (best == 0 || us < best)) best = us;
  }
  return best;
}

const Ceiling* BenchRun::ceiling(std::string_view name) const noexcept {
  for (const Ceiling& one : ceilings) {
    if (one.name == name) return one.wrong.empty() && one.missing.empty() ? &one : nullptr;
  }
  return nullptr;
}

const ShapeResult* BenchRun::find(GemvLayout layout, ElementType type, std::uint32_t k,
                                  std::uint32_t n) const noexcept {
  for (const ShapeResult& one : shapes) {
    if (one.problem.layout == layout && one.problem.weights == type && one.problem.k == k &&
        one.problem.n == n) {
      return &one;
    }
  }
  return nullptr;
}

bool BenchRun::right() const noexcept {
  const auto wrong_arm = [](const ArmResult& arm) { return !arm.wrong.empty(); };
  const auto planned = [](const MissingArm& arm) { return arm.name == "planned"; };
  for (const ShapeResult& shape : shapes) {
    if (!shape.failed.empty()) return false;
    if (std::any_of(shape.arms.begin(), shape.arms.end(), wrong_arm)) return false;
    if (std::any_of(shape.missing.begin(), shape.missing.end(), planned)) return false;
  }
  return std::all_of(ceilings.begin(), ceilings.end(),
                     [](const Ceiling& one) { return one.wrong.empty(); });
}

std::string_view to_string(Verdict::Says says) noexcept {
  switch (says) {
    case Verdict::Says::Pass:
      return "pass";
    case Verdict::Says::Fail:
      return "fail";
    case Verdict::Says::NotApplicable:
      break;
  }
  return "n/a";
}

}  // namespace ptxgen::gemv_bench
