// src/qa/report/text.cpp - a run of the checklist as text and JSON
#include <nlohmann/json.hpp>

#include "qa/report/report.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/join.hpp"

namespace ptxgen::qa {

namespace {

std::string_view mark(const Outcome& outcome) {
  switch (outcome.status) {
    case Status::Passed:
      return outcome.verdict == Verdict::Falsified ? "FALSIFIED" : "pass";
    case Status::Failed:
      return "FAIL";
    case Status::Skipped:
      return "skip";
    case Status::NotApplicable:
      return "n/a";
  }
  return "";
}

// A text of several lines with the indentation before each but the first.
std::string on_lines(std::string_view text, std::string_view indentation) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += indentation;
  }
  return result;
}

std::string line_text(const LineResult& result) {
  const Line& line = *result.line;
  std::string text = format_text("  {:<5} {:>2}  {:<9}  {}\n", line.id, line.points,
                                 mark(result.outcome), line.claim);
  const std::string indentation(21, ' ');
  if (!result.outcome.reason.empty()) {
    text += indentation + on_lines(result.outcome.reason, indentation) + "\n";
  }
  if (!result.outcome.figures.empty())
    text += indentation + join_text(result.outcome.figures, "; ") + "\n";
  if (result.mutant && !result.mutant->noticed) {
    text += indentation +
            format_text("MUTANT NOT NOTICED: {}: {}\n", line.mutant.what, result.mutant->text);
  }
  return text;
}

nlohmann::json json_of(const Score& score) {
  return {{"points", score.points},
          {"score", score.earned},
          {"applicable", score.applicable()},
          {"failed", score.lost},
          {"need_gpu", score.gpu},
          {"need_record", score.record},
          {"undecided", score.undecided},
          {"not_applicable", score.not_applicable},
          {"lines", score.lines},
          {"lines_passed", score.passed},
          {"lines_failed", score.failed},
          {"lines_skipped", score.skipped},
          {"lines_not_applicable", score.inapplicable}};
}

}  // namespace

std::string score_text(const Score& score, bool gpu) {
  std::string text =
      gpu ? format_text("{} of {} points", score.earned, score.points)
          : format_text("{} of {} applicable points", score.earned, score.applicable());
  std::string rest;
  const auto add = [&](unsigned points, std::string_view what) {
    if (points == 0) return;
    rest += format_text("{}{} {}", rest.empty() ? "; " : ", ", points, what);
  };
  add(score.lost, "failed");
  add(score.undecided, "not decided");
  add(score.gpu, count_verb(score.gpu, "waits for a GPU", "wait for a GPU"));
  add(score.record, count_verb(score.record, "waits for a record of scripts/test",
                               "wait for a record of scripts/test"));
  add(score.not_applicable, "not applicable");
  return text + rest;
}

std::string to_text(const Report& report) {
  std::string text =
      format_text("{}{}\n", report.device, report.gpu ? "" : ": lines that need a GPU are skipped");
  for (const SectionInfo& section : sections()) {
    const Score score = report.score(section.section);
    if (score.lines == 0) continue;
    text +=
        format_text("\n{} {}: {}\n", section.name, section.title,
                    section.group == Group::Unscored
                        ? format_text("{} of {} passed, {} skipped, {} not applicable",
                                      score.passed, score.lines, score.skipped, score.inapplicable)
                        : score_text(score, report.gpu));
    for (const LineResult& result : report.results) {
      if (result.line->section == section.section) text += line_text(result);
    }
  }
  const Score all = report.score();
  text += "\n";
  for (const auto& [group, name] :
       {std::pair{Group::Checklist, "checklist"}, std::pair{Group::Modes, "test modes"}}) {
    const Score score = report.score(group);
    if (score.lines != 0) text += format_text("{}: {}\n", name, score_text(score, report.gpu));
  }
  if (report.score(Group::Checklist).points == 109) {
    for (const Level& level : levels(report)) {
      text += format_text("{} ({} points): {}\n", level.name, level.points,
                          score_text(level.score, report.gpu));
    }
  }
  if (report.mutated) {
    text += format_text("mutants: {} of {} noticed\n", report.noticed(), report.mutants());
    for (const Line* line : report.without_mutant()) {
      text += format_text("error: line {} has no mutant\n", line->id);
    }
  }
  text += format_text("{}, {} passed, {} failed, {} skipped, {} not applicable, in {:.1f} s\n",
                      count_text(all.lines, "line"), all.passed, all.failed, all.skipped,
                      all.inapplicable, report.seconds);
  if (all.passed + all.failed == 0) text += "error: nothing was decided\n";
  return text;
}

nlohmann::json to_json(const Report& report) {
  nlohmann::json lines = nlohmann::json::array();
  for (const LineResult& result : report.results) {
    const Line& line = *result.line;
    nlohmann::json one = {{"id", line.id},
                          {"section", info(line.section).name},
                          {"points", line.points},
                          {"claim", line.claim},
                          {"how", line.how},
                          {"means", to_string(line.means)},
                          {"status", to_string(result.outcome.status)},
                          {"needs", to_string(result.outcome.need)},
                          {"verdict", to_string(result.outcome.verdict)},
                          {"reason", result.outcome.reason},
                          {"evidence", result.outcome.figures},
                          {"command", line.command},
                          {"record", line.record},
                          {"seconds", result.seconds}};
    if (result.mutant) {
      one["mutant"] = {{"what", line.mutant.what},
                       {"noticed", result.mutant->noticed},
                       {"text", result.mutant->text}};
    }
    lines.push_back(std::move(one));
  }
  nlohmann::json parts = nlohmann::json::array();
  for (const SectionInfo& section : sections()) {
    const Score score = report.score(section.section);
    if (score.lines == 0) continue;
    nlohmann::json part = json_of(score);
    part["section"] = section.name;
    part["title"] = section.title;
    parts.push_back(std::move(part));
  }
  const Score all = report.score();
  nlohmann::json json = {{"device", report.device},
                         {"gpu", report.gpu},
                         {"ok", report.ok()},
                         {"lines", lines},
                         {"sections", parts},
                         {"score", all.earned},
                         {"applicable", all.applicable()},
                         {"seconds", report.seconds}};
  if (report.mutated) {
    nlohmann::json without = nlohmann::json::array();
    for (const Line* line : report.without_mutant()) without.push_back(line->id);
    json["mutants"] = {
        {"noticed", report.noticed()}, {"total", report.mutants()}, {"lines_without", without}};
  }
  return json;
}

}  // namespace ptxgen::qa
