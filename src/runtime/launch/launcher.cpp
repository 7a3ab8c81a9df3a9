// src/runtime/launch/launcher.cpp - launches of library and user-defined kernels
#include "ptxgen/runtime/launch/launcher.hpp"

#include <algorithm>

#include "ptxgen/kernels/gemm/gemm.hpp"
#include "ptxgen/kernels/gemv/kernel.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/runtime/device/specific_target.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/device/device_state.hpp"
#include "runtime/launch/launch_checks.hpp"
#include "runtime/launch/launcher_state.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

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
  if (options.gemv == GemvChoice::Auto) options.gemv = ptxgen::gemv_choice(options.settings.gemv);
  return options;
}

const ptx::Target& target_of(const Context& context, const LauncherOptions& options) {
  return options.target != nullptr ? *options.target : context.device().target();
}

// Not where the caller chose the target.
const ptx::Target* specific_target_of(const Context& context, const LauncherOptions& options) {
  return options.target != nullptr ? nullptr : specific_target(context.device().info());
}

ptx::Gpu chosen_for(const Context& context, const LauncherOptions& options) {
  ptx::Gpu gpu = gpu_of(context.device().info());
  gpu.target = target_of(context, options).name;
  return gpu;
}

/// In the order of `GemvChoice`.
std::span<const std::string_view> gemv_choices() noexcept {
  return Describe<GemvProblem>::family.implementations;
}

}  // namespace

Launcher::State::State(const Context& of, LauncherOptions requested)
    : context(of),
      core(of.core()),
      table(core.table()),
      trace(core.trace()),
      emulated(is_emulated(of.device().info().kind)),
      options(resolved(std::move(requested))),
      on_host(of.device().info().kind == DeviceKind::Host),
      host_target(host_target_of(of.device().info())),
      gpu(chosen_for(of, options)),
      cache(of, cache_options(options), options.settings),
      pipeline{&target_of(of, options),
               &options.passes,
               options.gates,
               &core.log(),
               &core.trace(),
               options.programmatic,
               specific_target_of(of, options)},
      base_key([this] {
        ModuleKey key = cache.key({}, options.module);
        key.passes = key_of_passes(options.passes, options.gates, options.programmatic);
        return key;
      }()) {
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
GemvChoice Launcher::gemv_choice() const noexcept { return state_->options.gemv; }

StageTimes Launcher::stages(std::string_view kernel) const { return state_->stages.of(kernel); }

std::string_view to_string(GemvChoice choice) noexcept {
  return gemv_choices()[static_cast<std::size_t>(choice)];
}

std::string gemv_choice_names() { return join_text(gemv_choices(), ", "); }

GemvChoice gemv_choice(std::string_view name) {
  for (std::size_t i = 0; i < gemv_choices().size(); ++i) {
    if (gemv_choices()[i] == name) return static_cast<GemvChoice>(i);
  }
  throw Error(Stage::Launch, "bad-choice",
              format_text("there is no GEMV '{}'; there are: {}", name, gemv_choice_names()));
}

namespace {

constexpr std::string_view kRows = "matmul: the requested GEMV, or one of no terms, for each row";

std::uint64_t product(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} * b; }

}  // namespace

LaunchRecord Launcher::gemv(DeviceSpan<f32> y, DeviceSpan<f32> a, DeviceSpan<f32> x,
                            std::uint32_t k, std::uint32_t n, const Stream& stream) const {
  return launch(GemvProblem{.k = k, .n = n}, {.y = y, .a = a, .x = x}, stream);
}

std::optional<GemvPlan> Launcher::gemv_plan(const GemvProblem& problem) const {
  const ChosenKernel chosen = choose(problem, aligned_operands(problem));
  return plan_of(chosen.kernel, chosen.spec);
}

void Launcher::prepare(std::span<const GemvProblem> problems, PrepareProgress progress) const {
  std::vector<GemvOperands> operands;
  for (const GemvProblem& problem : problems) operands.push_back(aligned_operands(problem));
  prepare<GemvProblem>(problems, operands, progress);
}

