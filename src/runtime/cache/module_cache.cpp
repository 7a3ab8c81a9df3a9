// src/runtime/cache/module_cache.cpp - the module cache of a context
#include "ptxgen/runtime/cache/module_cache.hpp"

#include <unistd.h>

#include <array>
#include <memory>
#include <mutex>
#include <utility>

#include "ptxgen/runtime/assemble/assembler.hpp"
#include "ptxgen/support/error.hpp"
#include "runtime/cache/cache_core.hpp"
#include "runtime/device/core.hpp"
#include "runtime/module/loaded_module.hpp"
#include "support/format.hpp"
#include "support/hash.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::array<std::string_view, 4> kModes = {"on", "read-only", "memory", "off"};

struct CachedKernel : LoadedPayload {
  CachedKernel(Module loaded, std::string_view entry)
      : module(std::move(loaded)), kernel(module.function(entry)) {}
  [[nodiscard]] const Function* function() const noexcept override { return &kernel; }

  Module module;
  Function kernel;
};

class DeviceBackend : public CacheBackend {
 public:
  DeviceBackend(const Context& context, const Settings& settings)
      : context_(context), core_(context.core().shared_from_this()), settings_(settings) {}

  Generator generator(const ModuleOptions&) override {
    // The emulated driver runs PTX and accepts no machine code.
    if (is_emulated(context_.device().info().kind)) return {};
    std::call_once(assembler_once_, [this] {
      assembler_ = std::make_unique<Assembler>(settings_);
      first_tool_ = assembler_->first_tool();
    });
    if (!first_tool_.found) return {};
    return {std::string(to_string(first_tool_.tool)), first_tool_.version};
  }

  std::string target(const KernelText& text) override {
    // A kernel for sm_90a does not run as sm_90; base targets can be raised to the device's.
    const std::string_view own = text.module.target;
    return own.ends_with('a') || own.ends_with('f') ? std::string(own)
                                                    : context_.device().info().target;
  }

  std::vector<std::byte> assemble(const KernelText& text, const ModuleOptions& options) override {
    AssembleOptions how;
    how.target = target(text);
    how.tool = first_tool_.tool;  // only this one: it is in the key
    how.optimization = assembler_level(options.optimization);
    how.max_registers = options.max_registers;
    how.line_info = options.line_info;
    how.file = text.entry;
    return assembler_->assemble(text.ptx, how).cubin;
  }

  std::unique_ptr<LoadedPayload> load_image(std::span<const std::byte> image,
                                            const KernelText& text) override {
    return std::make_unique<CachedKernel>(text.module.functions.empty()
                                              ? Module::load_image(context_, image)
                                              : Module::load_image(context_, image, text.module),
                                          text.entry);
  }

  LoadedText load_text(const KernelText& text, const ModuleOptions& options) override {
    Module module = text.module.functions.empty()
                        ? CheckedModule::load(context_, text.ptx, options, text.entry)
                        : CheckedModule::load(context_, text.module, options);
    // libcuda's JIT logs what it compiled, and nothing after a hit of its own cache.
    const bool hint = context_.device().info().kind == DeviceKind::Cuda && !options.cold &&
                      module.info_log().empty();
    return {std::make_unique<CachedKernel>(std::move(module), text.entry), hint};
  }

  bool may_unload() override { return !core_->capturing(); }

 private:
  const Context& context_;
  const std::shared_ptr<const ContextCore> core_;  // used by references that outlive the context
  const Settings settings_;
  std::once_flag assembler_once_;
  std::unique_ptr<Assembler> assembler_;
  AssemblerFinding first_tool_;
};

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  return name.data();
}

CacheCoreOptions core_options(const ModuleCacheOptions& options, const ContextCore& context) {
  CacheCoreOptions core;
  core.mode = options.mode;
  core.max_modules = options.max_modules;
  core.threads = options.threads;
  core.disk.folder = options.folder;
  if (options.per_host && !core.disk.folder.empty()) core.disk.folder += "/" + host_name();
  core.disk.lower_folder = options.lower_folder;
  core.disk.budget_bytes = options.disk_bytes;
  core.disk.warn = [log = context.log()](std::string_view text) {
    log.write(LogLevel::Warn, text);
  };
  core.trace = context.trace();
  return core;
}

