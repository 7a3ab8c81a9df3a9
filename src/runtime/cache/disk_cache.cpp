// src/runtime/cache/disk_cache.cpp - compiled kernels kept in a folder
#include "runtime/cache/disk_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <random>
#include <tuple>
#include <utility>

#include "support/format.hpp"
#include "support/hash.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::string_view kEntryEnd = ".ptxgen";
constexpr std::string_view kTemporaryEnd = ".tmp";
constexpr std::int64_t kDayS = 24 * 60 * 60;
constexpr std::size_t kHashDigits = 32;
constexpr std::size_t kTemporaryDigits = 16;

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_entry_name(std::string_view name) {
  return name.size() == kHashDigits + kEntryEnd.size() && name.ends_with(kEntryEnd) &&
         is_hex(name.substr(0, kHashDigits));
}

// HASH.RANDOM.tmp
bool is_temporary_name(std::string_view name) {
  return name.size() == kHashDigits + 1 + kTemporaryDigits + kTemporaryEnd.size() &&
         name.ends_with(kTemporaryEnd) && name[kHashDigits] == '.' &&
         is_hex(name.substr(0, kHashDigits)) &&
         is_hex(name.substr(kHashDigits + 1, kTemporaryDigits));
}

std::string path_in(const std::string& folder, const std::string& name) {
  return folder.ends_with('/') ? folder + name : format_text("{}/{}", folder, name);
}

// A permanent error: retrying for each kernel would only cost time.
bool lasts(int status) {
  return status == EROFS || status == EACCES || status == EPERM || status == ENOTDIR ||
         status == ENAMETOOLONG || status == ELOOP;
}

}  // namespace

DiskCache::DiskCache(DiskCacheOptions options, std::shared_ptr<FileSystem> files)
    : options_(std::move(options)),
      files_(files ? std::move(files) : std::make_shared<FileSystem>()) {}

bool DiskCache::reads() const noexcept {
  return options_.mode != DiskMode::Off &&
         !(options_.folder.empty() && options_.lower_folder.empty());
}

bool DiskCache::writes() const noexcept {
  return options_.mode == DiskMode::ReadWrite && !options_.folder.empty() &&
         writable_.load(std::memory_order_relaxed);
}

std::string DiskCache::file_name(std::span<const std::byte> key) {
  return to_hex(hash128(key)).append(kEntryEnd);
}

const std::string& DiskCache::folder_of(DiskLayer layer) const noexcept {
  return layer == DiskLayer::LowerFolder ? options_.lower_folder : options_.folder;
}

DiskEntry DiskCache::load(std::span<const std::byte> key) noexcept {
  if (!reads()) return {};
  try {
    const std::string name = file_name(key);
    for (const DiskLayer layer : {DiskLayer::Folder, DiskLayer::LowerFolder}) {
      if (folder_of(layer).empty()) continue;
      DiskEntry entry = load_from(layer, name, key);
      if (!entry) continue;
      ++counters_.hits;
      if (layer == DiskLayer::LowerFolder) ++counters_.lower_hits;
      return entry;
    }
  } catch (const std::exception&) {  // no memory for the entry: the kernel may still run
    ++counters_.failures;
  }
  ++counters_.misses;
  return {};
}

DiskEntry DiskCache::load_from(DiskLayer layer, const std::string& name,
                               std::span<const std::byte> key) {
  const std::string path = path_in(folder_of(layer), name);
  if (is_condemned(path)) return {};
  DiskEntry entry;
  FileInfo info;
  if (const int status = read_all(path, entry.file, info); status != 0) {
    if (status == ENOENT) return {};
    ++counters_.failures;
    // On a network file system an entry that another machine replaces meanwhile is stale.
    if (status != ESTALE) report(folder_of(layer), "read", status);
    return {};
  }
  const EntryContent content = decode_entry(entry.file, key);
  if (content.state == EntryState::Bad) condemn(layer, name, content.why);
  if (content.state != EntryState::Good) return {};

  // The time of the file is its last use, to the day: more would wear the disk. A time in the
  // future comes from a clock that was wrong and is put right as well.
  if (layer == DiskLayer::Folder && writes()) {
    const std::int64_t age_s = files_->now_s() - info.modified_s;
    if ((age_s > kDayS || age_s < -kDayS) && files_->touch(path) != 0) ++counters_.failures;
  }
  entry.layer = layer;
  entry.metadata = content.metadata;
  entry.image = content.image;
  return entry;
}

