// src/emulator/report/report.hpp - findings of a run: merged, suppressed, put in order
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/machine/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// The other thread of a race and the like.
struct OtherParty {
  std::uint32_t statement = kNoIndex;
  std::uint64_t cta = 0;     ///< linear
  std::uint32_t thread = 0;  ///< in its block
};

/// "0x7f00".
[[nodiscard]] std::string hex(std::uint64_t value);
/// "(3,0,0)".
[[nodiscard]] std::string to_text(const Dim3& position);

/// A statement that the text of a finding names.
struct StatementText {
  std::string place;      ///< "a.cpp:12", "line 9", or empty
  std::string statement;  ///< as PTX, or empty
};
/// The one form of findings. Where `own` has a place it stands for file, line and C++ call.
[[nodiscard]] std::string to_text(const RunFinding& finding, const StatementText& own,
                                  const StatementText& other);

/// What the texts of a finding are, made only when it is new.
struct FindingText {
  std::string message;
  std::vector<std::string> details;
  std::string subject = {};               ///< Finding::subject
  std::optional<Severity> severity = {};  ///< where it is not the rule's
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
    const std::lock_guard lock(mutex_);
    if (RunFinding* slot = open(context, statement, rule, lane, other)) {
      fill(*slot, std::forward<Text>(text)());
    }
  }
  template <class Text>
  void report(const Context& context, std::uint32_t statement, Rule rule, unsigned lane,
              Text&& text) {
    report(context, statement, rule, lane, OtherParty{}, std::forward<Text>(text));
  }
  /// An access outside of allocations, `mapped` as in RunFinding; those that are and those that are
  /// not are findings of their own.
  template <class Text>
  void report_access(const Context& context, std::uint32_t statement, Rule rule, unsigned lane,
                     bool mapped, Text&& text) {
    if (!watches(rule)) return;
    const std::lock_guard lock(mutex_);
    if (RunFinding* slot = open(context, statement, rule, lane, OtherParty{}, mapped)) {
      slot->mapped = mapped;
      fill(*slot, std::forward<Text>(text)());
    }
  }

  /// Reports for the launch as a whole, once the block that is `order` in the launch order has
  /// ended. Thread-safe.
  template <class Text>
  void report_launch(std::uint64_t order, Rule rule, Text&& text) {
    if (!watches(rule)) return;
    const std::lock_guard lock(mutex_);
    if (RunFinding* slot = open_launch(order, rule)) fill(*slot, std::forward<Text>(text)());
  }

  /// A fault has ended the block that is `order` in the launch order: later ones do not begin, and
  /// what is found in those that already run is dropped, so that what is reported does not depend
  /// on the number of host threads.
  void stop_after(std::uint64_t order) noexcept;
  [[nodiscard]] bool stopped(std::uint64_t order) const noexcept {
    return order > last_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool faulted() const noexcept {
    return last_.load(std::memory_order_relaxed) != ~std::uint64_t{0};
  }

  /// All findings, ordered by block in launch order, then line.
  [[nodiscard]] std::vector<RunFinding> take();

 private:
  using Key = std::tuple<Rule, std::uint32_t, std::uint32_t, bool>;  ///< both statements, mapped
  struct Entry {
    RunFinding finding;
    std::uint64_t order = 0;                        ///< of the block that is described
    std::map<std::uint64_t, std::uint64_t> counts;  ///< by Cta::order
  };
  /// Counts; returns the finding to be described, or nullptr. The lock is held.
  RunFinding* open(const Context& context, std::uint32_t statement, Rule rule, unsigned lane,
                   const OtherParty& other, bool mapped = false);
  RunFinding* open_launch(std::uint64_t order, Rule rule);
  [[nodiscard]] RunFinding described(Rule rule) const;
  static void fill(RunFinding& finding, FindingText&& text);
  [[nodiscard]] bool suppressed(const RunFinding& finding) const;

  const Image& image_;
  const Options& options_;
  std::string kernel_;
  std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::atomic<std::uint64_t> last_{~std::uint64_t{0}};
};

}  // namespace ptxgen::inline v0::emulator
