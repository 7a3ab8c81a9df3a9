// src/ptx/groups.cpp - grouping findings by source line and cause
#include "ptxgen/ptx/groups.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "support/format.hpp"

namespace ptxgen::inline v0 {
namespace {

/// PTX lines that the text of a group names.
constexpr std::size_t kMaxLines = 6;

using Place = std::tuple<std::string_view, std::uint32_t>;

Place place_of(const Finding& finding) {
  if (finding.source_line != 0) return {finding.source_file, finding.source_line};
  if (finding.cpp.known()) return {finding.cpp.file, finding.cpp.line};
  return {finding.file, finding.line};
}

Place other_of(const Finding& finding) {
  if (finding.other_source.known()) return {finding.other_source.file, finding.other_source.line};
  // The C++ call of the other access is unknown; use its PTX line if the own call is the key.
  return {std::string_view{},
          finding.source_line != 0 || !finding.cpp.known() ? finding.other_line : 0};
}

using Key =
    std::tuple<Severity, std::string_view, std::string_view, std::string_view, Place, Place>;

Key key_of(const Finding& finding) {
  return {finding.severity, finding.rule,      finding.kernel,
          finding.subject,  place_of(finding), other_of(finding)};
}

}  // namespace

std::vector<FindingGroup> group_findings(std::span<const Finding> findings,
                                         std::span<const std::uint64_t> counts) {
  std::vector<FindingGroup> groups;
  std::map<Key, std::size_t> known;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const auto [at, is_new] = known.try_emplace(key_of(findings[i]), groups.size());
    if (is_new) groups.push_back({i, {}, 0});
    FindingGroup& group = groups[at->second];
    group.members.push_back(i);
    group.count += i < counts.size() ? counts[i] : 1;
  }
  return groups;
}

std::string more_of(const FindingGroup& group, std::span<const Finding> findings) {
  if (group.members.size() < 2) return {};
  std::vector<std::uint32_t> lines;
  for (const std::size_t member : group.members) lines.push_back(findings[member].line);
  std::ranges::sort(lines);
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  std::string text = format_text("{} findings of this cause, at PTX line", group.members.size());
  if (lines.size() > 1) text += "s";
  for (std::size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) {
    text += format_text("{}{}", i == 0 ? " " : ", ", lines[i]);
  }
  if (lines.size() > kMaxLines) {
    text += format_text(" and {} more", lines.size() - kMaxLines);
  }
  return text;
}

}  // namespace ptxgen::inline v0
