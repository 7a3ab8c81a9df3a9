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

#include "emulator/state/machine.hpp"

namespace ptxgen::inline v0::emulator {

/// The other thread of a finding about two threads.
struct OtherParty {
  std::uint32_t statement = kNoIndex;
  std::uint64_t cta = 0;     ///< linear
  std::uint32_t thread = 0;  ///< in its block
};

/// "0x7f00".
[[nodiscard]] std::string hex(std::uint64_t value);
/// "(3,0,0)".
[[nodiscard]] std::string to_text(const Dim3& position);

/// The position of block number `linear`, x fastest.
[[nodiscard]] Dim3 block_position(const Dim3& grid, std::uint64_t linear);
/// The shared variable at an offset of a block's shared memory, or nullptr.
using SharedVariable = Image::KernelImage::SharedVariable;
[[nodiscard]] const SharedVariable* shared_variable(const Grid& grid,
                                                    std::uint64_t offset) noexcept;

/// A statement that the text of a finding names.
struct StatementText {
  std::string place;      ///< "a.cpp:12", "line 9", or empty
  std::string statement;  ///< as PTX, or empty
};
/// The text of a finding. A place of `own` replaces file, line and C++ call.
[[nodiscard]] std::string to_text(const RunFinding& finding, const StatementText& own,
                                  const StatementText& other);

/// What to do about findings of rule exited-block.
inline constexpr std::string_view kSyncBeforeExit =
    "synchronise the cluster (barrier.cluster.arrive and .wait) after the last access to another "
    "block's memory and before any block exits";

/// The texts of a finding; computed only for a new finding.
struct FindingText {
  std::string message;
  std::vector<std::string> details;
  std::string subject = {};               ///< Finding::subject
  std::optional<Severity> severity = {};  ///< instead of the rule's
};

/// Collects the findings of all workers. Findings with equal rule, statement and other statement
/// are merged into one with a count, which describes the earliest in launch order.
class Reporter {
 public:
  Reporter(const Image& image, const Options& options, std::string_view kernel);

  /// Whether the run checks a rule. Suppressed rules are checked too.
  [[nodiscard]] bool watches(Rule rule) const noexcept { return options_.checks.has(rule); }

  /// Reports a finding of one lane. Calls `text` only if this is the first such finding in launch
  /// order so far. Does nothing if the rule is not checked. Thread-safe.
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
  /// An access outside of allocations, `mapped` as in RunFinding. Mapped and unmapped accesses are
  /// separate findings.
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

  /// Reports a finding of the whole launch, after the block at position `order` of the launch
  /// order. Thread-safe.
  template <class Text>
  void report_launch(std::uint64_t order, Rule rule, Text&& text) {
    if (!watches(rule)) return;
    const std::lock_guard lock(mutex_);
    if (RunFinding* slot = open_launch(order, rule)) fill(*slot, std::forward<Text>(text)());
  }

  /// A fault has ended the block at position `order` of the launch order. Later blocks do not
  /// start, and findings of later blocks that already run are dropped: the report does not depend
  /// on the number of host threads.
  void stop_after(std::uint64_t order) noexcept;
  [[nodiscard]] bool stopped(std::uint64_t order) const noexcept {
    return order > last_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool faulted() const noexcept {
    return last_.load(std::memory_order_relaxed) != ~std::uint64_t{0};
  }

  /// Findings so far that are not suppressed. Thread-safe.
  [[nodiscard]] std::size_t count() const;
  /// The newest of them; only if there is one.
  [[nodiscard]] RunFinding newest() const;

  /// All findings, ordered by block in launch order, then line.
  [[nodiscard]] std::vector<RunFinding> take();

 private:
  using Key = std::tuple<Rule, std::uint32_t, std::uint32_t, bool>;  ///< both statements, mapped
  struct Entry {
    RunFinding finding;
    std::uint64_t order = 0;                        ///< of the described block
    std::map<std::uint64_t, std::uint64_t> counts;  ///< by Cta::order
  };
  /// Counts the finding. Returns the one to describe, or nullptr. The caller holds the lock.
  RunFinding* open(const Context& context, std::uint32_t statement, Rule rule, unsigned lane,
                   const OtherParty& other, bool mapped = false);
  RunFinding* open_launch(std::uint64_t order, Rule rule);
  void count_new(const Entry& entry);
  [[nodiscard]] RunFinding described(Rule rule) const;
  static void fill(RunFinding& finding, FindingText&& text);
  [[nodiscard]] bool suppressed(const RunFinding& finding) const;

  const Image& image_;
  const Options& options_;
  std::string kernel_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::size_t count_ = 0;
  const Entry* newest_ = nullptr;
  std::atomic<std::uint64_t> last_{~std::uint64_t{0}};
};

}  // namespace ptxgen::inline v0::emulator
