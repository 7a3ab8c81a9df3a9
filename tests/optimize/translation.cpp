// tests/optimize/translation.cpp - a pass on a program, held against the emulator
#include "translation.hpp"

#include <algorithm>
#include <exception>
#include <sstream>
#include <vector>

#include "fusion_reference.hpp"
#include "ptxgen/analysis/cfg.hpp"
#include "ptxgen/check/gates.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"

namespace ptxgen::test {

namespace {

optimize::PassOptions options_for(const std::string& pass) {
  optimize::PassOptions options;
  options.passes = {pass};
  options.explain = true;
  options.dump = true;
  return options;
}

/// What a run must give: the program's, with the reported pairs rounded once, wherever in the
/// pipeline they were fused.
std::string expectation(const RandomProgram& program, const optimize::PipelineReport& report,
                        ProgramOutcome& expected) {
  for (const optimize::PassReport& pass : report.passes) {
    if (pass.name != "fma_fusion" || !pass.changed) continue;
    const std::string wrong = difference(program, expected, run_program(program, pass.before));
    if (!wrong.empty()) return "before fma_fusion " + wrong + "\n" + pass.before;
    expected = run_program(program, fuse_by_hand(pass.before, pass.decisions));
  }
  return {};
}

std::string second_run(ptx::Module module, const std::string& pass, const std::string& first) {
  const optimize::PipelineReport again = run_passes(module, options_for(pass));
  if (!again.changed() && print(module) == first) return {};
  std::string text = "a second run changes it again";
  for (const optimize::PassReport& entry : again.passes) {
    if (!entry.changed) continue;
    text += ", first " + std::string(entry.name) + ":";
    for (const optimize::Decision& decision : entry.decisions) {
      if (decision.fired) text += "\n  " + decision.message;
    }
    break;
  }
  return text + "\n" + print(module);
}

std::string barrier_findings(const ptx::Module& before, const ptx::Module& after) {
  if (!gates::barrier_safety(before).empty()) return {};
  const std::vector<Finding> found = gates::barrier_safety(after);
  return found.empty() ? "" : "a safe barrier is not safe any more: " + to_text(found.front());
}

std::string compare(const RandomProgram& program, const ProgramOutcome& before,
                    const std::string& pass, Translation& result) {
  const ptx::Module original = ptx::parse(program.ptx, "random.ptx");
  const std::string printed = print(original);
  ptx::Module module = original;
  const optimize::PipelineReport report = run_passes(module, options_for(pass));
  for (const optimize::PassReport& entry : report.passes) {
    result.fired += entry.fired();
    result.refused += entry.refused();
  }
  result.changed = report.changed();
  result.after = print(module);
  result.instructions_before = result.instructions_after = before.warp_instructions;
  if (!result.changed) return result.after == printed ? "" : "changed, but says that it was not";
  if (result.after == printed) return "not changed, but says that it was";
  if (result.fired == 0) return "changed without a decision that fired";
  ProgramOutcome expected = before;
  if (std::string wrong = expectation(program, report, expected); !wrong.empty()) return wrong;
  const ProgramOutcome after = run_program(program, result.after);
  result.instructions_after = after.warp_instructions;
  if (std::string wrong = difference(program, expected, after); !wrong.empty()) return wrong;
  if (std::string wrong = second_run(module, pass, result.after); !wrong.empty()) return wrong;
  return barrier_findings(original, module);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool still_fails(const RandomProgram& program, const std::string& pass) {
  try {
    const ProgramOutcome watched = run_program(program, program.ptx, true);
    if (watched.status != emulator::Status::Ok || !watched.findings.empty()) return false;
  } catch (const std::exception&) {
    return false;  // lines are missing that others need
  }
  return !translate(program, run_program(program, program.ptx), pass).failure.empty();
}

}  // namespace

Translation translate(const RandomProgram& program, const ProgramOutcome& before,
                      const std::string& pass) {
  Translation result;
  try {
    result.failure = compare(program, before, pass, result);
  } catch (const std::exception& error) {
    result.failure = error.what();
    if (result.failure.empty()) result.failure = "an exception without a text";
  }
  if (!result.failure.empty()) {
    result.failure = "program " + std::to_string(program.number) + ", pass " + pass + ": " +
                     result.failure + "\n--- before\n" + program.ptx + "--- after\n" + result.after;
  }
  return result;
}

RandomProgram shrink(const RandomProgram& program, const std::string& pass, unsigned attempts) {
  RandomProgram best = program;
  std::vector<std::string> lines = lines_of(program.ptx);
  for (std::size_t chunk = 32; chunk > 0;) {
    bool shorter = false;
    for (std::size_t at = 0; at < lines.size() && attempts > 0;) {
      std::vector<std::string> fewer = lines;
      const auto first = fewer.begin() + static_cast<std::ptrdiff_t>(at);
      fewer.erase(first, first + static_cast<std::ptrdiff_t>(std::min(chunk, lines.size() - at)));
      RandomProgram candidate = program;
      candidate.ptx = joined(fewer);
      --attempts;
      if (still_fails(candidate, pass)) {
        lines = std::move(fewer);
        best = std::move(candidate);
        shorter = true;
      } else {
        at += chunk;
      }
    }
    if (!shorter || chunk > 1) chunk /= 2;
    if (attempts == 0) break;
  }
  return best;
}

}  // namespace ptxgen::test