int DiskCache::read_all(const std::string& path, std::vector<std::byte>& content, FileInfo& info) {
  FileSystem::Handle handle = 0;
  if (const int status = files_->open(path, handle); status != 0) return status;
  struct Closer {
    FileSystem& files;
    FileSystem::Handle handle;
    ~Closer() { files.close(handle); }  // nothing was written, so nothing can be lost
  } closer{*files_, handle};
  if (const int status = files_->info(handle, info); status != 0) return status;
  if (!info.regular) return EINVAL;
  content.resize(static_cast<std::size_t>(info.bytes));
  std::size_t have = 0;
  while (have < content.size()) {
    std::size_t got = 0;
    const int status = files_->read(handle, std::span(content).subspan(have), got);
    if (status != 0) return status;
    if (got == 0) break;
    have += got;
  }
  content.resize(have);  // shorter than it said: decode_entry says that it is damaged
  return 0;
}

bool DiskCache::store(std::span<const std::byte> key, std::span<const std::byte> metadata,
                      std::span<const std::byte> image) noexcept {
  if (!writes()) return false;
  try {
    const std::vector<std::byte> content = encode_entry(key, metadata, image);
    if (content.size() > options_.budget_bytes) return false;
    const std::string name = file_name(key);
    if (!store_file(name, content)) return false;
    ++counters_.stores;
    {
      const std::lock_guard lock(memory_mutex_);
      condemned_.erase(path_in(options_.folder, name));
    }
    keep_within_budget(name, content.size());
    return true;
  } catch (const std::exception&) {
    ++counters_.failures;
    return false;
  }
}

bool DiskCache::store_file(const std::string& name, std::span<const std::byte> content) {
  std::string temporary;
  FileSystem::Handle handle = 0;
  int status = create_temporary(name, temporary, handle);
  if (status == 0) {
    status = write_all(handle, content);
    if (status == 0 && options_.sync) status = files_->sync(handle);
    const int closed = files_->close(handle);
    if (status == 0) status = closed;
    if (status == 0) status = files_->replace(temporary, path_in(options_.folder, name));
    if (status == 0) return true;
    // Our own file, so it is safe to remove; a failure here is cleaned up later.
    if (files_->remove(temporary) != 0) ++counters_.failures;
  }
  ++counters_.failures;
  if (lasts(status)) writable_.store(false, std::memory_order_relaxed);
  report(options_.folder, "written", status);
  return false;
}

int DiskCache::create_temporary(const std::string& name, std::string& path,
                                FileSystem::Handle& handle) {
  int status = 0;
  std::random_device random;
  for (unsigned attempt = 0; attempt < 8; ++attempt) {
    // The counter makes names of threads distinct even if random_device has little entropy.
    const std::uint64_t unique =
        ((std::uint64_t{random()} << 32) | random()) ^ next_temporary_.fetch_add(1);
    path = path_in(options_.folder, format_text("{}.{}", name.substr(0, kHashDigits),
                                                to_hex({unique, 0}).substr(0, kTemporaryDigits)))
               .append(kTemporaryEnd);
    status = files_->create(path, handle);
    if (status == ENOENT) {  // the first store, or the folder was removed
      status = files_->make_folders(options_.folder);
      if (status == 0) status = files_->create(path, handle);
    }
    if (status != EEXIST) return status;
  }
  return status;
}

int DiskCache::write_all(FileSystem::Handle handle, std::span<const std::byte> content) {
  while (!content.empty()) {
    std::size_t written = 0;
    const int status = files_->write(handle, content, written);
    if (status != 0) return status;
    if (written == 0) return ENOSPC;
    content = content.subspan(written);
  }
  return 0;
}

void DiskCache::drop(std::span<const std::byte> key, std::string_view why) noexcept {
  if (!reads()) return;
  try {
    const std::string name = file_name(key);
    for (const DiskLayer layer : {DiskLayer::Folder, DiskLayer::LowerFolder}) {
      if (folder_of(layer).empty()) continue;
      if (load_from(layer, name, key)) return condemn(layer, name, why);
    }
  } catch (const std::exception&) {
    ++counters_.failures;
  }
}

