// tests/runtime/object_support.hpp - errors, logs and PTX for the runtime's tests
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ptxgen/runtime/device/device.hpp"
#include "ptxgen/support/error.hpp"
#include "ptxgen/support/log.hpp"

namespace ptxgen::test {

/// The Error that `work` throws, if it does.
template <class Work>
std::optional<Error> error_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// "code: message", or "no error".
template <class Work>
std::string refusal(const Work& work) {
  const auto error = error_of(work);
  return error ? error->code + ": " + error->message : "no error";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Everything from warnings on that goes to the default log while it lives.
class CaughtLog {
 public:
  CaughtLog() {
    LogSink sink;
    sink.user = this;
    sink.write = [](void* user, LogLevel, std::string_view text) {
      auto& self = *static_cast<CaughtLog*>(user);
      const std::lock_guard lock(self.mutex_);
      self.lines_.emplace_back(text);
    };
    set_default_log(Log(LogLevel::Warn, sink));
  }
  CaughtLog(const CaughtLog&) = delete;
  CaughtLog& operator=(const CaughtLog&) = delete;
  ~CaughtLog() { reset_default_log(); }

  /// What came since the last call.
  [[nodiscard]] std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// A kernel `f` of one u64 parameter whose body is `body`.
inline std::string kernel_text(const std::string& body = "ret;", const std::string& version = "7.8",
                               const std::string& target = "sm_90") {
  return ".version " + version + "\n.target " + target +
         "\n.address_size 64\n\n"
         ".visible .entry f(.param .u64 p)\n"
         "{\n"
         ".reg .b64 %rd<4>;\n"
         ".reg .b32 %r<4>;\n"
         ".reg .f32 %f<12>;\n" +
         body +
         "\n"
         "}\n";
}

}  // namespace ptxgen::test
