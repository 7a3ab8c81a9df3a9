// tests/qa/record_test.cpp - records of scripts/test
#include "qa/record.hpp"

#include <catch2/catch.hpp>

#include "qa/run.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::qa;

namespace {

Record sample() {
  Record record;
  record.found = true;
  record.results = {{"test: tile/falsification 33, 37: strides", "passed"},
                    {"test: tile/falsification 38: widths", "failed"},
                    {"clang: tile/falsification 38: widths", "passed"},
                    {"test: gemv/D1", "passed"},
                    {"test: gemv/D2", "skipped"},
                    {"mutants", "passed"}};
  record.labels = {{"gemv", {"test: gemv/D1", "test: gemv/D2"}}};
  return record;
}

}  // namespace

TEST_CASE("qa: results of a label, a step, a case, and a number in a list") {
  const Record record = sample();
  CHECK(results_of(record, "label gemv").passed == std::vector<std::string>{"test: gemv/D1"});
  CHECK(results_of(record, "label gemv").skipped.size() == 1);
  CHECK(results_of(record, "label none").passed.empty());
  CHECK(results_of(record, "step mutants").passed.size() == 1);
  CHECK(results_of(record, "case falsification 37").passed.size() == 1);
  CHECK(results_of(record, "case falsification 3").passed.empty());
  CHECK(results_of(record, "case falsification 38").failed.size() == 1);
  CHECK(results_of(record, "case falsification 38").passed.size() == 1);
  CHECK(results_of(record, "case strides").passed.size() == 1);
}

TEST_CASE("qa: a record that is missing, damaged or about another commit does not count") {
  CHECK(read_record("none.json").why_not == "there is no none.json; scripts/test --full writes it");
  const TemporaryDirectory folder;
  const std::string file = folder.file("record.json");
  write_file(file, "{\"commit\": 5}");
  CHECK(read_record(file).why_not.find("is no record of scripts/test") != std::string::npos);
  write_file(file,
             R"({"commit":"0123456789abcdef","mode":"day","results":{"a":"passed"},"labels":{},)"
             R"("notes":{"a":"91.3 % of 50000 lines"}})");
  const Record other = read_record(file);
  CHECK_FALSE(other.found);
  CHECK(other.why_not.find("is about commit 0123456789ab, the tree is at ") != std::string::npos);
  CHECK(other.results.size() == 1);
  CHECK(other.notes.at("a") == "91.3 % of 50000 lines");
}
