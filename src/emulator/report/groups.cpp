// src/emulator/report/groups.cpp - findings of a run, grouped by cause
#include "ptxgen/emulator/report/groups.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

std::vector<Finding> findings_of(std::span<const RunFinding> findings) {
  std::vector<Finding> all;
  all.reserve(findings.size());
  for (const RunFinding& finding : findings) all.push_back(finding.finding);
  return all;
}

}  // namespace

std::vector<FindingGroup> group_findings(std::span<const RunFinding> findings) {
  std::vector<std::uint64_t> counts;
  for (const RunFinding& finding : findings) counts.push_back(finding.count);
  return ptxgen::group_findings(findings_of(findings), counts);
}

std::string to_text(const FindingGroup& group, std::span<const RunFinding> findings) {
  RunFinding example = findings[group.example];
  if (group.members.size() > 1) {
    example.count = 1;
    example.finding.details.insert(
        example.finding.details.begin(),
        format_text("{}, {} times in all", more_of(group, findings_of(findings)), group.count));
  }
  return to_text(example);
}

}  // namespace ptxgen::inline v0::emulator
