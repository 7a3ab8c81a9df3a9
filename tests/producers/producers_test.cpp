// tests/producers/producers_test.cpp - PTX that other producers print, from text to result
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "ptxgen/support/error.hpp"
#include "ptxgen/support/settings.hpp"
#include "runner.hpp"
#include "support/harness.hpp"
#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;
using namespace ptxgen::test;
namespace fs = std::filesystem;

namespace {

// What is known to be wrong with a program: a part of what is said of it, from refused.txt. Of a
// gate that is wrong about it nothing but that gate's errors is let through.
struct Refusal {
  std::string reason;
  bool gate = false;
};

std::map<std::string, Refusal> known_refusals() {
  constexpr std::string_view kGate = "gate: ";
  std::map<std::string, Refusal> known;
  std::ifstream in(PRODUCERS "/refused.txt");
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t colon = line.find(": ");
    REQUIRE(colon != std::string::npos);
    Refusal refusal{line.substr(colon + 2)};
    refusal.gate = refusal.reason.starts_with(kGate);
    if (refusal.gate) refusal.reason.erase(0, kGate.size());
    known[line.substr(0, colon)] = refusal;
  }
  return known;
}

// Everything about one program: what is wrong, or nothing; and what the gates have against it.
struct Verdict {
  std::string wrong;
  std::string gates;
};

Verdict judged(const ProducerFolder& producer, const ProducerProgram& program,
               const Assembler* assembler) {
  Verdict verdict;
  try {
    std::set<std::pair<std::string, std::string>> done;
    for (const ProducerLaunch& launch : program.launches) {
      if (!done.emplace(launch.text, launch.entry).second) continue;
      const std::string text = read_file((producer.folder / launch.text).string());
      const ptx::Module module = checked_module(text, launch.text, verdict.wrong);
      verdict.gates += gate_errors(module, launch);
      if (assembler != nullptr) verdict.wrong += assembly_error(module, *assembler);
    }
    if (verdict.wrong.empty()) verdict.wrong = run_errors(producer, program, false);
    if (verdict.wrong.empty()) {
      const std::string after = run_errors(producer, program, true);
      if (!after.empty()) verdict.wrong = "after the default passes: " + after;
    }
  } catch (const Error& error) {
    verdict.wrong += error.what();
  }
  return verdict;
}

// The counts of a producer, and what of it should be otherwise.
struct Tally {
  std::size_t programs = 0;
  std::size_t right = 0;
  std::size_t refused = 0;
  std::string complaints;

  void add(const std::string& name, Verdict verdict, const Refusal* known) {
    ++programs;
    const bool gate_known = known != nullptr && known->gate;
    if (gate_known && verdict.gates.find(known->reason) != std::string::npos) {
      verdict.gates.clear();
      if (verdict.wrong.empty()) {
        ++refused;
        std::cout << "  right, but a gate refuses it: " << name << ": " << known->reason << "\n";
        return;
      }
    } else if (gate_known) {
      std::cout << "  no gate refuses it any more, take it out of refused.txt: " << name << "\n";
    }
    const std::string all = verdict.wrong + verdict.gates;
    if (known != nullptr && !known->gate) {
      if (all.find(known->reason) == std::string::npos) {
        complaints += name + " is in refused.txt for '" + known->reason +
                      "', but what is wrong is: " + (all.empty() ? "nothing" : all) + "\n";
        return;
      }
      ++refused;
      std::cout << "  refused: " << name << ": " << known->reason << "\n";
    } else if (all.empty()) {
      ++right;
    } else {
      complaints += name + ": " + all + "\n";
    }
  }
};

// All programs of a producer, on two threads.
Tally check_producer(const ProducerFolder& producer, const Assembler* assembler) {
  const auto known = known_refusals();
  std::mutex lock;
  Tally tally;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < producer.programs.size(); i = next++) {
      const ProducerProgram& program = producer.programs[i];
      Verdict verdict = judged(producer, program, assembler);
      const auto at = known.find(producer.producer + "/" + program.name);
      const std::lock_guard guard(lock);
      tally.add(program.name, std::move(verdict), at == known.end() ? nullptr : &at->second);
    }
  };
  std::thread other(work);
  work();
  other.join();
  std::cout << producer.producer << " " << producer.version << ": " << tally.programs
            << " programs, " << tally.right << " right, " << tally.refused << " refused\n";
  INFO(tally.complaints);
  CHECK(tally.complaints.empty());
  return tally;
}

void check_all(const fs::path& folder, std::size_t at_least) {
  const Assembler assembler(Settings::from_environment());
  if (!assembler.available()) skip_part("no assembler found: producers' texts are not assembled");
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (fs::exists(entry.path() / "programs.json")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  CHECK(found.size() >= at_least);
  for (const fs::path& one : found) {
    const ProducerFolder producer = read_producer(one);
    const Tally tally = check_producer(producer, assembler.available() ? &assembler : nullptr);
    CHECK(tally.programs >= 10);
  }
}

}  // namespace

TEST_CASE("stored texts of other producers give the results that NumPy gives") {
  check_all(PRODUCERS, 5);
}

TEST_CASE("what the producers print now gives the results that NumPy gives") {
  if (std::getenv("PTXGEN_PRINT_PRODUCERS") == nullptr)
    return skip("installing the producers from PyPI takes minutes: scripts/test --full does it");
  const TemporaryDirectory out(Settings::from_environment().temp_dir);
  SubprocessOptions limits;
  limits.timeout = std::chrono::minutes(25);
  const SubprocessResult result =
      run_program({PYTHON, PRODUCERS "/install_and_print.py", out.path()}, limits);
  std::cout << result.out;
  if (result.out.find("\nSKIP all") != std::string::npos || result.out.starts_with("SKIP all"))
    return skip("no producer can be installed from PyPI here");
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("SKIP ")) skip_part(line.substr(5));
  }
  check_all(out.path(), 1);
}
