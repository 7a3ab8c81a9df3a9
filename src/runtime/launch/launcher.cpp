// src/runtime/launch/launcher.cpp - launches of library and user-defined kernels
#include "ptxgen/runtime/launch/launcher.hpp"

#include <algorithm>

#include "kernels/gemv/catalog_gemv.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/launch/launcher_state.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    names.emplace_back(list.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

ModuleCacheOptions cache_options(const LauncherOptions& options) {
  const ModuleCacheOptions defaults = ModuleCacheOptions::from(options.settings);
  ModuleCacheOptions cache = options.cache;
  if (cache.mode == CacheMode::ReadWrite) cache.mode = defaults.mode;
  if (cache.folder.empty()) cache.folder = defaults.folder;
  if (cache.lower_folder.empty()) cache.lower_folder = defaults.lower_folder;
  return cache;
}

/// The options completed from the settings.
LauncherOptions resolved(LauncherOptions options) {
  if (options.passes.passes == optimize::PassOptions{}.passes) {
    options.passes.passes = split(options.settings.passes);
  }
  optimize::check_pass_names(options.passes.passes);
  // The launcher runs the gates before the cache, unless they are off.
  options.module.gates = false;
  return options;
}

std::string elements_text(std::int64_t n) { return format_text("n = {}", n); }

template <class T>
void check_vadd(const DeviceSpan<T>& c, const DeviceSpan<T>& a, const DeviceSpan<T>& b,
                std::uint32_t n) {
  check_buffers(
      VaddOf<T>::kName, Overlap::Same, [&] { return elements_text(n); },
      BufferArgument::of("c", c, n), BufferArgument::of("a", a, n), BufferArgument::of("b", b, n));
}

}  // namespace

Launcher::State::State(const Context& of, LauncherOptions given)
    : context(of),
      core(of.core()),
      table(core.table()),
      trace(core.trace()),
      emulated(of.device().info().kind == DeviceKind::Emulator),
      options(resolved(std::move(given))),
      choice(options.gemv == GemvChoice::Auto ? ptxgen::gemv_choice(options.settings.gemv)
                                              : options.gemv),
      gpu(gpu_of(of.device().info())),
      cache(of, cache_options(options), options.settings),
      pipeline{&of.device().target(), &options.passes, options.gates, &core.log(), &core.trace()},
      blas(core, options.settings) {
  const std::uint64_t passes = key_of_passes(options.passes, options.gates);
  const auto key = [&](std::string_view name) {
    ModuleKey made = cache.key(name, options.module);
    made.passes = passes;
    return made;
  };
  keys = {key(Copy::kName),          key(FmaRpt::kName),      key(Gemv::kName),
          key(GemvCoalesced::kName), key(GemvStrided::kName), key(Vadd::kName),
          key(VaddBf16::kName),      key(VaddF16::kName)};
  if (!options.gates) {
    core.log().warn("the gates are off: kernels are loaded unchecked");
  }
}

void Launcher::State::throw_launch(const Function& function, driver::CUresult result) const {
  Error error = core.failure(Stage::Launch, {&row_of(&driver::Table::launch_kernel), result});
  error.kernel = function.name();
  throw error.refresh();
}

Launcher::Launcher(const Context& context, LauncherOptions options)
    : state_(Hidden<State>::make(context, std::move(options))) {}
