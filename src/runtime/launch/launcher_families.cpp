// src/runtime/launch/launcher_families.cpp - calls of families: the chosen kernel, or a routine
#include "ptxgen/support/error.hpp"
#include "runtime/launch/launch_plan.hpp"
#include "runtime/launch/launcher_state.hpp"
#include "runtime/launch/tuned_plans.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

/// Maximum length of a reason in a record.
constexpr std::size_t kMaxReason = 190;  // ptxgen_launch_record has 192 characters

constexpr std::string_view kFallback = "auto: the planned kernel could not be loaded";

std::string shortened(std::string text) {
  if (text.size() <= kMaxReason) return text;
  const std::size_t end = text.rfind(' ', kMaxReason - 4);
  text.resize(end == std::string::npos ? kMaxReason - 4 : end);
  return text + " ...";
}

bool fits(const LaunchGeometry& g, const DeviceLimits& limits) {
  return g.grid.x <= limits.grid[0] && g.grid.y <= limits.grid[1] && g.grid.z <= limits.grid[2] &&
         g.block.y == 1 && g.block.z == 1 && g.block.x <= limits.threads_per_block &&
         g.dynamic_shared_bytes == 0 && g.cluster == Dim3{} && !g.cooperative;
}

}  // namespace

FamilyState& Launcher::State::family_state(const KernelDescription& kernel) const {
  const std::lock_guard lock(families_mutex);
  const auto [place, fresh] = families.try_emplace(kernel.family);
  FamilyState& state = place->second;
  if (!fresh) return state;
  state.kernel = &kernel;
  const FamilyParts* const parts = family_parts(kernel.family);
  if (parts == nullptr) return state;
  parts->configure(options, state);
  if (parts->routine != nullptr) state.routine = parts->routine(core, options.settings);
  // Times measured on the emulator are meaningless.
  const bool read_files = state.measured == nullptr && parts->tuned != nullptr &&
                          !(emulated && options.settings.tuned.empty());
  const std::string folder = read_files ? tuned_folder(options.settings) : std::string();
  if (!folder.empty()) {
    state.tuned = parts->tuned(context.device(), folder);
    state.measured = state.tuned.get();
  }
  return state;
}

const Served& Launcher::State::choose(const KernelDescription& kernel, const void* spec,
                                      const void* operands, const ChoiceKey& shape) const {
  FamilyState& family = family_state(kernel);
  const auto warn = [](const void* to, const std::string& message) {
    static_cast<const ContextCore*>(to)->log().warn(message);
  };
  auto entry = std::make_unique<Served>();
  entry->family = kernel.family;
  entry->shape = shape;
  entry->state = &family;
  entry->choice = kernel.family->choose(
      spec, operands,
      {gpu, *pipeline.target, context.device().info().name, family.implementation, family.measured,
       warn, &core, pipeline.specific});
  KernelChoice& choice = entry->choice;
  choice.reason = shortened(std::move(choice.reason));
  if (choice.kernel != nullptr) {
    entry->launch = launchable(*choice.kernel, choice.spec.get());
    entry->launch.pack = choice.pack;
    entry->launch.fits = fits(entry->launch.geometry, context.device().info().limits);
  } else if (family.routine == nullptr) {
    throw Error(Stage::Launch, "bad-choice",
                format_text("{} has no routine '{}'", kernel.name, choice.implementation));
  }
  entry->launch.implementation = choice.implementation;
  entry->launch.reason = choice.reason;
  core.log().debug([&] {
    return format_text("{} {}: {}; {}", kernel.name, shape_text(kernel, spec),
                       choice.implementation, choice.reason);
  });
  return calls.add(std::move(entry));
}

