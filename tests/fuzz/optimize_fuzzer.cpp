// tests/fuzz/optimize_fuzzer.cpp - passes and gates on whatever can be parsed
//
// The default pipeline must end within the limits of time and memory that the fuzzer is run with,
// leave a module that prints and parses, and never break a function that the verifier took for
// right. The gates must judge the text and the result.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/check/gates.hpp"
#include "ptxgen/optimize/pass.hpp"
#include "ptxgen/ptx/parser.hpp"
#include "ptxgen/ptx/printer.hpp"
#include "ptxgen/ptx/verifier.hpp"
#include "ptxgen/support/error.hpp"

namespace {

using namespace ptxgen;

void require(bool holds, std::string_view what, std::string_view detail) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %.*s\n%.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

std::size_t errors(const std::vector<Finding>& findings) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [](const Finding& f) { return f.severity == Severity::Error; }));
}

void judge(const ptx::Module& module) {
  for (const gates::GateInfo& gate : gates::all_gates()) {
    for (const Finding& finding : gate.run(module, {})) {
      require(!finding.rule.empty() && !finding.message.empty(), "a finding says something",
              std::string(gate.name));
    }
  }
}

void transform(ptx::Module module) {
  const std::size_t before = errors(ptx::verify(module));
  optimize::PassOptions options;
  options.explain = true;
  optimize::PipelineReport report;
  try {
    report = optimize::run_passes(module, options);
  } catch (const Error& error) {
    require(false, "the default pipeline breaks no function", error.what());
  }
  (void)optimize::to_text(report, module);
  const std::string printed = ptx::print(module);
  try {
    require(errors(ptx::verify(ptx::parse(printed))) <= before,
            "the result is as right as the text", printed);
  } catch (const Error& error) {
    require(false, "what is printed can be read", error.what() + ("\n" + printed));
  }
  judge(module);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ptx::Module module;
  try {
    module = ptx::parse(text, "fuzzed");
  } catch (const Error&) {
    return 0;
  }
  judge(module);
  transform(std::move(module));
  return 0;
}
