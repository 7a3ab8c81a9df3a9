// ptxgen/runtime/launch/gemv_operands.hpp - operands of a GEMV launch, measured plans
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/runtime/device/buffer.hpp"

namespace ptxgen::inline v0 {

/// An untyped view of device memory.
struct DeviceRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;

  DeviceRange() = default;
  constexpr DeviceRange(std::uint64_t at, std::uint64_t size) noexcept : address(at), bytes(size) {}
  template <class T>
  DeviceRange(const DeviceSpan<T>& span) noexcept
      : address(span.address.value), bytes(span.bytes()) {}
  template <class T>
  DeviceRange(const Buffer<T>& buffer) noexcept
      : address(buffer.address().value), bytes(buffer.bytes()) {}
};

/// Operands of a launch of a `GemvProblem`. Elements have the problem's types. Leave operands that
/// the problem does not have empty, and alpha and beta at 1 and 0. y must not overlap the others,
/// but the residual may be y itself.
struct GemvOperands {
  DeviceRange y, a, x, bias, residual;
  float alpha = 1;
  float beta = 0;
  /// The caller's promise that no earlier work of the stream writes `a`. A plan with
  /// `GemvPlan::programmatic` then loads weights while the previous kernel still runs; without the
  /// promise it starts after that kernel.
  bool constant_weights = false;
};

/// A measured plan and its origin: "tuned on NVIDIA H200, 14.9 us".
struct TunedGemv {
  GemvPlan plan;
  std::string why;
};

/// Measured plans, which a launcher prefers to the planner's. A launcher calls `find` once per
/// problem, so it need not be fast.
///
/// Threads: `find` from any thread at once.
class GemvPlanSource {
 public:
  virtual ~GemvPlanSource() = default;
  /// A plan of exactly this problem for the launcher's device, or nothing. The problem's alignments
  /// are those of the addresses (1 to 16); `lda` is 0 if it equals the row length. A plan that
  /// `check` rejects is not used, and the log says so.
  [[nodiscard]] virtual std::optional<TunedGemv> find(const GemvProblem& problem) const = 0;

 protected:
  GemvPlanSource() = default;
  GemvPlanSource(const GemvPlanSource&) = default;
  GemvPlanSource& operator=(const GemvPlanSource&) = default;
};

}  // namespace ptxgen::inline v0
