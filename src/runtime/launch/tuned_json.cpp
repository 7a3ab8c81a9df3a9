// src/runtime/launch/tuned_json.cpp - a measured plan as JSON
#include "runtime/launch/tuned_json.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "ptxgen/support/error.hpp"
#include "support/format.hpp"

namespace ptxgen::inline v0 {

namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "ptxgen tuned plans 1";

// A member and its JSON name, for reading and writing.
template <class T, class V>
struct Row {
  const char* name;
  V T::*member;
};
constexpr Row<GemvProblem, std::uint32_t> kProblemNumbers[] = {
    {"k", &GemvProblem::k},
    {"n", &GemvProblem::n},
    {"a_alignment", &GemvProblem::a_alignment},
    {"x_alignment", &GemvProblem::x_alignment},
    {"y_alignment", &GemvProblem::y_alignment}};
constexpr Row<GemvProblem, bool> kProblemFlags[] = {{"scaled", &GemvProblem::scaled},
                                                    {"bias", &GemvProblem::bias},
                                                    {"residual", &GemvProblem::residual}};
constexpr Row<GemvProblem, ElementType> kProblemTypes[] = {
    {"weights", &GemvProblem::weights}, {"x", &GemvProblem::x}, {"y", &GemvProblem::y}};
constexpr Row<GemvPlan, std::uint32_t> kPlanNumbers[] = {
    {"load_bytes", &GemvPlan::load_bytes},   {"warps_out", &GemvPlan::warps_out},
    {"warps_k", &GemvPlan::warps_k},         {"rows", &GemvPlan::rows},
    {"unroll", &GemvPlan::unroll},           {"blocks", &GemvPlan::blocks},
    {"chunk_steps", &GemvPlan::chunk_steps}, {"cluster", &GemvPlan::cluster},
    {"stages", &GemvPlan::stages},           {"blocks_per_sm", &GemvPlan::blocks_per_sm}};
constexpr Row<GemvPlan, bool> kPlanFlags[] = {{"programmatic", &GemvPlan::programmatic},
                                              {"streaming", &GemvPlan::streaming}};

template <class T, class V, std::size_t n>
void write(json& to, const T& from, const Row<T, V> (&rows)[n]) {
  for (const Row<T, V>& row : rows) to[row.name] = from.*row.member;
}
// Numbers out of range are rejected, not truncated.
template <class T, class V, std::size_t n>
void read(const json& from, T& to, const Row<T, V> (&rows)[n]) {
  for (const Row<T, V>& row : rows) {
    const json& value = from.at(row.name);
    if constexpr (std::is_same_v<V, bool>) {
      to.*row.member = value.get<bool>();
    } else {
      const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() <= 0xffffffffu;
      if (!fits) {
        throw Error(Stage::Io, "damaged",
                    format_text("{} is not a 32-bit number: {}", row.name, value.dump()));
      }
      to.*row.member = value.get<std::uint32_t>();
    }
  }
}

// The value of that name.
template <class E, std::size_t n>
E named(const json& from, const char* member, const std::array<E, n>& values) {
  const std::string text = from.at(member).get<std::string>();
  for (const E value : values) {
    if (to_string(value) == text) return value;
  }
  throw Error(Stage::Io, "damaged", format_text("{} is '{}'", member, text));
}
constexpr std::array kTypes = {ElementType::f32, ElementType::f16, ElementType::bf16};
constexpr std::array kLayouts = {GemvLayout::T, GemvLayout::R};
constexpr std::array kPaths = {GemvPath::Direct, GemvPath::Async, GemvPath::Bulk};

json problem_json(const GemvProblem& problem) {
  json result = {
      {"text", to_text(problem)}, {"layout", to_string(problem.layout)}, {"lda", problem.lda}};
  write(result, problem, kProblemNumbers);
  write(result, problem, kProblemFlags);
  for (const auto& row : kProblemTypes) result[row.name] = to_string(problem.*row.member);
  return result;
}
GemvProblem problem_of(const json& from) {
  GemvProblem problem;
  problem.layout = named(from, "layout", kLayouts);
  problem.lda = from.at("lda").get<std::uint64_t>();
  read(from, problem, kProblemNumbers);
  read(from, problem, kProblemFlags);
  for (const auto& row : kProblemTypes) problem.*row.member = named(from, row.name, kTypes);
  check(problem);
  return problem;
}

json plan_json(const GemvPlan& plan) {
  json result = {{"text", to_text(plan)}, {"path", to_string(plan.path)}};
  write(result, plan, kPlanNumbers);
  write(result, plan, kPlanFlags);
  return result;
}
GemvPlan plan_of(const json& from, const GemvProblem& problem) {
  GemvPlan plan;
  plan.problem = problem;
  plan.path = named(from, "path", kPaths);
  read(from, plan, kPlanNumbers);
  read(from, plan, kPlanFlags);
  return plan;
}

json place_json(const TunedPlace& place) {
  return {{"device", place.device},
          {"sm", place.sm},
          {"driver", place.driver},
          {"version", place.version}};
}
TunedPlace place_of(const json& from) {
  TunedPlace place;
  place.device = from.at("device").get<std::string>();
  place.sm = from.at("sm").get<std::uint16_t>();
  place.driver = from.at("driver").get<int>();
  place.version = from.at("version").get<std::string>();
  return place;
}

// The fields that identify the problem and the device of a record.
json key_of(const json& record) {
  if (!record.is_object()) return {};
  json problem = record.value("problem", json());
  if (problem.is_object()) problem.erase("text");
  return {record.value("place", json()), std::move(problem)};
}

// The list of records of a file, or null.
const json* records_in(const json& document) {
  if (!document.is_object() || document.value("format", json()) != kFormat) return nullptr;
  const auto found = document.find("records");
  return found != document.end() && found->is_array() ? &*found : nullptr;
}

}  // namespace

