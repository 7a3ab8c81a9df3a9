// src/runtime/launch/kernel_pipeline.cpp - from a kernel to its PTX
#include "runtime/launch/kernel_pipeline.hpp"

#include "ptxgen/ptx/printer.hpp"
#include "runtime/module/gates.hpp"
#include "support/format.hpp"
#include "support/hash.hpp"

namespace ptxgen::inline v0 {

std::uint64_t key_of_passes(const optimize::PassOptions& passes, bool gates, bool programmatic) {
  std::string text = programmatic ? "programmatic," : "";
  for (const std::string& name : passes.passes) text += name + ",";
  text += passes.contract ? "contract," : "";
  text += format_text("{},{}", passes.split_threshold, passes.growth_limit);
  return (hash64(text.data(), text.size()) << 1) | (gates ? 1 : 0);
}

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
    return format_text("passes on kernel {}:\n{}", entry, optimize::to_text(report, module));
  });
}

// Every kernel passes here before a driver sees it.
void Pipeline::finish(KernelText& text) const {
  stage(text.stages, "passes", [&] { run_passes(text.module, text.entry); });
  if (gates) {
    const std::string name = "kernel " + text.entry;
    stage(text.stages, "gates", [&] { pass_gates({text.module, name}, *log, *trace); });
  }
  stage(text.stages, "print", [&] { text.ptx = ptx::print(text.module); });
}

const ptx::Target& Pipeline::target_for(const KernelDescription& kernel, const void* spec) const {
  const ptx::Target& chosen = kernel.needs_specific && specific != nullptr ? *specific : *target;
  if (kernel.check_target_of != nullptr) kernel.check_target_of(spec, chosen);
  return chosen;
}

KernelText Pipeline::from_described(const KernelDescription& kernel, const void* spec) const {
  KernelText text;
  text.entry = kernel.name;
  stage(text.stages, "build", [&] {
    text.module = kernel.build_of(spec, target_for(kernel, spec));
    if (programmatic) optimize::wait_for_previous_grid(text.module);
  });
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

}  // namespace ptxgen::inline v0
