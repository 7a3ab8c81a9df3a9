// src/check/analyze/barriers.cpp - the rule missing-barrier
#include <algorithm>
#include <set>
#include <string>

#include "check/analyze/rules.hpp"
#include "check/shared_race/check.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;

namespace {

/// A write followed by a read with nothing between the two that makes the write visible.
bool lacks_barrier(const RaceCheck& check, const RacePair& pair) {
  const SharedAccess& write = check.accesses[pair.first];
  const SharedAccess& read = check.accesses[pair.second];
  return !pair.witness && !pair.same_value && !pair.unlikely && !pair.copying && pair.follows &&
         write.writes && read.reads && !read.writes;
}

}  // namespace

void find_missing_barriers(RuleFindings& findings, const RaceCheck& check) {
  // One finding for each variable without a race that shared_race proved.
  std::set<std::uint32_t> reported;
  for (const RacePair& pair : check.pairs) {
    if (pair.witness) reported.insert(pair.variable);
  }
  for (const RacePair& pair : check.pairs) {
    if (!lacks_barrier(check, pair) || !reported.insert(pair.variable).second) continue;
    const std::string what =
        pair.variable == kNone
            ? std::string("shared memory")
            : format_text("'{}'",
                          findings.module().text(findings.module().symbols[pair.variable].name));
    const std::uint32_t read = check.accesses[pair.second].statement;
    Finding& finding = findings.report(
        Severity::Warning, "missing-barrier", check.accesses[pair.first].statement,
        format_text("{} is written here and read at {}, and some path between them has no barrier",
                    what, findings.place(read)),
        "a thread's writes to shared memory are visible to other threads after the next barrier",
        "bar.sync between the two, where all threads of the block pass");
    finding.other_line = findings.at(read).line;
  }
}

}  // namespace ptxgen::inline v0::gates
