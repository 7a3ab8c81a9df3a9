// src/qa/report/html.cpp - a run of the checklist as one HTML page
#include <algorithm>

#include "qa/report/report.hpp"
#include "support/count.hpp"
#include "support/format.hpp"
#include "support/markup.hpp"

namespace ptxgen::qa {

namespace {

// The first line of a text, which may be an assembler's log.
std::string shortened(std::string_view text) {
  constexpr std::size_t kMaxCharacters = 160;
  const std::string_view line = text.substr(0, text.find('\n'));
  if (line.size() <= kMaxCharacters) return std::string(line);
  return std::string(line.substr(0, kMaxCharacters)) + " ...";
}

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>ptxgen qa</title>
<style>
:root { --text: #1c2330; --soft: #5d6778; --line: #dfe3ea; --page: #f6f7f9; --card: #fff;
  --pass: #2f855a; --fail: #c53030; --skip: #a0aec0; --open: #d69e2e; --none: #cbd5e0; --code: #eef1f5; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ef; --soft: #98a3b5; --line: #313a48;
  --page: #14181f; --card: #1c222c; --code: #262e3a; --none: #3a4454; --skip: #66738a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 60px; }
h1 { margin: 0; font-size: 26px; } h2 { font-size: 17px; margin: 0; display: inline; }
.soft { color: var(--soft); } .cards { display: flex; flex-wrap: wrap; gap: 12px; margin: 20px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; flex: 1 1 200px; }
.card b { display: block; font-size: 22px; }
.bar { display: flex; height: 10px; border-radius: 5px; overflow: hidden; background: var(--none); margin: 6px 0; }
.bar i { display: block; } i.p, .tag.p { background: var(--pass); } i.f, .tag.f { background: var(--fail); }
i.o, .tag.o { background: var(--open); } i.s, .tag.s { background: var(--skip); } i.n, .tag.n { background: var(--none); }
.overview { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px 16px; }
.overview td { padding: 2px 8px; } .overview table { width: 100%; border-collapse: collapse; }
.overview td:nth-child(3) { width: 34%; } .overview a { color: inherit; }
.legend span { display: inline-block; margin-right: 16px; } .legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 5px; }
.filter { margin: 20px 0 8px; } .filter label { margin-right: 14px; cursor: pointer; }
details.section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; margin: 10px 0; }
details.section > summary { padding: 12px 16px; cursor: pointer; }
.line { border-top: 1px solid var(--line); padding: 10px 16px 10px 118px; position: relative; }
.line .id { position: absolute; left: 16px; font-weight: 600; }
.tag { position: absolute; left: 66px; top: 12px; font-size: 11px; color: #fff; border-radius: 4px; padding: 1px 6px; }
.line p { margin: 2px 0; } code { background: var(--code); border-radius: 4px; padding: 1px 5px; font-size: 13px; }
.bad { color: var(--fail); } .points { float: right; color: var(--soft); }
</style></head><body><main>
)";

constexpr std::string_view kScript = R"(<script>
for (const box of document.querySelectorAll('.filter input')) box.addEventListener('change', () => {
  for (const line of document.querySelectorAll('.line.' + box.value)) line.hidden = !box.checked;
});
</script></main></body></html>
)";

struct Look {
  std::string_view css, text;
};

Look look_of(const Outcome& outcome) {
  switch (outcome.status) {
    case Status::Passed:
      return {"p", outcome.verdict == Verdict::Falsified ? "false" : "pass"};
    case Status::Failed:
      return {"f", "FAIL"};
    case Status::Skipped:
      return outcome.need == Need::Gpu || outcome.need == Need::Record ? Look{"s", "skip"}
                                                                       : Look{"o", "open"};
    case Status::NotApplicable:
      break;
  }
  return {"n", "n/a"};
}

std::string bar(const Score& score, bool scored) {
  struct Part {
    std::string_view css;
    std::size_t count;
  };
  const Part by_points[] = {{"p", score.earned},
                            {"f", score.lost},
                            {"o", score.undecided},
                            {"s", score.gpu + score.record},
                            {"n", score.not_applicable}};
  const Part by_lines[] = {
      {"p", score.passed}, {"f", score.failed}, {"s", score.skipped}, {"n", score.inapplicable}};
  const std::span<const Part> parts = scored ? std::span<const Part>(by_points) : by_lines;
  const double all =
      std::max(1.0, static_cast<double>(scored ? std::size_t{score.points} : score.lines));
  std::string text = "<div class=\"bar\">";
  for (const Part& part : parts) {
    if (part.count == 0) continue;
    text += format_text("<i class=\"{}\" style=\"width:{:.2f}%\"></i>", part.css,
                        100.0 * static_cast<double>(part.count) / all);
  }
  return text + "</div>";
}

std::string summary_of(const Report& report, const SectionInfo& section, const Score& score) {
  if (section.group == Group::Unscored) {
    return format_text("{} of {} passed, {} skipped, {} not applicable", score.passed,
                       count_text(score.lines, "line"), score.skipped, score.inapplicable);
  }
  return score_text(score, report.gpu);
}

