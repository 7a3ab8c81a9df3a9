// src/qa/tally.hpp - comparisons of a line, and their outcome
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "qa/line.hpp"
#include "support/format.hpp"

namespace ptxgen::qa {

/// Counts comparisons. A line without a comparison has failed.
class Tally {
 public:
  /// The text says what is wrong if `ok` is false. Returns `ok`.
  template <class... Args>
  bool check(bool ok, fmt::format_string<Args...> wrong, Args&&... args) {
    ++checks_;
    if (!ok) add_failure(format_text(wrong, std::forward<Args>(args)...));
    return ok;
  }
  template <class... Args>
  void figure(fmt::format_string<Args...> text, Args&&... args) {
    figures_.push_back(format_text(text, std::forward<Args>(args)...));
  }
  [[nodiscard]] std::uint64_t checks() const noexcept { return checks_; }
  [[nodiscard]] bool ok() const noexcept { return checks_ != 0 && failed_ == 0; }
  [[nodiscard]] Outcome outcome(Verdict verdict = Verdict::None) const;

 private:
  void add_failure(std::string text);

  std::uint64_t checks_ = 0;
  std::uint64_t failed_ = 0;
  std::vector<std::string> failures_;  // the first ones
  std::vector<std::string> figures_;
};

[[nodiscard]] Outcome skipped(Need need, std::string reason);
[[nodiscard]] Outcome not_applicable(std::string reason);

}  // namespace ptxgen::qa
