// src/emulator/report.hpp - findings of a run: merged, suppressed, put in order
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// The other thread of a race and the like.
struct OtherParty {
  std::uint32_t statement = kNoIndex;
  std::uint64_t cta = 0;     ///< linear
  std::uint32_t thread = 0;  ///< in its block
};

/// What the texts of a finding are, made only when it is new.
struct FindingText {
  std::string message;
  std::vector<std::string> details;
};

/// Collects findings of all workers. Equal ones (rule, statement, other statement) are one finding
/// with a count; the earliest in the launch order is the one that is described.
class Reporter {
 public:
  Reporter(const Image& image, const Options& options, std::string_view kernel);

  /// Whether a rule is watched at all; a suppressed one still is.
  [[nodiscard]] bool watches(Rule rule) const noexcept { return options_.checks.has(rule); }

  /// Reports for one lane. `text` is called if this is the first such finding, or an earlier one
  /// in launch order. Thread-safe. Does nothing if the rule is not watched.
  template <class Text>
  void report(const Context& context, std::uint32_t statement, Rule rule, unsigned lane,
              const OtherParty& other, Text&& text) {
    if (!watches(rule)) return;
    if (RunFinding* slot = open(context, statement, rule, lane, other)) {
      fill(*slot, std::forward<Text>(text)());
      close();
    }
  }
  template <class Text>
  void report(const Context& context, std::uint32_t statement, Rule rule, unsigned lane,
              Text&& text) {
    report(context, statement, rule, lane, OtherParty{}, std::forward<Text>(text));
  }

  /// Stops the launch: no further step is executed. The status becomes Fault.
  void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool stopped() const noexcept { return stopped_.load(std::memory_order_relaxed); }

  /// All findings, ordered by block in launch order, then line.
  [[nodiscard]] std::vector<RunFinding> take();

 private:
  using Key = std::tuple<Rule, std::uint32_t, std::uint32_t>;
  struct Entry {
    RunFinding finding;
    std::uint64_t order = 0;
    bool suppressed = false;
  };
  /// Counts; returns the finding to be described (with the lock held) or nullptr.
  RunFinding* open(const Context& context, std::uint32_t statement, Rule rule, unsigned lane,
                   const OtherParty& other);
  static void fill(RunFinding& finding, FindingText&& text);
  void close();

  const Image& image_;
  const Options& options_;
  std::string kernel_;
  std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::atomic<bool> stopped_{false};
};

}  // namespace ptxgen::inline v0::emulator
