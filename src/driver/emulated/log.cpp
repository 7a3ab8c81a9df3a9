// src/driver/emulated/log.cpp - the emulated driver's log
#include <cstdio>
#include <exception>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/state.hpp"

namespace ptxgen::inline v0::driver {

struct CUlogsCallbackEntry_st {
  CUlogsCallback callback = nullptr;
  void* user = nullptr;
};

namespace emulated {
namespace {

struct Logs {
  /// Recursive: a callback may make a call that logs.
  std::recursive_mutex mutex;
  std::vector<std::unique_ptr<CUlogsCallbackEntry_st>> callbacks;
  std::atomic<bool> to_standard_error{false};
  std::atomic<bool> strict{false};
};

Logs& logs() {
  static Logs* const the_logs = new Logs;
  return *the_logs;
}

}  // namespace

void log_to_standard_error(bool on) noexcept { logs().to_standard_error = on; }

void make_faults_strict(bool on) noexcept { logs().strict = on; }

bool strict_faults() noexcept { return logs().strict; }

void log(CUlogLevel level, const std::string& text) {
  const std::lock_guard lock(logs().mutex);
  if (logs().callbacks.empty()) {
    if (!logs().to_standard_error) return;
    const char* const word = level == CU_LOG_LEVEL_ERROR ? "error" : "warning";
    std::fprintf(stderr, "ptxgen emulated driver: %s: %s\n", word, text.c_str());
    return;
  }
  // Callbacks may come and go meanwhile, by their own doing.
  std::vector<CUlogsCallbackEntry_st> callbacks;
  for (const auto& one : logs().callbacks) callbacks.push_back(*one);
  for (const CUlogsCallbackEntry_st& one : callbacks) {
    std::string message = text;  // theirs to write into
    one.callback(one.user, level, message.data(), message.size());
  }
}

namespace entries {

CUresult logs_register_callback(CUlogsCallback callback_func, void* user_data,
                                CUlogsCallbackHandle* callback_out) {
  return guarded([&] {
    if (callback_func == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(logs().mutex);
    logs().callbacks.push_back(std::make_unique<CUlogsCallbackEntry_st>());
    *logs().callbacks.back() = {callback_func, user_data};
    if (callback_out != nullptr) *callback_out = logs().callbacks.back().get();
    return CUDA_SUCCESS;
  });
}

CUresult logs_unregister_callback(CUlogsCallbackHandle callback) {
  return guarded([&] {
    const std::lock_guard lock(logs().mutex);
    const auto removed =
        std::erase_if(logs().callbacks, [&](const auto& one) { return one.get() == callback; });
    return removed != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace entries
}  // namespace emulated
}  // namespace ptxgen::inline v0::driver