LaunchRecord Launcher::matmul(DeviceSpan<f32> c, DeviceSpan<f32> a, DeviceSpan<f32> b,
                              const MatmulShape& shape, const Stream& stream) const {
  const auto [m, k, n] = shape;
  const OperandUse uses[] = {{"c", c, ElementType::f32, product(m, n), 4, true, true},
                             {"a", a, ElementType::f32, product(m, k), 4},
                             {"b", b, ElementType::f32, product(k, n), 4}};
  if (!(usable(uses[0]) && usable(uses[1]) && usable(uses[2]) &&
        may_be_together(uses[0], uses[1], false) && may_be_together(uses[0], uses[2], false))) {
    refuse_operands("matmul", format_text("m = {}, k = {}, n = {}", m, k, n), uses,
                    [](std::size_t, std::size_t) { return false; });
  }
  if (m == 0) {
    throw Error(Stage::Launch, "empty-grid",
                "m is 0, which leaves no block to launch; skip the launch for an empty output");
  }
  if (m == 1) return gemv(c, b, a, k, n, stream);
  if (k != 0 && n != 0 && gemv_choice() == GemvChoice::Auto) {
    return launch(GemmProblem{.m = m, .n = n, .k = k, .type = ElementType::f32},
                  {.c = c, .a = a, .b = b}, stream);
  }
  LaunchRecord record;
  for (std::uint64_t row = 0; row < m; ++row) {
    const LaunchRecord one = gemv(c.subspan(row * n, n), b, a.subspan(row * k, k), k, n, stream);
    if (row == 0) record = one;
    record.launch = one.launch;
  }
  record.implementation = "rows";
  record.reason = kRows;
  record.launches = m;
  return record;
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

void Launcher::State::prepare(std::span<const PrepareRequest> kernels,
                              PrepareProgress progress) const {
  if (on_host) return;  // there is nothing to build
  struct Choice {
    const Pipeline* pipeline;
    Launchable what;
  };
  std::vector<Choice> result;
  for (const PrepareRequest& request : kernels) {
    const void* const spec = request.spec;
    if (request.kernel->family == nullptr) {
      result.push_back({&pipeline, launchable(*request.kernel, spec)});
      continue;
    }
    const Served& call = served(*request.kernel, spec, request.operands);
    if (call.launch.kernel != nullptr) {
      result.push_back({&pipeline, call.launch});
    } else {
      call.state->routine->open();
    }
  }
  const auto make = [](const void* object) {
    const Choice& one = *static_cast<const Choice*>(object);
    return one.pipeline->from_described(*one.what.kernel, one.what.spec);
  };
  std::vector<ModuleCache::Request> requests;
  for (const Choice& one : result) requests.push_back({one.what.key.key, {make, &one}});
  cache.prepare(requests, options.module, progress);
}

void Launcher::prepare(std::span<const KernelRequest> kernels, PrepareProgress progress) const {
  std::vector<PrepareRequest> requests;
  std::vector<ErasedValue> owned;
  for (const KernelRequest& request : kernels) {
    const KernelDescription& kernel = kernel_named(request.kernel);
    std::vector<std::uint64_t> values = kernel.default_values();
    if (request.values.size() > values.size()) check_values(kernel, request.values);
    std::copy(request.values.begin(), request.values.end(), values.begin());
    const void* const spec = owned.emplace_back(kernel.make_spec(values)).get();
    requests.push_back({&kernel, spec, owned.emplace_back(kernel.make_operands({})).get()});
  }
  state_->prepare(requests, progress);
}

void Launcher::prepare_described(const KernelDescription& kernel,
                                 std::span<const void* const> specs,
                                 std::span<const void* const> operands,
                                 PrepareProgress progress) const {
  std::vector<PrepareRequest> requests;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    requests.push_back({&kernel, specs[i], operands[i]});
  }
  state_->prepare(requests, progress);
}

}  // namespace ptxgen::inline v0