void DiskCache::condemn(DiskLayer layer, const std::string& name, std::string_view why) {
  ++counters_.bad_entries;
  const std::string path = path_in(folder_of(layer), name);
  bool removed = false;
  if (layer == DiskLayer::Folder && writes()) {
    // Another process may have stored a valid entry meanwhile; it is lost and stored again.
    const int status = files_->remove(path);
    removed = status == 0 || status == ENOENT;
    if (!removed) ++counters_.failures;
  }
  if (!removed) {
    const std::lock_guard lock(memory_mutex_);
    condemned_.insert(path);
  }
  warn(format_text("the cached kernel {} is damaged: {}; {}", path, why,
                   removed ? "it is removed and compiled again"
                           : "it is ignored and compiled again; it can be deleted"));
}

bool DiskCache::is_condemned(const std::string& path) {
  const std::lock_guard lock(memory_mutex_);
  return condemned_.contains(path);
}

void DiskCache::keep_within_budget(const std::string& just_stored, std::uint64_t bytes) {
  unaccounted_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  const std::unique_lock lock(budget_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const std::uint64_t fresh = unaccounted_bytes_.exchange(0, std::memory_order_relaxed);
  known_bytes_ += fresh;
  fresh_bytes_ += fresh;
  // Other processes fill the folder too, so check again after part of the budget.
  if (looked_ && known_bytes_ <= options_.budget_bytes &&
      fresh_bytes_ <= options_.budget_bytes / 16) {
    return;
  }
  clear_up(just_stored);
}

void DiskCache::clear_up(const std::string& just_stored) {
  std::vector<FileInfo> files;
  if (files_->list(options_.folder, files) != 0) {
    ++counters_.failures;
    return;  // unknown files are not removed
  }
  looked_ = true;
  fresh_bytes_ = 0;
  const std::int64_t now_s = files_->now_s();
  std::vector<FileInfo> entries;
  known_bytes_ = 0;
  for (FileInfo& file : files) {
    if (!file.regular) continue;
    if (is_entry_name(file.name)) {
      known_bytes_ += file.bytes;
      if (file.name != just_stored) entries.push_back(std::move(file));
    } else if (is_temporary_name(file.name) && now_s - file.modified_s > options_.stale_after_s) {
      const bool removed = files_->remove(path_in(options_.folder, file.name)) == 0;
      ++(removed ? counters_.stale_files : counters_.failures);
    }
  }
  if (known_bytes_ <= options_.budget_bytes) return;
  // A tenth below the budget; otherwise the next store would scan the folder again.
  const std::uint64_t goal = options_.budget_bytes - options_.budget_bytes / 10;
  std::sort(entries.begin(), entries.end(), [](const FileInfo& a, const FileInfo& b) {
    return std::tie(a.modified_s, a.name) < std::tie(b.modified_s, b.name);
  });
  for (const FileInfo& entry : entries) {
    if (known_bytes_ <= goal) return;
    const int status = files_->remove(path_in(options_.folder, entry.name));
    if (status != 0 && status != ENOENT) {
      ++counters_.failures;
      continue;
    }
    known_bytes_ -= std::min(known_bytes_, entry.bytes);
    if (status == 0) ++counters_.evictions;
  }
}

void DiskCache::report(const std::string& folder, const char* verb, int status) {
  {
    const std::lock_guard lock(memory_mutex_);
    if (!reported_.emplace(folder, status).second) return;
  }
  warn(
      format_text("the cache folder {} cannot be {}: {}; kernels are compiled again where needed; "
                  "set PTXGEN_CACHE_DIR to another folder",
                  folder, verb, errno_text(status)));
}

void DiskCache::warn(const std::string& text) noexcept {
  if (!options_.warn) return;
  try {
    options_.warn(text);
  } catch (...) {  // an exception of the listener does not affect the kernel
  }
}

DiskStatistics DiskCache::statistics() const noexcept {
  DiskStatistics result;
  result.hits = counters_.hits;
  result.lower_hits = counters_.lower_hits;
  result.misses = counters_.misses;
  result.stores = counters_.stores;
  result.bad_entries = counters_.bad_entries;
  result.evictions = counters_.evictions;
  result.stale_files = counters_.stale_files;
  result.failures = counters_.failures;
  return result;
}

}  // namespace ptxgen::inline v0
