// src/runtime/launch/tuned_plans.cpp - measured GEMV plans in files
#include "runtime/launch/tuned_plans.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

#include "ptxgen/support/error.hpp"
#include "ptxgen/version.hpp"
#include "runtime/launch/tuned_json.hpp"
#include "support/format.hpp"
#include "support/process_ids.hpp"

namespace ptxgen::inline v0 {

namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;

std::string path_in(const std::string& folder, const std::string& name) {
  return folder.ends_with('/') ? folder + name : format_text("{}/{}", folder, name);
}

// 0 or an error code; a missing file reads as empty.
int read_all(FileSystem& files, const std::string& path, std::string& content) {
  content.clear();
  FileSystem::Handle handle{};
  if (const int status = files.open(path, handle)) return status == ENOENT ? 0 : status;
  FileInfo info;
  int status = files.info(handle, info);
  if (status == 0 && (!info.regular || info.bytes > kMaxBytes)) status = EFBIG;
  while (status == 0) {
    std::array<std::byte, 1 << 16> piece;
    std::size_t got = 0;
    status = files.read(handle, piece, got);
    if (status != 0 || got == 0) break;
    content.append(reinterpret_cast<const char*>(piece.data()), got);
    if (content.size() > kMaxBytes) status = EFBIG;
  }
  static_cast<void>(files.close(handle));
  return status;
}

int write_all(FileSystem& files, FileSystem::Handle handle, std::string_view content) {
  std::span<const std::byte> left = std::as_bytes(std::span(content.data(), content.size()));
  while (!left.empty()) {
    std::size_t written = 0;
    if (const int status = files.write(handle, left, written)) return status;
    left = left.subspan(written);
  }
  return files.sync(handle);
}

[[noreturn]] void throw_io(const char* code, const std::string& path, const std::string& why) {
  throw Error(Stage::Io, code, format_text("cannot write '{}': {}", path, why));
}

// One writer at a time: the process that creates the lock file. A killed writer leaves a stale lock
// file.
class Lock {
 public:
  Lock(FileSystem& files, const std::string& path, int patience)
      : files_(files), path_(path + ".lock") {
    constexpr std::chrono::milliseconds kPause(100);
    for (int i = 0; i < patience; ++i) {
      FileSystem::Handle handle{};
      const int status = files_.create(path_, handle);
      if (status == 0) {
        static_cast<void>(files_.close(handle));
        return;
      }
      if (status != EEXIST) throw_io("write", path_, errno_text(status));
      if (is_stale()) {
        static_cast<void>(files_.remove(path_));
      } else {
        std::this_thread::sleep_for(kPause);
      }
    }
    throw_io("locked", path,
             format_text("another process has locked it; if none is running, remove '{}'", path_));
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() { static_cast<void>(files_.remove(path_)); }

 private:
  [[nodiscard]] bool is_stale() const {
    constexpr std::int64_t kStaleSeconds = 60;
    FileSystem::Handle handle{};
    if (files_.open(path_, handle) != 0) return false;
    FileInfo info;
    const int status = files_.info(handle, info);
    static_cast<void>(files_.close(handle));
    return status == 0 && files_.now_s() - info.modified_s > kStaleSeconds;
  }
  FileSystem& files_;
  std::string path_;
};

}  // namespace

TunedPlace tuned_place(const DeviceInfo& device) {
  return {device.name, device.sm, device.driver_version, std::string(kVersion)};
}

std::string tuned_folder(const Settings& settings) {
  if (settings.tuned == "off") return {};
  if (!settings.tuned.empty()) return settings.tuned;
  const std::string cache = settings.cache_folder();
  return cache.empty() ? cache : path_in(cache, "tuned");
}

std::string tuned_file_name(std::string_view device) {
  std::string name;
  for (const char c : device) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (plain) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (name.ends_with('-')) name.pop_back();
  return (name.empty() ? "device" : name) + ".json";
}

std::string keep_tuned(const std::string& folder, std::span<const TunedRecord> fresh,
                       FileSystem& files, int patience) {
  const std::string path =
      path_in(folder, tuned_file_name(fresh.empty() ? "" : fresh.front().place.device));
  if (const int status = files.make_folders(folder)) throw_io("write", path, errno_text(status));
  const Lock lock(files, path, patience);
  std::string existing;
  if (const int status = read_all(files, path, existing)) {
    throw_io("write", path, "its contents cannot be read: " + errno_text(status));
  }
  std::string merged;
  try {
    merged = merge_tuned(existing, fresh);
  } catch (Error& error) {
    error.message = format_text("'{}' {}", path, error.message);
    throw error.refresh();
  }
  const std::string part = format_text("{}.{}.part", path, process_id());
  static_cast<void>(files.remove(part));
  FileSystem::Handle handle{};
  if (const int status = files.create(part, handle)) throw_io("write", part, errno_text(status));
  int status = write_all(files, handle, merged);
  const int closed = files.close(handle);
  if (status == 0) status = closed;
  if (status == 0) status = files.replace(part, path);
  if (status != 0) {
    static_cast<void>(files.remove(part));
    throw_io("write", path, errno_text(status));
  }
  return path;
}

TunedPlans::TunedPlans(const Device& device, const std::string& folder) {
  if (folder.empty()) return;
  const TunedPlace here = tuned_place(device.info());
  const std::string path = path_in(folder, tuned_file_name(here.device));
  FileSystem files;
  std::string text;
  std::string why;
  if (const int status = read_all(files, path, text)) {
    why = errno_text(status);
  } else if (!text.empty()) {
    records_ = read_tuned(text, why);
  }
  std::erase_if(records_,
                [&](const TunedRecord& record) { return !(record.place == here) || !record.plan; });
  if (!why.empty()) {
    device.log().warn(format_text("measured plans in '{}' are not all used: {}", path, why));
  }
}

std::optional<TunedGemv> TunedPlans::find(const GemvProblem& problem) const {
  for (const TunedRecord& record : records_) {
    if (!(record.problem == problem)) continue;
    char us[32];
    std::snprintf(us, sizeof us, "%.2f", record.median_us);
    return TunedGemv{*record.plan, format_text("tuned on {}, {} us", record.place.device, us)};
  }
  return {};
}

}  // namespace ptxgen::inline v0
