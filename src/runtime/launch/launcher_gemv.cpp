// src/runtime/launch/launcher_gemv.cpp - GEMV and matmul: launches and frozen launches
#include <limits>

#include "ptxgen/support/error.hpp"
#include "runtime/launch/launcher_state.hpp"
#include "runtime/device/owners.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kBlasKernel = "cublasSgemv";
constexpr std::string_view kAsked = "asked for";
constexpr std::string_view kFallback = "auto: the planned kernel could not be loaded";
constexpr std::string_view kGiven = "asked for: a plan of the caller's";
constexpr std::string_view kRows = "matmul: no kernel for several rows yet, so a GEMV for each";

std::string matmul_text(std::uint64_t m, std::uint64_t k, std::uint64_t n) {
  return "m = " + std::to_string(m) + ", " + shape_text(k, n);
}

GemvProblem plain(std::uint32_t k, std::uint32_t n) noexcept {
  GemvProblem problem;
  problem.k = k;
  problem.n = n;
  return problem;
}

GemvAddresses addresses(const DeviceSpan<f32>& y, const DeviceSpan<f32>& a,
                        const DeviceSpan<f32>& x) noexcept {
  return {.y = y.address.value, .a = a.address.value, .x = x.address.value};
}

GemvAddresses addresses(const GemvOperands& o) noexcept {
  return {o.y.address,        o.a.address, o.x.address, o.bias.address,
          o.residual.address, o.alpha,     o.beta,      o.constant_weights};
}

/// For a plan of the caller's: what it says counts.
GemvAddresses addresses_of_plan(const GemvOperands& operands) noexcept {
  GemvAddresses at = addresses(operands);
  at.constant_weights = true;
  return at;
}

auto block_of(const GemvAddresses& at, std::uint64_t workspace) {
  using Address = DeviceAddress<b8>;
  return Gemv::KernelType::pack(Address{at.y}, Address{at.a}, Address{at.x}, Address{at.bias},
                                Address{at.residual}, Address{workspace}, at.alpha, at.beta);
}

}  // namespace

std::string shape_text(std::uint64_t k, std::uint64_t n) {
  return "k = " + std::to_string(k) + ", n = " + std::to_string(n);
}

template <class OnPlan, class OnKernel, class OnBlas>
auto Launcher::State::serve_gemv(const GemvProblem& problem, const GemvAddresses& at,
                                 const Stream& stream, const OnPlan& on_plan,
                                 const OnKernel& on_kernel, const OnBlas& on_blas) const {
  switch (choice) {
    case GemvChoice::Coalesced:
      need_plain(problem);
      return on_kernel(GemvCoalesced{problem.k, problem.n}, "coalesced", kAsked);
    case GemvChoice::Strided:
      need_plain(problem);
      return on_kernel(GemvStrided{problem.k, problem.n}, "strided", kAsked);
    case GemvChoice::Cublas:
      need_plain(problem);
      return on_blas(kAsked);
    case GemvChoice::Direct:
    case GemvChoice::Async:
    case GemvChoice::Bulk:
      return on_plan(planned(problem, at));
    case GemvChoice::Auto:
      break;
  }
  if (!fell_back.load(std::memory_order_relaxed) || !is_plain(problem)) {
    try {
      return on_plan(planned(problem, at));
    } catch (const Error& error) {
      // Only where the kernel cannot be had; what goes wrong with a launch is the caller's to know.
      if (error.stage != Stage::Load || core.poisoned() || !is_plain(problem)) throw;
      fall_back(error, stream);
    }
  }
  return on_blas(kFallback);
}

CachedModule Launcher::State::module_of(const PlannedGemv& planned, const Stream& stream,
                                        bool& cached) const {
  CachedModule found = cache.find(planned.key);
  cached = static_cast<bool>(found);
  if (cached) [[likely]] {
    return found;
  }
  refuse_capture(Gemv::kName, stream);
  found = cache.get(planned.key, options.module, [&] { return pipeline.from_plan(planned.plan); });
  remember_stages(Gemv::kName, found);
  // Once for each time that it is loaded.
  found.function().check(planned.geometry);
  return found;
}

