// tests/qa/table_test.cpp - the table of lines: ids, points, mutants
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "qa/line.hpp"

using namespace ptxgen;
using namespace ptxgen::qa;

TEST_CASE("qa: every line has its own id, a claim and how it is decided") {
  std::set<std::string_view> ids;
  for (const Line& line : all_lines()) {
    INFO(line.id);
    CHECK(ids.insert(line.id).second);
    CHECK_FALSE(line.claim.empty());
    CHECK_FALSE(line.how.empty());
    CHECK((line.means == Means::Record) == (line.decide != nullptr && !line.record.empty()));
    if (line.means == Means::None) CHECK(line.decide == nullptr);
  }
  CHECK(ids.size() == all_lines().size());
}

TEST_CASE("qa: lines have the points of the specification") {
  std::map<Section, unsigned> points;
  std::map<Group, unsigned> groups;
  for (const Line& line : all_lines()) {
    points[line.section] += line.points;
    groups[info(line.section).group] += line.points;
  }
  for (const SectionInfo& section : sections()) {
    INFO(section.name);
    CHECK(points[section.section] == section.points);
    CHECK(info(section.section).name == section.name);
  }
  CHECK(groups[Group::Checklist] == 109);
  CHECK(groups[Group::Modes] == 80);
  CHECK(groups[Group::Unscored] == 0);
}

TEST_CASE("qa: there are 115 claims, numbered") {
  unsigned next = 1;
  for (const Line& line : all_lines()) {
    if (line.section != Section::Claims) continue;
    CHECK(line.id == std::to_string(next));
    ++next;
  }
  CHECK(next == 116);
}

TEST_CASE("qa: every line that can be decided has a mutant of one kind") {
  for (const Line& line : all_lines()) {
    INFO(line.id);
    CHECK(line.mutant.exists() == (line.decide != nullptr));
    CHECK_FALSE((line.mutant.edit != nullptr && line.mutant.arm != nullptr));
  }
}