std::string paragraph(std::string_view label, std::string_view text) {
  return text.empty() ? std::string()
                      : format_text("<p><span class=\"soft\">{}</span> {}</p>\n", label,
                                    escaped_markup(text));
}

std::string line_html(const LineResult& result) {
  const Line& line = *result.line;
  const Look look = look_of(result.outcome);
  std::string text = format_text(
      "<div class=\"line {}\"><span class=\"id\">{}</span><span class=\"tag {}\">{}</span>",
      look.css, escaped_markup(line.id), look.css, look.text);
  if (line.points != 0) {
    text += format_text("<span class=\"points\">{}</span>", count_text(line.points, "point"));
  }
  text += format_text("<p><b>{}</b></p>\n", escaped_markup(line.claim));
  if (result.outcome.reason != line.how) text += paragraph("decided by", line.how);
  text += paragraph(result.outcome.status == Status::Failed ? "failed:" : "reason:",
                    result.outcome.reason);
  std::string figures;
  for (const std::string& figure : result.outcome.figures) {
    figures += (figures.empty() ? "" : "; ") + figure;
  }
  text += paragraph("figures:", figures);
  if (result.mutant) {
    text += format_text(
        "<p{}><span class=\"soft\">mutant:</span> {}: {}</p>\n",
        result.mutant->noticed ? "" : " class=\"bad\"", escaped_markup(line.mutant.what),
        result.mutant->noticed ? "noticed (" + escaped_markup(shortened(result.mutant->text)) + ")"
                               : "NOT NOTICED");
  }
  if (!line.command.empty())
    text += format_text("<p><code>{}</code></p>\n", escaped_markup(line.command));
  return text + "</div>\n";
}

std::string card(std::string_view title, const std::string& value, const std::string& rest) {
  return format_text("<div class=\"card\"><span class=\"soft\">{}</span><b>{}</b>{}</div>\n", title,
                     value, rest);
}

std::string cards(const Report& report) {
  std::string text = "<div class=\"cards\">\n";
  for (const auto& [group, name] :
       {std::pair{Group::Checklist, "checklist"}, std::pair{Group::Modes, "test modes"}}) {
    const Score score = report.score(group);
    if (score.lines == 0) continue;
    text += card(name, format_text("{} of {}", score.earned, score.applicable()),
                 bar(score, true) +
                     format_text("<span class=\"soft\">{}</span>", score_text(score, report.gpu)));
  }
  const Score all = report.score();
  text += card("lines", std::to_string(all.lines),
               format_text("<span class=\"soft\">{} passed, {} failed, {} skipped, {} not "
                           "applicable</span>",
                           all.passed, all.failed, all.skipped, all.inapplicable));
  if (report.mutated) {
    text += card("mutants", format_text("{} of {}", report.noticed(), report.mutants()),
                 "<span class=\"soft\">lines that fail when what they check is broken</span>");
  }
  return text + "</div>\n";
}

std::string overview(const Report& report) {
  std::string text = "<div class=\"overview\"><table>\n";
  for (const SectionInfo& section : sections()) {
    const Score score = report.score(section.section);
    if (score.lines == 0) continue;
    text += format_text(
        "<tr><td><a href=\"#s{}\">{}</a></td><td>{}</td><td>{}</td><td "
        "class=\"soft\">{}</td></tr>\n",
        section.name, section.name, section.title, bar(score, section.group != Group::Unscored),
        summary_of(report, section, score));
  }
  return text +
         "</table><p class=\"legend soft\"><span><i class=\"p\"></i>passed</span>"
         "<span><i class=\"f\"></i>failed</span><span><i class=\"o\"></i>not decided</span>"
         "<span><i class=\"s\"></i>waits for a GPU or a record</span>"
         "<span><i class=\"n\"></i>does not apply</span></p></div>\n";
}

}  // namespace

std::string to_html(const Report& report) {
  std::string text(kHead);
  text += format_text("<h1>ptxgen qa: {}</h1>\n<p class=\"soft\">{}{}</p>\n",
                      report.ok() ? "passed" : "failed", escaped_markup(report.device),
                      report.gpu ? "" : ": lines that need a GPU are skipped.");
  text += cards(report) + overview(report);
  text += R"(<p class="filter soft">show
<label><input type="checkbox" value="p" checked> passed</label>
<label><input type="checkbox" value="f" checked> failed</label>
<label><input type="checkbox" value="o" checked> not decided</label>
<label><input type="checkbox" value="s" checked> waiting</label>
<label><input type="checkbox" value="n" checked> not applicable</label></p>
)";
  for (const SectionInfo& section : sections()) {
    const Score score = report.score(section.section);
    if (score.lines == 0) continue;
    text += format_text(
        "<details class=\"section\" id=\"s{}\"{}><summary><h2>{} {}</h2> <span class=\"soft\">{}"
        "</span></summary>\n",
        section.name, section.group == Group::Checklist || score.failed != 0 ? " open" : "",
        section.name, section.title, summary_of(report, section, score));
    for (const LineResult& result : report.results) {
      if (result.line->section == section.section) text += line_html(result);
    }
    text += "</details>\n";
  }
  return text + std::string(kScript);
}

}  // namespace ptxgen::qa