LaunchRecord Launcher::State::launch(const PlannedGemv& planned, const GemvAddresses& at,
                                     const Stream& stream) const {
  bool cached = false;
  const CachedModule module = module_of(planned, stream, cached);
  std::uint64_t workspace = 0;
  if (!planned.need.none()) {
    core.same(Stage::Launch, stream.core(), "the stream");
    workspace = stream.is_borrowed() || may_be_captured(stream)
                    ? workspaces.address(stream, planned.need, may_be_captured(stream))
                    : StreamAccess::workspace(stream).address(core, planned.need);
  }
  const auto block = block_of(at, workspace);
  LaunchGeometry geometry = planned.geometry;
  geometry.programmatic = starts_early(planned, at);
  if (planned.plain && !geometry.programmatic) {
    launch_fitting(module.function(), stream, geometry, block.data(), block.size());
  } else {
    module.function().launch(stream, geometry, {block.data(), block.size()});
  }
  if (stream.is_borrowed()) [[unlikely]] {
    keep_if_captured(module, stream);
  }
  return {Gemv::kName, planned.implementation, planned.reason, geometry, 1, cached, launched()};
}

LaunchPlan Launcher::State::freeze(const PlannedGemv& planned, const GemvAddresses& at,
                                   const Stream& stream) const {
  bool cached = false;
  CachedModule module = module_of(planned, stream, cached);
  std::shared_ptr<const Workspace> workspace;
  std::uint64_t address = 0;
  if (!planned.need.none()) {
    workspace = std::make_shared<const Workspace>(core, core.shared_from_this(), planned.need);
    address = workspace->address(planned.need);
  }
  const auto block = block_of(at, address);
  LaunchGeometry geometry = planned.geometry;
  geometry.programmatic = starts_early(planned, at);
  return freeze_block(std::move(module),
                      {Gemv::kName, planned.implementation, planned.reason, geometry, 1, cached},
                      {block.data(), block.size()}, stream, std::move(workspace));
}

LaunchRecord Launcher::State::gemv(const GemvProblem& problem, const GemvAddresses& at,
                                   const Stream& stream) const {
  return serve_gemv(
      problem, at, stream, [&](const PlannedGemv& plan) { return launch(plan, at, stream); },
      [&](const auto& spec, std::string_view implementation, std::string_view reason) {
        using Address = DeviceAddress<f32>;
        return run(spec, implementation, reason, stream, Address{at.y}, Address{at.a},
                   Address{at.x}, problem.k, problem.n);
      },
      [&](std::string_view reason) {
        const bool ready = blas_ready.load(std::memory_order_acquire);
        core.same(Stage::Launch, stream.core(), "the stream");
        gemv_by_blas(core, *blas(stream), stream.handle(), {at.y, at.a, at.x}, problem.k,
                     problem.n);
        return LaunchRecord{kBlasKernel, "cublas", reason, {}, 1, ready};
      });
}

LaunchPlan Launcher::State::freeze_gemv(const GemvProblem& problem, const GemvAddresses& at,
                                        const Stream& stream) const {
  return serve_gemv(
      problem, at, stream, [&](const PlannedGemv& plan) { return freeze(plan, at, stream); },
      [&](const auto& spec, std::string_view implementation, std::string_view reason) {
        using Address = DeviceAddress<f32>;
        return freeze(spec, implementation, reason, stream, Address{at.y}, Address{at.a},
                      Address{at.x}, problem.k, problem.n);
      },
      [&](std::string_view reason) {
        const bool ready = blas_ready.load(std::memory_order_acquire);
        return freeze_blas(blas(stream), {kBlasKernel, "cublas", reason, {}, 1, ready},
                           {at.y, at.a, at.x}, problem.k, problem.n, stream);
      });
}

void gemv_by_blas(const ContextCore& core, const Cublas& library, driver::CUstream stream,
                  std::array<std::uint64_t, 3> yax, std::uint32_t k, std::uint32_t n) {
  const Current current(core, Stage::Launch);
  if (k == 0) {
    // BLAS returns at once when a dimension is 0 and leaves y as it was.
    core.call(Stage::Launch, &driver::Table::memset_d32_async, yax[0], 0u, std::size_t{n}, stream);
  } else {
    library.sgemv(stream, yax[0], yax[1], yax[2], k, n);
  }
}

void Launcher::State::fall_back(const Error& error, const Stream& stream) const {
  if (context.device().info().kind == DeviceKind::Emulator) throw error;
  try {
    (void)blas(stream);
  } catch (const Error& second) {
    Error both = error;
    both.causes.push_back(second);
    throw both.refresh();
  }
  fell_back.store(true, std::memory_order_relaxed);
  core.log().warn("gemv is served by cuBLAS from now on, the planned kernel could not be loaded: " +
                  std::string(error.what()));
}

