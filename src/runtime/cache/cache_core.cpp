// src/runtime/cache/cache_core.cpp - the module cache without a device
#include "runtime/cache/cache_core.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "ptxgen/driver/api.hpp"
#include "support/format.hpp"
#include "support/hash.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kMachineCode = "machine code\n";
constexpr std::string_view kText = "ptx\n";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string titled(const Generator& generator) {
  if (generator.name.empty()) return "driver";
  return generator.version.empty() ? generator.name
                                   : format_text("{} {}", generator.name, generator.version);
}

DiskCacheOptions disk_options(const CacheCoreOptions& options) {
  DiskCacheOptions disk = options.disk;
  switch (options.mode) {
    case CacheMode::ReadWrite:
      break;
    case CacheMode::ReadOnly:
      disk.mode = DiskMode::ReadOnly;
      break;
    case CacheMode::MemoryOnly:
    case CacheMode::Off:
      disk.mode = DiskMode::Off;
      break;
  }
  return disk;
}

}  // namespace

bool is_image_fault(const Error& error) noexcept {
  switch (error.driver_status) {
    case driver::CUDA_ERROR_INVALID_IMAGE:
    case driver::CUDA_ERROR_NO_BINARY_FOR_GPU:
    case driver::CUDA_ERROR_INVALID_PTX:
    case driver::CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case driver::CUDA_ERROR_INVALID_SOURCE:
    case driver::CUDA_ERROR_NOT_FOUND:  // the kernel is not in it
      return true;
    default:
      return false;
  }
}

unsigned assembler_level(std::uint32_t optimization) noexcept {
  return std::min<unsigned>(optimization, 3);
}

CacheCore::CacheCore(CacheCoreOptions options, std::shared_ptr<CacheBackend> backend,
                     std::shared_ptr<FileSystem> files)
    : options_(std::move(options)),
      backend_(std::move(backend)),
      disk_(disk_options(options_), std::move(files)),
      store_(options_.max_modules, [keep = backend_] { return keep->may_unload(); }) {}

CachedModule CacheCore::find(const HashedKey& key) noexcept {
  return CachedModule(store_.find(key));
}

CachedModule CacheCore::get(const ModuleKey& key, const ModuleOptions& options, KernelMaker maker) {
  Publication publication;
  CachedModule module;
  if (options.cold || options_.mode == CacheMode::Off) {
    ++bypasses_;
    module = CachedModule(store_.adopt(make(options, maker, publication)));
  } else {
    module = CachedModule(store_.get(key, [&] { return make(options, maker, publication); }));
  }
  // Only the thread that compiled publishes the image, so only it waits for the disk.
  if (!publication.key.empty()) {
    disk_.store(publication.key, bytes_of(publication.metadata), publication.image);
  }
  return module;
}

std::vector<std::byte> CacheCore::disk_key(const KernelText& text, const ModuleOptions& options,
                                           const Generator& generator) {
  const std::string target = backend_->target(text);
  DiskKey key;
  key.ptx = text.ptx;
  key.target = target;
  key.optimization =
      generator.name.empty() ? options.optimization : assembler_level(options.optimization);
  key.max_registers = options.max_registers;
  key.line_info = options.line_info ? 1 : 0;
  key.generator = generator.name;
  key.generator_version = generator.version;
  return key_bytes(key);
}

CacheCore::Entry CacheCore::make(const ModuleOptions& options, KernelMaker maker,
                                 Publication& publication) {
  KernelText text = maker.make(maker.object);
  auto entry = std::make_unique<CacheEntry>();
  entry->record.stages = std::move(text.stages);
  entry->record.ptx_hash = to_hex(hash128(text.ptx));

  Generator generator;
  if (!images_refused_.load(std::memory_order_relaxed)) generator = backend_->generator(options);
  const bool use_disk = !options.cold && disk_.reads();
  std::vector<std::byte> key;
  if (use_disk) {
    key = disk_key(text, options, generator);
    entry = from_disk(key, text, options, std::move(entry));
    if (entry->payload) {
      entry->record.generator = titled(generator);
      return entry;
    }
  }

  const std::string assembled_by = generator.name;
  std::vector<std::byte> image;
  compile(text, options, generator, entry, image);
  ++compiles_;
  if (entry->record.layer == CacheLayer::DriverHint) ++driver_hints_;
  if (use_disk && disk_.writes()) {
    const bool is_text = image.empty();
    // The text itself is the image: it has a different key.
    if (is_text && !assembled_by.empty()) key = disk_key(text, options, {});
    publication.key = std::move(key);
    publication.metadata = is_text ? kText : kMachineCode;
    const auto ptx = bytes_of(text.ptx);
    publication.image = is_text ? std::vector<std::byte>(ptx.begin(), ptx.end()) : std::move(image);
  }
  return entry;
}

