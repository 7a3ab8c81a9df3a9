// tests/cli/qa_test.cpp - ptxgen qa: sections, reports, gates of a model, refusals
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "model_file.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
using nlohmann::json;

namespace {

SubprocessResult qa(std::vector<std::string> more) {
  more.insert(more.begin(), {"qa", "--device", "emulator", "--record", "none.json"});
  return ptxgen_program(std::move(more));
}

const json& gate(const json& document, std::string_view id) {
  for (const json& line : document.at("lines")) {
    if (line.at("id") == id) return line;
  }
  FAIL("no gate " << id);
  return document;
}

}  // namespace

TEST_CASE("qa prints lines, points and mutants of a section") {
  const auto result = qa({"--section", "A", "--mutate"});
  INFO(result.out);
  CHECK(result.exit_code == 0);
  CHECK(contains(result.out, "\nA Environment: "));
  CHECK(contains(result.out, " applicable points; 3 wait for a GPU, 2 wait for a record of "));
  CHECK(contains(result.out, "  A4     1  pass       the compiler is GCC 11, Clang 14 or newer"));
  CHECK(contains(result.out, "  A1     1  skip       the driver is 12.2 or newer\n"));
  CHECK(contains(result.out, "there is no none.json; scripts/test --full writes it\n"));
  CHECK(contains(result.out, " noticed\n"));
  CHECK_FALSE(contains(result.out, "NOT NOTICED"));
}

TEST_CASE("qa --json and --out have the same lines; the page is one file") {
  const TemporaryDirectory folder;
  const std::string out = folder.file("report");
  const auto result = qa({"--section", "A", "--json", "--out", out});
  CHECK(result.exit_code == 0);
  const json document = json::parse(result.out);
  CHECK(document.at("lines").size() == 10);
  CHECK(document.at("ok") == true);
  CHECK(document.at("score").get<int>() > 0);
  CHECK(document.at("score") <= document.at("applicable"));
  CHECK(json::parse(read_file(out + "/qa.json")).at("score") == document.at("score"));
  CHECK(contains(read_file(out + "/qa.txt"), "A Environment"));
  const std::string page = read_file(out + "/qa.html");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK_FALSE(contains(page, "http"));
}

TEST_CASE("qa refuses sections that do not exist, and runs that decide nothing fail") {
  const auto unknown = qa({"--section", "Z"});
  CHECK(unknown.exit_code == 2);
  CHECK(contains(unknown.err, "--section: there is no section 'Z'; sections: A, B, C"));
  // The quality gates are decided by a record, and there is none here.
  const auto nothing = qa({"--section", "gates"});
  CHECK(nothing.exit_code == 1);
  CHECK(contains(nothing.out, "error: nothing was decided\n"));
  CHECK(contains(nothing.out, "0 of 5 passed, 5 skipped"));
}

TEST_CASE("qa MODEL runs seven gates, each with a flag to skip it") {
  const ModelFile model;
  // Parity has its own tests.
  const auto result = qa({model.path, "--json", "--skip-ptx-parity", "--skip-tokenizer"});
  INFO(result.out << result.err);
  CHECK(result.exit_code == 0);
  const json document = json::parse(result.out);
  CHECK(document.at("lines").size() == 7);
  for (const char* id : {"M1", "M2", "M3", "M5", "M7"}) {
    INFO(id);
    CHECK(gate(document, id).at("status") == "passed");
  }
  CHECK(gate(document, "M6").at("status") == "skipped");
  CHECK(gate(document, "M6").at("reason") == "by --skip-ptx-parity");
  const auto tokens = qa({model.path, "--skip-ptx-parity", "--skip-logits"});
  CHECK(tokens.exit_code == 0);
  CHECK(contains(tokens.out, "  M4     0  pass       texts survive the tokenizer\n"));
}

TEST_CASE("qa MODEL: a file that is no model fails every gate that reads it") {
  const TemporaryDirectory folder;
  const std::string path = folder.file("broken.gguf");
  write_file(path, "GGUF");
  const auto result = qa({path, "--skip-ptx-parity", "--skip-logits"});
  CHECK(result.exit_code == 1);
  CHECK(contains(result.out, "  M1     0  FAIL       the file is valid\n"));
  CHECK(contains(result.out, "  M7     0  FAIL"));
  CHECK(contains(result.out, "  M5     0  skip"));
  const auto both = qa({path, "--mutate"});
  CHECK(both.exit_code == 2);
  CHECK(contains(both.err, "a model has gates of its own"));
}
