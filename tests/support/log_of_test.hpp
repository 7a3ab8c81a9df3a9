// tests/support/log_of_test.hpp - the library's log as text
#pragma once

#include <mutex>
#include <string>

#include "ptxgen/support/log.hpp"

namespace ptxgen::test {

/// While one lives, objects that are made without a log of their own write into it, from level
/// info on.
class LogOfTest {
 public:
  LogOfTest() {
    set_default_log(Log(LogLevel::Info, {[](void* user, LogLevel, std::string_view message) {
                                           auto& self = *static_cast<LogOfTest*>(user);
                                           const std::lock_guard lock(self.mutex_);
                                           self.text_ += std::string(message) + "\n";
                                         },
                                         this, nullptr}));
  }
  LogOfTest(const LogOfTest&) = delete;
  LogOfTest& operator=(const LogOfTest&) = delete;
  ~LogOfTest() { reset_default_log(); }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace ptxgen::test
