// tests/ptx/parser_corpus_test.cpp - texts of other producers survive, broken ones are refused
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

#include <catch2/catch.hpp>

#include "parser_helpers.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "support/harness.hpp"

using namespace ptxgen;
using namespace ptxgen::test;

namespace {

std::vector<std::filesystem::path> corpus(std::string_view folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(PTXGEN_CORPUS) / folder)) {
    if (entry.path().extension() == ".ptx") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() > 5);
  return files;
}

std::string content(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::uint64_t next(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  return z ^ (z >> 31);
}

// Reads a text that may be broken: it must be refused with a place, or survive being printed.
void survives(const std::string& text) {
  try {
    const ptx::Module module = ptx::parse(text);
    const std::string difference = lost(module);
    if (!difference.empty()) FAIL(difference << " in\n" << text);
  } catch (const Error& error) {
    if (error.code != "syntax" || error.line == 0) FAIL(error.what() << " in\n" << text);
  }
}

struct Expectation {
  std::string line, column, rule, fragment;
};

// `// expect: LINE:COL: RULE: FRAGMENT`
Expectation expectation_of(const std::string& text) {
  constexpr std::string_view kMark = "// expect: ";
  REQUIRE(text.starts_with(kMark));
  std::string rest = text.substr(kMark.size(), text.find_first_of("\r\n") - kMark.size());
  const auto take = [&rest](std::string_view separator) {
    const std::size_t end = rest.find(separator);
    REQUIRE(end != std::string::npos);
    std::string field = rest.substr(0, end);
    rest = rest.substr(end + separator.size());
    return field;
  };
  Expectation expected;
  expected.line = take(":");
  expected.column = take(": ");
  expected.rule = take(": ");
  expected.fragment = rest;
  return expected;
}

bool fits(std::string_view wanted, std::string_view found) {
  return wanted == "*" || wanted == found;
}

}  // namespace

TEST_CASE("nothing is lost of the texts of other producers") {
  for (const auto* folder : {"foreign", "stored"}) {
    for (const auto& path : corpus(folder)) {
      INFO(path.filename().string());
      const ptx::Module module = ptx::parse(content(path), path.filename().string());
      const std::string printed = ptx::print(module);
      const ptx::Module again = ptx::parse(printed);
      CHECK(ptx::difference(module, again) == "");
      CHECK(ptx::print(again) == printed);
      for (const ptx::Function& function : module.functions) {
        for (const ptx::Label& label : function.labels) CHECK(label.defined);
      }
    }
  }
}

TEST_CASE("seeds of the fuzzer are read or refused") {
  for (const auto& path : corpus("fuzz_seeds")) {
    INFO(path.filename().string());
    const bool broken = path.filename().string().starts_with("broken_");
    CHECK((error_in(content(path)) != "read") == broken);
    survives(content(path));
  }
}

TEST_CASE("broken texts with a syntax error give it at the right place") {
  std::size_t checked = 0;
  for (const auto& path : corpus("invalid")) {
    INFO(path.filename().string());
    const std::string text = content(path);
    const Expectation expected = expectation_of(text);
    try {
      const ptx::Module module = ptx::parse(text);
      // What the verifier finds is its own test's business; here the text survives.
      CHECK(expected.rule != "syntax");
      CHECK(lost(module).empty());
    } catch (const Error& error) {
      ++checked;
      INFO(error.what());
      CHECK(fits(expected.rule, error.code));
      CHECK(fits(expected.line, std::to_string(error.line)));
      CHECK(fits(expected.column, std::to_string(error.column)));
      CHECK(
          (expected.fragment == "*" || error.message.find(expected.fragment) != std::string::npos));
    }
  }
  CHECK(checked > 30);
}

TEST_CASE("a real module may be cut off anywhere") {
  for (const auto* file : {"foreign/odd_syntax.ptx", "stored/calls.sm_80.ptx"}) {
    const std::string text = content(std::filesystem::path(PTXGEN_CORPUS) / file);
    REQUIRE(text.size() > 1000);
    const std::size_t max = full() ? text.size() : std::min<std::size_t>(text.size(), 8000);
    for (std::size_t size = 0; size < max; ++size) {
      if (!takes(size, 1, 5)) continue;
      try {
        (void)ptx::parse(std::string_view(text).substr(0, size));
      } catch (const Error& error) {
        if (error.code != "syntax" || error.line == 0) FAIL(error.what());
      }
    }
  }
}

TEST_CASE("flipped, doubled and removed bytes never do harm") {
  std::uint64_t state = seed();
  std::cout << "seed " << state << '\n';
  std::vector<std::string> texts;
  for (const auto* folder : {"foreign", "fuzz_seeds"}) {
    for (const auto& path : corpus(folder)) texts.push_back(content(path));
  }
  constexpr std::string_view kLikely = "{}[]()<>;:,.@!|+-*/\"_%$0123456789xfd\0\n";
  for (int i = 0; i < count(3000, 100000); ++i) {
    std::string text = texts[next(state) % texts.size()];
    for (std::uint64_t edits = 1 + next(state) % 4; edits > 0; --edits) {
      const std::size_t at = next(state) % text.size();
      switch (next(state) % 4) {
        case 0:
          text[at] = static_cast<char>(next(state));
          break;
        case 1:
          text[at] = kLikely[next(state) % kLikely.size()];
          break;
        case 2:
          text.erase(at, next(state) % 8);
          break;
        default:
          text.insert(at, text.substr(next(state) % text.size(), next(state) % 40));
          break;
      }
    }
    survives(text);
  }
}
