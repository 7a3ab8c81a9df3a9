// src/qa/tally.cpp - comparisons of a line, and their outcome
#include "qa/tally.hpp"

#include "support/count.hpp"

namespace ptxgen::qa {

namespace {
constexpr std::size_t kShownFailures = 3;
}  // namespace

void Tally::add_failure(std::string text) {
  ++failed_;
  if (failures_.size() < kShownFailures) failures_.push_back(std::move(text));
}

Outcome Tally::outcome(Verdict verdict) const {
  Outcome outcome;
  outcome.figures = figures_;
  if (checks_ == 0) {
    outcome.reason = "nothing was compared";
    return outcome;
  }
  outcome.figures.push_back(count_text(checks_, "comparison"));
  if (failed_ == 0) {
    outcome.status = Status::Passed;
    outcome.verdict = verdict;
    return outcome;
  }
  for (const std::string& failure : failures_) {
    outcome.reason += (outcome.reason.empty() ? "" : "; ") + failure;
  }
  if (failed_ > failures_.size()) {
    outcome.reason += format_text("; and {} more", failed_ - failures_.size());
  }
  return outcome;
}

Outcome skipped(Need need, std::string reason) {
  Outcome outcome;
  outcome.status = Status::Skipped;
  outcome.need = need;
  outcome.reason = std::move(reason);
  return outcome;
}

Outcome not_applicable(std::string reason) {
  Outcome outcome;
  outcome.status = Status::NotApplicable;
  outcome.reason = std::move(reason);
  return outcome;
}

}  // namespace ptxgen::qa