std::uint64_t packed(const ModuleOptions& options) {
  return options.max_registers | (std::uint64_t{options.optimization & 0xff} << 32) |
         (std::uint64_t{options.line_info ? 1U : 0U} << 40);
}

/// Plans may depend on the model and its sizes, not on the ordinal.
std::uint64_t device_class(const DeviceInfo& info) {
  const std::array<std::uint64_t, 5> facts = {hash64(info.name.data(), info.name.size()), info.sm,
                                              info.limits.multiprocessors, info.limits.l2_bytes,
                                              info.limits.shared_per_block_opt_in};
  return hash64(facts.data(), sizeof(facts));
}

}  // namespace

std::string_view to_string(CacheLayer layer) noexcept {
  static constexpr std::array<std::string_view, 4> kNames = {"compiled", "disk", "lower-folder",
                                                             "driver"};
  const auto index = static_cast<std::size_t>(layer);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::string_view to_string(CacheMode mode) noexcept {
  const auto index = static_cast<std::size_t>(mode);
  return index < kModes.size() ? kModes[index] : "unknown";
}

CacheMode cache_mode(std::string_view name) {
  for (std::size_t i = 0; i < kModes.size(); ++i) {
    if (kModes[i] == name) return static_cast<CacheMode>(i);
  }
  throw Error(
      Stage::Cache, "bad-cache-mode",
      format_text("\"{}\" is not a cache mode; set PTXGEN_CACHE to on, read-only, memory or off",
                  name));
}

ModuleCacheOptions ModuleCacheOptions::from(const Settings& settings) {
  ModuleCacheOptions options;
  options.mode = cache_mode(settings.cache);
  options.folder = settings.cache_folder();
  options.lower_folder = settings.cache_lower_dir;
  return options;
}

struct ModuleCache::State {
  State(const Context& of, ModuleCacheOptions options, const Settings& settings)
      : target(of.device().target()),
        device(device_class(of.device().info())),
        core(core_options(options, of.core()), std::make_shared<DeviceBackend>(of, settings)) {}

  const ptx::Target target;
  const std::uint64_t device;
  CacheCore core;
};

ModuleCache::ModuleCache(const Context& context, const ModuleCacheOptions& options,
                         const Settings& settings)
    : state_(Hidden<State>::make(context, options, settings)) {}
ModuleCache::ModuleCache(const Context& context, const Settings& settings)
    : ModuleCache(context, ModuleCacheOptions::from(settings), settings) {}
ModuleCache::ModuleCache(ModuleCache&&) noexcept = default;
ModuleCache& ModuleCache::operator=(ModuleCache&&) noexcept = default;
ModuleCache::~ModuleCache() = default;

ModuleKey ModuleCache::key(std::string_view kernel, const ModuleOptions& options) const {
  ModuleKey key;
  const Hash128 name = hash128(kernel);
  key.kernel = {name.high, name.low};
  key.target =
      std::uint64_t{state_->target.sm} | (static_cast<std::uint64_t>(state_->target.variant) << 32);
  key.options = packed(options);
  key.device = state_->device;
  return key;
}

ModuleKey ModuleCache::key_of_text(std::string_view ptx, const ModuleOptions& options) const {
  ModuleKey result = key({}, options);
  const Hash128 text = hash128(ptx);
  result.kernel = {text.high, text.low};
  // Distinguishes hashes of texts from hashes of names.
  result.plan = ~std::uint64_t{0};
  return result;
}

CachedModule ModuleCache::find(const HashedKey& key) const noexcept {
  return state_->core.find(key);
}

CachedModule ModuleCache::get(const ModuleKey& key, const ModuleOptions& options,
                              KernelMaker maker) {
  return state_->core.get(key, options, maker);
}

void ModuleCache::prepare(std::span<const Request> requests, const ModuleOptions& options,
                          PrepareProgress progress) {
  state_->core.prepare(requests, options, progress);
}

CacheStatistics ModuleCache::statistics() const { return state_->core.statistics(); }

void ModuleCache::clear() { state_->core.clear(); }

const std::string& ModuleCache::folder() const noexcept {
  return state_->core.disk().options().folder;
}

}  // namespace ptxgen::inline v0
