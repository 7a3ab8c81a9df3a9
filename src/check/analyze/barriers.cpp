// src/check/analyze/barriers.cpp - the rule missing-barrier
#include <algorithm>
#include <set>
#include <string>

#include "check/analyze/rules.hpp"
#include "check/shared_race/check.hpp"

namespace ptxgen::inline v0::gates {

using namespace ptx;

namespace {

/// A write that a read follows, with nothing between the two that would make it visible.
bool lacks_barrier(const RaceCheck& check, const RacePair& pair) {
  const SharedAccess& write = check.accesses[pair.first];
  const SharedAccess& read = check.accesses[pair.second];
  return !pair.witness && !pair.same_value && !pair.unlikely && !pair.copying && pair.follows &&
         write.writes && read.reads && !read.writes;
}

}  // namespace

void find_missing_barriers(RuleFindings& findings, const SharedAccesses& accesses,
                           const GateOptions& options) {
  const Function& function = findings.function();
  if (!function.entry) return;
  const RaceCheck check = check_races(findings.module(), function, accesses, options);
  // One finding for each variable, and none for those of which shared_race has proved a race.
  std::set<std::uint32_t> told;
  for (const RacePair& pair : check.pairs) {
    if (pair.witness) told.insert(pair.variable);
  }
  for (const RacePair& pair : check.pairs) {
    if (!lacks_barrier(check, pair) || !told.insert(pair.variable).second) continue;
    const std::string what = pair.variable == kNone
                                 ? std::string("shared memory")
                                 : "'" +
                                       std::string(findings.module().text(
                                           findings.module().symbols[pair.variable].name)) +
                                       "'";
    const std::uint32_t read = check.accesses[pair.second].statement;
    Finding& finding = findings.report(
        Severity::Warning, "missing-barrier", check.accesses[pair.first].statement,
        what + " is written here and read at " + findings.place(read) +
            ", and on some way from one to the other there is no barrier",
        "what a thread writes to shared memory is seen by the others behind the next barrier",
        "bar.sync between the two, where all threads of the block come");
    finding.other_line = findings.at(read).line;
  }
}

}  // namespace ptxgen::inline v0::gates
