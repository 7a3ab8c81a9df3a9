// src/cli/output/finding_text.cpp - findings by cause, as text and JSON
#include "cli/output/finding_text.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "support/count.hpp"

namespace ptxgen::cli {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxEntries = 20;
constexpr std::array<Severity, 3> kSeverities = {Severity::Error, Severity::Warning,
                                                 Severity::Note};

struct Entry {
  Severity severity{};
  std::string text;
};

// "2 errors, 1 note"
std::string counts_text(const std::function<std::size_t(Severity)>& count) {
  std::string text;
  for (const Severity severity : kSeverities) {
    const std::size_t number = count(severity);
    if (number == 0) continue;
    text += (text.empty() ? "" : ", ") + count_text(number, to_string(severity));
  }
  return text;
}

// The first entries by severity, in their own order.
std::string shortened(const std::vector<Entry>& entries) {
  std::vector<bool> shown(entries.size(), false);
  std::size_t left = kMaxEntries;
  for (const Severity severity : kSeverities) {
    for (std::size_t i = 0; i < entries.size() && left != 0; ++i) {
      if (entries[i].severity != severity) continue;
      shown[i] = true;
      --left;
    }
  }
  std::string text;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (shown[i]) text += entries[i].text + "\n";
  }
  const std::string hidden = counts_text([&](Severity severity) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!shown[i] && entries[i].severity == severity) ++count;
    }
    return count;
  });
  return hidden.empty() ? text : text + "not shown: " + hidden + "; --all shows every finding\n";
}

json groups_json(std::span<const FindingGroup> groups) {
  json list = json::array();
  for (const FindingGroup& group : groups) {
    list.push_back(
        {{"example", group.example}, {"members", group.members}, {"count", group.count}});
  }
  return list;
}

}  // namespace

std::string findings_text(std::span<const Finding> findings, bool all) {
  std::string text;
  if (all) {
    for (const Finding& finding : findings) text += to_text(finding) + "\n";
    return text;
  }
  std::vector<Entry> entries;
  for (const FindingGroup& group : group_findings(findings)) {
    const Finding& example = findings[group.example];
    const std::string more = more_of(group, findings);
    entries.push_back({example.severity, to_text(example) + (more.empty() ? "" : "\n    " + more)});
  }
  return shortened(entries);
}

std::string findings_text(std::span<const emulator::RunFinding> findings, bool all) {
  std::string text;
  if (all) {
    for (const emulator::RunFinding& finding : findings) text += to_text(finding) + "\n";
    return text;
  }
  std::vector<Entry> entries;
  for (const FindingGroup& group : emulator::group_findings(findings)) {
    entries.push_back(
        {findings[group.example].finding.severity, emulator::to_text(group, findings)});
  }
  return shortened(entries);
}

std::string findings_summary(std::span<const emulator::RunFinding> findings) {
  const std::vector<FindingGroup> groups = emulator::group_findings(findings);
  return counts_text([&](Severity severity) {
    return static_cast<std::size_t>(std::ranges::count_if(groups, [&](const FindingGroup& group) {
      return findings[group.example].finding.severity == severity;
    }));
  });
}

json groups_json(std::span<const Finding> findings) {
  return groups_json(std::span<const FindingGroup>(group_findings(findings)));
}

json groups_json(std::span<const emulator::RunFinding> findings) {
  return groups_json(std::span<const FindingGroup>(emulator::group_findings(findings)));
}

}  // namespace ptxgen::cli