void Launcher::State::refuse_emulated_blas() const {
  if (context.device().info().kind != DeviceKind::Emulator) return;
  throw Error(Stage::Launch, "no-cublas",
              "cuBLAS needs a GPU, and this device is emulated; choose the GEMV auto");
}

const std::shared_ptr<const Cublas>& Launcher::State::blas(const Stream& stream) const {
  if (blas_ready.load(std::memory_order_acquire)) return blas_owner;
  refuse_emulated_blas();
  refuse_capture(kBlasKernel, stream);
  return blas();
}

const std::shared_ptr<const Cublas>& Launcher::State::blas() const {
  refuse_emulated_blas();
  const std::lock_guard lock(blas_mutex);
  if (blas_owner == nullptr) {
    const Current current(core, Stage::Launch);
    blas_owner = std::make_shared<const Cublas>(options.settings);
    blas_ready.store(true, std::memory_order_release);
    core.log().info("gemv: cuBLAS " + blas_owner->version() + " from " + blas_owner->where());
  }
  return blas_owner;
}

LaunchRecord Launcher::gemv(DeviceSpan<f32> y, DeviceSpan<f32> a, DeviceSpan<f32> x,
                            std::uint32_t k, std::uint32_t n, const Stream& stream) const {
  check_gemv(y, a, x, k, n);
  return state_->gemv(plain(k, n), addresses(y, a, x), stream);
}

LaunchRecord Launcher::gemv(const GemvProblem& problem, const GemvOperands& operands,
                            const Stream& stream) const {
  check_gemv(problem, operands);
  return state_->gemv(problem, addresses(operands), stream);
}

LaunchRecord Launcher::gemv(const GemvPlan& plan, const GemvOperands& operands,
                            const Stream& stream) const {
  check_gemv(plan.problem, operands);
  PlannedGemv planned = state_->given_plan(plan, addresses(operands));
  planned.reason = kGiven;
  return state_->launch(planned, addresses_of_plan(operands), stream);
}

LaunchPlan Launcher::plan_gemv(DeviceSpan<f32> y, DeviceSpan<f32> a, DeviceSpan<f32> x,
                               std::uint32_t k, std::uint32_t n, const Stream& stream) const {
  check_gemv(y, a, x, k, n);
  return state_->freeze_gemv(plain(k, n), addresses(y, a, x), stream);
}

LaunchPlan Launcher::plan_gemv(const GemvProblem& problem, const GemvOperands& operands,
                               const Stream& stream) const {
  check_gemv(problem, operands);
  return state_->freeze_gemv(problem, addresses(operands), stream);
}

LaunchPlan Launcher::plan_gemv(const GemvPlan& plan, const GemvOperands& operands,
                               const Stream& stream) const {
  check_gemv(plan.problem, operands);
  PlannedGemv planned = state_->given_plan(plan, addresses(operands));
  planned.reason = kGiven;
  return state_->freeze(planned, addresses_of_plan(operands), stream);
}

LaunchRecord Launcher::matmul(DeviceSpan<f32> c, DeviceSpan<f32> a, DeviceSpan<f32> b,
                              std::uint32_t m, std::uint32_t n, std::uint32_t k,
                              const Stream& stream) const {
  check_buffers(
      "matmul", Overlap::None, [&] { return matmul_text(m, k, n); },
      BufferArgument::of("c", c, std::uint64_t{m} * n),
      BufferArgument::of("a", a, std::uint64_t{m} * k),
      BufferArgument::of("b", b, std::uint64_t{k} * n));
  if (m == 0) {
    throw Error(Stage::Launch, "empty-grid",
                "m is 0, which leaves no block to launch; skip the launch for an empty output");
  }
  if (m == 1) return state_->gemv(plain(k, n), addresses(c, b, a), stream);
  LaunchRecord record;
  for (std::uint64_t row = 0; row < m; ++row) {
    const LaunchRecord one = state_->gemv(
        plain(k, n), addresses(c.subspan(row * n, n), b, a.subspan(row * k, k)), stream);
    if (row == 0) record = one;
    record.launch = one.launch;
  }
  record.implementation = "rows";
  record.reason = kRows;
  record.launches = m;
  return record;
}

}  // namespace ptxgen::inline v0
