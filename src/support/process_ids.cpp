// src/support/process_ids.cpp - ids of this process and thread
#include "support/process_ids.hpp"

#if defined(_WIN32)
#include <windows.h>
#else
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <thread>
#endif

namespace ptxgen::inline v0 {

std::uint64_t process_id() noexcept {
#if defined(_WIN32)
  return GetCurrentProcessId();
#else
  return static_cast<std::uint64_t>(getpid());
#endif
}

std::uint64_t thread_id() noexcept {
#if defined(_WIN32)
  return GetCurrentThreadId();
#elif defined(SYS_gettid)
  return static_cast<std::uint64_t>(syscall(SYS_gettid));
#else
  return std::hash<std::thread::id>{}(std::this_thread::get_id()) & 0xffffffffu;
#endif
}

}  // namespace ptxgen::inline v0
