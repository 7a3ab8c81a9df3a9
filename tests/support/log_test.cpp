// tests/support/log_test.cpp - levels, receivers, handles, what is not formatted
#include "ptxgen/support/log.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ptxgen/support/observe.hpp"
#include "support/log_format.hpp"
#include "support/pending_log.hpp"

using namespace ptxgen;

namespace {

constexpr LogLevel kLevels[] = {LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug,
                                LogLevel::Trace};

/// Keeps what it is told.
struct Receiver {
  std::mutex mutex;
  std::vector<std::pair<LogLevel, std::string>> messages;
  int released = 0;

  LogSink sink() {
    return {[](void* user, LogLevel level, std::string_view message) {
              auto& self = *static_cast<Receiver*>(user);
              const std::lock_guard lock(self.mutex);
              self.messages.emplace_back(level, message);
            },
            this, [](void* user) noexcept { ++static_cast<Receiver*>(user)->released; }};
  }
  std::string text() const {
    std::string all;
    for (const auto& [level, message] : messages) {
      all += std::string(to_string(level)) + ":" + message + "|";
    }
    return all;
  }
};

/// Back to the default of the process, whatever a test did.
struct DefaultGuard {
  ~DefaultGuard() { reset_default_log(); }
};

}  // namespace

TEST_CASE("a log of each level takes that level and what is more urgent", "[log]") {
  for (const LogLevel level : kLevels) {
    Receiver receiver;
    const Log log(level, receiver.sink());
    CHECK(log.level() == level);
    CHECK_FALSE(log.enabled(LogLevel::Off));
    log.error("e");
    log.warn("w");
    log.info("i");
    log.debug("d");
    log.trace("t");
    const std::string every = "error:e|warn:w|info:i|debug:d|trace:t|";
    std::string expected;
    std::size_t end = 0;
    for (int i = 0; i < static_cast<int>(level); ++i) end = every.find('|', end) + 1;
    expected = every.substr(0, end);
    CHECK(receiver.text() == expected);
  }
}

TEST_CASE("names of levels go both ways and nothing else is a level", "[log]") {
  for (int i = 0; i <= 5; ++i) {
    LogLevel level = LogLevel::Off;
    CHECK(parse_log_level(to_string(static_cast<LogLevel>(i)), level));
    CHECK(static_cast<int>(level) == i);
  }
  LogLevel level = LogLevel::Info;
  for (const char* name : {"", "Warn", "warning", "errors", "2"}) {
    CHECK_FALSE(parse_log_level(name, level));
  }
  CHECK(level == LogLevel::Info);
  CHECK(to_string(static_cast<LogLevel>(77)) == "unknown");
}

TEST_CASE("a text that costs something is made only where its level is on", "[log]") {
  Receiver receiver;
  const Log log(LogLevel::Info, receiver.sink());
  int result = 0;
  const auto make = [&result] { return "made " + std::to_string(++result); };
  log.debug(make);
  CHECK(result == 0);
  log.info(make);
  CHECK(result == 1);
  log_line(log, LogLevel::Debug, "{}", "nothing");
  log_line(log, LogLevel::Warn, "{} of {:.1f} us", 3, 2.25);
  CHECK(receiver.text() == "info:made 1|warn:3 of 2.2 us|");
}

TEST_CASE("a log without receiver or level tells nothing", "[log]") {
  const Log none;
  CHECK(none.level() == LogLevel::Off);
  none.error("lost");
  Receiver receiver;
  {
    LogSink sink = receiver.sink();
    sink.write = nullptr;
    const Log no_write(LogLevel::Trace, sink);
    CHECK(no_write.level() == LogLevel::Off);
    no_write.error("lost");
    const Log off(LogLevel::Off, receiver.sink());
    off.error("lost");
  }
  CHECK(receiver.messages.empty());
  CHECK(receiver.released == 2);
}

TEST_CASE("copies share the receiver, the last handle releases it once", "[log]") {
  Receiver receiver;
  Log survivor;
  {
    const Log first(LogLevel::Warn, receiver.sink());
    Log second = first;
    const Log third = std::move(second);
    second = third;  // a moved-from handle can be filled again
    survivor = second;
    third.warn("third");
    CHECK(receiver.released == 0);
  }
  survivor.warn("survivor");
  Log& alias = survivor;
  survivor = alias;
  CHECK(receiver.released == 0);
  survivor = Log();
  CHECK(receiver.released == 1);
  CHECK(receiver.text() == "warn:third|warn:survivor|");
}

