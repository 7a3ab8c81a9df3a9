// src/runtime/launch/launcher_pipeline.cpp - from a kernel's spec to a loaded module
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/module/gates.hpp"
#include "runtime/launch/launcher_state.hpp"
#include "support/hash.hpp"

namespace ptxgen::inline v0 {

namespace {

std::string_view only_entry(const ptx::Module& module) {
  std::string_view name;
  for (const ptx::Function& function : module.functions) {
    if (!function.entry || function.declaration) continue;
    if (!name.empty()) return {};
    name = module.text(function.name);
  }
  return name;
}

}  // namespace

template <class Work>
void Pipeline::stage(StageTimes& stages, std::string_view name, const Work& work) const {
  const Span span(*trace, name, "launcher", &stages);
  work();
}

void Pipeline::run_passes(ptx::Module& module, std::string_view entry) const {
  optimize::PassOptions how = *passes;
  how.explain = how.explain || log->enabled(LogLevel::Debug);
  const optimize::PipelineReport report = optimize::run_passes(module, how);
  log->debug([&] {
    return "passes on kernel " + std::string(entry) + ":\n" + optimize::to_text(report, module);
  });
}

// What happens to every kernel, whoever made it, before a driver sees it.
void Pipeline::finish(KernelText& text) const {
  stage(text.stages, "passes", [&] { run_passes(text.module, text.entry); });
  if (gates) {
    const std::string name = "kernel " + text.entry;
    stage(text.stages, "gates", [&] { pass_gates({text.module, name}, *log, *trace); });
  }
  stage(text.stages, "print", [&] { text.ptx = ptx::print(text.module); });
}

KernelText Pipeline::from_catalog(const CatalogEntry& kernel,
                                  std::span<const std::uint64_t> values) const {
  KernelText text;
  text.entry = kernel.name;
  stage(text.stages, "build", [&] { text.module = kernel.build(values, *target); });
  finish(text);
  return text;
}

KernelText Pipeline::from_plan(const GemvPlan& plan) const {
  KernelText text;
  text.entry = Gemv::kName;
  stage(text.stages, "build", [&] { text.module = Gemv{plan}.build(*target).module(); });
  finish(text);
  return text;
}

KernelText Pipeline::from_module(const ptx::Module& module, std::string_view entry) const {
  KernelText text;
  text.entry = entry;
  text.module = module;
  finish(text);
  return text;
}

CachedModule Launcher::State::miss(const ModuleKey& key, std::string_view kernel,
                                   CatalogValues values, const Stream& stream) const {
  refuse_capture(kernel, stream);
  const CatalogEntry& entry = *find_kernel(kernel);
  const auto make = [&] { return pipeline.from_catalog(entry, parameter_values(entry, values)); };
  CachedModule module = cache.get(key, options.module, make);
  remember_stages(kernel, module);
  return module;
}

CachedModule Launcher::State::module_of(const ptx::Module& module, std::string_view entry,
                                        const Stream* stream, bool& cached) const {
  if (entry.empty()) entry = only_entry(module);
  if (entry.empty()) {
    throw Error(Stage::Launch, "not-found",
                "the module has no kernel, or more than one; say which one is meant");
  }
  // The text before passes and gates is what the kernel is; what they do is in the key's fields.
  ModuleKey key = cache.key_of_text(ptx::print(module), options.module);
  key.passes = keys.vadd.passes;
  const Hash128 name = hash128(entry);
  key.values = {name.high, name.low};
  CachedModule found = cache.find(key);
  cached = static_cast<bool>(found);
  if (cached) return found;
  if (stream != nullptr) refuse_capture(entry, *stream);
  found = cache.get(key, options.module, [&] { return pipeline.from_module(module, entry); });
  remember_stages(entry, found);
  return found;
}

void Launcher::State::refuse_capture(std::string_view kernel, const Stream& stream) const {
  if (!stream.capturing()) return;
  Error error(Stage::Launch, "capture-miss",
              "the stream is being captured and the kernel is not loaded yet; loading it now would "
              "break the capture, which is still valid: prepare() the kernel before the capture");
  error.kernel = kernel;
  throw error.refresh();
}

void Launcher::State::keep_if_captured(const CachedModule& module, const Stream& stream) const {
  if (!stream.capturing()) return;
  const std::lock_guard lock(kept_mutex);
  kept.try_emplace(module.function().handle(), module);
}

void Launcher::State::keep_if_captured(const Function& function, const Stream& stream) const {
  if (!stream.capturing()) return;
  const std::lock_guard lock(kept_mutex);
  kept_functions.try_emplace(function.handle(), function);
}

void Launcher::State::remember_stages(std::string_view kernel, const CachedModule& module) const {
  const std::lock_guard lock(stages_mutex);
  last_stages.insert_or_assign(std::string(kernel), module.record().stages);
}

}  // namespace ptxgen::inline v0
