// ptxgen/runtime/launch/gemv_operands.hpp - what a GEMV is launched with, and measured plans
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ptxgen/kernels/gemv/plan.hpp"
#include "ptxgen/runtime/device/buffer.hpp"

namespace ptxgen::inline v0 {

/// Device memory that somebody else owns, without a type.
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

/// What the `GemvProblem` of a launch reads and writes. Elements are of the problem's types; what
/// the problem has not is left empty, and alpha and beta at 1 and 0. y overlaps none of the others,
/// but the residual may be y itself.
struct GemvOperands {
  DeviceRange y, a, x, bias, residual;
  float alpha = 1;
  float beta = 0;
  /// The caller's promise that nothing queued before in the stream writes `a`: then a plan for it
  /// (`GemvPlan::programmatic`) is launched so that it asks for weights while the kernel before it
  /// still runs. Without the promise it starts behind that, as any launch.
  bool constant_weights = false;
};

/// A plan that was measured, and where it is from: "tuned on NVIDIA H200, 14.9 us".
struct TunedGemv {
  GemvPlan plan;
  std::string why;
};

/// Measured plans, which a launcher prefers to the planner's. Asked once for each problem that a
/// launcher meets, so the answer need not be quick.
///
/// Threads: `find` from any thread at once.
class GemvPlanSource {
 public:
  virtual ~GemvPlanSource() = default;
  /// A plan of exactly this problem for the device of the launcher that asks, or nothing. The
  /// problem's alignments are those of the addresses (1 to 16), an `lda` that is as long as a row
  /// is 0. A plan that does not stand `check` is not used, and the log says so.
  [[nodiscard]] virtual std::optional<TunedGemv> find(const GemvProblem& problem) const = 0;

 protected:
  GemvPlanSource() = default;
  GemvPlanSource(const GemvPlanSource&) = default;
  GemvPlanSource& operator=(const GemvPlanSource&) = default;
};

}  // namespace ptxgen::inline v0
