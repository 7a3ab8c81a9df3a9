// tests/support/log_spdlog_test.cpp - the host's own spdlog logger receives the messages
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>

#include "ptxgen/log_spdlog.hpp"

using namespace ptxgen;

namespace {

class Lines : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::string text;

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    text += std::string(spdlog::level::to_string_view(message.level).data()) + ":" +
            std::string(message.logger_name.data(), message.logger_name.size()) + ":" +
            std::string(message.payload.data(), message.payload.size()) + "|";
  }
  void flush_() override {}
};

}  // namespace

TEST_CASE("messages reach the host's logger with its levels", "[log]") {
  auto lines = std::make_shared<Lines>();
  auto logger = std::make_shared<spdlog::logger>("host", lines);
  logger->set_level(spdlog::level::debug);
  Log log = log_to(logger);
  CHECK(log.level() == LogLevel::Debug);
  log.error("e");
  log.warn("w {}");  // a message is not a format
  log.info("i");
  log.debug("d");
  log.trace("t");
  CHECK(lines->text == "error:host:e|warning:host:w {}|info:host:i|debug:host:d|");

  logger->set_level(spdlog::level::err);
  log.warn("the host's level decides too");
  CHECK(lines->text.size() ==
        std::string("error:host:e|warning:host:w {}|info:host:i|debug:host:d|").size());

  const std::weak_ptr<spdlog::logger> watch = logger;
  logger.reset();
  CHECK_FALSE(watch.expired());
  log = Log();
  CHECK(watch.expired());
}

TEST_CASE("every level of spdlog has one of ours", "[log]") {
  CHECK(from_spdlog(spdlog::level::trace) == LogLevel::Trace);
  CHECK(from_spdlog(spdlog::level::debug) == LogLevel::Debug);
  CHECK(from_spdlog(spdlog::level::info) == LogLevel::Info);
  CHECK(from_spdlog(spdlog::level::warn) == LogLevel::Warn);
  CHECK(from_spdlog(spdlog::level::err) == LogLevel::Error);
  CHECK(from_spdlog(spdlog::level::critical) == LogLevel::Error);
  CHECK(from_spdlog(spdlog::level::off) == LogLevel::Off);
  CHECK(log_to(nullptr).level() == LogLevel::Off);
}

TEST_CASE("the library's own logger is in no registry of the host", "[log]") {
  const Log log(LogLevel::Warn);
  log.warn("one line on standard error, on purpose");
  int loggers = 0;
  bool ours = false;
  spdlog::apply_all([&](const std::shared_ptr<spdlog::logger>& logger) {
    ++loggers;
    ours = ours || logger->name() == "ptxgen";
  });
  CHECK(loggers > 0);  // the host's default logger
  CHECK_FALSE(ours);
}
