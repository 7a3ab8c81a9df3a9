// src/runtime/device/finding_store.cpp - the findings of a device: kept, logged, handed on, thrown
#include "runtime/device/finding_store.hpp"

#include <utility>

#include "emulator/report/counting.hpp"
#include "support/count.hpp"

namespace ptxgen::inline v0 {

namespace {

/// A program that never clears them must not grow for ever.
constexpr std::size_t kMaxKept = 1000;
constexpr std::size_t kMaxCauses = 10000;
constexpr std::size_t kMaxPending = 20;

LogLevel level_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::Error:
      return LogLevel::Error;
    case Severity::Warning:
      return LogLevel::Warn;
    case Severity::Note:
      return LogLevel::Info;
  }
  return LogLevel::Error;
}

Dim3 dim3_of(const emulator::Dim3& size) noexcept { return {size.x, size.y, size.z}; }

LaunchFinding finding_of(const driver::emulated::LaunchReport& launch,
                         const driver::emulated::ReportedFinding& reported) {
  LaunchFinding result;
  result.launch = launch.number;
  result.kernel = launch.kernel;
  result.grid = dim3_of(launch.grid);
  result.block = dim3_of(launch.block);
  result.finding = reported.found.finding;
  result.statement = reported.statement.text;
  result.block_index = dim3_of(reported.found.block);
  result.thread_index = dim3_of(reported.found.thread);
  result.count = reported.found.count;
  result.fault = reported.fault;
  result.text = reported.text;
  return result;
}

/// Of a statement, by the builder call or else by line and text of the PTX.
std::string place_key(const driver::emulated::FindingStatement& statement) {
  const SourceLocation& cpp = statement.cpp;
  if (cpp.known()) return std::string(cpp.file) + ':' + std::to_string(cpp.line);
  return std::to_string(statement.ptx_line) + ' ' + statement.text;
}

/// What is the same for all launches of a kernel that do the same thing wrong.
std::string cause_of(const driver::emulated::LaunchReport& launch,
                     const driver::emulated::ReportedFinding& finding) {
  return std::string(launch.kernel) + '\n' + finding.found.finding.rule + '\n' +
         finding.found.finding.subject + '\n' + place_key(finding.statement) +
         (finding.found.has_other ? '\n' + place_key(finding.other) : std::string());
}

bool is_power_of_ten(std::uint64_t n) noexcept {
  while (n >= 10 && n % 10 == 0) n /= 10;
  return n == 1;
}

std::string again_text(const LaunchFinding& finding, std::uint64_t launches) {
  std::string text = "again in kernel '" + finding.kernel + "': " + finding.finding.rule;
  if (finding.finding.cpp.known()) {
    text += " at " + std::string(finding.finding.cpp.file) + ":" +
            std::to_string(finding.finding.cpp.line);
  }
  return text + ", in " + std::to_string(launches) + " launches so far";
}

}  // namespace

void FindingStore::failed(const driver::emulated::FailedLaunch& launch) noexcept {
  try {
    failed_->write(launch);
  } catch (...) {
    // No memory for it.
  }
}

void FindingStore::keep(const LaunchFinding& finding) {
  const Severity severity = finding.finding.severity;
  (severity == Severity::Error     ? counts_.errors
   : severity == Severity::Warning ? counts_.warnings
                                   : counts_.notes)++;
  if (kept_.size() < kMaxKept) {
    kept_.push_back(finding);
  } else {
    ++counts_.dropped;
  }
}

FindingStore::Message FindingStore::message_of(const LaunchFinding& finding,
                                               const std::string& cause) {
  const Severity severity = finding.finding.severity;
  if (strict_ && severity == Severity::Error && !finding.fault) {
    if (pending_.size() < kMaxPending) {
      pending_.push_back(finding);
    } else {
      ++pending_more_;
    }
    has_pending_.store(true, std::memory_order_release);
  }
  const LogLevel level = level_of(severity);
  const std::uint64_t launches = count_cause(cause);
  if (launches == 1) return {level, finding.text};
  if (is_power_of_ten(launches)) return {level, again_text(finding, launches)};
  return {LogLevel::Debug, finding.text};
}

std::uint64_t FindingStore::count_cause(const std::string& cause) {
  const bool counted = launches_by_cause_.size() < kMaxCauses || launches_by_cause_.contains(cause);
  return counted ? ++launches_by_cause_[cause] : 1;
}

