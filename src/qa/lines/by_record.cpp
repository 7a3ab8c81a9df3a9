// src/qa/lines/by_record.cpp - lines that tests of the source tree decide
#include "qa/fixture.hpp"
#include "qa/lines/lines.hpp"
#include "qa/tally.hpp"
#include "support/count.hpp"

namespace ptxgen::qa {

Outcome by_record(Fixture& fixture, const Line& line) {
  if (!fixture.record.found) return skipped(Need::Record, fixture.record.why_not);
  Tally tally;
  std::size_t undecided = 0;
  std::string_view rest = line.record;
  while (!rest.empty()) {
    const auto end = rest.find(';');
    const std::string_view piece = rest.substr(0, end);
    rest = end == rest.npos ? "" : rest.substr(end + 1);
    const RecordedResults results = results_of(fixture.record, piece);
    if (results.passed.empty() && results.failed.empty()) {
      ++undecided;
      continue;
    }
    tally.check(results.failed.empty(), "{} of the record failed: {}",
                count_text(results.failed.size(), "result"),
                results.failed.empty() ? std::string() : results.failed.front());
    tally.figure("{}: {} passed, {} skipped", piece, results.passed.size(), results.skipped.size());
    for (const std::string& name : results.passed) {
      const auto note = fixture.record.notes.find(name);
      if (note != fixture.record.notes.end()) tally.figure("{}: {}", name, note->second);
    }
  }
  if (undecided != 0) {
    return skipped(Need::Record, format_text("the record of a run in mode '{}' has no result of {}",
                                             fixture.record.mode, line.record));
  }
  return tally.outcome(line.recorded);
}

void fail_every_result(Fixture& fixture) {
  for (auto& [name, result] : fixture.record.results) result = "failed";
}

}  // namespace ptxgen::qa
