// src/driver/emulated/log.cpp - the emulated driver's log
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <unordered_set>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver {

/// A registered callback, and how many threads are in it.
struct CUlogsCallbackEntry_st {
  const CUlogsCallback callback;
  void* const user;
  int running = 0;  ///< guarded by the log's mutex
};

namespace emulated {
namespace {

using Entry = std::shared_ptr<CUlogsCallbackEntry_st>;

struct Logs {
  std::mutex mutex;
  std::condition_variable left;  ///< a callback has returned
  std::vector<Entry> callbacks;
  std::atomic<bool> to_standard_error{false};
  std::unordered_set<std::string> written;  ///< to standard error
  std::atomic<bool> strict{false};
};

Logs& logs() {
  static Logs* const the_logs = new Logs;
  return *the_logs;
}

/// The callbacks that this thread is running, which may unregister themselves.
thread_local std::vector<const CUlogsCallbackEntry_st*> inside;

/// Calls a callback that is counted as running, without a lock.
void call(const Entry& entry, CUlogLevel level, const std::string& text) {
  std::string message = text;  // theirs to write into
  inside.push_back(entry.get());
  entry->callback(entry->user, level, message.data(), message.size());
  inside.pop_back();
  const std::lock_guard lock(logs().mutex);
  --entry->running;
  logs().left.notify_all();
}

/// A program that repeats a failing call has one cause.
bool is_new(const std::string& text) {
  constexpr std::size_t kRemembered = 1000;
  const std::lock_guard lock(logs().mutex);
  if (logs().written.contains(text)) return false;
  if (logs().written.size() < kRemembered) logs().written.insert(text);
  return true;
}

}  // namespace

void log_to_standard_error(bool on) noexcept { logs().to_standard_error = on; }

void make_faults_strict(bool on) noexcept { logs().strict = on; }

bool strict_faults() noexcept { return logs().strict; }

void log(CUlogLevel level, const std::string& text) {
  // Callbacks may register and unregister callbacks.
  std::vector<Entry> callbacks;
  {
    const std::lock_guard lock(logs().mutex);
    callbacks = logs().callbacks;
    for (const Entry& entry : callbacks) ++entry->running;
  }
  if (callbacks.empty() && logs().to_standard_error && is_new(text)) {
    const char* const word = level == CU_LOG_LEVEL_ERROR ? "error" : "warning";
    std::fprintf(stderr, "ptxgen emulated driver: %s: %s\n", word, text.c_str());
  }
  for (const Entry& entry : callbacks) call(entry, level, text);
}

namespace entries {

CUresult logs_register_callback(CUlogsCallback callback_func, void* user_data,
                                CUlogsCallbackHandle* callback_out) {
  return guarded([&] {
    if (callback_func == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(logs().mutex);
    logs().callbacks.push_back(
        std::make_shared<CUlogsCallbackEntry_st>(CUlogsCallbackEntry_st{callback_func, user_data}));
    if (callback_out != nullptr) *callback_out = logs().callbacks.back().get();
    return CUDA_SUCCESS;
  });
}

CUresult logs_unregister_callback(CUlogsCallbackHandle callback) {
  return guarded([&] {
    std::unique_lock lock(logs().mutex);
    const auto found = std::ranges::find(logs().callbacks, callback, &Entry::get);
    if (found == logs().callbacks.end()) return CUDA_ERROR_INVALID_VALUE;
    const Entry entry = *found;
    logs().callbacks.erase(found);
    // When this returns, no other thread is running it.
    const auto own = std::ranges::count(inside, entry.get());
    logs().left.wait(lock, [&] { return entry->running == own; });
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
