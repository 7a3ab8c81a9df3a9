// bench/gemv/verdicts.cpp - compares what a run measured with the claims
#define FMT_HEADER_ONLY 1
#include <fmt/format.h>

#include "bench/gemv/claims.hpp"
#include "cli_common/program.hpp"

namespace ptxgen::gemv_bench {

namespace {

using Says = Verdict::Says;

bool holds(const ClaimTerm& term, double value) {
  return (!term.below || value < *term.below) && (!term.above || value > *term.above) &&
         (!term.at_least || value >= *term.at_least) && (!term.at_most || value <= *term.at_most);
}

std::string shown(const Claim& claim, const ClaimTerm& term, const Figure& figure) {
  try {
    return fmt::format(
        fmt::runtime(term.show), fmt::arg("value", figure.value),
        fmt::arg("percent", 100 * figure.value), fmt::arg("excess", 100 * (figure.value - 1)),
        fmt::arg("where", figure.where), fmt::arg("us", figure.us), fmt::arg("base", figure.base));
  } catch (const fmt::format_error& error) {
    throw cli::UsageError(
        fmt::format("claim {}: the pattern '{}' is wrong: {}", claim.id, term.show, error.what()));
  }
}

Verdict not_applicable(const Claim& claim, std::string why) {
  return {claim.id, claim.text, Says::NotApplicable, std::move(why)};
}

Verdict verdict_of(const BenchRun& run, const Claim& claim) {
  if (claim.terms.empty()) return not_applicable(claim, claim.missing);
  bool pass = true;
  bool from_clock = false;
  std::string measured;
  for (const ClaimTerm& term : claim.terms) {
    const std::optional<Figure> figure = figure_of(run, term);
    if (!figure) return not_applicable(claim, term.missing);
    pass = pass && holds(term, figure->value);
    from_clock = from_clock || figure->from_clock;
    const std::string text = shown(claim, term, *figure);
    if (!measured.empty() && !text.empty()) measured += ", ";
    measured += text;
  }
  if (run.machine.emulated && from_clock) {
    return not_applicable(claim, "the emulator's times say nothing about a GPU");
  }
  if (run.machine.gpu.find(claim.only_on) == std::string::npos) {
    return not_applicable(claim, fmt::format("{}; this is no {}", measured, claim.only_on));
  }
  return {claim.id, claim.text, pass ? Says::Pass : Says::Fail, std::move(measured)};
}

}  // namespace

std::vector<Verdict> verdicts_of(const BenchRun& run, const std::vector<Claim>& claims) {
  std::vector<Verdict> verdicts;
  for (const Claim& claim : claims) verdicts.push_back(verdict_of(run, claim));
  return verdicts;
}

}  // namespace ptxgen::gemv_bench
