// src/runtime/launch/launcher_gemv.cpp - GEMV and matmul, launched or planned
#include <limits>

#include "ptxgen/support/error.hpp"
#include "runtime/device/stream_owner.hpp"
#include "runtime/launch/launcher_state.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kBlasKernel = "cublasSgemv";
constexpr std::string_view kRequested = "requested";
constexpr std::string_view kFallback = "auto: the planned kernel could not be loaded";
constexpr std::string_view kCallerPlan = "requested: the caller's plan";
constexpr std::string_view kRows = "matmul: no kernel for several rows yet; one GEMV per row";

std::string matmul_text(std::uint64_t m, std::uint64_t k, std::uint64_t n) {
  return format_text("m = {}, {}", m, shape_text(k, n));
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

/// For a plan of the caller: its `programmatic` decides.
GemvAddresses plan_addresses(const GemvOperands& operands) noexcept {
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
  return format_text("k = {}, n = {}", k, n);
}

template <class OnPlan, class OnKernel, class OnBlas>
auto Launcher::State::serve_gemv(const GemvProblem& problem, const GemvAddresses& at,
                                 const Stream& stream, const OnPlan& on_plan,
                                 const OnKernel& on_kernel, const OnBlas& on_blas) const {
  switch (choice) {
    case GemvChoice::Coalesced:
      need_plain(problem);
      return on_kernel(GemvCoalesced{problem.k, problem.n}, "coalesced", kRequested);
    case GemvChoice::Strided:
      need_plain(problem);
      return on_kernel(GemvStrided{problem.k, problem.n}, "strided", kRequested);
    case GemvChoice::Cublas:
      need_plain(problem);
      return on_blas(kRequested);
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
      // Fall back only if the kernel cannot be loaded; errors of the launch go to the caller.
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
  stages.set(Gemv::kName, found);
  // Once per load.
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
    captured_kernels.add_if_captured(module, stream);
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
        const bool ready = blas.ready();
        core.same(Stage::Launch, stream.core(), "the stream");
        gemv_by_blas(core, *blas_for(stream), stream.handle(), {at.y, at.a, at.x}, problem.k,
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
        const bool ready = blas.ready();
        return freeze_blas(blas_for(stream), {kBlasKernel, "cublas", reason, {}, 1, ready},
                           {at.y, at.a, at.x}, problem.k, problem.n, stream);
      });
}

void Launcher::State::fall_back(const Error& error, const Stream& stream) const {
  if (context.device().info().kind == DeviceKind::Emulator) throw error;
  try {
    (void)blas_for(stream);
  } catch (const Error& second) {
    Error both = error;
    both.causes.push_back(second);
    throw both.refresh();
  }
  fell_back.store(true, std::memory_order_relaxed);
  core.log().warn("gemv uses cuBLAS from now on; the planned kernel could not be loaded: " +
                  std::string(error.what()));
}

const std::shared_ptr<const Cublas>& Launcher::State::blas_for(const Stream& stream) const {
  if (!blas.ready()) {
    blas.refuse_emulated();
    refuse_capture(kBlasKernel, stream);
  }
  return blas.get();
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
  PlannedGemv planned = state_->caller_plan(plan, addresses(operands));
  planned.reason = kCallerPlan;
  return state_->launch(planned, plan_addresses(operands), stream);
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
  PlannedGemv planned = state_->caller_plan(plan, addresses(operands));
  planned.reason = kCallerPlan;
  return state_->freeze(planned, plan_addresses(operands), stream);
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
