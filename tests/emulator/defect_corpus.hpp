// tests/emulator/defect_corpus.hpp - small kernels with known verdicts, and what is expected of
// each
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/emulator/emulator.hpp"

namespace ptxgen::test {

/// A kernel of the corpus. Its first lines say how it is run and what must be found:
///
///     // run: grid=2 block=64 args="zero:256 u32:5" [smem=BYTES] [checks=RULES]
///     //      [max-instructions=N] [outputs=any]          (all on one line)
///     // expect: RULE[|RULE..]      one of these is found, at marked lines only
///     // expect: clean RULE         nothing is found; a look-alike of what breaks RULE
///     // allow: RULE[,RULE..]       may be found as well, at any line
///
/// A line that ends in `// <- RULE` has to be named by a finding, as its own line or the other
/// party's; one that ends in `// <~ RULE` may be.
///
/// Arguments: what `parse_argument` reads, but zero:BYTES and out:BYTES have no file, and there are
/// iota:BYTES (words 0, 1, 2, ..), readonly:BYTES (likewise, protected) and freed:BYTES.
struct DefectCase {
  std::string name;
  std::string text;
  emulator::Dim3 grid;
  emulator::Dim3 block;
  std::uint32_t shared_bytes = 0;
  std::vector<std::string> arguments;
  emulator::RuleSet checks;
  std::uint64_t max_instructions = 0;  ///< 0: the emulator's default
  bool outputs_may_differ = false;     ///< between schedules
  bool clean = false;
  emulator::Rule about{};                ///< the first rule of `expect`
  std::vector<emulator::Rule> expected;  ///< empty if clean
  std::set<emulator::Rule> allowed;
  std::set<std::uint32_t> must;  ///< lines with `// <-`
  std::set<std::uint32_t> may;   ///< lines with `// <~`
};

/// Reads one text; throws std::runtime_error that says what is wrong with its first lines.
[[nodiscard]] DefectCase read_case(std::string name, std::string text);

/// All files of a folder with this extension (".ptx"), by name.
[[nodiscard]] std::vector<DefectCase> read_cases(const std::string& folder,
                                                 std::string_view extension);

/// How a launch went.
struct DefectRun {
  emulator::Result result;
  std::vector<std::byte> memory;  ///< of all buffers, afterwards
};

/// Loads `ptx` on a new device and launches its kernel once.
[[nodiscard]] DefectRun run_case(const DefectCase& test, std::string_view ptx, std::uint64_t seed);

/// What is wrong with the findings of a run, a line each; empty if nothing is. `line_of` gives the
/// line of the case's text for a line of the PTX, or is null where they are the same text.
[[nodiscard]] std::string judge(const DefectCase& test, const emulator::Result& result,
                                const std::vector<std::uint32_t>* line_of = nullptr);

/// Runs a case under seeds 0 .. `seeds` - 1 and judges each; also whether memory came out equal
/// (clean cases) or not (nondeterminism). Returns the first complaint with the findings, or "".
[[nodiscard]] std::string complaints(const DefectCase& test, std::string_view ptx, int seeds,
                                     const std::vector<std::uint32_t>* line_of = nullptr);

}  // namespace ptxgen::test