template <class OnKernel, class OnRoutine>
auto Launcher::State::serve(const KernelDescription& kernel, const void* spec, const void* operands,
                            const Stream& stream, const OnKernel& on_kernel,
                            const OnRoutine& on_routine) const {
  const Served& call = served(kernel, spec, operands);
  if (call.launch.kernel == nullptr) [[unlikely]] {
    return on_routine(*call.state->routine, call.launch.implementation, call.launch.reason);
  }
  const bool can_fall_back = !call.choice.fallback.empty() && call.state->routine != nullptr;
  if (!can_fall_back) return on_kernel(call.launch);
  if (!call.state->fell_back.load(std::memory_order_relaxed)) [[likely]] {
    try {
      return on_kernel(call.launch);
    } catch (const Error& error) {
      // Fall back only if the kernel cannot be loaded; errors of the launch go to the caller.
      if (error.stage != Stage::Load || core.poisoned()) throw;
      fall_back(*call.state, error, stream);
    }
  }
  return on_routine(*call.state->routine, call.choice.fallback, kFallback);
}

LaunchRecord Launcher::State::launch(const KernelDescription& kernel, const void* spec,
                                     const void* operands, const Stream& stream) const {
  if (on_host) return launch_host(kernel, spec, operands, stream);
  if (kernel.family == nullptr) return launch(launchable(kernel, spec), kernel, operands, stream);
  return serve(
      kernel, spec, operands, stream,
      [&](const Launchable& what) { return launch(what, kernel, operands, stream); },
      [&](Routine& routine, std::string_view implementation, std::string_view reason) {
        const bool ready = routine.ready();
        core.same(Stage::Launch, stream.core(), "the stream");
        open(routine, stream);
        routine.launch(spec, operands, stream.handle());
        return LaunchRecord{routine.name(), implementation, reason, {}, 1, ready};
      });
}

LaunchPlan Launcher::State::plan(const KernelDescription& kernel, const void* spec,
                                 const void* operands, const Stream& stream) const {
  if (on_host) return plan_host(kernel, spec, operands, stream);
  if (kernel.family == nullptr) return plan(launchable(kernel, spec), kernel, operands, stream);
  return serve(
      kernel, spec, operands, stream,
      [&](const Launchable& what) { return plan(what, kernel, operands, stream); },
      [&](Routine& routine, std::string_view implementation, std::string_view reason) {
        const bool ready = routine.ready();
        open(routine, stream);
        return LaunchPlan(Hidden<LaunchPlan::State>::make(
            routine.bind(spec, operands), core,
            LaunchRecord{routine.name(), implementation, reason, {}, 1, ready}, stream));
      });
}

void Launcher::State::open(Routine& routine, const Stream& stream) const {
  if (!routine.ready()) {
    routine.refuse_device();
    refuse_capture(routine.name(), stream);
  }
  routine.open();
}

void Launcher::State::fall_back(FamilyState& family, const Error& error,
                                const Stream& stream) const {
  if (emulated) throw error;
  try {
    open(*family.routine, stream);
  } catch (const Error& second) {
    Error both = error;
    both.causes.push_back(second);
    throw both.refresh();
  }
  family.fell_back.store(true, std::memory_order_relaxed);
  core.log().warn(format_text("{} uses {} from now on; the planned kernel could not be loaded: {}",
                              family.kernel->name, family.routine->name(), error.what()));
}

ChosenKernel Launcher::choose_described(const KernelDescription& kernel, const void* spec,
                                        const void* operands) const {
  if (kernel.family == nullptr) return {&kernel, nullptr, {}, {}};
  if (state_->on_host) {
    const LaunchRecord record = state_->host_record(kernel);
    return {nullptr, nullptr, record.implementation, record.reason};
  }
  const Served& call = state_->served(kernel, spec, operands);
  return {call.launch.kernel, call.launch.spec, call.launch.implementation, call.launch.reason};
}

ChosenKernel Launcher::choose(const KernelCall& call) const {
  return choose_described(*call.kernel, call.kernel->make_spec(call.values).get(),
                          call.kernel->make_operands(call.operands).get());
}

}  // namespace ptxgen::inline v0
