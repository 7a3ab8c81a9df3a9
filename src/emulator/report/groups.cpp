// src/emulator/report/groups.cpp - findings of a run, one entry for each cause
#include "ptxgen/emulator/report/groups.hpp"

namespace ptxgen::inline v0::emulator {
namespace {

std::vector<Finding> plain(std::span<const RunFinding> findings) {
  std::vector<Finding> all;
  all.reserve(findings.size());
  for (const RunFinding& finding : findings) all.push_back(finding.finding);
  return all;
}

}  // namespace

std::vector<FindingGroup> group_findings(std::span<const RunFinding> findings) {
  std::vector<std::uint64_t> counts;
  for (const RunFinding& finding : findings) counts.push_back(finding.count);
  return ptxgen::group_findings(plain(findings), counts);
}

std::string to_text(const FindingGroup& group, std::span<const RunFinding> findings) {
  RunFinding example = findings[group.example];
  // The group's own line says how often it was found.
  if (group.members.size() > 1) {
    example.count = 1;
    example.finding.details.insert(
        example.finding.details.begin(),
        more_of(group, plain(findings)) + ", " + std::to_string(group.count) + " times in all");
  }
  return to_text(example);
}

}  // namespace ptxgen::inline v0::emulator
