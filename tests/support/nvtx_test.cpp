// tests/support/nvtx_test.cpp - spans as ranges of a fake profiler
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "support/subprocess.hpp"
#include "support/temporary_directory.hpp"

using namespace ptxgen;

namespace {

/// What the probe prints with these environment variables.
std::string probe(const std::vector<std::string>& variables, const std::string& recorder = {}) {
  std::vector<std::string> argv = {"/usr/bin/env",     "-u", "NVTX_INJECTION64_PATH", "-u",
                                   "PTXGEN_NVTX_PATH", "-u", "PTXGEN_TRACE",          "-u",
                                   "PTXGEN_LOG"};
  argv.insert(argv.end(), variables.begin(), variables.end());
  argv.emplace_back(NVTX_PROBE);
  if (!recorder.empty()) argv.push_back(recorder);
  const SubprocessResult result = run_program(argv);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  return result.out;
}

const std::string kOn = "on 1 profiled 1 second 1\n";
const std::string kOff = "on 0 profiled 0 second 0\n";

}  // namespace

TEST_CASE("spans are nested ranges of a domain of the injected profiler", "[nvtx]") {
  CHECK(probe({"NVTX_INJECTION64_PATH=" FAKE_NVTX_DOMAIN}, FAKE_NVTX_DOMAIN) ==
        kOn +
            "domain ptxgen|push load|push assemble|pop|push link|pop|push other thread|pop|pop|\n");
}

TEST_CASE("a profiler without domains gets plain ranges", "[nvtx]") {
  CHECK(probe({"NVTX_INJECTION64_PATH=" FAKE_NVTX_PLAIN}, FAKE_NVTX_PLAIN) ==
        kOn +
            "plain push load|plain push assemble|plain pop|plain push link|plain pop|"
            "plain push other thread|plain pop|plain pop|\n");
}

TEST_CASE("a profiler that refuses is told and stops nothing", "[nvtx]") {
  const std::string told =
      "warn: NVTX_INJECTION64_PATH=" FAKE_NVTX_REFUSES
      ": InitializeInjectionNvtx2 returned 0; no profiler will see the library's ranges\n";
  CHECK(probe({"NVTX_INJECTION64_PATH=" FAKE_NVTX_REFUSES}) == told + told + kOff);
}

TEST_CASE("a profiler without ranges, a library without entry and a missing file are told",
          "[nvtx]") {
  const std::string none =
      "warn: the profiler's NVTX library offers no ranges; none will be shown\n";
  CHECK(probe({"NVTX_INJECTION64_PATH=" FAKE_NVTX_EMPTY}) == none + none + kOff);
  const std::string no_entry =
      "warn: NVTX_INJECTION64_PATH=" FAKE_NVTX_NOENTRY
      ": has no function InitializeInjectionNvtx2; no profiler will see the library's ranges\n";
  CHECK(probe({"NVTX_INJECTION64_PATH=" FAKE_NVTX_NOENTRY}) == no_entry + no_entry + kOff);
  const TemporaryDirectory folder;
  const std::string missing = folder.file("gone.so");
  const std::string told = "warn: NVTX_INJECTION64_PATH=" + missing +
                           ": no such file; no profiler will see the library's ranges\n";
  CHECK(probe({"NVTX_INJECTION64_PATH=" + missing}) == told + told + kOff);
}

TEST_CASE("libnvToolsExt is used where it is named or loaded already", "[nvtx]") {
  const std::string ranges =
      "domain ptxgen|push load|push assemble|pop|push link|pop|push other thread|pop|pop|\n";
  CHECK(probe({"PTXGEN_NVTX_PATH=" FAKE_NVTX_LIBRARY}, FAKE_NVTX_LIBRARY) == kOn + ranges);
  CHECK(probe({}, FAKE_NVTX_LIBRARY) == kOn + ranges);
  CHECK(probe({}) == kOff);
  CHECK(probe({}, FAKE_NVTX_DOMAIN) == kOff + "\n");
}

TEST_CASE("a range is open while its span is, in a trace that is also written", "[nvtx]") {
  const TemporaryDirectory folder;
  CHECK(probe({"NVTX_INJECTION64_PATH=" FAKE_NVTX_PLAIN, "PTXGEN_TRACE=" + folder.file("t.json")},
              FAKE_NVTX_PLAIN)
            .find(kOn) == 0);
  CHECK(read_file(folder.file("t.json")).find("\"other thread\"") != std::string::npos);
}
