// src/runtime/launch/families.cpp - routines and measured plans of the families
#include <atomic>
#include <mutex>

#include "ptxgen/kernels/gemv/operands.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/launch/cublas.hpp"
#include "runtime/launch/routine.hpp"
#include "runtime/launch/tuned_plans.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

/// cublasSgemv for plain problems, opened by the first `open`.
class CublasGemv final : public Routine, public std::enable_shared_from_this<CublasGemv> {
 public:
  CublasGemv(const ContextCore& core, const Settings& settings) noexcept
      : core_(core), owner_(core.shared_from_this()), settings_(settings) {}
  ~CublasGemv() override {
    if (library_ == nullptr) return;
    const Current current(core_);  // cuBLAS frees its resources in the current context
    library_.reset();
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "cublasSgemv"; }
  [[nodiscard]] bool ready() const noexcept override {
    return ready_.load(std::memory_order_acquire);
  }
  void refuse_device() const override {
    if (!is_emulated(core_.device().info().kind)) return;
    throw Error(Stage::Launch, "no-cublas",
                "cuBLAS needs a GPU, and this device is emulated; choose the GEMV auto");
  }
  void open() override {
    if (ready()) return;
    refuse_device();
    const std::lock_guard lock(mutex_);
    if (library_ != nullptr) return;
    const Current current(core_, Stage::Launch);
    library_ = std::make_unique<const Cublas>(settings_);
    ready_.store(true, std::memory_order_release);
    core_.log().info(
        format_text("gemv: cuBLAS {} from {}", library_->version(), library_->where()));
  }
  void launch(const void* spec, const void* operands, driver::CUstream stream) const override {
    const auto& problem = *static_cast<const GemvProblem*>(spec);
    const auto& at = *static_cast<const GemvOperands*>(operands);
    const Current current(core_, Stage::Launch);
    if (problem.k == 0) {
      // BLAS returns at once when a dimension is 0 and leaves y as it was.
      core_.call(Stage::Launch, &driver::Table::memset_d32_async, at.y.address, 0u,
                 std::size_t{problem.n}, stream);
    } else {
      library_->sgemv(stream, at.y.address, at.a.address, at.x.address, problem.k, problem.n);
    }
  }
  [[nodiscard]] std::function<void(driver::CUstream)> bind(const void* spec,
                                                           const void* operands) const override {
    return [self = shared_from_this(), problem = *static_cast<const GemvProblem*>(spec),
            at = *static_cast<const GemvOperands*>(operands)](driver::CUstream stream) {
      self->launch(&problem, &at, stream);
    };
  }

 private:
  const ContextCore& core_;
  const std::shared_ptr<const ContextCore> owner_;
  const Settings settings_;
  std::mutex mutex_;
  std::unique_ptr<const Cublas> library_;  ///< constant once `ready_`
  std::atomic<bool> ready_{false};
};

constexpr FamilyParts kParts[] = {
    {&Describe<GemvProblem>::family,
     [](const LauncherOptions& options, FamilyState& family) {
       family.implementation = to_string(options.gemv);
       family.measured = options.gemv_plans;
     },
     [](const Device& device, const std::string& folder) -> std::unique_ptr<const PlanSource> {
       return std::make_unique<const TunedPlans>(device, folder);
     },
     [](const ContextCore& core, const Settings& settings) -> std::shared_ptr<Routine> {
       return std::make_shared<CublasGemv>(core, settings);
     }}};

}  // namespace

const FamilyParts* family_parts(const KernelFamily* family) noexcept {
  for (const FamilyParts& parts : kParts) {
    if (parts.family == family) return &parts;
  }
  return nullptr;
}

}  // namespace ptxgen::inline v0
