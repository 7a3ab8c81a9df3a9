// src/runtime/launcher_gemv.cpp - GEMV, matmul, and which implementation serves them
#include <limits>

#include "ptxgen/support/error.hpp"
#include "runtime/launcher_state.hpp"

namespace ptxgen::inline v0 {

namespace {

struct ChoiceName {
  GemvChoice choice;
  std::string_view name;
};
constexpr ChoiceName kChoices[] = {{GemvChoice::Auto, "auto"},
                                   {GemvChoice::Coalesced, "coalesced"},
                                   {GemvChoice::Strided, "strided"},
                                   {GemvChoice::Cublas, "cublas"}};

constexpr std::string_view kBlasKernel = "cublasSgemv";
constexpr std::string_view kAsked = "asked for";
constexpr std::string_view kAutomatic = "auto: consecutive lanes read consecutive columns";
constexpr std::string_view kFallback = "auto: the coalesced kernel could not be loaded";
constexpr std::string_view kRows = "matmul: no kernel for several rows yet, so a GEMV for each";

std::string matmul_text(std::uint64_t m, std::uint64_t k, std::uint64_t n) {
  return "m = " + std::to_string(m) + ", " + shape_text(k, n);
}

}  // namespace

std::string shape_text(std::uint64_t k, std::uint64_t n) {
  return "k = " + std::to_string(k) + ", n = " + std::to_string(n);
}

std::string_view to_string(GemvChoice choice) noexcept {
  for (const ChoiceName& row : kChoices) {
    if (row.choice == choice) return row.name;
  }
  return "unknown";
}

GemvChoice gemv_choice(std::string_view name) {
  std::string names;
  for (const ChoiceName& row : kChoices) {
    if (row.name == name) return row.choice;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  throw Error(Stage::Launch, "bad-choice",
              "there is no GEMV '" + std::string(name) + "'; there are: " + names);
}

template <class OnKernel, class OnBlas>
auto Launcher::State::serve_gemv(std::uint32_t k, std::uint32_t n, const Stream& stream,
                                 const OnKernel& on_kernel, const OnBlas& on_blas) const {
  switch (choice) {
    case GemvChoice::Coalesced:
      return on_kernel(GemvCoalesced{k, n}, "coalesced", kAsked);
    case GemvChoice::Strided:
      return on_kernel(GemvStrided{k, n}, "strided", kAsked);
    case GemvChoice::Cublas:
      return on_blas(kAsked);
    case GemvChoice::Auto:
      break;
  }
  if (!fell_back.load(std::memory_order_relaxed)) {
    try {
      return on_kernel(GemvCoalesced{k, n}, "coalesced", kAutomatic);
    } catch (const Error& error) {
      // Only where the kernel cannot be had; what goes wrong with a launch is the caller's to know.
      if (error.stage != Stage::Load || core.poisoned()) throw;
      fall_back(error, stream);
    }
  }
  return on_blas(kFallback);
}

LaunchRecord Launcher::State::gemv(const GemvArguments& arguments, const Stream& stream) const {
  return serve_gemv(
      arguments.k, arguments.n, stream,
      [&](const auto& spec, std::string_view implementation, std::string_view reason) {
        return run(spec, implementation, reason, stream, arguments.y.address, arguments.a.address,
                   arguments.x.address, arguments.k, arguments.n);
      },
      [&](std::string_view reason) {
        const bool ready = blas_ready.load(std::memory_order_acquire);
        core.same(Stage::Launch, stream.core(), "the stream");
        gemv_by_blas(
            core, *blas(stream), stream.handle(),
            {arguments.y.address.value, arguments.a.address.value, arguments.x.address.value},
            arguments.k, arguments.n);
        return LaunchRecord{kBlasKernel, "cublas", reason, {}, 1, ready};
      });
}

LaunchPlan Launcher::State::freeze_gemv(const GemvArguments& arguments,
                                        const Stream& stream) const {
  const std::array<std::uint64_t, 3> yax = {arguments.y.address.value, arguments.a.address.value,
                                            arguments.x.address.value};
  return serve_gemv(
      arguments.k, arguments.n, stream,
      [&](const auto& spec, std::string_view implementation, std::string_view reason) {
        return freeze(spec, implementation, reason, stream, arguments.y.address,
                      arguments.a.address, arguments.x.address, arguments.k, arguments.n);
      },
      [&](std::string_view reason) {
        const bool ready = blas_ready.load(std::memory_order_acquire);
        return freeze_blas(blas(stream), {kBlasKernel, "cublas", reason, {}, 1, ready}, yax,
                           arguments.k, arguments.n, stream);
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
  core.log().warn(
      "gemv is served by cuBLAS from now on, the coalesced kernel could not be loaded: " +
      std::string(error.what()));
}

void Launcher::State::refuse_emulated_blas() const {
  if (context.device().info().kind != DeviceKind::Emulator) return;
  throw Error(Stage::Launch, "no-cublas",
              "cuBLAS needs a GPU, and this device is emulated; choose the GEMV coalesced or "
              "strided");
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
  return state_->gemv({y, a, x, k, n}, stream);
}

LaunchPlan Launcher::plan_gemv(DeviceSpan<f32> y, DeviceSpan<f32> a, DeviceSpan<f32> x,
                               std::uint32_t k, std::uint32_t n, const Stream& stream) const {
  check_gemv(y, a, x, k, n);
  return state_->freeze_gemv({y, a, x, k, n}, stream);
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
  if (m == 1) return state_->gemv({c, b, a, k, n}, stream);
  LaunchRecord record;
  for (std::uint64_t row = 0; row < m; ++row) {
    const LaunchRecord one =
        state_->gemv({c.subspan(row * n, n), b, a.subspan(row * k, k), k, n}, stream);
    if (row == 0) record = one;
  }
  record.implementation = "rows";
  record.reason = kRows;
  record.launches = m;
  return record;
}

}  // namespace ptxgen::inline v0