TEST_CASE("what a receiver throws stays there", "[log]") {
  LogSink sink;
  int calls = 0;
  sink.user = &calls;
  sink.write = [](void* user, LogLevel, std::string_view) {
    ++*static_cast<int*>(user);
    throw std::runtime_error("no space on the disk");
  };
  const Log log(LogLevel::Info, sink);
  log.info("x");
  CHECK(calls == 1);
}

TEST_CASE("the default log is the host's while there is one", "[log]") {
  const DefaultGuard guard;
  CHECK(default_log(LogLevel::Debug).level() == LogLevel::Debug);
  Receiver receiver;
  set_default_log(Log(LogLevel::Info, receiver.sink()));
  CHECK(default_log(LogLevel::Error).level() == LogLevel::Info);
  default_log().info("for the host");
  CHECK(receiver.text() == "info:for the host|");
  set_default_log(Log());
  CHECK(receiver.released == 1);
  CHECK(default_log(LogLevel::Trace).level() == LogLevel::Off);
  reset_default_log();
  CHECK(default_log(LogLevel::Trace).level() == LogLevel::Trace);
}

TEST_CASE("the settings choose the level, an unknown one is told", "[log]") {
  const DefaultGuard guard;
  Settings settings;
  settings.log = "debug";
  CHECK(open_log(settings).level() == LogLevel::Debug);
  settings.log = "off";
  CHECK(open_log(settings).level() == LogLevel::Off);
  Receiver receiver;
  set_default_log(Log(LogLevel::Warn, receiver.sink()));
  settings.log = "loud";
  CHECK(open_log(settings).level() == LogLevel::Warn);
  CHECK(receiver.text() ==
        "warn:PTXGEN_LOG=loud: no such level, warn is used; the levels are off, error, warn, info, "
        "debug, trace|");
}

TEST_CASE("a receiver may call back into the log and into the default", "[log]") {
  const DefaultGuard guard;
  struct Nested {
    Log inner;
    int calls = 0;
  } nested;
  Receiver receiver;
  nested.inner = Log(LogLevel::Warn, receiver.sink());
  LogSink sink;
  sink.user = &nested;
  sink.write = [](void* user, LogLevel, std::string_view message) {
    auto& self = *static_cast<Nested*>(user);
    if (++self.calls == 1) default_log().warn("again");
    self.inner.warn(std::string(message));
  };
  // The receiver of the old default replaces the default while it is being released.
  sink.release = [](void*) noexcept { reset_default_log(); };
  set_default_log(Log(LogLevel::Warn, sink));
  default_log().warn("first");
  set_default_log(Log());
  CHECK(receiver.text() == "warn:again|warn:first|");
  CHECK(default_log(LogLevel::Error).level() == LogLevel::Error);
}

TEST_CASE("messages collected under a lock are delivered after it", "[log]") {
  std::mutex mutex;
  struct Probe {
    std::mutex* mutex;
    int free = 0;
    std::string text;
  } probe{&mutex, 0, {}};
  LogSink sink;
  sink.user = &probe;
  sink.write = [](void* user, LogLevel level, std::string_view message) {
    auto& self = *static_cast<Probe*>(user);
    // From another thread, as a thread may not try to lock what it holds.
    std::thread([&self] {
      if (self.mutex->try_lock()) {
        ++self.free;
        self.mutex->unlock();
      }
    }).join();
    self.text += std::string(to_string(level)) + ":" + std::string(message) + "|";
  };
  const Log log(LogLevel::Info, sink);
  int result = 0;
  {
    PendingLog pending(log);
    const std::lock_guard lock(mutex);
    pending.add(LogLevel::Warn, [&result] { return "number " + std::to_string(++result); });
    pending.add(LogLevel::Debug, [&result] { return "number " + std::to_string(++result); });
    pending.add(LogLevel::Info, "plain");
    CHECK(probe.text.empty());
  }
  CHECK(result == 1);
  CHECK(probe.text == "warn:number 1|info:plain|");
  CHECK(probe.free == 2);
}

TEST_CASE("handles of one log are used, copied and dropped by many threads", "[log]") {
  const DefaultGuard guard;
  constexpr int kThreads = 8;
  constexpr int kMessages = 200;
  std::atomic<int> received{0};
  LogSink sink;
  sink.user = &received;
  sink.write = [](void* user, LogLevel, std::string_view) {
    static_cast<std::atomic<int>*>(user)->fetch_add(1);
  };
  {
    const Log log(LogLevel::Info, sink);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([own = log, i] {
        for (int n = 0; n < kMessages; ++n) {
          const Log copy = own;
          copy.info("message");
          if (n % 50 == i) set_default_log(copy);
          default_log(LogLevel::Off).debug("not delivered");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(received == kThreads * kMessages);
}
