// src/frames/checks.cpp - assertions on frames as text
#include "ptxgen/frames/checks.hpp"

#include <filesystem>
#include <regex>
#include <vector>

#include "support/count.hpp"
#include "support/format.hpp"
#include "support/temporary_directory.hpp"

namespace ptxgen::inline v0::frames {
namespace {

FrameCheck failed(std::string message) { return {false, std::move(message)}; }

std::string_view without_end(std::string_view line) {
  const std::size_t last = line.find_last_not_of(' ');
  return last == line.npos ? std::string_view() : line.substr(0, last + 1);
}

/// With the spaces at their ends.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

std::string shown(std::string_view text) {
  std::string all;
  for (const std::string_view line : lines_of(text)) {
    all += "\n  | ";
    all += without_end(line);
  }
  return all;
}

}  // namespace

FrameCheck contains(std::string_view text, std::string_view piece) {
  for (const std::string_view line : lines_of(text)) {
    if (line.find(piece) != line.npos) return {};
  }
  return failed(format_text("no line contains '{}':{}", piece, shown(text)));
}

FrameCheck matches(std::string_view text, const std::string& expression) {
  try {
    const std::regex pattern(expression);
    for (const std::string_view line : lines_of(text)) {
      const std::string_view kept = without_end(line);
      if (std::regex_search(kept.begin(), kept.end(), pattern)) return {};
    }
  } catch (const std::regex_error& error) {
    return failed(format_text("'{}' is no regular expression: {}", expression, error.what()));
  }
  return failed(format_text("no line matches '{}':{}", expression, shown(text)));
}

FrameCheck line_is(std::string_view text, std::size_t number, std::string_view expected) {
  const std::vector<std::string_view> lines = lines_of(text);
  if (number == 0 || number > lines.size()) {
    return failed(format_text("there is no line {}: the frame has {}", number,
                              count_text(lines.size(), "line")));
  }
  const std::string_view line = without_end(lines[number - 1]);
  if (line == without_end(expected)) return {};
  return failed(format_text("line {} is '{}', expected '{}'", number, line, expected));
}

FrameCheck size_is(std::string_view text, std::size_t width, std::size_t height) {
  const std::vector<std::string_view> lines = lines_of(text);
  if (lines.size() != height) {
    return failed(format_text("{}, expected {}", count_text(lines.size(), "line"), height));
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].size() == width) continue;
    return failed(format_text("line {} has {}, expected {}", i + 1,
                              count_text(lines[i].size(), "column"), width));
  }
  return {};
}

FrameCheck snapshot_is(std::string_view text, const std::string& path, SnapshotMode mode) {
  std::string kept;
  for (const std::string_view line : lines_of(text)) {
    kept += without_end(line);
    kept += '\n';
  }
  std::error_code ignored;
  const bool exists = std::filesystem::exists(path, ignored);
  const std::string stored = exists ? read_file(path) : std::string();
  if (exists && stored == kept) return {};
  if (mode == SnapshotMode::Update) {
    write_file(path, kept);
    return {};
  }
  if (!exists) {
    return failed(
        format_text("there is no snapshot '{}'; write it with SnapshotMode::Update, then "
                    "read it",
                    path));
  }
  const std::vector<std::string_view> now = lines_of(kept);
  const std::vector<std::string_view> before = lines_of(stored);
  std::size_t i = 0;
  while (i < now.size() && i < before.size() && now[i] == before[i]) ++i;
  const auto line_of = [&](const std::vector<std::string_view>& lines) {
    return i < lines.size() ? format_text("'{}'", lines[i]) : std::string("the end");
  };
  return failed(
      format_text("line {} is {}, in the snapshot '{}' {}; SnapshotMode::Update writes "
                  "the new frame",
                  i + 1, line_of(now), path, line_of(before)));
}

}  // namespace ptxgen::inline v0::frames
