// bench/gemv/claims.cpp - reads claims from JSON
#include "bench/gemv/claims.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "bench/gemv/shapes.hpp"
#include "cli_common/program.hpp"
#include "support/format.hpp"

namespace ptxgen::gemv_bench {

namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 18> kTermFields = {
    "quantity", "size",      "model",     "metric",  "arm",     "over",
    "take",     "min_bytes", "max_bytes", "factor",  "plus_us", "either_way",
    "below",    "above",     "at_least",  "at_most", "show",    "missing"};

Metric metric_named(const std::string& name) {
  for (const Metric metric : {Metric::Isolated, Metric::Chained, Metric::Stream}) {
    if (to_string(metric) == name) return metric;
  }
  throw cli::UsageError(format_text("there is no metric '{}'", name));
}

template <class T>
void read(const json& from, const char* field, T& value) {
  if (const auto found = from.find(field); found != from.end()) value = found->get<T>();
}

void read(const json& from, const char* field, std::optional<double>& value) {
  if (const auto found = from.find(field); found != from.end()) value = found->get<double>();
}

ClaimTerm term_of(const json& from) {
  for (const auto& [field, value] : from.items()) {
    if (std::find(kTermFields.begin(), kTermFields.end(), field) == kTermFields.end()) {
      throw cli::UsageError(format_text("a term has no field '{}'", field));
    }
  }
  ClaimTerm term;
  term.quantity = from.at("quantity").get<std::string>();
  if (!is_quantity(term.quantity)) {
    throw cli::UsageError(format_text("there is no quantity '{}'", term.quantity));
  }
  std::string metrics;
  read(from, "metric", metrics);
  for (const std::string& name : split_list(metrics)) term.metrics.push_back(metric_named(name));
  read(from, "size", term.size);
  read(from, "model", term.model);
  read(from, "arm", term.arm);
  read(from, "over", term.over);
  read(from, "take", term.take);
  read(from, "min_bytes", term.min_bytes);
  read(from, "max_bytes", term.max_bytes);
  read(from, "factor", term.factor);
  read(from, "plus_us", term.plus_us);
  read(from, "either_way", term.either_way);
  read(from, "below", term.below);
  read(from, "above", term.above);
  read(from, "at_least", term.at_least);
  read(from, "at_most", term.at_most);
  read(from, "show", term.show);
  read(from, "missing", term.missing);
  if (!term.below && !term.above && !term.at_least && !term.at_most) {
    throw cli::UsageError("a term needs a bound: below, above, at_least or at_most");
  }
  return term;
}

Claim claim_of(const json& from) {
  Claim claim;
  claim.id = from.at("id").get<std::string>();
  claim.text = from.at("claim").get<std::string>();
  read(from, "only_on", claim.only_on);
  read(from, "missing", claim.missing);
  if (const auto terms = from.find("terms"); terms != from.end()) {
    for (const json& term : *terms) claim.terms.push_back(term_of(term));
  }
  if (claim.terms.empty() && claim.missing.empty()) {
    throw cli::UsageError(format_text("claim {} needs terms, or 'missing'", claim.id));
  }
  return claim;
}

}  // namespace

std::vector<Claim> read_claims(std::string_view text, const std::string& name) {
  try {
    const json document = json::parse(text);
    std::vector<Claim> claims;
    for (const json& claim : document.at("claims")) claims.push_back(claim_of(claim));
    return claims;
  } catch (const json::exception& error) {
    throw cli::UsageError(format_text("{}: no list of claims: {}", name, error.what()));
  } catch (const cli::UsageError& error) {
    throw cli::UsageError(format_text("{}: {}", name, error.what()));
  }
}

}  // namespace ptxgen::gemv_bench