Launcher::Launcher(Launcher&&) noexcept = default;
Launcher& Launcher::operator=(Launcher&& other) noexcept {
  const Launcher old(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}
Launcher::~Launcher() = default;

const ModuleCache& Launcher::cache() const noexcept { return state_->cache; }
ModuleCache& Launcher::cache() noexcept { return state_->cache; }
GemvChoice Launcher::gemv_choice() const noexcept { return state_->choice; }

StageTimes Launcher::stages(std::string_view kernel) const { return state_->stages.of(kernel); }

// Elementwise kernels ---------------------------------------------------------------------------

LaunchRecord Launcher::vadd(DeviceSpan<f32> c, DeviceSpan<f32> a, DeviceSpan<f32> b,
                            std::uint32_t n, const Stream& stream) const {
  check_vadd(c, a, b, n);
  return state_->run(Vadd{n}, {}, {}, stream, a.address, b.address, c.address, n);
}

LaunchRecord Launcher::vadd(DeviceSpan<f16> c, DeviceSpan<f16> a, DeviceSpan<f16> b,
                            std::uint32_t n, const Stream& stream) const {
  check_vadd(c, a, b, n);
  return state_->run(VaddF16{n}, {}, {}, stream, a.address, b.address, c.address, n);
}
LaunchRecord Launcher::vadd(DeviceSpan<bf16> c, DeviceSpan<bf16> a, DeviceSpan<bf16> b,
                            std::uint32_t n, const Stream& stream) const {
  check_vadd(c, a, b, n);
  return state_->run(VaddBf16{n}, {}, {}, stream, a.address, b.address, c.address, n);
}

LaunchRecord Launcher::copy(DeviceSpan<b32> out, DeviceSpan<b32> in, std::uint32_t n,
                            const Stream& stream) const {
  check_buffers(
      Copy::kName, Overlap::None, [&] { return elements_text(n); },
      BufferArgument::of("out", out, n), BufferArgument::of("in", in, n));
  return state_->run(Copy{n}, {}, {}, stream, in.address, out.address, n);
}

LaunchRecord Launcher::fma_rpt(DeviceSpan<f32> out, DeviceSpan<f32> in, std::int32_t n,
                               std::int32_t k, float a, float b, const Stream& stream) const {
  const auto count = static_cast<std::uint32_t>(std::max(n, 0));
  const auto repeats = static_cast<std::uint32_t>(std::max(k, 0));
  check_buffers(
      FmaRpt::kName, Overlap::Same, [&] { return elements_text(n); },
      BufferArgument::of("out", out, count), BufferArgument::of("in", in, count));
  return state_->run(FmaRpt{count, repeats}, {}, {}, stream, in.address, out.address, n, k, a, b);
}

LaunchPlan Launcher::plan_vadd(DeviceSpan<f32> c, DeviceSpan<f32> a, DeviceSpan<f32> b,
                               std::uint32_t n, const Stream& stream) const {
  check_vadd(c, a, b, n);
  return state_->freeze(Vadd{n}, {}, {}, stream, a.address, b.address, c.address, n);
}

// User-defined kernels --------------------------------------------------------------------------

LaunchRecord Launcher::launch(const BuiltKernel& kernel, const LaunchGeometry& geometry,
                              std::span<const std::byte> arguments, const Stream& stream,
                              const LaunchOptions& options) const {
  check_block(kernel.name(), kernel.signature(), arguments);
  bool cached = false;
  const CachedModule module = state_->module_of(kernel.module(), kernel.name(), &stream, cached);
  module.function().launch(stream, geometry, arguments, options);
  if (stream.is_borrowed()) state_->captured_kernels.add_if_captured(module, stream);
  return {kernel.name(), {}, {}, geometry, 1, cached, state_->launched()};
}

LaunchRecord Launcher::launch(const Function& function, const LaunchGeometry& geometry,
                              std::span<const std::byte> arguments, const Stream& stream,
                              const LaunchOptions& options) const {
  function.launch(stream, geometry, arguments, options);
  if (stream.is_borrowed()) state_->captured_kernels.add_if_captured(function, stream);
  return {function.name(), {}, {}, geometry, 1, true, state_->launched()};
}

Function Launcher::load(const ptx::Module& module, std::string_view entry) const {
  bool cached = false;
  return state_->module_of(module, entry, nullptr, cached).function();
}

Function Launcher::load(std::string_view ptx, std::string_view entry, std::string_view file) const {
  return load(ptx::parse(ptx, file), entry);
}

// Ahead of time ---------------------------------------------------------------------------------

Launcher::State::ModuleRequest Launcher::State::module_request(const KernelRequest& request) const {
  const CatalogEntry& kernel = kernel_named(request.kernel);
  // Rejects values that are out of range, and empty shapes.
  const auto values = parameter_values(kernel, request.values);
  if (kernel.name == Gemv::kName) return module_request(gemv_problem_of(values));
  static_cast<void>(kernel.geometry(values, *pipeline.target));
  return {keys.of(kernel, values), &kernel, request.values, nullptr, &pipeline};
}

Launcher::State::ModuleRequest Launcher::State::module_request(const GemvProblem& problem) const {
  check(problem);
  if (plans_gemv()) {
    const PlannedGemv& made =
        planned(problem, {problem.y_alignment, problem.a_alignment, problem.x_alignment});
    return {made.key, nullptr, {}, &made.plan, &pipeline};
  }
  need_plain(problem);
  const std::array<std::uint64_t, 6> values = {problem.k, problem.n};
  if (choice == GemvChoice::Cublas) return {};
  if (choice == GemvChoice::Strided) {
    return {keys.of(GemvStrided{problem.k, problem.n}), find_kernel(GemvStrided::kName), values,
            nullptr, &pipeline};
  }
  return {keys.of(GemvCoalesced{problem.k, problem.n}), find_kernel(GemvCoalesced::kName), values,
          nullptr, &pipeline};
}

void Launcher::State::prepare(std::span<const ModuleRequest> modules,
                              PrepareProgress progress) const {
  std::vector<ModuleCache::Request> requests;
  requests.reserve(modules.size());
  const auto make = [](const void* one) { return static_cast<const ModuleRequest*>(one)->text(); };
  for (const ModuleRequest& one : modules) {
    if (one.pipeline == nullptr) {
      static_cast<void>(blas.get());
    } else {
      requests.push_back({one.key, {make, &one}});
    }
  }
  cache.prepare(requests, options.module, progress);
}

void Launcher::prepare(std::span<const KernelRequest> kernels, PrepareProgress progress) const {
  std::vector<State::ModuleRequest> requests;
  for (const KernelRequest& request : kernels) requests.push_back(state_->module_request(request));
  state_->prepare(requests, progress);
}

void Launcher::prepare(std::span<const GemvProblem> problems, PrepareProgress progress) const {
  std::vector<State::ModuleRequest> requests;
  for (const GemvProblem& problem : problems) requests.push_back(state_->module_request(problem));
  state_->prepare(requests, progress);
}

}  // namespace ptxgen::inline v0
