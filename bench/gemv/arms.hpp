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

/// One of the things that are measured side by side, for one problem.
struct Arm {
  enum class Result : std::uint8_t {
    Product,   ///< n elements of y
    WordSums,  ///< u32 sums of the matrix's words, which add up to GemvData::word_sum
    Copy,      ///< the matrix again
  };
  std::string name;    ///< "planned", "cublas-gemm"
  std::string detail;  ///< the plan as text, the version of a library
  Result result = Result::Product;
  Exactness exactness;
  std::uint64_t slot_bytes = 0;  ///< what a launch writes
  std::uint8_t spoil = 0xff;     ///< what the slot is filled with before a launch
  std::uint64_t bytes = 0;       ///< of device memory that a launch must move at least
  std::optional<GemvPlan> plan;
  std::optional<GemvPrediction> prediction;
  /// Queues one launch; also into a capture, once it was launched outside of one. Keeps alive what
  /// it needs. One launch of an arm at a time.
  std::function<void(const ptxgen::Stream&, const ArmSite&)> queue;
  /// The same without programmatic dependent launch, which would let it begin before the event that
  /// is to be its beginning; empty where `queue` has none.
  std::function<void(const ptxgen::Stream&, const ArmSite&)> queue_alone;
};

struct MissingArm {
  std::string name;
  std::string why;
};

/// The arms of one problem, and those that cannot be had, with the reason.
struct Arms {
  std::vector<Arm> arms;
  std::vector<MissingArm> missing;
};

/// What `--with` can say, beside "planned", which is always there; separated by ", ".
[[nodiscard]] std::string arm_words();
/// The words of `--with`, each once. Throws `UsageError` that lists what there is.
[[nodiscard]] std::vector<std::string> arm_choice(const std::string& text);

/// Makes arms; shares what is slow to make, such as a handle of cuBLAS, between problems.
class ArmMaker {
 public:
  /// All must outlive the maker.
  ArmMaker(const Context& context, const Launcher& launcher, const Settings& settings);
  ArmMaker(const ArmMaker&) = delete;
  ArmMaker& operator=(const ArmMaker&) = delete;
  ~ArmMaker();

  /// Of "planned" and `words` (arm_choice) all that serve the problem. What does not apply to it,
  /// the f32 baselines for other types say, is left out without a word; what should but cannot be
  /// had is missing.
  [[nodiscard]] Arms make(const GemvProblem& problem, const std::vector<std::string>& words);
  /// A plan as an arm of that name.
  [[nodiscard]] Arm plan_arm(const std::string& name, const GemvPlan& plan) const;

  /// The device as the planner models it.
  [[nodiscard]] const ptx::Gpu& gpu() const noexcept { return gpu_; }
  /// The roofline as it fills this device, for `bytes` of memory.
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

/// What the hypotheses H4 and H5 (docs/bench.md) compare, on a planned kernel: names and plans.
struct PlanVariant {
  std::string name;
  GemvPlan plan;
};
/// "starved-4", "starved-16": one block on each SM and one load of a lane on its way, of 4 and of
/// 16 bytes. "full-4", "full-16": equal bytes on their way, enough of them, in loads of 4 and
/// of 16. "threads-256", "threads-1024": equal bytes on their way in each SM, with blocks of that
/// size. Empty for a problem that has no such plans (16-bit weights, rows that are not aligned).
[[nodiscard]] std::vector<PlanVariant> plan_variants(const GemvPlan& plan, const ptx::Gpu& gpu);

}  // namespace ptxgen::gemv_bench
