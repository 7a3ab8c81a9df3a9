// tests/support/main.cpp - the main function of every test program
#define CATCH_CONFIG_RUNNER
#include "support/comparisons.hpp"
#include "support/harness.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <iostream>
#include <string>

namespace ptxgen::test {

namespace {

constexpr std::uint64_t kDefaultSeed = 20240229;
constexpr int kExitSkipped = 77;

// What the harness remembers of the run; tests are one process with one runner.
struct Tally {
  int skipped = 0;          ///< cases
  int hollow = 0;           ///< cases that compared nothing and did not say that they skip
  std::uint64_t skips = 0;  ///< of cases and of parts
  std::uint64_t comparisons = 0;
  Catch::Totals totals;
};

Tally& tally() {
  static Tally instance;
  return instance;
}

class TotalsListener : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(Catch::TestCaseInfo const&) override {
    comparisons_ = tally().comparisons;
    skips_ = tally().skips;
    skipped_ = tally().skipped;
  }
  bool assertionEnded(Catch::AssertionStats const& stats) override {
    // SUCCEED says that a line was reached. rapidcheck says with it that a property held.
    const Catch::AssertionResult& result = stats.assertionResult;
    const bool property =
        std::string_view(result.getSourceInfo().file).ends_with("rapidcheck/catch.h");
    if (property || result.getTestMacroName() != "SUCCEED") ++tally().comparisons;
    return true;
  }
  void testCaseEnded(Catch::TestCaseStats const& stats) override {
    const bool compared = tally().comparisons != comparisons_;
    if (compared || stats.aborting || tally().skipped != skipped_) return;
    if (tally().skips != skips_) {
      ++tally().skipped;  // all its parts were skipped
      return;
    }
    ++tally().hollow;
    std::cout << "\nin '" << stats.testInfo.name << "':\nFAILED: the case compares nothing; if it "
              << "cannot run here, it has to say so with skip()" << std::endl;
  }
  void testRunEnded(Catch::TestRunStats const& stats) override { tally().totals = stats.totals; }

 private:
  std::uint64_t comparisons_ = 0, skips_ = 0;
  int skipped_ = 0;
};

CATCH_REGISTER_LISTENER(TotalsListener)

void report_skip(std::string_view reason) {
  ++tally().skips;
  // The line holds the reason alone, so that equal reasons of many cases can be told once.
  std::cout << "\nin '" << Catch::getResultCapture().getCurrentTestName() << "':\nSKIP: " << reason
            << std::endl;
}

}  // namespace

std::uint64_t seed() {
  const char* text = std::getenv("PTXGEN_TEST_SEED");
  if (text == nullptr || *text == '\0') return kDefaultSeed;
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 10);
  if (*end != '\0') {
    std::cerr << "PTXGEN_TEST_SEED is not a decimal number: " << text << std::endl;
    std::exit(2);
  }
  return value;
}

bool full() {
  const char* text = std::getenv("PTXGEN_TEST_FULL");
  return text != nullptr && std::string_view(text) == "1";
}

int count(int normal, int in_full) {
  if (full()) return in_full;
  return kSanitized ? std::max(1, normal / 4) : normal;
}

bool takes(std::uint64_t index, std::uint64_t everyday, std::uint64_t sanitized) {
  const std::uint64_t period = full() ? 1 : kSanitized ? sanitized : everyday;
  return (index + seed()) % period == 0;
}

void skip(std::string_view reason) {
  report_skip(reason);
  ++tally().skipped;
  // Cases without an assertion are failures here, and this one is reported in its own way.
  SUCCEED("skipped");
}

void skip_part(std::string_view reason) {
  report_skip(reason);
  // Where nothing else is compared the case counts as skipped, not as one without assertions.
  SUCCEED("a part was skipped");
}

std::uint64_t comparisons() { return tally().comparisons; }
std::uint64_t skips() { return tally().skips; }

}  // namespace ptxgen::test

int main(int argc, char** argv) {
  using namespace ptxgen::test;
  // Neither what earlier runs left in the user's cache may decide a test, nor may tests fill it.
  ::setenv("PTXGEN_CACHE", "memory", 0);
  Catch::Session session;
  auto& config = session.configData();
  config.rngSeed = static_cast<unsigned>(seed());
  // A case that checks nothing, or a filter that matches nothing, is a failure.
  config.warnings = static_cast<Catch::WarnAbout::What>(Catch::WarnAbout::NoAssertions |
                                                        Catch::WarnAbout::NoTests);
  if (const int status = session.applyCommandLine(argc, argv); status != 0) return 2;
  const bool only_lists = config.listTests || config.listTags || config.listTestNamesOnly ||
                          config.listReporters || config.showHelp || config.libIdentify;
  if (only_lists) return session.run() < 0 ? 2 : 0;

  if (std::getenv("RC_PARAMS") == nullptr) {
    setenv("RC_PARAMS", ("seed=" + std::to_string(seed())).c_str(), 1);
  }
  std::cout << "seed " << config.rngSeed << ", rapidcheck " << std::getenv("RC_PARAMS")
            << " (PTXGEN_TEST_SEED=n for another)" << std::endl;

  const int status = session.run();
  const Catch::Totals& totals = tally().totals;
  if (status != 0 || totals.testCases.failed != 0 || totals.testCases.total() == 0) return 1;
  if (tally().hollow != 0) return 1;
  if (tally().skipped != 0) {
    std::cout << tally().skipped << " of " << totals.testCases.total() << " cases skipped\n";
    return kExitSkipped;
  }
  return 0;
}