CacheCore::Entry CacheCore::from_disk(const std::vector<std::byte>& key, const KernelText& text,
                                      const ModuleOptions& options, Entry entry) {
  LoadRecord& record = entry->record;
  DiskEntry found;
  {
    const Span span(options_.trace, "disk", "cache", &record.stages);
    found = disk_.load(key);
  }
  if (!found) return entry;
  try {
    const Span span({}, "load", "cache", &record.stages);  // the module has its own span
    const std::string_view kind(reinterpret_cast<const char*>(found.metadata.data()),
                                found.metadata.size());
    if (kind == kMachineCode) {
      entry->payload = backend_->load_image(found.image, text);
    } else if (kind == kText && std::ranges::equal(found.image, bytes_of(text.ptx))) {
      entry->payload = backend_->load_text(text, options).payload;
    } else {
      disk_.drop(key, "its kind of image is missing");
      return entry;
    }
  } catch (const Error& error) {
    if (!is_image_fault(error)) throw;
    disk_.drop(key, "the driver rejects its image");
    return entry;
  }
  record.image_bytes = found.image.size();
  record.layer = found.layer == DiskLayer::LowerFolder ? CacheLayer::LowerFolder : CacheLayer::Disk;
  ++disk_hits_;
  if (record.layer == CacheLayer::LowerFolder) ++lower_hits_;
  return entry;
}

void CacheCore::compile(const KernelText& text, const ModuleOptions& options,
                        const Generator& generator, Entry& entry, std::vector<std::byte>& image) {
  LoadRecord& record = entry->record;
  std::optional<Error> first;
  if (!generator.name.empty()) {
    try {
      {
        const Span span(options_.trace, "assemble", "cache", &record.stages);
        image = backend_->assemble(text, options);
      }
      const Span span({}, "load", "cache", &record.stages);
      entry->payload = backend_->load_image(image, text);
      images_taken_ = true;
      record.generator = titled(generator);
      record.image_bytes = image.size();
      return;
    } catch (const Error& error) {
      // The driver may support a target that the assembler does not, and may reject the image of a
      // newer assembler. It decides about the text.
      if (error.stage != Stage::Assemble && !is_image_fault(error)) throw;
      // One image of the wrong kind does not prove that the device accepts none.
      if (error.stage != Stage::Assemble && !images_taken_ &&
          (error.driver_status == driver::CUDA_ERROR_NO_BINARY_FOR_GPU ||
           error.driver_status == driver::CUDA_ERROR_INVALID_IMAGE)) {
        images_refused_ = true;
      }
      image.clear();
      first = error;
    }
  }
  try {
    const Span span({}, "load", "cache", &record.stages);
    CacheBackend::LoadedText loaded = backend_->load_text(text, options);
    entry->payload = std::move(loaded.payload);
    if (loaded.driver_hint) record.layer = CacheLayer::DriverHint;
  } catch (Error& error) {
    if (first) error.causes.push_back(std::move(*first));
    throw error.refresh();
  }
  record.generator = titled({});
  record.image_bytes = text.ptx.size();
}

void CacheCore::prepare(std::span<const ModuleCache::Request> requests,
                        const ModuleOptions& options, PrepareProgress progress) {
  std::vector<std::exception_ptr> failures(requests.size());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;  // guards `done`, and lets one thread report at a time
  std::size_t done = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < requests.size(); i = next++) {
      try {
        (void)get(requests[i].key, options, requests[i].maker);
      } catch (...) {
        failures[i] = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      ++done;
      try {
        if (progress.report != nullptr) progress.report(progress.user, done, requests.size());
      } catch (...) {
        if (!failures[i]) failures[i] = std::current_exception();
      }
    }
  };
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t wanted = options_.threads != 0 ? options_.threads : processors;
  std::vector<std::thread> threads;
  try {
    for (std::size_t i = 1; i < std::min(wanted, requests.size()); ++i) threads.emplace_back(work);
  } catch (const std::exception&) {
    // Fewer threads then; this one does the rest.
  }
  work();
  for (std::thread& thread : threads) thread.join();
  const StoreStatistics seen = store_.statistics();
  compiles_before_ = compiles_.load();
  misses_before_ = seen.misses + bypasses_;
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

CacheStatistics CacheCore::statistics() {
  const StoreStatistics store = store_.statistics();
  const DiskStatistics disk = disk_.statistics();
  CacheStatistics result;
  result.hits = store.hits;
  result.misses = store.misses + bypasses_;
  result.waits = store.waits;
  result.compiles = compiles_;
  result.disk_hits = disk_hits_;
  result.lower_hits = lower_hits_;
  result.driver_hints = driver_hints_;
  result.failures = store.failures;
  result.evictions = store.evictions;
  result.deferred_unloads = store.deferred_unloads;
  result.disk_stores = disk.stores;
  result.disk_bad_entries = disk.bad_entries;
  result.disk_evictions = disk.evictions;
  result.disk_failures = disk.failures;
  result.modules = store.modules;
  result.compiles_since_prepare = result.compiles - compiles_before_;
  result.misses_since_prepare = result.misses - misses_before_;
  return result;
}

const LoadedPayload* CacheCore::payload(const CachedModule& module) noexcept {
  return module.entry_ == nullptr ? nullptr : module.entry_->payload.get();
}

CachedModule::CachedModule(CacheEntry* entry) noexcept
    : entry_(entry), function_(entry == nullptr ? nullptr : entry->payload->function()) {}

CachedModule::CachedModule(const CachedModule& other) noexcept
    : entry_(other.entry_), function_(other.function_) {
  if (entry_ != nullptr) retain(entry_);
}

void CachedModule::release() noexcept { ptxgen::release(entry_); }

const LoadRecord& CachedModule::record() const noexcept { return entry_->record; }

}  // namespace ptxgen::inline v0
