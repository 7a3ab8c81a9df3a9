// src/runtime/launch/tuned_json.hpp - a measured plan as JSON
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "runtime/launch/tuned_plans.hpp"

namespace ptxgen::inline v0 {

/// All members of the record by their names; `text` of problem and plan is for human readers.
[[nodiscard]] nlohmann::json tuned_json(const TunedRecord& record);
/// The inverse. Throws `nlohmann::json::exception` or `Error` for members that are missing, have
/// another type or are out of range.
[[nodiscard]] TunedRecord tuned_record(const nlohmann::json& json);

}  // namespace ptxgen::inline v0
