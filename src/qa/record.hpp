// src/qa/record.hpp - the record of a run of scripts/test
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ptxgen::qa {

/// What `scripts/test` wrote about one commit (tools/test_record.py).
struct Record {
  bool found = false;
  std::string why_not;  ///< of a record that is not there, or not for this commit
  std::string commit;
  std::string mode;  ///< "day", "ci", "full"
  /// Name to "passed", "failed" or "skipped". Tests are "PRESET: NAME", steps have their own name.
  std::map<std::string, std::string, std::less<>> results;
  /// What steps say of their results: "91.3 % of 50000 lines".
  std::map<std::string, std::string, std::less<>> notes;
  /// Label of ctest to names of tests.
  std::map<std::string, std::vector<std::string>, std::less<>> labels;
};

/// Reads `file`. The record counts only if its commit is that of the tree around it, and the tree
/// has no changes; `why_not` says what is wrong. Throws nothing: a file that is no record is one
/// that is not there.
[[nodiscard]] Record read_record(const std::string& file);

/// The results that one piece of `Line::record` names: `label L`, `step S`, or `case TEXT` (every
/// test whose name has TEXT, a number in a list of numbers included: `falsification 37`).
struct RecordedResults {
  std::vector<std::string> passed, failed, skipped;
};
[[nodiscard]] RecordedResults results_of(const Record& record, std::string_view piece);

}  // namespace ptxgen::qa
