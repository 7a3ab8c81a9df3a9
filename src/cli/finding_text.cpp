// src/cli/finding_text.cpp - findings by cause, as text and JSON
#include "cli/finding_text.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <vector>

namespace ptxgen::cli {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxEntries = 20;
constexpr std::array<Severity, 3> kSeverities = {Severity::Error, Severity::Warning,
                                                 Severity::Note};

// Findings with one cause.
struct Group {
  std::size_t example = 0;           // the first member
  std::vector<std::size_t> members;  // indices of the findings
  std::uint64_t count = 0;           // how often they were found, together
};

using Place = std::tuple<std::string_view, std::uint32_t, std::uint32_t>;

Place place_of(const Finding& finding) {
  if (finding.source_line != 0) return {finding.source_file, finding.source_line, 0};
  if (finding.cpp.known()) return {finding.cpp.file, finding.cpp.line, 0};
  return {finding.file, finding.line, finding.other_line};
}

const Finding& finding_of(const Finding& finding) { return finding; }
const Finding& finding_of(const emulator::RunFinding& finding) { return finding.finding; }
std::uint64_t count_of(const Finding&) { return 1; }
std::uint64_t count_of(const emulator::RunFinding& finding) { return finding.count; }

// In the order of their first members.
template <class F>
std::vector<Group> grouped(std::span<const F> findings) {
  using Key = std::tuple<Severity, std::string_view, std::string_view, Place>;
  std::vector<Group> groups;
  std::map<Key, std::size_t> known;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& finding = finding_of(findings[i]);
    const Key key{finding.severity, finding.rule, finding.kernel, place_of(finding)};
    const auto [at, is_new] = known.try_emplace(key, groups.size());
    if (is_new) groups.push_back({i, {}, 0});
    Group& group = groups[at->second];
    group.members.push_back(i);
    group.count += count_of(findings[i]);
  }
  return groups;
}

// "5 findings of this cause, at PTX lines 12, 15, 18 and 2 more"; empty for a group of one.
template <class F>
std::string more_of(const Group& group, std::span<const F> findings) {
  if (group.members.size() < 2) return {};
  constexpr std::size_t kMaxLines = 6;
  std::set<std::uint32_t> lines;
  for (const std::size_t member : group.members) lines.insert(finding_of(findings[member]).line);
  std::string text = std::to_string(group.members.size()) + " findings of this cause, at PTX line" +
                     (lines.size() == 1 ? "" : "s");
  std::size_t shown = 0;
  for (const std::uint32_t line : lines) {
    if (shown == kMaxLines) break;
    text += (shown++ == 0 ? " " : ", ") + std::to_string(line);
  }
  if (lines.size() > shown) text += " and " + std::to_string(lines.size() - shown) + " more";
  return text;
}

std::string example_text(const Group& group, std::span<const Finding> findings) {
  const std::string more = more_of(group, findings);
  return to_text(findings[group.example]) + (more.empty() ? "" : "\n    " + more);
}

std::string example_text(const Group& group, std::span<const emulator::RunFinding> findings) {
  emulator::RunFinding example = findings[group.example];
  if (group.members.size() > 1) {
    // The line of the group says how often it was found.
    example.count = 1;
    example.finding.details.insert(
        example.finding.details.begin(),
        more_of(group, findings) + ", " + std::to_string(group.count) + " times in all");
  }
  return emulator::to_text(example);
}

struct Entry {
  Severity severity{};
  std::string text;
};

std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

// "2 errors, 1 note"
std::string counts_text(const std::function<std::size_t(Severity)>& count) {
  std::string text;
  for (const Severity severity : kSeverities) {
    const std::size_t number = count(severity);
    if (number == 0) continue;
    text += (text.empty() ? "" : ", ") + counted(number, to_string(severity));
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

template <class F>
std::string all_text(std::span<const F> findings) {
  std::string text;
  for (const F& finding : findings) text += to_text(finding) + "\n";
  return text;
}

template <class F>
std::string grouped_text(std::span<const F> findings) {
  std::vector<Entry> entries;
  for (const Group& group : grouped(findings)) {
    entries.push_back(
        {finding_of(findings[group.example]).severity, example_text(group, findings)});
  }
  return shortened(entries);
}

template <class F>
json grouped_json(std::span<const F> findings) {
  json list = json::array();
  for (const Group& group : grouped(findings)) {
    list.push_back(
        {{"example", group.example}, {"members", group.members}, {"count", group.count}});
  }
  return list;
}

// `.file` number to path.
std::string path_of(const ptx::Module& module, std::uint64_t number) {
  for (const ptx::SourceFile& file : module.files) {
    if (file.number == number) return std::string(module.text(file.path));
  }
  return {};
}

}  // namespace

std::string findings_text(std::span<const Finding> findings, bool all) {
  return all ? all_text(findings) : grouped_text(findings);
}

std::string findings_text(std::span<const emulator::RunFinding> findings, bool all) {
  return all ? all_text(findings) : grouped_text(findings);
}

std::string findings_summary(std::span<const emulator::RunFinding> findings) {
  const std::vector<Group> groups = grouped(findings);
  return counts_text([&](Severity severity) {
    return static_cast<std::size_t>(std::ranges::count_if(groups, [&](const Group& group) {
      return findings[group.example].finding.severity == severity;
    }));
  });
}

json groups_json(std::span<const Finding> findings) { return grouped_json(findings); }

json groups_json(std::span<const emulator::RunFinding> findings) { return grouped_json(findings); }

void fill_sources(std::span<Finding> findings, const ptx::Module& module) {
  std::multimap<std::uint32_t, Finding*> without;  // by PTX line
  for (Finding& finding : findings) {
    if (finding.line != 0 && finding.source_line == 0) without.emplace(finding.line, &finding);
  }
  for (const ptx::Function& function : module.functions) {
    if (without.empty()) return;
    std::string file;
    std::uint32_t line = 0;
    for (const ptx::Instruction& statement : function.body) {
      if (statement.kind == ptx::StatementKind::Location) {
        const auto operands = function.operands_of(statement);
        file = path_of(module, operands[0].value);
        line = static_cast<std::uint32_t>(operands[1].value);
      }
      const auto [first, last] = without.equal_range(statement.line);
      for (auto at = first; at != last; ++at) {
        at->second->source_file = file;
        at->second->source_line = line;
      }
      without.erase(first, last);
    }
  }
}

}  // namespace ptxgen::cli