void FindingStore::log_text(LogLevel level, std::string_view text) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = is_power_of_ten(count_cause(std::string(text)));
  }
  log_.write(first ? level : LogLevel::Debug, text);
}

void FindingStore::ended(const driver::emulated::LaunchReport& launch) noexcept {
  {
    const std::lock_guard lock(mutex_);
    ++totals_.launches;
    totals_.seconds += launch.result.seconds;
    emulator::add_totals(totals_.counters, launch.result.counters);
  }
  trace_.add(launch.kernel, launch.result);
  for (const driver::emulated::FindingEntry& entry : launch.entries) {
    try {
      const auto& example = launch.findings[entry.group.example];
      LaunchFinding finding = finding_of(launch, example);
      finding.text = entry.text;
      Message message;
      {
        const std::lock_guard lock(mutex_);
        message = message_of(finding, cause_of(launch, example));
      }
      log_.write(message.level, message.text);
    } catch (...) {
      // No memory for it.
    }
  }
  for (const driver::emulated::ReportedFinding& reported : launch.findings) {
    try {
      const LaunchFinding finding = finding_of(launch, reported);
      std::shared_ptr<const Sink> sink;
      {
        const std::lock_guard lock(mutex_);
        keep(finding);
        sink = sink_;
      }
      if (sink != nullptr) sink->sink.found(sink->sink.user, finding);
    } catch (...) {
      // No memory for it, or the sink threw.
    }
  }
}

std::vector<LaunchFinding> FindingStore::select(
    const std::function<bool(const LaunchFinding&)>& wanted) const {
  std::vector<LaunchFinding> found;
  const std::lock_guard lock(mutex_);
  for (const LaunchFinding& finding : kept_) {
    if (wanted(finding)) found.push_back(finding);
  }
  return found;
}

FindingCounts FindingStore::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void FindingStore::clear() {
  const std::lock_guard lock(mutex_);
  kept_.clear();
  counts_ = {};
  launches_by_cause_.clear();
  pending_.clear();
  pending_more_ = 0;
  has_pending_.store(false, std::memory_order_release);
}

LaunchTotals FindingStore::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

void FindingStore::clear_totals() {
  const std::lock_guard lock(mutex_);
  totals_ = {};
}

void FindingStore::set_sink(FindingSink sink) {
  std::shared_ptr<const Sink> next;
  if (sink.found != nullptr) {
    next = std::make_shared<const Sink>(sink);
  } else if (sink.release != nullptr) {
    sink.release(sink.user);
  }
  const std::lock_guard lock(mutex_);
  sink_.swap(next);  // the old one goes with `next`, after the lock
}

void FindingStore::throw_pending() const {
  std::vector<LaunchFinding> pending;
  std::uint64_t more = 0;
  {
    const std::lock_guard lock(mutex_);
    pending = std::exchange(pending_, {});
    more = std::exchange(pending_more_, 0);
    has_pending_.store(false, std::memory_order_release);
  }
  if (pending.empty()) return;  // another thread has thrown it
  const LaunchFinding& first = pending.front();
  more += pending.size() - 1;
  std::string message = first.finding.message;
  if (more != 0) message += "; the log has " + count_text(more, "more error");
  message += "; thrown because PTXGEN_STRICT is 1";
  Error error(Stage::Launch, first.finding.rule, std::move(message));
  error.kernel = first.kernel;
  error.site = first.finding.cpp;
  error.file = first.finding.file;
  error.line = first.finding.line;
  error.excerpt = first.statement;
  for (const LaunchFinding& finding : pending) {
    error.log += (error.log.empty() ? "" : "\n") + finding.text;
  }
  throw error.refresh();
}

void describe_fault(Error& error, const driver::emulated::FaultNote& fault) {
  const Finding& finding = fault.finding.found.finding;
  error.kernel = fault.kernel;
  error.site = finding.cpp;
  error.file = finding.file;
  error.line = finding.line;
  error.excerpt = fault.finding.statement.text;
  error.log = fault.finding.text;
}

bool is_on(std::string_view variable, std::string_view value) {
  if (value == "1") return true;
  if (value == "0") return false;
  throw Error(Stage::Device, "bad-setting",
              std::string(variable) + " is '" + std::string(value) + "'; it is 0 or 1");
}

}  // namespace ptxgen::inline v0
