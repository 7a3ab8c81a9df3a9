// src/runtime/launch/launcher_modules.cpp - modules of kernels, cached or made
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/support/error.hpp"
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

CachedModule Launcher::State::module_of(const ptx::Module& module, std::string_view entry,
                                        const Stream* stream, bool& cached) const {
  if (entry.empty()) entry = only_entry(module);
  if (entry.empty()) {
    throw Error(Stage::Launch, "not-found", "the module has no kernel, or more than one; name one");
  }
  // The key is of the text before passes and gates; their options are in the key's fields.
  ModuleKey key = cache.key_of_text(ptx::print(module), options.module);
  key.passes = base_key.passes;
  const Hash128 name = hash128(entry);
  key.values = {name.high, name.low};
  CachedModule found = cache.find(key);
  cached = static_cast<bool>(found);
  if (cached) return found;
  if (stream != nullptr) refuse_capture(entry, *stream);
  found = cache.get(key, options.module, [&] { return pipeline.from_module(module, entry); });
  stages.set(entry, found);
  return found;
}

void Launcher::State::refuse_capture(std::string_view kernel, const Stream& stream) const {
  if (!stream.capturing()) return;
  Error error(Stage::Launch, "capture-miss",
              "the stream is being captured and the kernel is not loaded yet; loading it now would "
              "invalidate the capture; prepare() the kernel before the capture");
  error.kernel = kernel;
  throw error.refresh();
}

}  // namespace ptxgen::inline v0
