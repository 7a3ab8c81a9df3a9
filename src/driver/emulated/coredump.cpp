// src/driver/emulated/coredump.cpp - settings of core dumps; the state of the process
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>

#include "driver/emulated/entries.hpp"
#include "driver/emulated/state.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::driver::emulated {

/// What was set for one context, or for all.
struct CoredumpScope {
  std::optional<bool> on_exception = std::nullopt;
  std::optional<bool> user_trigger = std::nullopt;
  std::optional<int> flags = std::nullopt;
  std::optional<std::string> file = std::nullopt;
  std::optional<std::string> pipe = std::nullopt;
};

namespace {

constexpr std::size_t kMaxTextBytes = 1024;  ///< with its zero

/// The default names of the manual: PREFIX.cuda.HOSTNAME.PID.
std::string default_name(const char* prefix) {
  char host[256] = "localhost";
  if (gethostname(host, sizeof host - 1) != 0) std::strcpy(host, "localhost");
  return format_text("{}.cuda.{}.{}", prefix, host, getpid());
}

struct Coredumps {
  std::mutex mutex;  ///< of all scopes; taken last
  CoredumpScope of_all{false, false, CU_COREDUMP_DEFAULT_FLAGS, default_name("core"),
                       default_name("corepipe")};
  std::atomic<bool> warned{false};
};

/// Never destroyed, as the other tables of the driver.
Coredumps& coredumps() {
  static Coredumps* const the_coredumps = new Coredumps;
  return *the_coredumps;
}

/// Of a context, or of all if it has none of its own.
template <class Value>
Value in_force(const CoredumpScope* scope, std::optional<Value> CoredumpScope::*which) {
  if (scope != nullptr && (scope->*which)) return *(scope->*which);
  return *(coredumps().of_all.*which);
}

std::size_t bytes_of(CUcoredumpSettings attribute) {
  switch (attribute) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
    case CU_COREDUMP_TRIGGER_HOST:
    case CU_COREDUMP_LIGHTWEIGHT:
    case CU_COREDUMP_ENABLE_USER_TRIGGER:
      return sizeof(bool);
    case CU_COREDUMP_FILE:
    case CU_COREDUMP_PIPE:
      return kMaxTextBytes;
    case CU_COREDUMP_GENERATION_FLAGS:
      return sizeof(int);
  }
  return 0;
}