json tuned_json(const TunedRecord& record) {
  json candidates = json::array();
  for (const TunedCandidate& one : record.candidates) {
    json result = {{"plan", one.plan}};
    if (one.failure.empty()) {
      result["median_us"] = one.median_us;
    } else {
      result["failure"] = one.failure;
    }
    candidates.push_back(std::move(result));
  }
  json result = {{"place", place_json(record.place)},
                 {"problem", problem_json(record.problem)},
                 {"metric", record.metric},
                 {"samples", record.samples},
                 {"candidates", std::move(candidates)}};
  if (!record.plan) {
    result["failure"] = record.failure;
    return result;
  }
  result["plan"] = plan_json(*record.plan);
  result["median_us"] = record.median_us;
  result["ci_low_us"] = record.low_us;
  result["ci_high_us"] = record.high_us;
  result["planned_us"] = record.planned_us;
  return result;
}

TunedRecord tuned_record(const json& from) {
  TunedRecord record;
  record.place = place_of(from.at("place"));
  record.problem = problem_of(from.at("problem"));
  record.metric = from.at("metric").get<std::string>();
  record.samples = from.at("samples").get<std::uint64_t>();
  if (const auto failed = from.find("failure"); failed != from.end()) {
    record.failure = failed->get<std::string>();
  } else {
    record.plan = plan_of(from.at("plan"), record.problem);
    record.median_us = from.at("median_us").get<double>();
    record.low_us = from.at("ci_low_us").get<double>();
    record.high_us = from.at("ci_high_us").get<double>();
    record.planned_us = from.value("planned_us", 0.0);
  }
  return record;
}

std::vector<TunedRecord> read_tuned(std::string_view text, std::string& why) {
  std::vector<TunedRecord> records;
  const json document = json::parse(text.begin(), text.end(), nullptr, false);
  const json* const list = records_in(document);
  if (list == nullptr) {
    why = "this is not a file of measured plans";
    return records;
  }
  std::size_t bad = 0;
  std::string first;
  for (const json& one : *list) {
    try {
      records.push_back(tuned_record(one));
    } catch (const Error& error) {
      if (bad++ == 0) first = error.message;
    } catch (const json::exception& error) {
      if (bad++ == 0) first = error.what();
    }
  }
  if (bad != 0) {
    why = format_text("{} of {} records cannot be read, the first: {}", bad, list->size(), first);
  }
  return records;
}

std::string merge_tuned(std::string_view existing, std::span<const TunedRecord> fresh) {
  json document = {{"format", kFormat}, {"records", json::array()}};
  if (!existing.empty()) {
    document = json::parse(existing.begin(), existing.end(), nullptr, false);
    if (records_in(document) == nullptr) {
      throw Error(Stage::Io, "damaged",
                  "is not a file of measured plans and is not overwritten; move it elsewhere");
    }
  }
  json& records = document["records"];
  for (const TunedRecord& record : fresh) {
    json result = tuned_json(record);
    const auto same = std::find_if(records.begin(), records.end(),
                                   [&](const json& one) { return key_of(one) == key_of(result); });
    if (same == records.end()) {
      records.push_back(std::move(result));
    } else {
      *same = std::move(result);
    }
  }
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace ptxgen::inline v0
