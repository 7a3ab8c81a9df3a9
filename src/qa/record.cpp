// src/qa/record.cpp - the record of a run of scripts/test
#include "qa/record.hpp"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"
#include "support/subprocess.hpp"

namespace ptxgen::qa {

namespace {

// The output of git in the folder of the record, without the line break; empty if it failed.
std::string git(const std::string& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "/usr/bin/git");
  try {
    SubprocessOptions options;
    options.folder = folder;
    const SubprocessResult result = run_program(arguments, options);
    if (result.exit_code != 0) return "failed";
    return result.out.substr(0, result.out.find('\n'));
  } catch (const Error&) {
    return "failed";
  }
}

// Whether a list of numbers such as "falsification 67, 68: ..." has the number of "falsification
// 68".
bool names_case(std::string_view name, std::string_view text) {
  const auto space = text.rfind(' ');
  const std::string_view number = space == text.npos ? "" : text.substr(space + 1);
  if (number.empty() || number.find_first_not_of("0123456789") != number.npos) {
    return name.find(text) != name.npos;
  }
  auto at = name.find(text.substr(0, space + 1));
  if (at == name.npos) return false;
  std::string_view list = name.substr(at + space + 1);
  list = list.substr(0, list.find(':'));
  while (!list.empty()) {
    const auto end = list.find_first_not_of("0123456789");
    if (list.substr(0, end) == number) return true;
    if (end == list.npos) return false;
    list.remove_prefix(end);
    const auto next = list.find_first_of("0123456789");
    list.remove_prefix(next == list.npos ? list.size() : next);
  }
  return false;
}

void add(RecordedResults& results, const std::string& name, const std::string& result) {
  auto& list = result == "passed"    ? results.passed
               : result == "skipped" ? results.skipped
                                     : results.failed;
  list.push_back(name);
}

}  // namespace

Record read_record(const std::string& file) {
  Record record;
  std::ifstream stream(file);
  if (!stream) {
    record.why_not = format_text("there is no {}; scripts/test --full writes it", file);
    return record;
  }
  try {
    const nlohmann::json json = nlohmann::json::parse(stream);
    json.at("commit").get_to(record.commit);
    json.at("mode").get_to(record.mode);
    for (const auto& [name, result] : json.at("results").items()) {
      record.results[name] = result.get<std::string>();
    }
    const nlohmann::json notes = json.value("notes", nlohmann::json::object());
    for (const auto& [name, note] : notes.items()) {
      record.notes[name] = note.get<std::string>();
    }
    for (const auto& [label, names] : json.at("labels").items()) {
      record.labels[label] = names.get<std::vector<std::string>>();
    }
  } catch (const nlohmann::json::exception& error) {
    record.why_not = format_text("{} is no record of scripts/test: {}", file, error.what());
    return record;
  }
  const std::filesystem::path path(file);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  const std::string commit = git(folder, {"rev-parse", "HEAD"});
  const std::string changes = git(folder, {"status", "--porcelain", "--untracked-files=no"});
  if (commit != record.commit) {
    record.why_not = format_text("{} is about commit {}, the tree is at {}", file,
                                 record.commit.substr(0, 12), commit.substr(0, 12));
  } else if (!changes.empty()) {
    record.why_not = format_text("the tree has changes since commit {}", commit.substr(0, 12));
  } else {
    record.found = true;
  }
  return record;
}

RecordedResults results_of(const Record& record, std::string_view piece) {
  RecordedResults results;
  const auto space = piece.find(' ');
  const std::string_view kind = piece.substr(0, space);
  const std::string_view text = space == piece.npos ? "" : piece.substr(space + 1);
  if (kind == "step") {
    const auto found = record.results.find(text);
    if (found != record.results.end()) add(results, found->first, found->second);
  } else if (kind == "label") {
    const auto found = record.labels.find(text);
    if (found == record.labels.end()) return results;
    for (const std::string& name : found->second) {
      const auto result = record.results.find(name);
      if (result != record.results.end()) add(results, name, result->second);
    }
  } else {
    for (const auto& [name, result] : record.results) {
      if (names_case(name, text)) add(results, name, result);
    }
  }
  return results;
}

}  // namespace ptxgen::qa
