// tests/qa/run_test.cpp - runs of lines and their mutants, scores, reports
#include "qa/run.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "qa/report/report.hpp"
#include "qa/tally.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::qa;

namespace {

const Surroundings& surroundings() {
  static const Surroundings kShared = [] {
    const Settings settings = Settings::from_environment();
    const Device device = Device::open("emulator", settings);
    return Surroundings{settings, device, collect_facts(device, settings), read_record("none.json"),
                        false};
  }();
  return kShared;
}

Outcome right(Fixture& fixture, const Line&) {
  Tally tally;
  tally.check(!fixture.changed(), "the input is {}", "changed");
  tally.figure("{} < {}", 1, 2);
  return tally.outcome();
}
Outcome blind(Fixture&, const Line&) {
  Tally tally;
  tally.check(true, "never");
  return tally.outcome();
}
Outcome empty(Fixture&, const Line&) { return Tally().outcome(); }
Outcome throwing(Fixture&, const Line&) { throw std::runtime_error("<broken>"); }
Outcome waiting(Fixture&, const Line&) { return skipped(Need::Gpu, "no GPU"); }

Line line(std::string_view id, Outcome (*decide)(Fixture&, const Line&), unsigned points = 1) {
  Line result;
  result.id = id;
  result.section = Section::A;
  result.points = points;
  result.claim = "a < b & c";
  result.how = "by comparing";
  result.decide = decide;
  result.mutant = {"another input"};
  return result;
}

Report run(const std::vector<Line>& lines, bool mutate = false) {
  RunOptions options;
  options.mutate = mutate;
  return run_lines(surroundings(), options, lines);
}

bool contains(const std::string& text, std::string_view piece) {
  return text.find(piece) != std::string::npos;
}

}  // namespace

TEST_CASE("qa: a line that compares nothing, or throws, has failed") {
  const std::vector<Line> lines = {line("a", empty), line("b", throwing), line("c", right)};
  const Report report = run(lines);
  CHECK(report.results[0].outcome.status == Status::Failed);
  CHECK(report.results[0].outcome.reason == "nothing was compared");
  CHECK(report.results[1].outcome.status == Status::Failed);
  CHECK(report.results[1].outcome.reason == "<broken>");
  CHECK(report.results[2].outcome.status == Status::Passed);
  CHECK_FALSE(report.ok());
}

TEST_CASE("qa: a run that decides nothing is a failure") {
  const std::vector<Line> lines = {line("a", waiting)};
  CHECK_FALSE(run(lines).ok());
  CHECK_FALSE(run({}).ok());
  CHECK(contains(to_text(run(lines)), "error: nothing was decided"));
}

TEST_CASE("qa: skipped lines are not counted as passed") {
  std::vector<Line> lines = {line("a", right, 3), line("b", waiting, 5), line("c", nullptr, 7),
                             line("d", nullptr, 11), line("e", empty, 13)};
  lines[3].means = Means::None;
  const Report report = run(lines);
  const Score score = report.score();
  CHECK(score.points == 39);
  CHECK(score.earned == 3);
  CHECK(score.lost == 13);
  CHECK(score.gpu == 5);
  CHECK(score.undecided == 7);
  CHECK(score.not_applicable == 11);
  CHECK(score.applicable() == 23);
  CHECK(score_text(score, false) ==
        "3 of 23 applicable points; 13 failed, 7 not decided, 5 wait for a GPU, 11 not applicable");
  CHECK(score_text(score, true).starts_with("3 of 39 points; 13 failed"));
}

TEST_CASE("qa: a mutant that a line does not notice fails the run") {
  const std::vector<Line> good = {line("a", right), line("b", waiting)};
  const Report noticed = run(good, true);
  CHECK(noticed.ok());
  CHECK(noticed.mutants() == 1);
  CHECK(noticed.noticed() == 1);
  const std::vector<Line> bad = {line("a", right), line("b", blind)};
  const Report missed = run(bad, true);
  CHECK_FALSE(missed.ok());
  CHECK(missed.noticed() == 1);
  CHECK(missed.mutants() == 2);
  CHECK(contains(to_text(missed), "MUTANT NOT NOTICED: another input: the line passed with it"));
  CHECK(contains(to_text(missed), "mutants: 1 of 2 noticed"));
  std::vector<Line> without = {line("a", right)};
  without[0].mutant = {};
  CHECK(run(without).ok());
  CHECK_FALSE(run(without, true).ok());
  CHECK(contains(to_text(run(without, true)), "error: line a has no mutant"));
}

TEST_CASE("qa: JSON has the fields of the contract") {
  const std::vector<Line> lines = {line("a", right, 2), line("b", waiting)};
  const Report report = run(lines, true);
  const nlohmann::json json = to_json(report);
  CHECK(json.at("score") == 2);
  CHECK(json.at("applicable") == 2);
  CHECK(json.at("ok") == true);
  CHECK(json.at("lines").at(0).at("status") == "passed");
  CHECK(json.at("lines").at(0).at("section") == "A");
  CHECK(json.at("lines").at(0).at("evidence") == nlohmann::json::array({"1 < 2", "1 comparison"}));
  CHECK(json.at("lines").at(0).at("mutant").at("noticed") == true);
  CHECK(json.at("lines").at(1).at("status") == "skipped");
  CHECK(json.at("lines").at(1).at("reason") == "no GPU");
  CHECK(json.at("lines").at(1).at("needs") == "gpu");
  CHECK(json.at("mutants").at("total") == 1);
}

TEST_CASE("qa: the page is complete, escaped, and refers to nothing outside it") {
  const std::vector<Line> lines = {line("a", right), line("b", throwing), line("c", waiting)};
  const Report report = run(lines);
  const std::string page = to_html(report);
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.ends_with("</html>\n"));
  CHECK(contains(page, "a &lt; b &amp; c"));
  CHECK(contains(page, "&lt;broken&gt;"));
  CHECK_FALSE(contains(page, "<broken>"));
  for (const char* outside : {"http:", "https:", "src=", "@import", "url("}) {
    INFO(outside);
    CHECK_FALSE(contains(page, outside));
  }
  for (const Line& one : lines) {
    CHECK(contains(page, "<span class=\"id\">" + std::string(one.id) + "</span>"));
  }
  CHECK(page == to_html(report));
}

TEST_CASE("qa: lines of the environment pass here and notice their mutants") {
  RunOptions options;
  options.sections = {Section::A};
  options.mutate = true;
  const Report report = run_lines(surroundings(), options);
  INFO(to_text(report));
  CHECK(report.ok());
  CHECK(report.mutants() >= 4);
  CHECK(report.score().points == 10);
}

TEST_CASE("qa: every section passes on the emulator, and each line notices its mutant") {
  RunOptions options;
  options.mutate = true;
  if (!test::full()) return test::skip("about a minute; PTXGEN_TEST_FULL=1 runs it");
  const Report report = run_lines(surroundings(), options);
  INFO(to_text(report));
  CHECK(report.ok());
  CHECK(report.without_mutant().empty());
}

TEST_CASE("qa: sections by name, and a name that is none") {
  CHECK(section_named("A") == Section::A);
  CHECK(section_named("3") == Section::Playbooks);
  CHECK(section_named("claims") == Section::Claims);
  CHECK_THROWS_WITH(section_named("Z"), Catch::Contains("there is no section 'Z'; sections: A, B"));
}
