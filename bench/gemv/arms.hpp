// bench/gemv/arms.hpp - what is measured side by side
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/gemv/data.hpp"
#include "ptxgen/kernels/gemv/planner.hpp"
#include "ptxgen/runtime/launch/launcher.hpp"

namespace ptxgen::inline v0 {
class Cublas;
}

namespace ptxgen::gemv_bench {

/// Where one launch reads and writes: device addresses.
struct ArmSite {
  std::uint64_t y = 0;  ///< the arm's `slot_bytes`
  std::uint64_t a = 0;
  std::uint64_t x = 0;
};

/// An implementation that is measured beside others, for one problem.
struct Arm {
  enum class Result : std::uint8_t {
    Product,   ///< n elements of y
    WordSums,  ///< u32 sums of the matrix's 32-bit words; their sum is GemvData::word_sum
    Copy,      ///< a copy of the matrix
  };
  std::string name;    ///< "planned", "cublas-gemm"
  std::string detail;  ///< the plan as text, the version of a library
  Result result = Result::Product;
  Exactness exactness;
  std::uint64_t slot_bytes = 0;  ///< written by a launch
  std::uint8_t spoil = 0xff;     ///< the slot's content before a launch
  std::uint64_t bytes = 0;       ///< minimum device memory traffic of a launch
  std::optional<GemvPlan> plan;
  std::optional<GemvPrediction> prediction;
  /// Queues one launch. Works in a capture after a first launch outside of captures. Owns what it
  /// needs. Only one launch of an arm may run at a time.
  std::function<void(const ptxgen::Stream&, const ArmSite&)> queue;
  /// The same without programmatic dependent launch, with which the kernel could start before its
  /// start event. Empty where `queue` uses none.
  std::function<void(const ptxgen::Stream&, const ArmSite&)> queue_alone;
};

struct MissingArm {
  std::string name;
  std::string why;
};

/// The arms of one problem, and the unavailable ones with the reason.
struct Arms {
  std::vector<Arm> arms;
  std::vector<MissingArm> missing;
};

/// The values of `--with`, separated by ", ". "planned" is always measured.
[[nodiscard]] std::string arm_words();
/// The values in `--with`, each once. Throws `UsageError` with the list of valid values.
[[nodiscard]] std::vector<std::string> arm_choice(const std::string& text);

/// Creates arms. Problems share objects that are slow to create, such as a cuBLAS handle.
class ArmMaker {
 public:
  /// All must outlive the maker.
  ArmMaker(const Context& context, const Launcher& launcher, const Settings& settings);
  ArmMaker(const ArmMaker&) = delete;
  ArmMaker& operator=(const ArmMaker&) = delete;
  ~ArmMaker();

  /// "planned" and the arms of `words` (arm_choice) for the problem. Arms that do not apply to it,
  /// for example the f32 baselines for other types, are omitted; unavailable ones are listed as
  /// missing.
  [[nodiscard]] Arms make(const GemvProblem& problem, const std::vector<std::string>& words);
  /// A plan as an arm of that name.
  [[nodiscard]] Arm plan_arm(const std::string& name, const GemvPlan& plan) const;

  /// The device as the planner models it.
  [[nodiscard]] const ptx::Gpu& gpu() const noexcept { return gpu_; }
  /// The read-only roofline for `bytes` of memory, with enough blocks for this device.
  [[nodiscard]] Arm roofline_arm(std::uint64_t bytes) const;
  [[nodiscard]] Arm copy_arm(std::uint64_t bytes) const;
  /// "13.0.2 from libcublas.so.13", "13.0 from ..."; empty for what was not used.
  [[nodiscard]] std::string cublas_version() const;
  [[nodiscard]] std::string nvrtc_version() const { return nvrtc_version_; }

 private:
  void add_word(Arms& arms, const GemvProblem& problem, const std::string& word);
  void add_cublas(Arms& arms, const GemvProblem& problem);
  void add_nvrtc(Arms& arms, const GemvProblem& problem);
  void add_variants(Arms& arms, const GemvProblem& problem);
  [[nodiscard]] Arm nvrtc_arm(const GemvPlan& plan, bool atomic);
  [[nodiscard]] GemvPlan planned(const GemvProblem& problem);

  const Context& context_;
  const Launcher& launcher_;
  const Settings& settings_;
  ptx::Gpu gpu_;
  std::shared_ptr<const Cublas> cublas_;
  std::string nvrtc_version_;
};

/// A plan that the claims H4 and H5 (bench/gemv/claims.json) compare.
struct PlanVariant {
  std::string name;
  GemvPlan plan;
};
/// "starved-4", "starved-16": one block on each SM and one load of each lane in flight, of 4 and of
/// 16 bytes. "full-4", "full-16": enough bytes in flight, the same number for loads of 4 and of 16.
/// "threads-256", "threads-1024": equal bytes in flight on each SM, with blocks of that size.
/// Empty for a problem without such plans (16-bit weights, rows that are not aligned).
[[nodiscard]] std::vector<PlanVariant> plan_variants(const GemvPlan& plan, const ptx::Gpu& gpu);

}  // namespace ptxgen::gemv_bench