template <class Value>
CUresult put_setting(void* to, std::size_t bytes, Value value) {
  if (bytes < sizeof value) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(to, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult put_setting(void* to, std::size_t bytes, const std::string& text) {
  if (bytes <= text.size()) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return CUDA_SUCCESS;
}

/// `scope` is null for the settings of all contexts.
CUresult get_setting(const CoredumpScope* scope, CUcoredumpSettings attribute, void* value,
                     std::size_t* size) {
  const std::size_t needed = bytes_of(attribute);
  if (size == nullptr || needed == 0) return CUDA_ERROR_INVALID_VALUE;
  if (value == nullptr) {
    *size = needed;
    return CUDA_SUCCESS;
  }
  const int flags = in_force(scope, &CoredumpScope::flags);
  switch (attribute) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
      return put_setting(value, *size, in_force(scope, &CoredumpScope::on_exception));
    case CU_COREDUMP_ENABLE_USER_TRIGGER:
      return put_setting(value, *size, in_force(scope, &CoredumpScope::user_trigger));
    case CU_COREDUMP_TRIGGER_HOST:
      return put_setting(value, *size, (flags & CU_COREDUMP_SKIP_ABORT) == 0);
    case CU_COREDUMP_LIGHTWEIGHT:
      return put_setting(value, *size,
                         (flags & CU_COREDUMP_LIGHTWEIGHT_FLAGS) == CU_COREDUMP_LIGHTWEIGHT_FLAGS);
    case CU_COREDUMP_GENERATION_FLAGS:
      return put_setting(value, *size, flags);
    case CU_COREDUMP_FILE:
      return put_setting(value, *size, in_force(scope, &CoredumpScope::file));
    case CU_COREDUMP_PIPE:
      return put_setting(value, *size, in_force(scope, &CoredumpScope::pipe));
  }
  return CUDA_ERROR_INVALID_VALUE;
}

/// False if the text has more than 1023 characters.
bool text_of(const void* value, std::size_t bytes, std::optional<std::string>& text) {
  const auto* const begin = static_cast<const char*>(value);
  const std::size_t length = strnlen(begin, std::min(bytes, kMaxTextBytes));
  if (length == kMaxTextBytes) return false;
  text = std::string(begin, length);
  return true;
}

CUresult set_setting(CoredumpScope& scope, CUcoredumpSettings attribute, const void* value,
                     std::size_t bytes) {
  const bool text = attribute == CU_COREDUMP_FILE || attribute == CU_COREDUMP_PIPE;
  if (!text && bytes < bytes_of(attribute)) return CUDA_ERROR_INVALID_VALUE;
  const bool on = !text && *static_cast<const unsigned char*>(value) != 0;
  const int flags = in_force(&scope, &CoredumpScope::flags);
  const auto change = [&](int bits, bool with) {
    scope.flags = with ? flags | bits : flags & ~bits;
  };
  switch (attribute) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
      scope.on_exception = on;
      return CUDA_SUCCESS;
    case CU_COREDUMP_ENABLE_USER_TRIGGER:
      scope.user_trigger = on;
      return CUDA_SUCCESS;
    case CU_COREDUMP_TRIGGER_HOST:
      change(CU_COREDUMP_SKIP_ABORT, !on);
      return CUDA_SUCCESS;
    case CU_COREDUMP_LIGHTWEIGHT:
      change(CU_COREDUMP_LIGHTWEIGHT_FLAGS, on);
      return CUDA_SUCCESS;
    case CU_COREDUMP_GENERATION_FLAGS: {
      int wanted = 0;
      std::memcpy(&wanted, value, sizeof wanted);
      scope.flags = wanted;
      return CUDA_SUCCESS;
    }
    case CU_COREDUMP_FILE:
      return text_of(value, bytes, scope.file) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_COREDUMP_PIPE:
      if (in_force(&scope, &CoredumpScope::user_trigger)) return CUDA_ERROR_NOT_PERMITTED;
      return text_of(value, bytes, scope.pipe) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

/// Says once that nothing is written.
void warn_if_enabled(CUcoredumpSettings attribute, const void* value) {
  const bool enables =
      attribute == CU_COREDUMP_ENABLE_ON_EXCEPTION || attribute == CU_COREDUMP_ENABLE_USER_TRIGGER;
  if (!enables || *static_cast<const unsigned char*>(value) == 0) return;
  if (coredumps().warned.exchange(true)) return;
  log(CU_LOG_LEVEL_WARNING,
      "cuCoredumpSetAttribute: the emulated driver keeps the settings of core dumps and writes "
      "none; findings in the log name line, block and thread of a fault");
}

}  // namespace

namespace entries {

CUresult coredump_get_attribute_global(CUcoredumpSettings attribute, void* value,
                                       std::size_t* size) {
  return guarded([&] {
    const std::lock_guard lock(coredumps().mutex);
    return get_setting(nullptr, attribute, value, size);
  });
}

CUresult coredump_set_attribute_global(CUcoredumpSettings attribute, void* value,
                                       std::size_t* size) {
  return guarded([&]() -> CUresult {
    if (value == nullptr || size == nullptr) {
      return coredump_get_attribute_global(attribute, nullptr, size);
    }
    {
      const std::lock_guard lock(coredumps().mutex);
      const CUresult result = set_setting(coredumps().of_all, attribute, value, *size);
      if (result != CUDA_SUCCESS) return result;
    }
    warn_if_enabled(attribute, value);
    return CUDA_SUCCESS;
  });
}

CUresult coredump_get_attribute(CUcoredumpSettings attribute, void* value, std::size_t* size) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context)) return result;
    const std::lock_guard lock(coredumps().mutex);
    return get_setting(context->coredump.get(), attribute, value, size);
  });
}

CUresult coredump_set_attribute(CUcoredumpSettings attribute, void* value, std::size_t* size) {
  return guarded([&]() -> CUresult {
    std::shared_ptr<CUctx_st> context;
    if (const CUresult result = enter(context)) return result;
    if (value == nullptr || size == nullptr) {
      return coredump_get_attribute(attribute, nullptr, size);
    }
    if (attribute == CU_COREDUMP_ENABLE_USER_TRIGGER || attribute == CU_COREDUMP_PIPE) {
      return refuse(CUDA_ERROR_NOT_PERMITTED,
                    "cuCoredumpSetAttribute: the pipe and its trigger are of the process; use "
                    "cuCoredumpSetAttributeGlobal");
    }
    {
      const std::lock_guard lock(coredumps().mutex);
      if (!context->coredump) context->coredump = std::make_shared<CoredumpScope>();
      const CUresult result = set_setting(*context->coredump, attribute, value, *size);
      if (result != CUDA_SUCCESS) return result;
    }
    warn_if_enabled(attribute, value);
    return CUDA_SUCCESS;
  });
}

/// No process that uses this driver is ever locked. Observers ask without cuInit.
CUresult checkpoint_process_get_state(int pid, CUprocessState* state) {
  return guarded([&] {
    if (state == nullptr || pid <= 0 || kill(pid, 0) != 0) return CUDA_ERROR_INVALID_VALUE;
    *state = CU_PROCESS_STATE_RUNNING;
    return CUDA_SUCCESS;
  });
}

}  // namespace entries
}  // namespace ptxgen::inline v0::driver::emulated
