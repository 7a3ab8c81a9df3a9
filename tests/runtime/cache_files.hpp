// tests/runtime/cache_files.hpp - what the tests of the cache share
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cache/disk_cache.hpp"
#include "support/file_system.hpp"

namespace ptxgen::test {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The system's files, with a hook before each call: what it returns, if not 0, is what the call
/// gives instead. `now_offset_s` moves the clock.
class HookedFiles : public FileSystem {
 public:
  std::function<int(std::string_view call)> before;
  std::int64_t now_offset_s = 0;
  std::map<std::string, int, std::less<>> calls;

  int open(const std::string& path, Handle& handle) override {
    const int status = hook("open");
    return status != 0 ? status : FileSystem::open(path, handle);
  }
  int info(Handle handle, FileInfo& info) override {
    const int status = hook("info");
    return status != 0 ? status : FileSystem::info(handle, info);
  }
  int read(Handle handle, std::span<std::byte> to, std::size_t& got) override {
    const int status = hook("read");
    return status != 0 ? status : FileSystem::read(handle, to.first(limit(to.size())), got);
  }
  int create(const std::string& path, Handle& handle) override {
    const int status = hook("create");
    return status != 0 ? status : FileSystem::create(path, handle);
  }
  int write(Handle handle, std::span<const std::byte> from, std::size_t& written) override {
    const int status = hook("write");
    return status != 0 ? status
                       : FileSystem::write(handle, from.first(limit(from.size())), written);
  }
  int sync(Handle handle) override {
    const int status = hook("sync");
    return status != 0 ? status : FileSystem::sync(handle);
  }
  int close(Handle handle) override {
    const int status = hook("close");
    const int closed = FileSystem::close(handle);
    return status != 0 ? status : closed;
  }
  int replace(const std::string& from, const std::string& to) override {
    const int status = hook("replace");
    return status != 0 ? status : FileSystem::replace(from, to);
  }
  int remove(const std::string& path) override {
    const int status = hook("remove");
    return status != 0 ? status : FileSystem::remove(path);
  }
  int make_folders(const std::string& path) override {
    const int status = hook("make_folders");
    return status != 0 ? status : FileSystem::make_folders(path);
  }
  int list(const std::string& folder, std::vector<FileInfo>& files) override {
    const int status = hook("list");
    return status != 0 ? status : FileSystem::list(folder, files);
  }
  int touch(const std::string& path) override {
    const int status = hook("touch");
    return status != 0 ? status : FileSystem::touch(path);
  }
  std::int64_t now_s() override { return FileSystem::now_s() + now_offset_s; }

  std::size_t max_at_once = std::size_t{1} << 30;  ///< bytes that one read or write moves

 private:
  int hook(std::string_view call) {
    ++calls[std::string(call)];
    return before ? before(call) : 0;
  }
  [[nodiscard]] std::size_t limit(std::size_t bytes) const { return std::min(bytes, max_at_once); }
};

/// A disk cache whose warnings are kept.
struct WatchedCache {
  std::shared_ptr<std::vector<std::string>> warnings = std::make_shared<std::vector<std::string>>();
  std::shared_ptr<HookedFiles> files = std::make_shared<HookedFiles>();
  std::unique_ptr<DiskCache> cache;

  explicit WatchedCache(DiskCacheOptions options) {
    options.warn = [kept = warnings](std::string_view text) { kept->emplace_back(text); };
    options.sync = false;  // nothing loses power here
    cache = std::make_unique<DiskCache>(std::move(options), files);
  }
  DiskCache* operator->() const { return cache.get(); }

  bool store(std::string_view key, std::string_view image) const {
    return cache->store(bytes_of(key), bytes_of("about " + std::string(key)), bytes_of(image));
  }
  /// The image, or "-".
  [[nodiscard]] std::string load(std::string_view key) const {
    const DiskEntry entry = cache->load(bytes_of(key));
    if (!entry) return "-";
    const bool right = text_of(entry.metadata) == "about " + std::string(key);
    return right ? text_of(entry.image) : "wrong metadata";
  }
};

inline DiskCacheOptions in_folder(const std::string& folder) {
  DiskCacheOptions options;
  options.folder = folder;
  return options;
}

/// The file of an entry.
inline std::string path_of(const std::string& folder, std::string_view key) {
  return folder + "/" + DiskCache::file_name(bytes_of(key));
}

/// The exit status of `work` in a process of its own, or 1000 + the signal that ended it.
inline int in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace ptxgen::test
